//! The errors of a compressed body.

use std::fmt;
use std::io;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecompressError {
    /// The decompressed body would be larger than the limit.
    TooLarge {
        max_bytes: usize,
    },
    /// The body ends too early.
    Truncated,
    Corrupt(String),
    /// A block in ClickHouse's format does not match its checksum.
    Checksum,
    /// The body is well-formed as far as it was read, but of a kind that is not decoded here; the backend may
    /// know it.
    Unsupported(String),
}

impl fmt::Display for DecompressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { max_bytes } => {
                write!(f, "the decompressed body is larger than {max_bytes} bytes: send it in smaller inserts or raise the limit")
            }
            Self::Truncated => write!(f, "the compressed body ends too early: send it again, completely"),
            Self::Corrupt(reason) => {
                write!(f, "the compressed body is damaged, or not what its encoding says: {reason}")
            }
            Self::Checksum => write!(f, "the checksum of a compressed block does not match its data: send it again"),
            Self::Unsupported(what) => write!(f, "cannot decompress {what}: use lz4 or zstd"),
        }
    }
}

impl std::error::Error for DecompressError {}

impl From<io::Error> for DecompressError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Truncated,
            _ => Self::Corrupt(error.to_string()),
        }
    }
}
