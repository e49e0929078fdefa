//! What a payload may become in memory.
//!
//! These formats repeat values by reference (dictionaries, runs) and compress parts of themselves, so that a few bytes can
//! stand for any number of rows. Whatever is larger than what it came from is granted here first.

use windrow_columns::NotParsedReason;

/// All that a payload expands to. A larger one is ClickHouse's to read, under its own limits.
pub(crate) const MAX_EXPANDED_BYTES: usize = 256 << 20;

const MAX_MESSAGE_BYTES: usize = 64 << 20;

pub(crate) struct Budget {
    left_bytes: usize,
}

impl Budget {
    pub(crate) fn new() -> Self {
        Budget { left_bytes: MAX_EXPANDED_BYTES }
    }

    /// For a message of a topic, of which many are held at once.
    pub(crate) fn of_message() -> Self {
        Budget { left_bytes: MAX_MESSAGE_BYTES }
    }

    pub(crate) fn take(&mut self, bytes: usize) -> Result<(), NotParsedReason> {
        self.left_bytes = self.left_bytes.checked_sub(bytes).ok_or(NotParsedReason::Value)?;
        Ok(())
    }

    /// `count` values of `width` bytes.
    pub(crate) fn take_values(&mut self, count: usize, width: usize) -> Result<(), NotParsedReason> {
        self.take(count.checked_mul(width).ok_or(NotParsedReason::Value)?)
    }
}
