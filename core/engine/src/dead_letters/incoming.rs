//! The record of a new dead letter, and its part that is kept in memory: for an insert, and for a message.

use std::sync::Arc;

use windrow_clickhouse::ErrorCode;

use crate::records::{
    encode_context, encode_insert, encode_message, encode_stream, ContextRecord, InsertHead, StreamRecord,
};

use super::dead_letter::{message_identity, message_summary, origin, summary};
use super::index::Identity;
use super::message::{MessageDeadLetter, MessageSource};
use super::record::{encode_dead_letter, DeadLetterHead, DEAD_LETTER, MESSAGE};
use super::summary::{DeadLetterId, DeadLetterSummary, Origin, Stream};
use crate::dead_letter_store::FailedInsert;
use crate::insert::{DedupKeys, InsertError};
use crate::sink::TableKey;

/// An insert or message that is to become a dead letter.
pub(super) trait Incoming {
    /// The kind of its record.
    const KIND: u8;

    /// Returns the context that it shares with others, as the record has it.
    fn context(&self) -> Vec<u8>;
    /// Returns the same context, as it is kept in memory.
    fn origin(&self) -> Origin;
    fn identity(&self, origin: &Origin) -> Identity;
    fn table(&self) -> TableKey;
    fn encode(&self, origin: Arc<Origin>) -> Encoded;
}

pub(super) struct Encoded {
    /// The summary. Its id is only set after the record has its place in the log.
    pub(super) summary: DeadLetterSummary,
    pub(super) payload: Vec<u8>,
}

impl Incoming for FailedInsert {
    const KIND: u8 = DEAD_LETTER;

    fn context(&self) -> Vec<u8> {
        let FailedInsert { destination, kind, .. } = self;
        encode_context(&ContextRecord { destination, query: &kind.query, format: &kind.format })
    }

    fn origin(&self) -> Origin {
        origin(&self.destination, &self.kind.query, &self.kind.format)
    }

    fn identity(&self, _origin: &Origin) -> Identity {
        self.journal_id.map_or(Identity::Unknown, Identity::Journaled)
    }

    fn table(&self) -> TableKey {
        TableKey { database: self.destination.database.clone(), table: self.destination.table.clone() }
    }

    fn encode(&self, origin: Arc<Origin>) -> Encoded {
        let code = match &self.error {
            InsertError::Exception(exception) | InsertError::Failed(exception) => exception.code,
            InsertError::OutcomeUnknown(_) | InsertError::Unreachable(_) => ErrorCode::OK,
        };
        let head = DeadLetterHead {
            failed_micros: self.failed_wall_micros,
            code,
            error: self.error.to_string(),
            batch: self.batch,
            journal_id: self.journal_id,
            rows: self.rows.count() as u64,
        };
        let insert = InsertHead {
            arrived_micros: self.arrived_wall_micros,
            query_id: self.query_id.clone(),
            payload_bytes: self.payload_bytes,
            ack: self.ack,
            attempts: self.attempts,
            dedup: self.dedup.as_ref().map(DedupKeys::encode).unwrap_or_default(),
        };
        let payload = encode_dead_letter(&head, &encode_insert(&insert, &self.rows));
        Encoded { summary: summary(DeadLetterId(0), origin, &head, &insert), payload }
    }
}

impl Incoming for MessageDeadLetter {
    const KIND: u8 = MESSAGE;

    fn context(&self) -> Vec<u8> {
        let MessageSource { pipeline, topic, topic_id, database, table, format } = &*self.source;
        encode_stream(&StreamRecord { pipeline, topic, topic_id: *topic_id, database, table, format })
    }

    fn origin(&self) -> Origin {
        let MessageSource { pipeline, topic, topic_id, database, table, format } = &*self.source;
        Origin {
            database: database.clone(),
            table: table.clone(),
            user: String::new(),
            query: String::new(),
            format: format.clone(),
            stream: Some(Arc::new(Stream { pipeline: pipeline.clone(), topic: topic.clone(), topic_id: *topic_id })),
        }
    }

    fn identity(&self, origin: &Origin) -> Identity {
        message_identity(origin, self.partition, self.offset)
    }

    fn table(&self) -> TableKey {
        TableKey { database: self.source.database.clone(), table: self.source.table.clone() }
    }

    fn encode(&self, origin: Arc<Origin>) -> Encoded {
        let record = self.record();
        Encoded { summary: message_summary(DeadLetterId(0), origin, &record), payload: encode_message(&record) }
    }
}
