use std::io;
use std::time::Duration;

use tokio::time::Instant;

use crate::body::RequestBody;
use crate::framing::BodyScanner;
use crate::head::{head_length, HeadError, RequestHead};
use crate::limits::Limits;
use crate::reader::MessageReader;
use crate::shares::Share;
use crate::stream::{Stream, WriteHalf};

/// The most unread bytes of a body that are read to use its connection again; with more, closing is cheaper.
const MAX_DRAINED_BYTES: u64 = 256 * 1024;
/// The longest head that takes no share of the memory for long heads, in bytes.
const USUAL_HEAD_BYTES: usize = 16 * 1024;

/// The result of waiting for a request.
pub enum NextRequest {
    Request(RequestHead),
    /// The client closed, or sent nothing for the keep-alive time (before its first request, the time for a
    /// head).
    Closed,
    /// The head can't be used: answer with the error's status and close.
    Refused(HeadError),
    /// The head began and did not end in time: answer 408 and close.
    TooSlow,
}

/// The server's side of one connection.
pub struct Connection {
    reader: MessageReader,
    writer: WriteHalf,
    body: BodyScanner,
    continue_owed: bool,
    requests: u32,
    /// The latest head. A client that sends the same head again, byte for byte, saves the parsing of it.
    latest: Option<RequestHead>,
    /// The share of the memory for long heads that this connection holds until the next request.
    long_head: Share,
    limits: std::sync::Arc<Limits>,
}

impl Connection {
    pub fn new(stream: Stream, limits: std::sync::Arc<Limits>) -> Connection {
        let peer = stream.peer();
        let (read, write) = stream.into_split();
        Connection {
            reader: MessageReader::new(read),
            writer: write,
            body: BodyScanner::Done,
            continue_owed: false,
            requests: 0,
            latest: None,
            long_head: limits.long_heads.of(peer),
            limits,
        }
    }

    /// Waits for the next request. Dropping the future between requests is safe: bytes that came are kept.
    ///
    /// # Errors
    /// Fails where reading fails for another reason than a time-out.
    pub async fn next_request(&mut self) -> io::Result<NextRequest> {
        if !self.drain().await? {
            return Ok(NextRequest::Closed);
        }
        if self.long_head.bytes() > 0 {
            self.reader.shrink();
            self.long_head.give_back();
        }
        let idle = if self.requests == 0 { self.limits.head_timeout } else { self.limits.keep_alive_timeout };
        if self.reader.buffered().is_empty() {
            match self.reader.fill(0, idle).await {
                Ok(0) => return Ok(NextRequest::Closed),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::TimedOut => return Ok(NextRequest::Closed),
                Err(error) => return Err(error),
            }
        }
        self.read_head().await
    }

    async fn read_head(&mut self) -> io::Result<NextRequest> {
        // The latest head ends with a blank line, so what begins with it begins with a whole head.
        if let Some(latest) = self.latest.take_if(|latest| self.reader.buffered().starts_with(latest.raw())) {
            self.reader.discard(latest.raw().len());
            return Ok(self.begin(latest));
        }
        let mut looked = 0;
        let mut deadline = None;
        let length = loop {
            // RFC 9112, section 2.2: empty lines before a request are to be ignored.
            if looked == 0 {
                let blank = self.reader.buffered().iter().take_while(|&&b| matches!(b, b'\r' | b'\n')).count();
                self.reader.discard(blank);
            }
            if let Some(length) = head_length(self.reader.buffered(), looked) {
                break length;
            }
            looked = self.reader.buffered().len();
            if looked > self.limits.max_head_bytes {
                return Ok(NextRequest::Refused(HeadError::TooLarge));
            }
            if looked > USUAL_HEAD_BYTES && !self.long_head.grow_to(looked as u64) {
                return Ok(NextRequest::Refused(HeadError::NoRoom));
            }
            let deadline = *deadline.get_or_insert_with(|| Instant::now() + self.limits.head_timeout);
            let left = deadline.saturating_duration_since(Instant::now());
            match self.reader.fill(0, left.max(Duration::from_millis(1))).await {
                Ok(0) if looked == 0 => return Ok(NextRequest::Closed),
                Ok(0) => return Ok(NextRequest::Refused(HeadError::Malformed)),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::TimedOut => return Ok(NextRequest::TooSlow),
                Err(error) => return Err(error),
            }
        };
        if length > self.limits.max_head_bytes {
            return Ok(NextRequest::Refused(HeadError::TooLarge));
        }
        let head = match RequestHead::parse(self.reader.take(length), self.limits.max_fields) {
            Ok(head) => head,
            Err(error) => {
                // Where its body would end is not known.
                self.body = BodyScanner::UntilClose;
                return Ok(NextRequest::Refused(error));
            }
        };
        Ok(self.begin(head))
    }

