//! A dead letter that was read, and the insert that it becomes when it is retried.

use std::sync::Arc;
use std::time::Duration;

use crate::policy::FlushLimits;
use crate::records::{
    decode_context, decode_insert, decode_insert_head, decode_message, decode_stream, InsertHead, MessageRecord,
};
use crate::sink::{BatchId, Destination, Form};
use windrow_columns::{native_pieces, Rows};
use windrow_log::OwnedRecord;

use super::index::{Identity, MessageKey};
use super::message::{MessageDeadLetter, MessageRows, MessageSource};
use super::record::{decode_dead_letter, DeadLetterHead, DEAD_LETTER, MESSAGE};
use super::summary::{beginning, DeadLetterId, DeadLetterSummary, MessagePlace, Origin, Stream, ERROR_BYTES};
use crate::insert::{AckLevel, DataKind, DedupKeys, History, Insert, InsertKind, QueryId};

/// The writer id of retries. For flush policies they come on a connection of their own.
const WRITER: u64 = u64::MAX;
/// The longest time that a retry waits for its table, if the table has others to store first.
const PATIENCE: Duration = Duration::from_secs(10);

/// The part of a record found at the start that is kept in memory.
pub(super) struct Recovered {
    pub(super) summary: DeadLetterSummary,
    pub(super) identity: Identity,
}

impl Recovered {
    pub(super) fn decode(id: DeadLetterId, origin: Arc<Origin>, record: &[u8]) -> Option<Recovered> {
        let dead_letter = decode_dead_letter(record)?;
        let insert = decode_insert_head(dead_letter.insert).ok()?;
        let identity = dead_letter.head.journal_id.map_or(Identity::Unknown, Identity::Journaled);
        Some(Recovered { summary: summary(id, origin, &dead_letter.head, &insert), identity })
    }

    pub(super) fn decode_message(id: DeadLetterId, origin: Arc<Origin>, record: &[u8]) -> Option<Recovered> {
        let message = decode_message(record).ok()?;
        let identity = message_identity(&origin, message.partition, message.offset);
        Some(Recovered { summary: message_summary(id, origin, &message), identity })
    }
}

pub(super) fn message_identity(origin: &Origin, partition: i32, offset: i64) -> Identity {
    let key = |stream: &Arc<Stream>| MessageKey { stream: stream.clone(), partition, offset };
    origin.stream.as_ref().map_or(Identity::Unknown, |stream| Identity::Message(key(stream)))
}

/// Returns the origin that a context describes. The kind of record decides how the context is read.
pub(super) fn origin_of_context(kind: u8, context: &[u8]) -> Option<Origin> {
    match kind {
        DEAD_LETTER => {
            let context = decode_context(context).ok()?;
            Some(origin(&context.destination, &context.query, &context.format))
        }
        MESSAGE => {
            let stream = decode_stream(context).ok()?;
            Some(Origin {
                database: stream.database.to_owned(),
                table: stream.table.to_owned(),
                user: String::new(),
                query: String::new(),
                format: stream.format.to_owned(),
                stream: Some(Arc::new(Stream {
                    pipeline: stream.pipeline.to_owned(),
                    topic: stream.topic.to_owned(),
                    topic_id: stream.topic_id,
                })),
            })
        }
        _ => None,
    }
}

pub(super) fn origin(destination: &Destination, query: &str, format: &str) -> Origin {
    Origin {
        database: destination.database.clone(),
        table: destination.table.clone(),
        user: destination.credentials.user.clone(),
        query: query.to_owned(),
        format: format.to_owned(),
        stream: None,
    }
}

pub(super) fn summary(
    id: DeadLetterId,
    origin: Arc<Origin>,
    head: &DeadLetterHead,
    insert: &InsertHead,
) -> DeadLetterSummary {
    DeadLetterSummary {
        id,
        origin,
        query_id: insert.query_id.clone(),
        ack: insert.ack,
        message: None,
        arrived_micros: insert.arrived_micros,
        failed_micros: head.failed_micros,
        attempts: insert.attempts,
        code: head.code,
        error: Arc::from(beginning(&head.error, ERROR_BYTES)),
        rows: head.rows,
        payload_bytes: insert.payload_bytes,
    }
}

pub(super) fn message_summary(id: DeadLetterId, origin: Arc<Origin>, message: &MessageRecord<'_>) -> DeadLetterSummary {
    let MessageRecord { partition, offset, timestamp_ms, was_read, .. } = *message;
    DeadLetterSummary {
        id,
        origin,
        query_id: QueryId::Given(Arc::from("")),
        // Its offset was to be committed when it is stored.
        ack: AckLevel::Stored,
        message: Some(MessagePlace { partition, offset, timestamp_ms, was_read }),
        // Brokers may give no time, which is said by a negative one.
        arrived_micros: u64::try_from(timestamp_ms).map_or(message.failed_micros, |ms| ms.saturating_mul(1000)),
        failed_micros: message.failed_micros,
        attempts: message.attempts,
        code: message.code,
        error: Arc::from(beginning(message.error, ERROR_BYTES)),
        rows: 0,
        payload_bytes: message.value_bytes,
    }
}

