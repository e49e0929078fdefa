//! Messages of a pipeline that could not be stored: the contents of their dead letters, and how they become
//! rows again.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::records::MessageRecord;
use crate::sink::Destination;
use windrow_clickhouse::ErrorCode;
use windrow_columns::Rows;

use super::summary::{beginning, Origin, Stream};

/// The largest value that is kept whole, in bytes; only the beginning of a longer one is kept. Brokers take
/// messages of 1 MiB, unless they are told otherwise.
pub const MAX_VALUE_BYTES: usize = 16 << 20;
/// The longest error text that is kept, in bytes. ClickHouse's errors may quote rows, and a longer text helps
/// no reader.
const MAX_ERROR_BYTES: usize = 16 << 10;

/// The data that messages of one topic share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageSource {
    /// The pipeline's name: a retry asks the pipeline of this name to read the message.
    pub pipeline: String,
    pub topic: String,
    /// The topic's id; zeros where the brokers give topics no ids.
    pub topic_id: [u8; 16],
    pub database: String,
    pub table: String,
    /// The format in which the pipeline reads.
    pub format: String,
}

/// A message that can't be stored, with all its data. Dead letters of one source, partition and offset are
/// one dead letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageDeadLetter {
    pub source: Arc<MessageSource>,
    pub partition: i32,
    pub offset: i64,
    pub timestamp_ms: i64,
    pub key: Option<Vec<u8>>,
    pub headers: Vec<(String, Option<Vec<u8>>)>,
    pub value: Option<Vec<u8>>,
    /// The code of the backend's error; `OK` if the error is not the backend's.
    pub code: ErrorCode,
    pub error: String,
    /// True if the message could be read: then its rows were sent, and the backend refused them.
    pub was_read: bool,
    /// The number of attempts to store the message.
    pub attempts: u32,
    pub failed_wall_micros: u64,
}

impl MessageSource {
    pub(super) fn of(origin: &Origin, stream: &Stream) -> MessageSource {
        MessageSource {
            pipeline: stream.pipeline.clone(),
            topic: stream.topic.clone(),
            topic_id: stream.topic_id,
            database: origin.database.clone(),
            table: origin.table.clone(),
            format: origin.format.clone(),
        }
    }
}

impl MessageDeadLetter {
    /// Returns the record of the message, cut to the bounds of dead letters.
    pub(super) fn record(&self) -> MessageRecord<'_> {
        let value = self.value.as_deref();
        MessageRecord {
            failed_micros: self.failed_wall_micros,
            code: self.code,
            error: beginning(&self.error, MAX_ERROR_BYTES),
            was_read: self.was_read,
            attempts: self.attempts,
            partition: self.partition,
            offset: self.offset,
            timestamp_ms: self.timestamp_ms,
            value_bytes: value.map_or(0, <[u8]>::len) as u64,
            key: self.key.as_deref(),
            headers: self.headers.iter().map(|(name, value)| (name.as_str(), value.as_deref())).collect(),
            value: value.map(|value| &value[..value.len().min(MAX_VALUE_BYTES)]),
        }
    }

    pub(super) fn of(source: MessageSource, record: MessageRecord<'_>) -> MessageDeadLetter {
        let owned = |(name, value): (&str, Option<&[u8]>)| (name.to_owned(), value.map(<[u8]>::to_vec));
        MessageDeadLetter {
            source: Arc::new(source),
            partition: record.partition,
            offset: record.offset,
            timestamp_ms: record.timestamp_ms,
            key: record.key.map(<[u8]>::to_vec),
            headers: record.headers.into_iter().map(owned).collect(),
            value: record.value.map(<[u8]>::to_vec),
            code: record.code,
            error: record.error.to_owned(),
            was_read: record.was_read,
            attempts: record.attempts,
            failed_wall_micros: record.failed_micros,
        }
    }
}

/// Messages that could not be kept. Those that are not among these are kept.
#[derive(Debug)]
pub struct MessagesNotKept {
    pub dead_letters: Vec<MessageDeadLetter>,
    pub why: NotKept,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotKept {
    /// The store is full until dead letters are retried or discarded.
    Full { max_bytes: u64 },
    /// The record could not be written. It is worth trying again soon.
    NotWritten(String),
}

impl fmt::Display for NotKept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotKept::Full { max_bytes } => write!(
                f,
                "there is no room for more dead letters (dead_letters.max_bytes, {max_bytes} bytes): retry or discard some"
            ),
            NotKept::NotWritten(why) => write!(f, "dead letters can't be written: {why}"),
        }
    }
}

/// Reader of messages that come back from the dead letters.
pub trait MessageRetrier: Send + Sync + 'static {
    /// Returns the rows of a message, as the pipeline of that name would store them now. The error is a
    /// sentence for the user who retries it.
    fn read<'a>(&'a self, message: &'a MessageDeadLetter) -> Rereading<'a>;
}

pub type Rereading<'a> = Pin<Box<dyn Future<Output = Result<MessageRows, String>> + Send + 'a>>;

/// A message as rows of a table.
#[derive(Debug)]
pub struct MessageRows {
    pub destination: Destination,
    pub rows: Rows,
}
