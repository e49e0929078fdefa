//! The options of a writer's core.

use crate::retry::{Backoff, Retry};

/// Options that all ways to drive a writer have in common.
pub struct Options {
    /// The most rows of a batch.
    pub batch_rows: usize,
    /// The most bytes of a batch; a single row may be larger.
    pub batch_bytes: usize,
    /// The time for which a row waits for others, in milliseconds.
    pub flush_interval_ms: u64,
    /// The most bytes of rows that wait or are in flight. Where rows are kept on a disk, the disk's own limit
    /// counts, too.
    pub max_bytes: u64,
    /// The most batches that are sent at once, or wait to be sent again.
    pub max_in_flight: usize,
    /// True if one batch is sent after the other, each only when the one before has come to its end.
    pub ordered: bool,
    pub retry: Box<dyn Retry>,
    /// The most errors that wait for the program to take them.
    pub max_errors: usize,
    pub max_error_bytes: u64,
    /// The time between two looks for batches of dead processes, in milliseconds.
    pub left_overs_interval_ms: u64,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            batch_rows: 5000,
            batch_bytes: 16 << 20,
            flush_interval_ms: 1000,
            max_bytes: 256 << 20,
            max_in_flight: 4,
            ordered: false,
            retry: Box::new(Backoff::default()),
            max_errors: 1000,
            max_error_bytes: 64 << 20,
            left_overs_interval_ms: 10_000,
        }
    }
}
