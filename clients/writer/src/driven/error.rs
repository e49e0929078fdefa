//! The errors of a writer, as its caller sees them.

use std::fmt;
use std::sync::Arc;

use windrow_clickhouse::CallError;

use super::row::RowError;
use crate::buffer::{AppendError, BufferError};
use crate::errors::WriteError;

#[derive(Debug)]
pub enum WriterError {
    /// The table is not there, or not fit to be written to.
    Table(String),
    Call(CallError),
    /// A row's values don't fit the columns. Nothing of the call was taken.
    Row(RowError),
    /// The buffer didn't take rows. The rows before them in the same call are taken.
    Append(AppendError),
    Buffer(BufferError),
    /// Rows were handed over with an error; only with `wait`.
    NotStored(Arc<WriteError>),
}

impl fmt::Display for WriterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WriterError::Table(text) => write!(f, "the table can't be written to: {text}"),
            WriterError::Call(error) => error.fmt(f),
            WriterError::Row(error) => error.fmt(f),
            WriterError::Append(error) => error.fmt(f),
            WriterError::Buffer(error) => error.fmt(f),
            WriterError::NotStored(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for WriterError {}

impl From<CallError> for WriterError {
    fn from(error: CallError) -> WriterError {
        WriterError::Call(error)
    }
}

impl From<RowError> for WriterError {
    fn from(error: RowError) -> WriterError {
        WriterError::Row(error)
    }
}

impl From<AppendError> for WriterError {
    fn from(error: AppendError) -> WriterError {
        WriterError::Append(error)
    }
}

impl From<BufferError> for WriterError {
    fn from(error: BufferError) -> WriterError {
        WriterError::Buffer(error)
    }
}
