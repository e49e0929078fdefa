//! Appends into a DuckDB, or into a database behind an ADBC driver that has transactions: one transaction each, on a
//! connection of its own.
//!
//! A transaction takes rows from the first batch on, so that the commit has little left to do. Its rows are
//! visible to nobody before, and a crash undoes them. Its last statement writes the append's own row
//! (`committed.rs`), so that the database itself knows which appends it holds; nothing about them is kept
//! elsewhere.

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
use windrow_adbc::SqlDatabase;
use windrow_clickhouse::{ErrorCode, Exception};
use windrow_duckdb::{CommitError, TableRef, UserPermit, UserPermits};

use self::blame::{place_of, Culprit, Tried};
use self::committed::{insert_statement, CommittedAppends, Entry};
use self::table::SqlTable;
use crate::answer::{Atomicity, Column, Committed, State};
use crate::error::AppendError;
use crate::errors;
use crate::id::AppendId;
use crate::request::{OpenRequest, Payload};
use crate::target::{CommitFailure, Held, Outcome, Read, Target, Totals, Transaction};

/// The number of appends that are written at once. Others keep their batches meanwhile. Fewer than DuckDB's
/// transactions, so that appends whose clients are slow leave some to the small inserts.
const MAX_TRANSACTIONS: usize = 20;

pub(crate) struct SqlTarget {
    database: SqlDatabase,
    shared: Arc<Shared>,
}

struct Shared {
    committed: OnceCell<CommittedAppends>,
    /// Appends whose commits got unclear answers: of these the database is asked.
    unclear: Mutex<HashSet<AppendId>>,
    permits: UserPermits,
}

impl SqlTarget {
    pub(crate) fn new(database: SqlDatabase) -> SqlTarget {
        let max = match &database {
            SqlDatabase::DuckDb(_) => MAX_TRANSACTIONS,
            SqlDatabase::Adbc(adbc) => adbc.max_transactions().min(MAX_TRANSACTIONS),
        };
        let shared = Shared {
            committed: OnceCell::new(),
            unclear: Mutex::default(),
            // One user leaves some to others.
            permits: UserPermits::new(max, (max - max / 4).max(1)),
        };
        SqlTarget { database, shared: Arc::new(shared) }
    }

    async fn committed(&self) -> Result<&CommittedAppends, Exception> {
        self.shared.committed.get_or_try_init(|| CommittedAppends::load(&self.database)).await
    }

    fn is_unclear(&self, id: AppendId) -> bool {
        self.shared.unclear.lock().unwrap_or_else(PoisonError::into_inner).contains(&id)
    }
}

impl Target for SqlTarget {
    type Table = SqlTable;
    type Batch = Vec<RecordBatch>;
    type Transaction = Writing;
    type Permit = UserPermit;

    async fn look_up(&self, opening: &OpenRequest) -> Result<SqlTable, AppendError> {
        table::look_up(&self.database, opening).await
    }

    fn columns(table: &SqlTable) -> Vec<Column> {
        table.open_columns()
    }

    fn atomicity(_: &SqlTable) -> Atomicity {
        Atomicity::All
    }

    fn read(table: &SqlTable, payload: Payload, max_bytes: u64) -> Result<Read<Vec<RecordBatch>>, AppendError> {
        read::read(table, payload, max_bytes)
    }

    async fn permit(&self, opening: &OpenRequest) -> Result<UserPermit, AppendError> {
        self.shared.permits.acquire(&opening.credentials.user, None).await.ok_or_else(errors::shutting_down)
    }

    async fn begin(
        &self,
        id: AppendId,
        opening: &OpenRequest,
        table: Arc<SqlTable>,
        permit: UserPermit,
    ) -> Result<Writing, AppendError> {
        // The table of committed appends has to be there before a transaction that is to write into it begins. Before
        // a server anybody may have dropped it.
        match self.database {
            SqlDatabase::DuckDb(_) => self.committed().await.map(|_| ())?,
            SqlDatabase::Adbc(_) => committed::make(&self.database).await?,
        }
        let transaction = self.database.begin().await?;
        Ok(Writing {
            id,
            user: opening.credentials.user.clone(),
            name: table.info.name.clone(),
            table,
            transaction,
            database: self.database.clone(),
            applied: Vec::new(),
            shared: self.shared.clone(),
            _permit: permit,
        })
    }

