//! Appends into DuckDB: one transaction each, on a connection of its own.
//!
//! A transaction takes rows from the first batch on, so that the commit has little left to do. What it has stored shows
//! to nobody before, and a crash undoes it. Its last statement writes the append's own row (`committed.rs`), so that
//! the database itself knows which appends it holds; nothing about them is kept elsewhere.

mod blame;
mod committed;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod read;
mod table;
mod unfolding;

#[cfg(test)]
mod hostile;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use tokio::sync::OnceCell;
use windrow_duckdb::{CommitError, DuckDb, TableRef, UserPermit, UserPermits};

use self::blame::Tried;
use self::committed::{insert_statement, CommittedAppends, Entry};
use self::table::DuckDbTable;
use crate::answer::{Atomicity, Column, Committed, State};
use crate::error::AppendError;
use crate::errors;
use crate::id::AppendId;
use crate::request::{OpenRequest, Payload};
use crate::target::{CommitFailure, Held, Outcome, Read, Target, Totals, Transaction};

/// Appends that are written at once. Others keep their batches meanwhile. Fewer than DuckDB's transactions, so that
/// appends whose clients are slow leave some to the small inserts.
const MAX_TRANSACTIONS: usize = 20;
const MAX_TRANSACTIONS_OF_A_USER: usize = 15;

pub(crate) struct DuckDbTarget {
    duckdb: DuckDb,
    shared: Arc<Shared>,
}

struct Shared {
    committed: OnceCell<CommittedAppends>,
    /// Commits whose answers were unclear: of these the database is asked.
    unclear: Mutex<HashSet<AppendId>>,
    permits: UserPermits,
}

impl DuckDbTarget {
    pub(crate) fn new(duckdb: DuckDb) -> DuckDbTarget {
        let shared = Shared {
            committed: OnceCell::new(),
            unclear: Mutex::default(),
            permits: UserPermits::new(MAX_TRANSACTIONS, MAX_TRANSACTIONS_OF_A_USER),
        };
        DuckDbTarget { duckdb, shared: Arc::new(shared) }
    }

    async fn committed(&self) -> Result<&CommittedAppends, AppendError> {
        Ok(self.shared.committed.get_or_try_init(|| CommittedAppends::load(&self.duckdb)).await?)
    }
}

impl Target for DuckDbTarget {
    type Table = DuckDbTable;
    type Batch = Vec<RecordBatch>;
    type Transaction = Writing;
    type Permit = UserPermit;

    async fn look_up(&self, opening: &OpenRequest) -> Result<DuckDbTable, AppendError> {
        table::look_up(&self.duckdb, opening).await
    }

    fn columns(table: &DuckDbTable) -> Vec<Column> {
        table.open_columns()
    }

    fn atomicity(_: &DuckDbTable) -> Atomicity {
        Atomicity::All
    }

    fn read(table: &DuckDbTable, payload: Payload, max_bytes: u64) -> Result<Read<Vec<RecordBatch>>, AppendError> {
        read::read(table, payload, max_bytes)
    }

    async fn permit(&self, opening: &OpenRequest) -> Result<UserPermit, AppendError> {
        self.shared.permits.acquire(&opening.credentials.user, None).await.ok_or_else(errors::shutting_down)
    }

    async fn begin(
        &self,
        id: AppendId,
        opening: &OpenRequest,
        table: Arc<DuckDbTable>,
        permit: UserPermit,
    ) -> Result<Writing, AppendError> {
        // The table of committed appends has to be there before a transaction that is to write into it begins.
        self.committed().await?;
        let transaction = self.duckdb.begin().await?;
        Ok(Writing {
            id,
            user: opening.credentials.user.clone(),
            name: table.info.name.clone(),
            table,
            transaction,
            duckdb: self.duckdb.clone(),
            shared: self.shared.clone(),
            _permit: permit,
        })
    }

    async fn outcome(&self, id: AppendId) -> Result<Outcome, AppendError> {
        let committed = self.committed().await?;
        let is_unclear = self.shared.unclear.lock().unwrap_or_else(PoisonError::into_inner).contains(&id);
        match is_unclear {
            true => Ok(committed.look_up(&self.duckdb, id).await?),
            false => Ok(committed.get(id)),
        }
    }

    fn doubt(&self, id: AppendId) {
        self.shared.unclear.lock().unwrap_or_else(PoisonError::into_inner).insert(id);
    }

    async fn recover(&self) {
        if let Err(error) = self.committed().await {
            tracing::error!(%error, "what the database remembers of appends can't be read; it is tried again with the next append");
        }
    }

    async fn shut_down(&self) {}
}

/// An append that is being written.
pub(crate) struct Writing {
    id: AppendId,
    user: String,
    name: TableRef,
    table: Arc<DuckDbTable>,
    transaction: windrow_duckdb::Transaction,
    duckdb: DuckDb,
    shared: Arc<Shared>,
    _permit: UserPermit,
}

impl Transaction for Writing {
    type Batch = Vec<RecordBatch>;

    async fn apply(&mut self, held: Vec<Held<Vec<RecordBatch>>>) -> Result<(), AppendError> {
        let columns = self.table.written_columns();
        let batches: Vec<_> = held.iter().flat_map(|held| held.batch.iter().cloned()).collect();
        if batches.is_empty() {
            return Ok(());
        }
        let Err(exception) = self.transaction.ingest(&self.name, columns.as_deref(), batches).await else {
            return Ok(());
        };
        let error = AppendError::from(exception);
        if !error.exception.comes_of_values() {
            return Err(error);
        }
        let tried = Tried { duckdb: &self.duckdb, table: &self.name, columns: columns.as_deref(), held: &held };
        match (tried.culprit().await, &held[..]) {
            (Some(culprit), _) => Err(error.at(culprit.batch, Some(culprit.row))),
            (None, [only]) => Err(error.at(only.number, None)),
            (None, _) => Err(error),
        }
    }

    async fn commit(mut self, totals: Totals) -> Result<Atomicity, CommitFailure> {
        let Totals { rows, bytes, batches, elapsed_ms } = totals;
        let seconds = elapsed_ms as f64 / 1000.0;
        let (id, state, atomic) = (self.id, State::Committed, Atomicity::All);
        let committed = Committed { id, state, rows, bytes, batches, seconds, atomic };
        let entry = Entry { committed, user: self.user.clone() };
        let table = format!("{}.{}", self.name.schema, self.name.table);
        let noted = self.transaction.execute(&insert_statement(&self.duckdb, &entry, &table)).await;
        noted.map_err(|exception| CommitFailure::Refused(exception.into()))?;
        match self.transaction.commit().await {
            Ok(()) => {
                if let Some(committed) = self.shared.committed.get() {
                    committed.committed(&self.duckdb, entry);
                }
                Ok(atomic)
            }
            Err(CommitError::Refused(exception)) => Err(CommitFailure::Refused(exception.into())),
            Err(CommitError::Unknown(exception)) => {
                self.shared.unclear.lock().unwrap_or_else(PoisonError::into_inner).insert(id);
                Err(CommitFailure::Unknown(exception.line))
            }
        }
    }

    async fn abort(self) {
        self.transaction.rollback().await;
    }
}
