//! The limit of the memory that a payload may take.
//!
//! These formats repeat values by reference (dictionaries, runs) and compress parts of themselves, so a few
//! bytes can stand for any number of rows. Everything that is larger than its source is granted here first.

use windrow_columns::NotParsedReason;

/// The most bytes that a payload expands to. ClickHouse reads a larger one, under its own limits.
pub(crate) const MAX_EXPANDED_BYTES: usize = 256 << 20;

const MAX_MESSAGE_BYTES: usize = 64 << 20;

pub(crate) struct Budget {
    left_bytes: usize,
}

impl Budget {
    pub(crate) fn new() -> Self {
        Budget { left_bytes: MAX_EXPANDED_BYTES }
    }

    /// Makes the budget for a message of a topic; many of these are held at once.
    pub(crate) fn of_message() -> Self {
        Budget { left_bytes: MAX_MESSAGE_BYTES }
    }

    pub(crate) fn take(&mut self, bytes: usize) -> Result<(), NotParsedReason> {
        self.left_bytes = self.left_bytes.checked_sub(bytes).ok_or(NotParsedReason::Value)?;
        Ok(())
    }

    /// Grants memory for `count` values of `width` bytes.
    pub(crate) fn take_values(&mut self, count: usize, width: usize) -> Result<(), NotParsedReason> {
        self.take(count.checked_mul(width).ok_or(NotParsedReason::Value)?)
    }
}
