use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};
use windrow_clickhouse::native::{client, server, ChunkReader, Fault};
use windrow_http::{within, ReadHalf, Stream, WriteHalf};

use super::chunked::{Reader, Writer};

/// Largest buffer that an idle connection keeps, in bytes.
const KEPT_BYTES: usize = 16 * 1024;
/// Largest number of missing bytes that room is made for at a time.
const READ_BYTES: usize = 64 * 1024;
/// Size of the buffer that waits for the first byte of a packet.
const FIRST_BYTES: usize = 512;

/// One side of a connection, with the bytes that have come and have not been used.
pub(crate) struct Wire {
    pub(super) read: ReadHalf,
    pub(super) write: WriteHalf,
    pub(super) input: Vec<u8>,
    /// Bytes that are sent to the peer with the next ones, or before anything is waited for.
    out: Vec<u8>,
    /// Time that the peer may be silent, or take nothing.
    pub(super) idle: Duration,
}

/// The reason why something is not waited for any more.
pub(crate) enum Stopped {
    Cancelled,
    Gone,
}

impl Wire {
    pub(super) fn new(stream: Stream, idle: Duration) -> Wire {
        let (read, write) = stream.into_split();
        Wire { read, write, input: Vec::new(), out: Vec::new(), idle }
    }

    /// Reads packets in chunks from now on, and the bytes that have come already.
    pub(super) fn read_chunks(&mut self) -> Result<(), Fault> {
        let mut chunks = ChunkReader::default();
        let kept = chunks.strip(&mut self.input)?;
        self.input.truncate(kept);
        let half = std::mem::replace(&mut self.read, ReadHalf::Framed(Box::new(tokio::io::empty())));
        self.read = ReadHalf::Framed(Box::new(Reader::new(half, chunks)));
        Ok(())
    }

    /// Writes packets in chunks from now on.
    pub(super) fn write_chunks(&mut self) {
        let half = std::mem::replace(&mut self.write, WriteHalf::Framed(Box::new(tokio::io::empty())));
        self.write = WriteHalf::Framed(Box::new(Writer::new(half)));
    }

    /// Waits until the input has `at_least` bytes.
    pub(super) async fn fill(&mut self, at_least: usize) -> io::Result<()> {
        while self.input.len() < at_least {
            self.flush().await?;
            within(self.idle, read_more(&mut self.read, &mut self.input, at_least)).await?;
        }
        Ok(())
    }

    /// Reads something from the bytes behind `from`, as often as it takes until all of it is there. Returns
    /// also how many bytes it has.
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

    /// Says whether the peer has closed. Bytes that have come are kept.
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

    /// Drops the first bytes of the input.
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

    /// Waits for work that goes on whatever the client does, and answers pings meanwhile. Other packets are
    /// looked at later.
    pub(super) async fn until_done<T>(&mut self, work: impl Future<Output = T>) -> T {
        tokio::pin!(work);
        tokio::select! {
            biased;
            done = &mut work => done,
            _ = self.answer_pings() => work.await,
        }
    }

    /// Waits for work like [`until_done`](Wire::until_done), but only until the client cancels or leaves.
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

    /// Answers pings until another packet comes, which is not taken. Returns its first byte; `None` if the
    /// client has gone.
    async fn answer_pings(&mut self) -> Option<u8> {
        loop {
            match first_byte(&mut self.read, &mut self.input).await? {
                kind if u64::from(kind) == client::PING => self.send(&[server::PONG as u8]).await.ok()?,
                kind => return Some(kind),
            }
            self.consume(1);
        }
    }

    /// Queues bytes, which are sent with the next ones.
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

/// Returns the first byte of what comes next, without taking it; `None` if the peer has gone.
pub(super) async fn first_byte(read: &mut ReadHalf, input: &mut Vec<u8>) -> Option<u8> {
    if input.is_empty() {
        read_more(read, input, 1).await.ok()?;
    }
    input.first().copied()
}
