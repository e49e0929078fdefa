//! What is known of a dead letter without reading it.

use std::fmt;
use std::sync::Arc;

use windrow_clickhouse::ErrorCode;

use crate::insert::{AckLevel, QueryId};

/// Names a dead letter for as long as the data directory exists: no other ever gets its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeadLetterId(pub u64);

impl fmt::Display for DeadLetterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What many dead letters have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    pub database: String,
    pub table: String,
    pub user: String,
    /// The statement without its data.
    pub query: String,
    pub format: String,
    /// Of messages: where they came from. They have no user and no statement.
    pub stream: Option<Arc<Stream>>,
}

/// A topic, as a pipeline reads it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stream {
    pub pipeline: String,
    pub topic: String,
    pub topic_id: [u8; 16],
}

/// Where a message stands in its topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessagePlace {
    pub partition: i32,
    pub offset: i64,
    pub timestamp_ms: i64,
    /// Whether it could be read: then its rows were sent, and the backend refused them.
    pub was_read: bool,
}

/// All of a dead letter but its rows, its settings and the end of a long error text: what is kept in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetterSummary {
    pub id: DeadLetterId,
    pub origin: Arc<Origin>,
    pub query_id: QueryId,
    pub ack: AckLevel,
    /// Of a dead letter that was a message.
    pub message: Option<MessagePlace>,
    /// When it was first acknowledged; of a message, its timestamp. This and the next in microseconds since 1970.
    pub arrived_micros: u64,
    /// When it was given up.
    pub failed_micros: u64,
    /// How often it was tried to store it, before it became a dead letter and by `retry`.
    pub attempts: u32,
    /// Code of the last error. `OK` if the error is not ClickHouse's.
    pub code: ErrorCode,
    /// At most [`ERROR_BYTES`] of the last error.
    pub error: Arc<str>,
    /// Of a message that nobody could read: 0.
    pub rows: u64,
    pub payload_bytes: u64,
}

/// How much of an error's text is kept in memory.
pub const ERROR_BYTES: usize = 512;

/// The beginning of a text: at most so many bytes of it.
pub(super) fn beginning(text: &str, max_bytes: usize) -> &str {
    if text.len() <= max_bytes {
        return text;
    }
    let end = (0..=max_bytes).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    &text[..end]
}
