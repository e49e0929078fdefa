use std::fmt;
use std::io;
use std::time::Duration;

use bytes::{Bytes, BytesMut};

use crate::answer_head::{status_of, AnswerHeadError, AnswerHeadParser, MAX_KEPT_BYTES};
use crate::body::BodyError;
use crate::framing::BodyScanner;
use crate::head::{HeadError, ResponseHead};
use crate::reader::MessageReader;
use crate::stream::{Stream, WriteHalf};

#[derive(Debug)]
pub enum ClientError {
    Io(io::Error),
    /// The server closed before it answered.
    Closed,
    Head(AnswerHeadError),
    Body(BodyError),
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientError::Io(error) => error.fmt(f),
            ClientError::Closed => f.write_str("the server closed the connection without an answer"),
            ClientError::Head(error) => error.fmt(f),
            ClientError::Body(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ClientError {}

impl From<io::Error> for ClientError {
    fn from(error: io::Error) -> Self {
        ClientError::Io(error)
    }
}

/// The client's side of one connection.
pub struct ClientConnection {
    reader: MessageReader,
    writer: WriteHalf,
}

impl ClientConnection {
    pub fn new(stream: Stream) -> ClientConnection {
        let (read, write) = stream.into_split();
        ClientConnection { reader: MessageReader::new(read), writer: write }
    }

    /// Gives access to both directions at once: an answer may begin before the request has ended.
    pub fn split(&mut self, to_head_request: bool) -> (AnswerReader<'_>, &mut WriteHalf) {
        (AnswerReader::new(&mut self.reader, to_head_request), &mut self.writer)
    }

    /// Sends bytes of a request.
    ///
    /// # Errors
    /// Fails where the server takes no byte for `idle`, or writing fails.
    pub async fn send(&mut self, bytes: &[u8], idle: Duration) -> io::Result<()> {
        self.writer.send(bytes, idle).await
    }

    /// Says whether the server has closed the idle connection, or sent something unasked on it.
    pub fn is_stale(&mut self) -> bool {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let ended = {
            let closed = std::pin::pin!(self.reader.closed(0));
            std::future::Future::poll(closed, &mut context).is_ready()
        };
        ended || !self.reader.buffered().is_empty()
    }

    /// Waits until the answer begins, and returns its status. All of the answer remains to be read.
    ///
    /// # Errors
    /// Fails where the answer does not begin with a status line, the server closes before, nothing comes for
    /// `idle`, or reading fails.
    pub async fn read_status(&mut self, idle: Duration) -> Result<u16, ClientError> {
        loop {
            let held = self.reader.buffered();
            if let Some(end) = held.iter().position(|&byte| byte == b'\n') {
                return status_of(&held[..=end]).map_err(ClientError::Head);
            }
            if held.len() > MAX_KEPT_BYTES {
                return Err(ClientError::Head(AnswerHeadError::Head(HeadError::TooLarge)));
            }
            if self.reader.fill(0, idle).await? == 0 {
                return Err(ClientError::Closed);
            }
        }
    }

    /// Waits for the answer's head.
    ///
    /// # Errors
    /// Fails where the head is malformed or too large, the server closes before its end, nothing comes for
    /// `idle`, or reading fails.
    pub async fn read_head(&mut self, to_head_request: bool, idle: Duration) -> Result<ResponseHead, ClientError> {
        let mut answer = AnswerReader::new(&mut self.reader, to_head_request);
        loop {
            if let HeadEvent::Whole { head, .. } = answer.next_head_event(idle).await? {
                return Ok(head);
            }
        }
    }

    pub fn body(&mut self, head: &ResponseHead) -> AnswerBody<'_> {
        AnswerBody { state: BodyScanner::new(head.framing()), reader: &mut self.reader }
    }
}

/// A part of an answer's head.
pub enum HeadEvent {
    /// Complete lines, the status line first, of a head that is not complete yet.
    Lines(Bytes),
    /// The head is complete; `rest` is the part of it that no `Lines` has shown, with the blank line.
    Whole { head: ResponseHead, rest: Bytes },
}

/// The answer to one request: first its head, then its body.
pub struct AnswerReader<'a> {
    reader: &'a mut MessageReader,
    parser: AnswerHeadParser,
    /// Bytes that were searched for the end of a line and have none.
    looked: usize,
}

impl<'a> AnswerReader<'a> {
    fn new(reader: &'a mut MessageReader, to_head_request: bool) -> AnswerReader<'a> {
        AnswerReader { reader, parser: AnswerHeadParser::new(to_head_request), looked: 0 }
    }

    /// Waits for more of the head. ClickHouse adds to it while a query runs, and a caller may want to pass
    /// that on.
    ///
    /// # Errors
    /// Fails where the head is malformed or too large, the server closes before its end, nothing comes for
    /// `idle`, or reading fails.
    pub async fn next_head_event(&mut self, idle: Duration) -> Result<HeadEvent, ClientError> {
        loop {
            let held = self.reader.buffered();
            if let Some(end) = held[self.looked..].iter().rposition(|&byte| byte == b'\n') {
                let lines = &held[..=self.looked + end];
                let step = self.parser.read(lines, &mut |_| {}).map_err(ClientError::Head)?;
                let lines = self.reader.take(step.consumed);
                self.looked = 0;
                match step.whole {
                    _ if step.is_interim => continue,
                    Some(head) => return Ok(HeadEvent::Whole { head, rest: lines }),
                    None => return Ok(HeadEvent::Lines(lines)),
                }
            }
            self.looked = held.len();
            if self.looked > MAX_KEPT_BYTES {
                return Err(ClientError::Head(AnswerHeadError::Head(HeadError::TooLarge)));
            }
            if self.reader.fill(0, idle).await? == 0 {
                return Err(ClientError::Closed);
            }
        }
    }

    pub fn into_body(self, head: &ResponseHead) -> AnswerBody<'a> {
        AnswerBody { state: BodyScanner::new(head.framing()), reader: self.reader }
    }
}

/// The body of an answer.
pub struct AnswerBody<'a> {
    state: BodyScanner,
    reader: &'a mut MessageReader,
}

impl AnswerBody<'_> {
    /// Returns the next run of data; `None` at the end.
    ///
    /// # Errors
    /// Fails where the server closes before the body's end or sends nothing for `idle`, the chunks are
    /// malformed, or reading fails.
    pub async fn next(&mut self, idle: Duration) -> Result<Option<Bytes>, ClientError> {
        self.state.next(self.reader, idle).await.map_err(ClientError::Body)
    }

    /// Returns the next bytes with their framing, to be passed on unchanged; `None` at the end.
    ///
    /// # Errors
    /// Fails as [`next`](Self::next) does.
    pub async fn next_raw(&mut self, idle: Duration) -> Result<Option<Bytes>, ClientError> {
        self.state.next_raw(self.reader, idle).await.map_err(ClientError::Body)
    }

    /// Reads the whole body, and keeps `limit` bytes of it, or the first run of data if that is longer.
    ///
    /// # Errors
    /// Fails as [`next`](Self::next) does.
    pub async fn collect(&mut self, limit: usize, idle: Duration) -> Result<Bytes, ClientError> {
        let Some(first) = self.next(idle).await? else { return Ok(Bytes::new()) };
        let mut whole = BytesMut::from(first);
        while let Some(more) = self.next(idle).await? {
            let room = limit.saturating_sub(whole.len()).min(more.len());
            whole.extend_from_slice(&more[..room]);
        }
        Ok(whole.freeze())
    }
}
