use std::io;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::AsyncReadExt;

use crate::stream::{IdleTimer, ReadHalf};

/// The usual size of one read, in bytes. A small request and its body fit.
const READ_BYTES: usize = 4 * 1024;
/// The size of one read of a body that is known to be large, in bytes.
const LARGE_READ_BYTES: usize = 128 * 1024;
/// The least free room for a read. A read into less room is not worth its system call.
const MIN_ROOM_BYTES: usize = 1024;

/// Buffered reading of messages from one connection.
pub struct MessageReader {
    half: ReadHalf,
    buffer: BytesMut,
    timer: IdleTimer,
}

impl MessageReader {
    pub fn new(half: ReadHalf) -> Self {
        MessageReader { half, buffer: BytesMut::new(), timer: IdleTimer::default() }
    }

    /// Returns the bytes that have been read and not yet taken.
    pub fn buffered(&self) -> &[u8] {
        &self.buffer
    }

    pub fn take(&mut self, length: usize) -> Bytes {
        self.buffer.split_to(length).freeze()
    }

    pub fn discard(&mut self, length: usize) {
        bytes::Buf::advance(&mut self.buffer, length);
    }

    /// Frees memory beyond the bytes that have been read and not taken.
    pub fn shrink(&mut self) {
        self.buffer = BytesMut::from(&self.buffer[..]);
    }

    /// Reads some more bytes and returns their number, 0 at the end of the stream. `expected` is the known
    /// length of the rest of the message: it only sizes the buffer.
    ///
    /// # Errors
    /// Fails with the kind `TimedOut` after a silence longer than `idle`, or where reading fails.
    pub async fn fill(&mut self, expected: u64, idle: Duration) -> io::Result<usize> {
        self.reserve(expected);
        self.timer.bound(idle, self.half.read_buf(&mut self.buffer)).await
    }

    /// Resolves when the peer has closed its side. Bytes of a next, pipelined request are kept; a peer that
    /// sends more than `most` bytes of them is simply not watched any longer, and back-pressure stops it.
    pub async fn closed(&mut self, most: usize) {
        loop {
            if self.buffer.len() > most {
                return std::future::pending().await;
            }
            self.reserve(0);
            match self.half.read_buf(&mut self.buffer).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        }
    }

    fn reserve(&mut self, expected: u64) {
        let room = self.buffer.capacity() - self.buffer.len();
        let large = expected > READ_BYTES as u64;
        if room < MIN_ROOM_BYTES || (large && room < LARGE_READ_BYTES / 4) {
            let wanted = usize::try_from(expected).unwrap_or(LARGE_READ_BYTES);
            self.buffer.reserve(wanted.clamp(READ_BYTES, LARGE_READ_BYTES));
        }
    }
}
