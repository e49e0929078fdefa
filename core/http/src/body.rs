use std::fmt;
use std::io;
use std::time::Duration;

use bytes::{Bytes, BytesMut};

use crate::chunked::ChunkedError;
use crate::framing::BodyScanner;
use crate::reader::MessageReader;

#[derive(Debug)]
pub enum BodyError {
    /// The peer closed before the end: the bytes that came are not the complete message.
    Truncated,
    /// The peer sent nothing for too long.
    Silent,
    Chunked(ChunkedError),
    Io(io::Error),
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BodyError::Truncated => f.write_str("the body ended before its announced end"),
            BodyError::Silent => f.write_str("no byte of the body came within the time-out"),
            BodyError::Chunked(error) => error.fmt(f),
            BodyError::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for BodyError {}

impl From<io::Error> for BodyError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::TimedOut => BodyError::Silent,
            _ => BodyError::Io(error),
        }
    }
}

impl BodyScanner {
    /// Returns the next run of data, as long as there is at hand; `None` at the end.
    pub(crate) async fn next(
        &mut self,
        reader: &mut MessageReader,
        idle: Duration,
    ) -> Result<Option<Bytes>, BodyError> {
        loop {
            if let BodyScanner::Done = self {
                return Ok(None);
            }
            if reader.buffered().is_empty() && reader.fill(self.expected(), idle).await? == 0 {
                return match self {
                    BodyScanner::UntilClose => {
                        *self = BodyScanner::Done;
                        Ok(None)
                    }
                    _ => Err(BodyError::Truncated),
                };
            }
            if let Some(data) = self.take(reader).map_err(BodyError::Chunked)? {
                return Ok(Some(data));
            }
        }
    }

    /// Works like [`next`](Self::next), with the framing left in the bytes.
    pub(crate) async fn next_raw(
        &mut self,
        reader: &mut MessageReader,
        idle: Duration,
    ) -> Result<Option<Bytes>, BodyError> {
        let BodyScanner::Chunked(scanner) = self else { return self.next(reader, idle).await };
        if reader.buffered().is_empty() && reader.fill(u64::MAX, idle).await? == 0 {
            return Err(BodyError::Truncated);
        }
        let length = scanner.skip(reader.buffered()).map_err(BodyError::Chunked)?;
        if scanner.is_done() {
            *self = BodyScanner::Done;
        }
        Ok(Some(reader.take(length)))
    }

    fn expected(&self) -> u64 {
        match self {
            BodyScanner::Length(length) => *length,
            // Not known; what comes in chunks is rarely small.
            BodyScanner::Chunked(_) => 32 * 1024,
            BodyScanner::UntilClose => u64::MAX,
            BodyScanner::Done => 0,
        }
    }

    /// Takes data out of the reader's buffer; returns `None` when the bytes were only framing.
    fn take(&mut self, reader: &mut MessageReader) -> Result<Option<Bytes>, ChunkedError> {
        let scanned = self.step(reader.buffered())?;
        if scanned.data.is_empty() {
            reader.discard(scanned.consumed);
            return Ok(None);
        }
        reader.discard(scanned.data.start);
        Ok(Some(reader.take(scanned.data.len())))
    }
}

/// The result of reading a body up to a limit.
#[derive(Debug)]
pub enum Collected {
    Whole(Bytes),
    /// The body is longer than the limit. The value holds the bytes that have been read so far.
    Longer(Bytes),
}

/// The body of a request that is being served.
pub struct RequestBody<'a> {
    pub(crate) state: &'a mut BodyScanner,
    pub(crate) reader: &'a mut MessageReader,
    pub(crate) idle: Duration,
}

impl RequestBody<'_> {
    pub fn is_done(&self) -> bool {
        self.state.is_done()
    }

    /// Returns the bytes that are announced and not yet read, or 0 where their number is not known: for
    /// sizing a buffer, within the caller's own bounds.
    pub fn announced_bytes(&self) -> u64 {
        match &*self.state {
            BodyScanner::Length(remaining) => *remaining,
            _ => 0,
        }
    }

    /// Returns the next run of data; `None` at the end.
    ///
    /// # Errors
    /// Fails where the peer closes before the body's end or sends nothing for too long, the chunks are
    /// malformed, or reading fails.
    pub async fn next(&mut self) -> Result<Option<Bytes>, BodyError> {
        self.state.next(self.reader, self.idle).await
    }

    /// Reads until the body ends or more than `limit` bytes have come.
    ///
    /// # Errors
    /// Fails as [`next`](Self::next) does.
    pub async fn collect(&mut self, limit: usize) -> Result<Collected, BodyError> {
        let Some(first) = self.next().await? else { return Ok(Collected::Whole(Bytes::new())) };
        if self.is_done() && first.len() <= limit {
            return Ok(Collected::Whole(first));
        }
        let mut whole = BytesMut::from(first);
        while whole.len() <= limit {
            match self.next().await? {
                Some(more) => whole.extend_from_slice(&more),
                None => return Ok(Collected::Whole(whole.freeze())),
            }
        }
        Ok(Collected::Longer(whole.freeze()))
    }

    /// Resolves when the client has gone. The result only has a meaning once the body is done.
    pub async fn client_gone(&mut self) {
        self.reader.closed(64 * 1024).await;
    }
}
