//! A letter with its rows: what is written of it, and what is read.

use std::sync::Arc;
use std::time::Duration;

use windrow_block::Rows;
use windrow_journal::log::OwnedRecord;
use windrow_journal::records::{
    decode_context, decode_insert, decode_insert_head, encode_context, encode_insert, ContextRecord, InsertHead,
};
use windrow_policy::FlushLimits;
use windrow_sink::{BatchId, Destination, Form};

use super::record::{decode_letter, encode_letter, LetterHead};
use super::summary::{beginning, LetterId, LetterSummary, Origin};
use crate::insert::{AckLevel, DedupKeys, History, Insert, InsertError, InsertKind};
use crate::letters::Letter;

/// Retries come on a connection of their own, as far as flush policies are concerned.
const WRITER: u64 = u64::MAX;
/// How long a retry waits for its table, if that has others to store first.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is written of an insert that has become a letter.
pub(super) struct Written {
    head: LetterHead,
    insert: InsertHead,
}

impl Written {
    pub(super) fn of(letter: &Letter) -> Written {
        let code = match &letter.error {
            InsertError::Exception(exception) | InsertError::Failed(exception) => exception.code,
            InsertError::OutcomeUnknown(_) | InsertError::Unreachable(_) => 0,
        };
        Written {
            head: LetterHead {
                failed_micros: letter.failed_wall_micros,
                code,
                error: letter.error.to_string(),
                batch: letter.batch,
                journal_id: letter.journal_id,
                rows: letter.rows.count() as u64,
            },
            insert: InsertHead {
                arrived_micros: letter.arrived_wall_micros,
                query_id: letter.query_id.clone(),
                payload_bytes: letter.payload_bytes,
                ack: letter.ack,
                attempts: letter.attempts,
                dedup: letter.dedup.as_ref().map(DedupKeys::encode).unwrap_or_default(),
            },
        }
    }

    pub(super) fn encode(&self, letter: &Letter) -> Vec<u8> {
        encode_letter(&self.head, &encode_insert(&self.insert, &letter.rows))
    }

    /// Its id is not known before it has its place in the log.
    pub(super) fn into_summary(self, letter: &Letter) -> LetterSummary {
        let kind = &letter.kind;
        let origin = origin(&letter.destination, &kind.query, &kind.format);
        summary(LetterId(0), Arc::new(origin), &self.head, &self.insert)
    }
}

/// What letters of one table, user and statement have in common.
pub(super) fn context(letter: &Letter) -> Vec<u8> {
    let Letter { destination, kind, .. } = letter;
    encode_context(&ContextRecord { destination, query: &kind.query, format: &kind.format })
}

/// What is kept in memory of a record that was found at the start.
pub(super) struct Recovered {
    pub(super) summary: LetterSummary,
    pub(super) journal_id: Option<u64>,
}

impl Recovered {
    pub(super) fn decode(id: LetterId, origin: Arc<Origin>, record: &[u8]) -> Option<Recovered> {
        let letter = decode_letter(record)?;
        let insert = decode_insert_head(letter.insert).ok()?;
        let journal_id = letter.head.journal_id;
        Some(Recovered { summary: summary(id, origin, &letter.head, &insert), journal_id })
    }
}

pub(super) fn origin_of_context(context: &[u8]) -> Option<Origin> {
    let context = decode_context(context).ok()?;
    Some(origin(&context.destination, &context.query, &context.format))
}

fn origin(destination: &Destination, query: &str, format: &str) -> Origin {
    Origin {
        database: destination.database.clone(),
        table: destination.table.clone(),
        user: destination.credentials.user.clone(),
        query: query.to_owned(),
        format: format.to_owned(),
    }
}

fn summary(id: LetterId, origin: Arc<Origin>, head: &LetterHead, insert: &InsertHead) -> LetterSummary {
    LetterSummary {
        id,
        origin,
        query_id: insert.query_id.clone(),
        ack: insert.ack,
        arrived_micros: insert.arrived_micros,
        failed_micros: head.failed_micros,
        attempts: insert.attempts,
        code: head.code,
        error: Arc::from(beginning(&head.error)),
        rows: head.rows,
        payload_bytes: insert.payload_bytes,
    }
}

/// A letter, all of it.
#[derive(Debug)]
pub struct DeadLetter {
    pub summary: LetterSummary,
    /// The whole text, not only its beginning.
    pub error: String,
    /// The batch that it was last sent in.
    pub batch: BatchId,
    /// With its sender's name, and without the password.
    pub destination: Destination,
    pub rows: Rows,
    dedup: Vec<u8>,
}

/// What a letter becomes when it is retried.
pub struct Revived {
    pub destination: Destination,
    pub insert: Insert,
}

impl DeadLetter {
    pub(super) fn decode(id: LetterId, record: &OwnedRecord) -> Option<DeadLetter> {
        let context = decode_context(record.context.as_ref()?.bytes()).ok()?;
        let letter = decode_letter(&record.payload)?;
        let insert = decode_insert(letter.insert, &context).ok()?;
        let origin = origin(&context.destination, &context.query, &context.format);
        Some(DeadLetter {
            summary: summary(id, Arc::new(origin), &letter.head, &insert.head),
            error: letter.head.error,
            batch: letter.head.batch,
            destination: context.destination,
            rows: insert.rows,
            dedup: insert.head.dedup,
        })
    }

    /// The insert that it becomes when it is retried: with the gateway's own account, and known by a key of the letter's own, so
    /// that two retries of it are one insert.
    pub fn revive(self) -> Revived {
        let LetterSummary { id, origin, query_id, arrived_micros, attempts, failed_micros, payload_bytes, .. } =
            self.summary;
        let destination = Destination { own_account: true, ..self.destination };
        let dedup = DedupKeys::decode(&self.dedup).unwrap_or_else(|| {
            let key = u128::from(id.0) << 64 | u128::from(failed_micros);
            DedupKeys::of_letter(key, &destination)
        });
        let kind =
            InsertKind { query: origin.query.clone(), format: origin.format.clone(), limits: FlushLimits::default() };
        let insert = Insert {
            rows: self.rows,
            payload_bytes,
            writer: WRITER,
            ack: AckLevel::Disk,
            patience: PATIENCE,
            at_once: false,
            dedup: Some(dedup),
            history: Some(History { arrived_wall_micros: arrived_micros, attempts }),
            query_id,
            kind: Arc::new(kind),
        };
        Revived { destination, insert }
    }

    /// The rows as they would be sent to the table.
    pub fn payload(&self) -> Vec<u8> {
        match (&self.rows, &self.destination.form) {
            (Rows::Typed(block), Form::Native { types }) => block.encode_native(&self.destination.columns, types),
            (Rows::Opaque(rows), Form::Text { header, .. }) => [header, rows.text()].concat(),
            // They are decoded together, as one or the other.
            _ => Vec::new(),
        }
    }
}