    fn begin(&mut self, head: RequestHead) -> NextRequest {
        self.requests += 1;
        self.body = BodyScanner::new(head.framing());
        self.continue_owed = !self.body.is_done() && head.expects_continue();
        self.latest = (head.raw().len() <= USUAL_HEAD_BYTES).then(|| head.clone());
        NextRequest::Request(head)
    }

    /// Returns the body of the current request and the writer to its client. A client that waits for `100
    /// Continue` gets it here.
    ///
    /// # Errors
    /// Fails where `100 Continue` can't be sent.
    pub async fn body(&mut self) -> io::Result<(RequestBody<'_>, &mut WriteHalf)> {
        if std::mem::take(&mut self.continue_owed) {
            self.writer.send(b"HTTP/1.1 100 Continue\r\n\r\n", self.limits.write_idle_timeout).await?;
        }
        let idle = self.limits.body_idle_timeout;
        Ok((RequestBody { state: &mut self.body, reader: &mut self.reader, idle }, &mut self.writer))
    }

    /// Sends bytes of an answer.
    ///
    /// # Errors
    /// Fails where the client takes no byte for the write time-out, or writing fails.
    pub async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.writer.send(bytes, self.limits.write_idle_timeout).await
    }

    /// Closes so that the client can still read the answer: bytes that the client still sends are read and
    /// dropped for a moment, because closing on unread bytes would reset the connection and could lose the
    /// answer.
    pub async fn close(mut self) {
        let all_read = self.body.is_done() && !self.continue_owed && self.reader.buffered().is_empty();
        if tokio::io::AsyncWriteExt::shutdown(&mut self.writer).await.is_err() || all_read {
            return;
        }
        let lingering = async {
            while self.reader.fill(0, Duration::from_secs(1)).await.is_ok_and(|read| read > 0) {
                let held = self.reader.buffered().len();
                self.reader.discard(held);
            }
        };
        let _ = tokio::time::timeout(Duration::from_secs(2), lingering).await;
    }

    /// Says whether everything that the client announced has been read.
    pub fn body_is_done(&self) -> bool {
        self.body.is_done() && !self.continue_owed
    }

    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns the number of requests that this connection will still answer, for `Keep-Alive: max`.
    pub fn requests_left(&self) -> u32 {
        self.limits.max_requests.saturating_sub(self.requests)
    }

    /// Reads the rest of the last request's body. Returns false where that is not worth it, or not possible.
    async fn drain(&mut self) -> io::Result<bool> {
        if self.continue_owed {
            // The client never got its go-ahead, so it may or may not send the body: the framing is lost.
            return Ok(false);
        }
        let mut drained = 0;
        while !self.body.is_done() {
            match self.body.next(&mut self.reader, self.limits.body_idle_timeout).await {
                Ok(Some(data)) => drained += data.len() as u64,
                Ok(None) => break,
                Err(_) => return Ok(false),
            }
            if drained > MAX_DRAINED_BYTES {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
