//! The sink DuckDB: a batch's id is stored in the same transaction as its rows.
//!
//! So a batch whose id is there is stored as a whole, and one whose id is not there is not stored at all,
//! whatever crashed at any time. The ids are a primary key: of two attempts that run at once, the second to
//! commit fails on it. After any error the id is looked for, since a repeat may fail because of its own first
//! attempt: because of its rows, if the table has a key of its own, or because of its id.
//!
//! The sink promises an outcome, and this is why it is certain:
//!
//! - `Ok`: the commit said so, or the id was seen by another transaction.
//! - `Refused`: the commit was not reached, or it failed in good order, and the id was looked for and isn't there. An
//!   earlier attempt that still runs under the same id can't be mistaken for that: ids are claimed here while a thread
//!   works on them.
//! - `Unknown`: DuckDB gave its database up in the middle, or the look-up of the id failed.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;
use windrow_clickhouse::{ErrorCode, Exception};
use windrow_columns::Rows;
use windrow_engine::sink::{Batch, BatchId, Destination, Form, Sink, StoreError, Stored};

use crate::batches::Batches;
use crate::connection::Connection;
use crate::database::{spawn, DuckDb};
use crate::errors::{is_fatal, CommitError};
use crate::rows::record_batch;
use crate::table::TableRef;
use crate::transaction::TransactionWork;
use crate::work::Work;

/// The sink that stores batches of parsed rows.
pub struct DuckDbSink {
    database: DuckDb,
    running: Arc<Mutex<HashSet<BatchId>>>,
    batches: Arc<Batches>,
}

impl DuckDbSink {
    pub fn new(database: DuckDb) -> DuckDbSink {
        DuckDbSink { database, running: Arc::default(), batches: Arc::default() }
    }

    fn claim(&self, id: BatchId) -> Option<Claim> {
        let is_new = self.running.lock().unwrap_or_else(PoisonError::into_inner).insert(id);
        is_new.then(|| Claim { running: self.running.clone(), id })
    }
}

/// A claim of a batch's id. As long as it exists, no other attempt under the same id begins.
struct Claim {
    running: Arc<Mutex<HashSet<BatchId>>>,
    id: BatchId,
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}

impl Sink for DuckDbSink {
    async fn store(&self, batch: &Batch) -> Result<Stored, StoreError> {
        let Some(claim) = self.claim(batch.id) else {
            return Err(StoreError::StillRunning(format!("batch {} is being stored", batch.id)));
        };
        let permit = self.database.transaction_permit().await;
        let permit = permit.map_err(|exception| StoreError::NotSent(exception.line))?;
        let attempt = Attempt {
            database: self.database.clone(),
            batches: self.batches.clone(),
            id: batch.id,
            destination: batch.destination.clone(),
            rows: batch.rows.clone(),
        };
        let (sender, outcome) = oneshot::channel();
        let job = move || {
            let stored = attempt.run();
            drop((claim, permit));
            let _ = sender.send(stored);
        };
        spawn("windrow-store", job).map_err(|error| StoreError::NotSent(error.to_string()))?;
        outcome.await.unwrap_or_else(|_| Err(StoreError::Unknown("the attempt ended without an outcome".to_owned())))
    }
}

struct Attempt {
    database: DuckDb,
    batches: Arc<Batches>,
    id: BatchId,
    destination: Arc<Destination>,
    rows: Rows,
}

impl Attempt {
    fn run(self) -> Result<Stored, StoreError> {
        let rows = self.rows.count() as u64;
        let not_sent = |exception: Exception| StoreError::NotSent(exception.line);
        let batches = self.record_batches().map_err(StoreError::Refused)?;
        let work = Work::begin(self.database.clone()).map_err(not_sent)?;
        self.store(work, &batches)?;
        self.batches.stored(&self.database);
        Ok(Stored { written_rows: Some(rows), ..Stored::default() })
    }

    fn record_batches(&self) -> Result<Vec<arrow_array::RecordBatch>, Exception> {
        let version = self.database.version_suffix();
        let (Some(blocks), Form::Native { types }) = (self.rows.blocks(), &self.destination.form) else {
            return Err(Exception::new(ErrorCode::NOT_IMPLEMENTED, "DuckDB stores parsed rows only", version));
        };
        let batch = |block| record_batch(block, &self.destination.columns, types);
        blocks.iter().map(batch).collect::<Result<_, _>>().map_err(|not_held| not_held.exception(version))
    }

    fn store(&self, mut work: Work, batches: &[arrow_array::RecordBatch]) -> Result<(), StoreError> {
        let Destination { database, table, columns, .. } = &*self.destination;
        let table = TableRef::new(schema_of(database), table);
        let stored = Batches::insert(&self.database, self.id);
        let written = work.ingest(&table, Some(columns), batches).and_then(|_| work.execute(&stored));
        if let Err(exception) = written {
            return self.concluded(work.undone(), exception);
        }
        match work.commit() {
            Ok(()) => Ok(()),
            Err(CommitError::Refused(exception) | CommitError::Unknown(exception)) => {
                let connection = self.database.connect().map_err(|gone| StoreError::Unknown(gone.line))?;
                self.concluded(connection, exception)
            }
        }
    }

    /// Returns the outcome of a batch after an error: an earlier attempt may have stored it.
    fn concluded(&self, mut connection: Connection, exception: Exception) -> Result<(), StoreError> {
        match Batches::knows(&mut connection, self.id) {
            Ok(true) => Ok(()),
            Ok(false) if is_fatal(&exception) => Err(StoreError::Unknown(exception.line)),
            Ok(false) => Err(StoreError::Refused(exception)),
            Err(_) => Err(StoreError::Unknown(exception.line)),
        }
    }
}

/// Returns DuckDB's schema for a database of ClickHouse.
pub fn schema_of(database: &str) -> &str {
    match database {
        "default" => "main",
        other => other,
    }
}