/// A dead letter with its rows.
#[derive(Debug)]
pub struct DeadLetter {
    pub summary: DeadLetterSummary,
    /// The whole text of the error, not only its beginning.
    pub error: String,
    pub kept: Kept,
}

/// The data that was to be stored.
#[derive(Debug)]
pub enum Kept {
    Insert(Box<KeptInsert>),
    Message(Box<MessageDeadLetter>),
}

#[derive(Debug)]
pub struct KeptInsert {
    /// The batch in which the insert was sent last.
    pub batch: BatchId,
    /// The destination, with its sender's name, and without the password.
    pub destination: Destination,
    pub rows: Rows,
    dedup: Vec<u8>,
}

/// The insert that a dead letter becomes when it is retried.
pub struct Revived {
    pub destination: Destination,
    pub insert: Insert,
}

impl DeadLetter {
    pub(super) fn decode(id: DeadLetterId, record: &OwnedRecord) -> Option<DeadLetter> {
        match record.kind {
            DEAD_LETTER => DeadLetter::decode_insert(id, record),
            MESSAGE => DeadLetter::decode_message(id, record),
            _ => None,
        }
    }

    fn decode_insert(id: DeadLetterId, record: &OwnedRecord) -> Option<DeadLetter> {
        let context = decode_context(record.context.as_ref()?.bytes()).ok()?;
        let dead_letter = decode_dead_letter(&record.payload)?;
        let insert = decode_insert(dead_letter.insert, &context).ok()?;
        let origin = origin(&context.destination, &context.query, &context.format);
        Some(DeadLetter {
            summary: summary(id, Arc::new(origin), &dead_letter.head, &insert.head),
            error: dead_letter.head.error,
            kept: Kept::Insert(Box::new(KeptInsert {
                batch: dead_letter.head.batch,
                destination: context.destination,
                rows: insert.rows,
                dedup: insert.head.dedup,
            })),
        })
    }

    fn decode_message(id: DeadLetterId, record: &OwnedRecord) -> Option<DeadLetter> {
        let origin = Arc::new(origin_of_context(MESSAGE, record.context.as_ref()?.bytes())?);
        let message = decode_message(&record.payload).ok()?;
        let source = MessageSource::of(&origin, origin.stream.as_ref()?);
        Some(DeadLetter {
            summary: message_summary(id, origin, &message),
            error: message.error.to_owned(),
            kept: Kept::Message(Box::new(MessageDeadLetter::of(source, message))),
        })
    }

    /// Returns the rows as they would be sent to the table, or the value of a message, unchanged.
    pub fn payload(&self) -> Vec<u8> {
        match &self.kept {
            Kept::Insert(insert) => insert.payload(),
            Kept::Message(message) => message.value.clone().unwrap_or_default(),
        }
    }
}

impl KeptInsert {
    fn payload(&self) -> Vec<u8> {
        match (&self.rows, &self.destination.form) {
            (Rows::Passthrough(rows), Form::Text { header, .. }) => [header, rows.text()].concat(),
            (rows, Form::Native { types }) => {
                native_pieces(rows.blocks().unwrap_or_default(), &self.destination.columns, types).concat()
            }
            // They are decoded together, as one or the other.
            _ => Vec::new(),
        }
    }
}

/// A retried dead letter becomes an insert with the gateway's own account. It has a deduplication key of the
/// dead letter's own, so that two retries of the dead letter are one insert.
impl Revived {
    pub fn of_insert(summary: DeadLetterSummary, kept: KeptInsert) -> Revived {
        let KeptInsert { destination, rows, dedup, batch: _ } = kept;
        Revived::new(summary, destination, rows, DedupKeys::decode(&dedup))
    }

    pub fn of_message(summary: DeadLetterSummary, message: MessageRows) -> Revived {
        Revived::new(summary, message.destination, message.rows, None)
    }

    fn new(summary: DeadLetterSummary, destination: Destination, rows: Rows, dedup: Option<DedupKeys>) -> Revived {
        let DeadLetterSummary { id, origin, query_id, arrived_micros, attempts, failed_micros, payload_bytes, .. } =
            summary;
        let destination = Destination { own_account: true, ..destination };
        let dedup = dedup.unwrap_or_else(|| {
            let key = u128::from(id.0) << 64 | u128::from(failed_micros);
            DedupKeys::of_dead_letter(key, &destination)
        });
        let kind = InsertKind {
            query: origin.query.clone(),
            format: origin.format.clone(),
            data_kind: DataKind::Parsed,
            limits: FlushLimits::default(),
        };
        let insert = Insert {
            rows,
            payload_bytes,
            writer: WRITER,
            back_after: None,
            ack: AckLevel::Disk,
            patience: PATIENCE,
            at_once: false,
            dedup: Some(dedup),
            history: Some(History { arrived_wall_micros: arrived_micros, attempts }),
            query_id,
            kind: Arc::new(kind),
            trace: None,
        };
        Revived { destination, insert }
    }
}
