use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use windrow_sink::{BatchId, Destination};

use crate::insert::QueryId;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InsertStatus {
    Ok,
    ParsingError,
    FlushError,
}

impl InsertStatus {
    /// The name in ClickHouse's enumeration.
    pub fn as_str(self) -> &'static str {
        match self {
            InsertStatus::Ok => "Ok",
            InsertStatus::ParsingError => "ParsingError",
            InsertStatus::FlushError => "FlushError",
        }
    }
}

/// One insert that has come to its end: a row of `system.asynchronous_insert_log`.
#[derive(Debug, Clone)]
pub struct LogEntry {
    /// When it was gathered, in microseconds since 1970.
    pub event_time_micros: u64,
    pub query: Arc<str>,
    pub destination: Arc<Destination>,
    pub format: Arc<str>,
    pub query_id: QueryId,
    pub bytes: u64,
    pub rows: u64,
    pub exception: Option<Arc<str>>,
    pub status: InsertStatus,
    pub flush_time_micros: u64,
    pub flush_query_id: BatchId,
    /// How long its batch was to be held; 0 when it was flushed by size, count or at sight.
    pub timeout_ms: u64,
}

/// The latest inserts that came to an end, up to a number.
#[derive(Debug)]
pub(crate) struct InsertLog {
    entries: Mutex<VecDeque<LogEntry>>,
    max_entries: usize,
}

impl InsertLog {
    pub(crate) fn new(max_entries: usize) -> InsertLog {
        InsertLog { entries: Mutex::default(), max_entries }
    }

    pub(crate) fn extend(&self, new: impl Iterator<Item = LogEntry>) {
        let mut entries = self.entries.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        for entry in new {
            if entries.len() >= self.max_entries && entries.pop_front().is_none() {
                return;
            }
            entries.push_back(entry);
        }
    }

    pub(crate) fn snapshot(&self) -> Vec<LogEntry> {
        self.entries.lock().unwrap_or_else(std::sync::PoisonError::into_inner).iter().cloned().collect()
    }
}