    async fn outcome(&self, id: AppendId) -> Result<Outcome, AppendError> {
        let committed = self.committed().await.map_err(errors::of_asking)?;
        match (committed.get(id), &self.database) {
            (Outcome::Nothing, SqlDatabase::Adbc(_)) => {}
            (known, _) if !self.is_unclear(id) => return Ok(known),
            _ => {}
        }
        let (found, is_certain) = committed.look_up(&self.database, id).await.map_err(|exception| {
            // Another transaction has written the append's row, and does not end.
            match exception.code == ErrorCode::ABORTED {
                true => errors::still_committing(id),
                false => errors::of_asking(exception),
            }
        })?;
        match found {
            Outcome::Nothing if !is_certain && self.is_unclear(id) => Err(errors::nobody_knows(id)),
            found => Ok(found),
        }
    }

    fn remembers_for_all(&self) -> bool {
        true
    }

    fn doubt(&self, id: AppendId) {
        self.shared.doubt(id);
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
    table: Arc<SqlTable>,
    transaction: windrow_duckdb::Transaction,
    database: SqlDatabase,
    /// Numbers and rows of the batches that may be refused at the commit only.
    applied: Vec<(u64, u64)>,
    shared: Arc<Shared>,
    _permit: UserPermit,
}

impl Shared {
    fn doubt(&self, id: AppendId) {
        self.unclear.lock().unwrap_or_else(PoisonError::into_inner).insert(id);
    }

    fn doubtful(&self, id: AppendId, exception: Exception) -> CommitFailure {
        self.doubt(id);
        CommitFailure::Unknown(exception.line)
    }
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
            if self.database.holds_rows_back() {
                self.applied.extend(held.iter().map(|held| (held.number, blame::rows(held))));
            }
            return Ok(());
        };
        let error = AppendError::from(exception);
        if !error.exception.comes_of_values() {
            return Err(error);
        }
        let tried = Tried { database: &self.database, table: &self.name, columns: columns.as_deref(), held: &held };
        match (tried.culprit().await, &held[..]) {
            (Some(culprit), _) => Err(error.at(culprit.batch, Some(culprit.row))),
            (None, [only]) => Err(error.at(only.number, None)),
            (None, _) => Err(error),
        }
    }

    async fn commit(mut self, totals: Totals) -> Result<Atomicity, CommitFailure> {
        if let Err(exception) = self.transaction.write_held().await {
            let row = exception.row().and_then(|row| row.checked_sub(1));
            let culprit = row.and_then(|row| place_of(row, self.applied.iter().copied()));
            let error = AppendError::from(exception);
            return Err(CommitFailure::Refused(match culprit {
                Some(Culprit { batch, row }) => error.at(batch, Some(row)),
                None => error,
            }));
        }
        let Totals { rows, bytes, batches, elapsed_ms } = totals;
        let seconds = elapsed_ms as f64 / 1000.0;
        let (id, state, atomic) = (self.id, State::Committed, Atomicity::All);
        let committed = Committed { id, state, rows, bytes, batches, seconds, atomic };
        let entry = Entry { committed, user: self.user.clone() };
        let table = format!("{}.{}", self.database.database_of(&self.name.schema), self.name.table);
        if let Err(exception) = self.transaction.execute(&insert_statement(&self.database, &entry, &table)).await {
            // Another gateway may have committed the same append.
            return Err(match exception.code {
                ErrorCode::VIOLATED_CONSTRAINT => self.shared.doubtful(id, exception),
                _ => CommitFailure::Refused(exception.into()),
            });
        }
        let Writing { transaction, database, shared, .. } = self;
        match transaction.commit().await {
            Ok(()) => {
                if let Some(committed) = shared.committed.get() {
                    committed.committed(&database, entry);
                }
                Ok(atomic)
            }
            Err(CommitError::Refused(exception)) => Err(CommitFailure::Refused(exception.into())),
            Err(CommitError::Unknown(exception)) => Err(shared.doubtful(id, exception)),
        }
    }

    async fn abort(self) {
        self.transaction.rollback().await;
    }
}
