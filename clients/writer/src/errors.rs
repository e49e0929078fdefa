//! Rows that could not be stored, with the error, until the program takes them.
//!
//! Errors that nobody takes are dropped, oldest first, and counted: an unread error never holds up a writer.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use windrow_clickhouse::ErrorCode;

use crate::destination::Destination;
use crate::id::BatchId;
use crate::rows::Body;

/// Rows that are handed over to the program because of an error.
#[derive(Debug, Clone)]
pub struct WriteError {
    pub batch_id: BatchId,
    pub reason: Reason,
    /// ClickHouse's code, if ClickHouse refused the rows.
    pub code: Option<ErrorCode>,
    pub message: String,
    /// The number of rows that the error is about; as many as `rows` has, unless they are lost.
    pub row_count: u64,
    pub rows: Body,
    /// The destination that the rows should have gone to; says how they are encoded.
    pub destination: Arc<Destination>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// ClickHouse does not take these rows' values.
    Values,
    /// ClickHouse takes no rows for this table, or not from this account.
    Refused,
    /// A view of the table failed. The table itself may have the rows.
    MaybeStored,
    /// The writer has retried for as long as it was told to. The rows may be stored, if an answer was lost.
    GaveUp,
    /// The buffer's files are damaged, and the rows can't be read any more: the error has none.
    Lost,
    /// The writer was closed before the rows were sent.
    Closed,
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.row_count;
        let why = match self.reason {
            Reason::Values | Reason::Refused => "were refused",
            Reason::MaybeStored => "may be stored or not",
            Reason::GaveUp => "were given up after retries",
            Reason::Lost => "are lost",
            Reason::Closed => "were not stored before the writer closed",
        };
        write!(f, "{rows} rows for {} {why}: {}", self.destination.table, self.message)
    }
}

impl std::error::Error for WriteError {}

/// The latest errors, as many as there is room for.
pub(crate) struct ErrorRing {
    errors: VecDeque<Arc<WriteError>>,
    held_bytes: u64,
    max_errors: usize,
    max_bytes: u64,
    pub(crate) dropped: u64,
}

impl ErrorRing {
    pub(crate) fn new(max_errors: usize, max_bytes: u64) -> ErrorRing {
        ErrorRing { errors: VecDeque::new(), held_bytes: 0, max_errors, max_bytes, dropped: 0 }
    }

    pub(crate) fn push(&mut self, error: Arc<WriteError>) {
        self.held_bytes += held_bytes(&error);
        self.errors.push_back(error);
        while self.errors.len() > self.max_errors || self.held_bytes > self.max_bytes {
            if self.pop().is_none() {
                break;
            }
            self.dropped += 1;
        }
    }

    pub(crate) fn pop(&mut self) -> Option<Arc<WriteError>> {
        let error = self.errors.pop_front()?;
        self.held_bytes -= held_bytes(&error);
        Some(error)
    }
}

fn held_bytes(error: &WriteError) -> u64 {
    error.rows.rows().held_bytes() + error.message.len() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(bytes: usize) -> Arc<WriteError> {
        Arc::new(WriteError {
            batch_id: BatchId(1),
            reason: Reason::Values,
            code: Some(ErrorCode::VIOLATED_CONSTRAINT),
            message: String::new(),
            row_count: 1,
            rows: Body::new(vec![0; bytes], vec![bytes as u32]),
            destination: Arc::default(),
        })
    }

    #[test]
    fn what_nobody_takes_is_dropped_and_counted() {
        let mut ring = ErrorRing::new(3, 1000);
        (0..5).for_each(|_| ring.push(error(1)));
        assert_eq!((ring.errors.len(), ring.dropped), (3, 2));
        ring.push(error(995));
        assert_eq!((ring.errors.len(), ring.dropped), (1, 5));
        ring.push(error(2000));
        assert_eq!((ring.errors.len(), ring.dropped, ring.held_bytes), (0, 7, 0));
    }
}
