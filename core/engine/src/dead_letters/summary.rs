//! The summary of a dead letter, which is known without reading its record.

use std::fmt;
use std::sync::Arc;

use windrow_clickhouse::ErrorCode;

use crate::insert::{AckLevel, QueryId};

/// The id of a dead letter for as long as the data directory exists: no other ever gets its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeadLetterId(pub u64);

impl fmt::Display for DeadLetterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The data that many dead letters share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    pub database: String,
    pub table: String,
    pub user: String,
    /// The statement without its data.
    pub query: String,
    pub format: String,
    /// The topic that messages came from. They have no user and no statement.
    pub stream: Option<Arc<Stream>>,
}

/// A topic, as a pipeline reads it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stream {
    pub pipeline: String,
    pub topic: String,
    pub topic_id: [u8; 16],
}

/// The place of a message in its topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessagePlace {
    pub partition: i32,
    pub offset: i64,
    pub timestamp_ms: i64,
    /// True if the message could be read: then its rows were sent, and the backend refused them.
    pub was_read: bool,
}

/// The part of a dead letter that is kept in memory: all but its rows, its settings and the end of a long
/// error text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetterSummary {
    pub id: DeadLetterId,
    pub origin: Arc<Origin>,
    pub query_id: QueryId,
    pub ack: AckLevel,
    /// The place of the message, if the dead letter was one.
    pub message: Option<MessagePlace>,
    /// Time of the insert's first arrival, or the timestamp of the message, in microseconds since 1970.
    pub arrived_micros: u64,
    /// Time when it was given up, in microseconds since 1970.
    pub failed_micros: u64,
    /// The number of attempts to store it, before it became a dead letter and by `retry`.
    pub attempts: u32,
    /// The code of the last error; `OK` if the error is not ClickHouse's.
    pub code: ErrorCode,
    /// The text of the last error, at most [`ERROR_BYTES`] of it.
    pub error: Arc<str>,
    /// The number of rows; 0 for a message.
    pub rows: u64,
    pub payload_bytes: u64,
}

/// The part of an error's text that is kept in memory, in bytes.
pub const ERROR_BYTES: usize = 512;

/// Returns the beginning of a text: at most `max_bytes` of it.
pub(super) fn beginning(text: &str, max_bytes: usize) -> &str {
    if text.len() <= max_bytes {
        return text;
    }
    let end = (0..=max_bytes).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    &text[..end]
}
