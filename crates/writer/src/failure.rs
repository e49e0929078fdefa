//! What may be concluded from a failed attempt.

use std::fmt;

/// Why an attempt to store a batch failed.
#[derive(Debug, Clone)]
pub struct Failure {
    pub kind: FailureKind,
    /// ClickHouse's code, if it was ClickHouse that answered.
    pub code: Option<i32>,
    pub message: String,
    /// The row, counted from 1, that the error names. A hint.
    pub row: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// It may pass, or it isn't known what became of the attempt: the same rows are sent again under the same id.
    Passing,
    /// Some row's values; nothing of the batch is stored. It is narrowed down until the guilty rows are known.
    Values,
    /// The table, its columns or the account, not the rows; nothing of the batch is stored. It won't pass by itself: a buffer
    /// that survives tries again, another hands the rows over with the error.
    Refused,
    /// It won't pass, and rows may be stored, since it was a view of the table that failed. Handed over with the error.
    MaybeStored,
}

impl Failure {
    /// No answer came, or none could be asked for.
    pub fn passing(message: impl Into<String>) -> Failure {
        Failure { kind: FailureKind::Passing, code: None, message: message.into(), row: None }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
