//! The reason why an append, or a request to one, failed.

use std::fmt;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use windrow_clickhouse::{ErrorCode, Exception};

/// An error in ClickHouse's form, and where in the append it lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppendError {
    pub exception: Exception,
    /// The status of HTTP.
    pub status: u16,
    /// The seconds after which the same request may succeed: it had no effect, and the append goes on.
    pub retry_after_seconds: Option<u32>,
    pub batch: Option<u64>,
    /// The row within the batch, from 0.
    pub row: Option<u64>,
}

impl AppendError {
    pub fn new(code: ErrorCode, text: &str) -> AppendError {
        AppendError::from(Exception::new(code, text, ""))
    }

    /// Makes an error after which nothing was taken, and the same request may work.
    pub(crate) fn try_again(code: ErrorCode, text: &str) -> AppendError {
        AppendError { status: 503, retry_after_seconds: Some(1), ..AppendError::new(code, text) }
    }

    pub(crate) fn with_status(self, status: u16) -> AppendError {
        AppendError { status, ..self }
    }

    /// Adds where the error lies, in its text as well, unless that is known better already.
    pub(crate) fn at(self, batch: u64, row: Option<u64>) -> AppendError {
        if self.batch.is_some() {
            return self;
        }
        let row = row.or(self.row);
        let place = match row {
            Some(row) => format!("DB::Exception: Batch {batch}, row {row}: "),
            None => format!("DB::Exception: Batch {batch}: "),
        };
        let line = self.exception.line.replacen("DB::Exception: ", &place, 1);
        let exception = Exception { line, ..self.exception };
        AppendError { batch: Some(batch), row, exception, ..self }
    }

    /// Says whether the append can go on after the error.
    pub fn is_passing(&self) -> bool {
        self.retry_after_seconds.is_some()
    }
}

impl From<Exception> for AppendError {
    fn from(exception: Exception) -> AppendError {
        let status = exception.http_status();
        AppendError { exception, status, retry_after_seconds: None, batch: None, row: None }
    }
}

impl fmt::Display for AppendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.exception.fmt(f)
    }
}

impl std::error::Error for AppendError {}

impl Serialize for AppendError {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("error", 4)?;
        fields.serialize_field("code", &self.exception.code.number())?;
        fields.serialize_field("text", &self.exception.line)?;
        fields.serialize_field("batch", &self.batch)?;
        fields.serialize_field("row", &self.row)?;
        fields.end()
    }
}
