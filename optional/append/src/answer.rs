//! The answers of an append. Serialized, these are the bodies of the HTTP interface.

use serde::Serialize;

use crate::error::AppendError;
use crate::id::AppendId;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    Open,
    /// The append is decided to be stored; it is not certain yet that all of it is.
    Committing,
    Committed,
    Aborted,
    Failed,
    /// The append does not exist: nothing of it is stored.
    Gone,
    /// The append is not known to this gateway; another gateway before the same database may have stored it.
    Unknown,
}

/// The part of an append that becomes visible at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Atomicity {
    All,
    /// Each partition of the table for itself, one right after the other.
    Partition,
    /// Each block of rows for itself.
    Block,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Column {
    pub name: String,
    /// ClickHouse's name of the type.
    #[serde(rename = "type")]
    pub data_type: String,
}

/// The progress of an append that is open.
#[derive(Clone, Debug, Serialize)]
pub struct Progress {
    pub id: AppendId,
    pub state: State,
    /// Database and table, as they were given.
    pub table: String,
    /// The source as it was given at the opening.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    pub columns: Vec<Column>,
    /// The lowest number that is missing.
    pub next: u64,
    /// The numbers that have come, as ranges with both ends included; at most 1000 ranges.
    pub received: Vec<[u64; 2]>,
    pub window_bytes: u64,
    pub atomic: Atomicity,
}

/// The answer to an opening.
#[derive(Clone, Debug)]
pub struct Opened {
    pub id: AppendId,
    /// True if this request opened the append.
    pub is_new: bool,
    pub status: Status,
}

/// A batch that is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Put {
    pub id: AppendId,
    pub batch: u64,
    /// True if the batch was here before; this one was thrown away.
    pub repeated: bool,
    pub next: u64,
}

/// An append whose rows are in the table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Committed {
    pub id: AppendId,
    pub state: State,
    pub rows: u64,
    /// Bytes of the payloads as they came, unpacked.
    pub bytes: u64,
    pub batches: u64,
    /// The time from the append's opening to its end.
    pub seconds: f64,
    pub atomic: Atomicity,
}

/// The end of an append, or how far it is.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Status {
    Open(Progress),
    Committed(Committed),
    Other {
        id: AppendId,
        state: State,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<AppendError>,
    },
}

impl Status {
    pub fn state(&self) -> State {
        match self {
            Status::Open(progress) => progress.state,
            Status::Committed(committed) => committed.state,
            Status::Other { state, .. } => *state,
        }
    }
}
