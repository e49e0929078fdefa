//! What can be wrong with a record batch.

use std::fmt;

/// The offset is that of the batch's first record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BatchError {
    /// It does not match its checksum.
    Checksum { offset: i64 },
    /// It doesn't say what a batch has to.
    Corrupt { offset: i64, what: String },
    /// Of an older format.
    Magic { offset: i64, magic: i8 },
    /// A compression that isn't known here.
    Compression { offset: i64, id: u8 },
    /// Decompressed it would be larger than the limit.
    TooLarge { offset: i64, max_bytes: usize },
}

impl BatchError {
    pub(crate) fn corrupt(offset: i64, what: impl Into<String>) -> Self {
        Self::Corrupt { offset, what: what.into() }
    }
}

impl fmt::Display for BatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Checksum { offset } => write!(f, "the record batch at offset {offset} does not match its checksum"),
            Self::Corrupt { offset, what } => write!(f, "the record batch at offset {offset} is damaged: {what}"),
            Self::Magic { offset, magic } => write!(
                f,
                "the record batch at offset {offset} has the message format {magic} of Kafka before 0.11, which is not read: \
                 copy the topic with a current producer"
            ),
            Self::Compression { offset, id } => {
                write!(f, "the record batch at offset {offset} has the unknown compression {id}")
            }
            Self::TooLarge { offset, max_bytes } => write!(
                f,
                "the record batch at offset {offset} has more than {max_bytes} bytes when decompressed: raise the limit"
            ),
        }
    }
}

impl std::error::Error for BatchError {}
