//! Errors of a record batch.

use std::fmt;

/// The cause why a batch can't be read. `offset` is that of the batch's first record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BatchError {
    /// The batch does not match its checksum.
    Checksum { offset: i64 },
    /// The batch breaks the format, in the way that `what` says.
    Corrupt { offset: i64, what: String },
    /// The batch is of an older format.
    Magic { offset: i64, magic: i8 },
    /// The batch has a compression that is not known here.
    Compression { offset: i64, id: u8 },
    /// The batch would be larger than the limit when decompressed.
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
