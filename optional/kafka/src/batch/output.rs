//! The memory that batches are decompressed into. It is reused, and grows up to a limit as bytes really come.

use std::borrow::Cow;
use std::fmt;
use std::io::Read;

/// The least number of bytes that the memory grows by.
const MIN_GROWTH_BYTES: usize = 64 << 10;
/// Bytes that may be kept for the next batch. Larger memory is freed.
const MAX_KEPT_BYTES: usize = 16 << 20;

/// The cause why a batch can't be decompressed.
#[derive(Debug)]
pub(crate) enum Failure {
    TooLarge,
    Damaged(Cow<'static, str>),
}

impl Failure {
    pub(crate) const CUT: Failure = Failure::Damaged(Cow::Borrowed("it is cut off"));

    pub(crate) fn damaged(reason: impl fmt::Display) -> Self {
        Self::Damaged(reason.to_string().into())
    }
}

pub(crate) struct Output {
    /// The memory. The part behind `filled` is left from an earlier batch and need not be cleared again.
    bytes: Vec<u8>,
    filled: usize,
    max_bytes: usize,
}

impl Output {
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self { bytes: Vec::new(), filled: 0, max_bytes }
    }

    pub(crate) fn max_bytes(&self) -> usize {
        self.max_bytes
    }

    pub(crate) fn clear(&mut self) {
        self.filled = 0;
        if self.bytes.len() > MAX_KEPT_BYTES {
            self.bytes = Vec::new();
        }
    }

    pub(crate) fn filled(&self) -> &[u8] {
        &self.bytes[..self.filled]
    }

    /// Returns room for at least this number of bytes, and often more.
    pub(crate) fn room(&mut self, wanted: usize) -> Result<&mut [u8], Failure> {
        if wanted > self.max_bytes - self.filled {
            return Err(Failure::TooLarge);
        }
        if wanted > self.bytes.len() - self.filled {
            let doubled = self.bytes.len().saturating_mul(2);
            self.bytes.resize((self.filled + wanted).max(doubled).min(self.max_bytes), 0);
        }
        Ok(&mut self.bytes[self.filled..])
    }

    pub(crate) fn is_full(&self) -> bool {
        self.filled == self.max_bytes
    }

    /// Returns some room, for a caller that does not know yet how much is needed.
    pub(crate) fn some_room(&mut self) -> Result<&mut [u8], Failure> {
        let wanted = MIN_GROWTH_BYTES.min(self.max_bytes - self.filled).max(1);
        self.room(wanted)
    }

    /// Counts bytes as filled that were written at the beginning of the room.
    pub(crate) fn advance(&mut self, count: usize) {
        self.filled = (self.filled + count).min(self.bytes.len());
    }

    pub(crate) fn read_all(&mut self, mut reader: impl Read) -> Result<(), Failure> {
        loop {
            if self.filled == self.max_bytes {
                // Whether that was all shows only by one byte more.
                return match reader.read(&mut [0]).map_err(Failure::damaged)? {
                    0 => Ok(()),
                    _ => Err(Failure::TooLarge),
                };
            }
            match reader.read(self.some_room()?).map_err(Failure::damaged)? {
                0 => return Ok(()),
                count => self.advance(count),
            }
        }
    }
}
