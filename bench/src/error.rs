//! What can go wrong in a benchmark, each with what to do about it.

use std::fmt;
use std::io;

use crate::wire::WireError;

#[derive(Debug)]
pub enum BenchError {
    /// A socket, file or process failed.
    Io { what: String, source: io::Error },
    /// A server answered, but not with 200.
    Refused { what: String, status: u16, text: String },
    /// A server's bytes were not HTTP/1.1.
    Wire(WireError),
    /// Something that has to be there before a benchmark can run is missing.
    Setup(String),
    /// The run finished, but what it measured can't be trusted.
    Unsound(String),
}

impl BenchError {
    pub fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> BenchError {
        let what = what.into();
        move |source| BenchError::Io { what, source }
    }
}

impl fmt::Display for BenchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BenchError::Io { what, source } => write!(f, "{what}: {source}"),
            BenchError::Refused { what, status, text } => write!(f, "{what}: answered {status}: {}", text.trim()),
            BenchError::Wire(error) => write!(f, "{error}"),
            BenchError::Setup(text) => write!(f, "{text}"),
            BenchError::Unsound(text) => write!(f, "the figures can't be used: {text}"),
        }
    }
}

impl std::error::Error for BenchError {}

impl From<WireError> for BenchError {
    fn from(error: WireError) -> Self {
        BenchError::Wire(error)
    }
}
