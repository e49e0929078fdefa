use std::fmt;
use std::future::Future;

use windrow_clickhouse::Exception;

use crate::sink::batch::{Batch, Destination, TableKey};

/// A system that batches are stored in. The gatherer relies on these rules, which every implementation has to
/// keep:
///
/// 1. `Ok` means that all rows of the batch are stored and visible to a query that begins now.
/// 2. [`StoreError::NotSent`] means that the sink's system never saw the batch.
/// 3. [`StoreError::Refused`] means that the sink's system saw the batch and stored none of it.
/// 4. [`StoreError::Failed`] means that the sink's system saw the batch, came to an end with an error, and
///    may have stored a part of it. Whenever the end itself is not certain, the error is
///    [`StoreError::Unknown`]. [`StoreError::StillRunning`] means that this call did nothing, since an
///    earlier one under the same id has not ended.
/// 5. Storing the same batch again under the same id stores nothing twice where
///    [`Destination::deduplicates`](crate::sink::Destination) is true.
/// 6. A call that is dropped before it ends counts as `Unknown`.
pub trait Sink: Send + Sync + 'static {
    fn store(&self, batch: &Batch) -> impl Future<Output = Result<Stored, StoreError>> + Send;

    /// Says whether the sink's system answers at all. It is asked before a batch is stored again that may be
    /// stored.
    fn answers(&self, _destination: &Destination) -> impl Future<Output = bool> + Send {
        async { true }
    }

    /// Returns how close these tables are to refusing inserts, and what the sink's system can bear. Returns
    /// `None` if it has no such limits, or can't say.
    fn load(&self, _tables: &[TableKey]) -> impl Future<Output = Option<Load>> + Send {
        async { None }
    }
}

/// Facts that bear on how much the sink's system can take.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Load {
    pub cpus: Option<u32>,
    /// Part counts, for those tables that have parts.
    pub parts: Vec<(TableKey, PartCount)>,
}

/// Counts of a table's parts, which show how close it is to "too many parts".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartCount {
    pub active_in_fullest_partition: u64,
    pub active: u64,
    /// Number of parts that inserts, by whomever, have created since the table exists.
    pub created: u64,
    /// Number of active parts of one partition at which inserts are refused.
    pub throw_at: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stored {
    /// Number of rows as the sink's system counted them, when it did.
    pub written_rows: Option<u64>,
    /// The table has other types by now than those that the rows were read for.
    pub has_other_types: bool,
}

#[derive(Debug)]
pub enum StoreError {
    NotSent(String),
    Unknown(String),
    StillRunning(String),
    Refused(Exception),
    Failed(Exception),
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::NotSent(text) => write!(f, "not sent: {text}"),
            StoreError::Unknown(text) => write!(f, "outcome unknown: {text}"),
            StoreError::StillRunning(text) => write!(f, "an earlier attempt has not ended: {text}"),
            StoreError::Refused(exception) | StoreError::Failed(exception) => exception.fmt(f),
        }
    }
}

impl StoreError {
    /// Returns the kind of the error, without what an exception's text may tell of statements and values.
    pub(crate) fn kind(&self) -> String {
        match self {
            StoreError::NotSent(_) => "not sent".to_owned(),
            StoreError::Unknown(_) => "outcome unknown".to_owned(),
            StoreError::StillRunning(_) => "an earlier attempt has not ended".to_owned(),
            StoreError::Refused(exception) | StoreError::Failed(exception) => format!("Code: {}", exception.code),
        }
    }
}

impl std::error::Error for StoreError {}
