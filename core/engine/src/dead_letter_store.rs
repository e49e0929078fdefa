//! What the gatherer asks of whoever keeps its dead letters: inserts that were acknowledged and can't be stored.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::sink::{BatchId, Destination};
use windrow_columns::Rows;

use crate::insert::{AckLevel, DedupKeys, InsertError, InsertKind, QueryId};
use crate::sink::TableKey;

/// An insert that nobody waits for any more and that can't be stored, with all that is known of it.
#[derive(Debug)]
pub struct FailedInsert {
    /// Where it was to go, with its sender's credentials: the password must not be kept.
    pub destination: Arc<Destination>,
    pub kind: Arc<InsertKind>,
    pub rows: Rows,
    pub query_id: QueryId,
    pub payload_bytes: u64,
    pub dedup: Option<DedupKeys>,
    pub ack: AckLevel,
    /// The insert's number in the journal, if it was journaled. A dead letter that has the number of one that is kept
    /// is that one.
    pub journal_id: Option<u64>,
    /// When it came first, in microseconds since 1970.
    pub arrived_wall_micros: u64,
    pub failed_wall_micros: u64,
    /// Attempts to store it, also those of earlier lives and retries.
    pub attempts: u32,
    /// The batch that it was last sent in.
    pub batch: BatchId,
    pub error: InsertError,
}

/// The dead letters could not be written. None of them counts as kept.
#[derive(Debug)]
pub struct KeepError {
    pub dead_letters: Vec<FailedInsert>,
    pub why: String,
}

pub type Keeping<'a> = Pin<Box<dyn Future<Output = Result<(), KeepError>> + Send + 'a>>;

pub trait DeadLetterStore: Send + Sync + 'static {
    /// The dead letters are durable when this resolves to `Ok`.
    fn keep(&self, dead_letters: Vec<FailedInsert>) -> Keeping<'_>;

    /// Whether there is no room for more dead letters of this table: inserts that might become one are refused then.
    /// With the bound.
    fn refuses(&self, table: &TableKey) -> Option<DeadLettersFull>;

    /// Whether the insert of this number in the journal is a dead letter already. Asked at the start only.
    fn holds(&self, journal_id: u64) -> bool;
}

/// There is no room for more dead letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeadLettersFull {
    pub max_bytes: u64,
}
