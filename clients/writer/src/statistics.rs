//! The counts of a writer: its work so far, and the rows that it has in hand.

/// Counts since the writer was opened, and what it holds now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Statistics {
    pub rows_written: u64,
    pub rows_stored: u64,
    /// Rows that were handed over with an error.
    pub rows_failed: u64,
    /// Rows that were found of processes that have died.
    pub rows_left_over: u64,
    /// Rows that wait for their batch.
    pub rows_waiting: u64,
    /// Rows of batches that are sent, or wait to be sent again.
    pub rows_in_flight: u64,
    /// Bytes that count for `max_bytes`.
    pub bytes_held: u64,
    pub batches_stored: u64,
    pub batches_in_flight: u64,
    /// Attempts after a batch's first.
    pub retries: u64,
    /// Batches that were cut to find the guilty rows.
    pub batches_split: u64,
    pub errors_dropped: u64,
    /// Bytes of a buffer that could not be read as what was written.
    pub damaged_bytes: u64,
    /// The text of the latest failed attempt.
    pub last_error: Option<String>,
}
