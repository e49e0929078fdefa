use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use crate::sink::{BatchId, Destination};

use crate::insert::{InsertKind, QueryId};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InsertStatus {
    Ok,
    ParsingError,
    FlushError,
}

impl InsertStatus {
    /// Returns the name in ClickHouse's enumeration.
    pub fn as_str(self) -> &'static str {
        match self {
            InsertStatus::Ok => "Ok",
            InsertStatus::ParsingError => "ParsingError",
            InsertStatus::FlushError => "FlushError",
        }
    }
}

/// The inserts of one batch that have come to their end.
#[derive(Debug, Clone)]
pub struct LoggedBatch {
    pub destination: Arc<Destination>,
    /// Id of the flush; `None` if the batch never came to a flush.
    pub flush_query_id: Option<BatchId>,
    /// Time of the flush, in microseconds since 1970; 0 for an insert that could not be parsed.
    pub flush_time_micros: u64,
    /// Time that the batch was held, in milliseconds, if time or its source sealed it; 0 if its size did, for
    /// example.
    pub timeout_ms: u64,
    pub inserts: Arc<[LogEntry]>,
}

/// One insert: a row of `system.asynchronous_insert_log`.
#[derive(Debug, Clone)]
pub struct LogEntry {
    /// Time when the insert arrived, in microseconds since 1970.
    pub event_time_micros: u64,
    pub kind: Arc<InsertKind>,
    pub query_id: QueryId,
    pub bytes: u64,
    pub rows: u64,
    pub exception: Option<Arc<str>>,
    pub status: InsertStatus,
}

/// The latest inserts that came to an end, up to a number. They are kept by batch: what a batch's inserts
/// share is kept once.
#[derive(Debug)]
pub(crate) struct InsertLog {
    kept: Mutex<KeptLog>,
    max_inserts: usize,
}

#[derive(Debug, Default)]
struct KeptLog {
    batches: VecDeque<LoggedBatch>,
    inserts: usize,
}

impl InsertLog {
    pub(crate) fn new(max_inserts: usize) -> InsertLog {
        InsertLog { kept: Mutex::default(), max_inserts }
    }

    pub(crate) fn add(&self, batch: LoggedBatch) {
        // Counted by its inserts, a batch without any would never be forgotten.
        if batch.inserts.is_empty() {
            return;
        }
        let mut forgotten = Vec::new();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.inserts += batch.inserts.len();
        kept.batches.push_back(batch);
        while kept.inserts > self.max_inserts {
            let Some(oldest) = kept.batches.pop_front() else { break };
            kept.inserts -= oldest.inserts.len();
            forgotten.push(oldest);
        }
        drop(kept);
        // Freeing thousands of entries is not for under the lock.
        drop(forgotten);
    }

    pub(crate) fn snapshot(&self) -> Vec<LoggedBatch> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).batches.iter().cloned().collect()
    }
}
