//! The interface of the store that keeps the gatherer's dead letters: inserts that were acknowledged and
//! can't be stored.

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
    /// The destination that the insert was to go to, with its sender's credentials: the password must not be
    /// kept.
    pub destination: Arc<Destination>,
    pub kind: Arc<InsertKind>,
    pub rows: Rows,
    pub query_id: QueryId,
    pub payload_bytes: u64,
    pub dedup: Option<DedupKeys>,
    pub ack: AckLevel,
    /// The insert's number in the journal, if it was journaled. A dead letter with the number of one that is
    /// kept already is the same dead letter.
    pub journal_id: Option<u64>,
    /// Time of the insert's first arrival, in microseconds since 1970.
    pub arrived_wall_micros: u64,
    pub failed_wall_micros: u64,
    /// Number of attempts to store the insert, also in earlier runs and in retries of its dead letter.
    pub attempts: u32,
    /// The batch that the insert was last sent in.
    pub batch: BatchId,
    pub error: InsertError,
}

/// The error of dead letters that could not be written. None of them counts as kept.
#[derive(Debug)]
pub struct KeepError {
    pub dead_letters: Vec<FailedInsert>,
    pub why: String,
}

pub type Keeping<'a> = Pin<Box<dyn Future<Output = Result<(), KeepError>> + Send + 'a>>;

pub trait DeadLetterStore: Send + Sync + 'static {
    /// Keeps the dead letters. They are durable when the future resolves to `Ok`.
    fn keep(&self, dead_letters: Vec<FailedInsert>) -> Keeping<'_>;

    /// Returns the bound where there is no room for more dead letters of this table: inserts that might
    /// become one are refused then.
    fn refuses(&self, table: &TableKey) -> Option<DeadLettersFull>;

    /// Says whether the insert of this number in the journal is a dead letter already. It is asked at the
    /// start only.
    fn holds(&self, journal_id: u64) -> bool;
}

/// The bound on dead letters, which leaves no room for more of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeadLettersFull {
    pub max_bytes: u64,
}
