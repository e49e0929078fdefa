use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};
use windrow_clickhouse::native::{client, server, ChunkReader, Fault};
use windrow_http::{within, ReadHalf, Stream, WriteHalf};

use super::chunked::{Reader, Writer};

/// What an idle connection keeps of its buffer at most.
const KEPT_BYTES: usize = 16 * 1024;
/// How much is read at a time, if nobody has said that more is to come.
const READ_BYTES: usize = 64 * 1024;
/// What waits for the first byte of a packet.
const FIRST_BYTES: usize = 512;

/// One side of a connection, with what has come and has not been used.
pub(crate) struct Wire {
    pub(super) read: ReadHalf,
    pub(super) write: WriteHalf,
    pub(super) input: Vec<u8>,
    /// Told to the peer with what comes next, or before anything is waited for.
    out: Vec<u8>,
    /// How long the peer may be silent, or take nothing.
    pub(super) idle: Duration,
}

/// Why something is not waited for any more.
pub(crate) enum Stopped {
    Cancelled,
    Gone,
}

impl Wire {
    pub(super) fn new(stream: Stream, idle: Duration) -> Wire {
        let (read, write) = stream.into_split();
        Wire { read, write, input: Vec::new(), out: Vec::new(), idle }
    }

    /// From here on packets come in chunks; and from what has come.
    pub(super) fn read_chunks(&mut self) -> Result<(), Fault> {
        let mut chunks = ChunkReader::default();
        let kept = chunks.strip(&mut self.input)?;
        self.input.truncate(kept);
        let half = std::mem::replace(&mut self.read, ReadHalf::Framed(Box::new(tokio::io::empty())));
        self.read = ReadHalf::Framed(Box::new(Reader::new(half, chunks)));
        Ok(())
    }

    /// From here on packets go in chunks.
    pub(super) fn write_chunks(&mut self) {
        let half = std::mem::replace(&mut self.write, WriteHalf::Framed(Box::new(tokio::io::empty())));
        self.write = WriteHalf::Framed(Box::new(Writer::new(half)));
    }

    /// Waits until `at_least` bytes are there.
    pub(super) async fn fill(&mut self, at_least: usize) -> io::Result<()> {
        while self.input.len() < at_least {
            self.flush().await?;
            within(self.idle, read_more(&mut self.read, &mut self.input, at_least)).await?;
        }
        Ok(())
    }

    /// Reads something from the bytes behind `from`, as often as it takes until all of it is there. Tells how many bytes
    /// it has.
    pub(super) async fn parse<T>(
        &mut self,
        from: usize,
        parse: impl Fn(&[u8]) -> Result<(T, usize), Fault>,
    ) -> io::Result<Result<(T, usize), Fault>> {
        loop {
            match parse(&self.input[from..]) {
                Err(Fault::Incomplete { at_least }) => self.fill(from + at_least).await?,
                result => return Ok(result),
            }
        }
    }

    /// Whether the peer has closed. What has come of it is kept.
    pub(super) fn has_ended(&mut self) -> bool {
        let (mut first, mut context) = ([0; FIRST_BYTES], Context::from_waker(Waker::noop()));
        let mut first = ReadBuf::new(&mut first);
        match Pin::new(&mut self.read).poll_read(&mut context, &mut first) {
            Poll::Pending => false,
            Poll::Ready(Err(_)) => true,
            Poll::Ready(Ok(())) => {
                self.input.extend_from_slice(first.filled());
                first.filled().is_empty()
            }
        }
    }

    /// Lets go of the first bytes.
    pub(super) fn consume(&mut self, bytes: usize) {
        self.input.drain(..bytes);
        if self.input.is_empty() && self.input.capacity() > KEPT_BYTES {
            self.input = Vec::new();
        }
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.out.is_empty() {
            return self.write.send(bytes, self.idle).await;
        }
        self.queue(bytes);
        self.flush().await
    }

    /// Waits for something that goes on whatever the client does, and answers pings meanwhile. What else it says is looked at later.
    pub(super) async fn until_done<T>(&mut self, work: impl Future<Output = T>) -> T {
        tokio::pin!(work);
        tokio::select! {
            biased;
            done = &mut work => done,
            _ = self.answer_pings() => work.await,
        }
    }

    /// The same of something that ends when the client cancels or leaves.
    pub(super) async fn unless_stopped<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Stopped> {
        tokio::pin!(work);
        let said = tokio::select! {
            biased;
            done = &mut work => return Ok(done),
            said = self.answer_pings() => said,
        };
        match said.map(u64::from) {
            Some(client::CANCEL) => {
                self.consume(1);
                Err(Stopped::Cancelled)
            }
            Some(_) => Ok(work.await),
            None => Err(Stopped::Gone),
        }
    }

    /// Until the client says something else, which is not taken; `None` if it has gone.
    async fn answer_pings(&mut self) -> Option<u8> {
        loop {
            match first_byte(&mut self.read, &mut self.input).await? {
                kind if u64::from(kind) == client::PING => self.send(&[server::PONG as u8]).await.ok()?,
                kind => return Some(kind),
            }
            self.consume(1);
        }
    }

    /// Sends it with what comes next.
    pub(super) fn queue(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    pub(super) async fn flush(&mut self) -> io::Result<()> {
        if !self.out.is_empty() {
            self.write.send(&self.out, self.idle).await?;
            self.out.clear();
        }
        Ok(())
    }
}

/// Reads once. Nothing that has come is lost if this is dropped.
pub(super) async fn read_more(read: &mut ReadHalf, input: &mut Vec<u8>, wanted: usize) -> io::Result<()> {
    let count = if input.capacity() == 0 {
        // While nothing comes, nothing is held for it.
        let mut first = [0; FIRST_BYTES];
        let count = read.read(&mut first).await?;
        input.extend_from_slice(&first[..count]);
        count
    } else {
        let missing = wanted.saturating_sub(input.len());
        if input.capacity() - input.len() < FIRST_BYTES.max(missing.min(READ_BYTES)) {
            input.reserve(missing.clamp(FIRST_BYTES, READ_BYTES).max(input.len()));
        }
        read.read_buf(input).await?
    };
    match count {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(()),
    }
}

/// Of what comes next; `None` if the peer has gone. It is not taken.
pub(super) async fn first_byte(read: &mut ReadHalf, input: &mut Vec<u8>) -> Option<u8> {
    if input.is_empty() {
        read_more(read, input, 1).await.ok()?;
    }
    input.first().copied()
}
