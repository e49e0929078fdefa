//! Queries: each on a thread and a connection of its own, its result handed over batch by batch.

use std::sync::{Arc, Mutex, PoisonError};

use adbc_core::CancelHandle;
use arrow_array::{RecordBatch, RecordBatchIterator};
use arrow_schema::SchemaRef;
use arrow_select::concat::concat_batches;
use tokio::sync::{mpsc, oneshot, OwnedSemaphorePermit};
use windrow_client::Exception;

use crate::connection::{arrow_exception, Connection, Reader, Running};
use crate::database::{spawn, DuckDb};
use crate::single;
use crate::tables::Tables;

/// On whose behalf a statement runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Where names without a schema are looked up.
    pub schema: String,
    /// Whether only statements that change nothing are run.
    pub readonly: bool,
}

/// Batches that wait for their reader; the query stands still meanwhile.
const BATCHES_AHEAD: usize = 2;

/// A result as it comes. Dropping it stops the query.
pub struct RecordStream {
    schema: SchemaRef,
    batches: mpsc::Receiver<Result<RecordBatch, Exception>>,
    _stop: Stop,
}

impl RecordStream {
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// `None` at the result's end. Nothing comes after an error.
    pub async fn next(&mut self) -> Option<Result<RecordBatch, Exception>> {
        self.batches.recv().await
    }
}

/// Stops a query when it is dropped. A query that has ended has released what this points to.
#[derive(Default)]
struct Stop {
    state: Arc<Mutex<StopState>>,
}

#[derive(Default)]
struct StopState {
    handle: Option<Box<dyn CancelHandle + Send>>,
    asked: bool,
}

impl Drop for Stop {
    fn drop(&mut self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.asked = true;
        if let Some(handle) = state.handle.take() {
            // Fails only where the query is over.
            let _ = handle.try_cancel();
        }
    }
}

pub(crate) async fn run(
    database: DuckDb,
    permit: OwnedSemaphorePermit,
    sql: String,
    session: Session,
) -> Result<RecordStream, Exception> {
    single::check(&sql, session.readonly, database.version_suffix())?;
    let stop = Stop::default();
    let state = stop.state.clone();
    let (opened, schema) = oneshot::channel();
    let (sender, batches) = mpsc::channel(BATCHES_AHEAD);
    let closed = database.closed();
    let job = move || {
        match database.connect() {
            Ok(connection) => {
                Asked { database, connection, sql, session, state }.answer(opened, sender);
            }
            Err(exception) => drop(opened.send(Err(exception))),
        };
        drop(permit);
    };
    spawn("windrow-query", job).map_err(|error| Exception::new(439, &error.to_string(), ""))?;
    let schema = schema.await.map_err(|_| closed)??;
    Ok(RecordStream { schema, batches, _stop: stop })
}

struct Asked {
    database: DuckDb,
    connection: Connection,
    sql: String,
    session: Session,
    state: Arc<Mutex<StopState>>,
}

impl Asked {
    fn answer(
        mut self,
        opened: oneshot::Sender<Result<SchemaRef, Exception>>,
        sender: mpsc::Sender<Result<RecordBatch, Exception>>,
    ) {
        let Running { mut reader, _statement } = match self.begin() {
            Ok(running) => running,
            Err(exception) => return drop(opened.send(Err(exception))),
        };
        let schema = reader.schema();
        if Tables::may_change(&self.sql) {
            // Run to its end before anybody hears of it: who does must not find what was known before. Its result is small.
            let rows: Vec<_> = reader.collect();
            self.database.tables().have_changed();
            reader = Box::new(RecordBatchIterator::new(rows, schema.clone()));
        }
        if opened.send(Ok(schema)).is_ok() {
            hand_over(reader, &sender, self.connection.version());
        }
    }

    fn begin(&mut self) -> Result<Running, Exception> {
        self.connection.use_schema(&self.session.schema)?;
        if self.session.readonly {
            self.connection.execute("BEGIN TRANSACTION READ ONLY")?;
        }
        let state = self.state.clone();
        self.connection.query(&self.sql, move |handle| {
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            state.handle = Some(handle);
            !state.asked
        })
    }
}

/// DuckDB gives 2,048 rows at a time, which costs more to hand over than to make. So they are put together: as long as the
/// reader is busy with what it has, and not beyond these.
const ROWS_TOGETHER: usize = 65_536;
const BYTES_TOGETHER: usize = 4 << 20;

fn hand_over(reader: Reader, sender: &mpsc::Sender<Result<RecordBatch, Exception>>, version: &str) {
    let schema = reader.schema();
    let (mut waiting, mut rows, mut bytes) = (Vec::new(), 0, 0);
    let send = |waiting: &mut Vec<RecordBatch>| {
        let together = concat_batches(&schema, waiting.iter()).map_err(|error| arrow_exception(&error, version));
        waiting.clear();
        sender.blocking_send(together).is_ok()
    };
    for batch in reader {
        let batch = match batch {
            Ok(batch) => batch,
            Err(error) => {
                let before = waiting.is_empty() || send(&mut waiting);
                if before {
                    let _ = sender.blocking_send(Err(arrow_exception(&error, version)));
                }
                return;
            }
        };
        rows += batch.num_rows();
        bytes += batch.get_array_memory_size();
        waiting.push(batch);
        let reader_waits = sender.capacity() == BATCHES_AHEAD;
        if reader_waits || rows >= ROWS_TOGETHER || bytes >= BYTES_TOGETHER {
            if !send(&mut waiting) {
                return;
            }
            (rows, bytes) = (0, 0);
        }
    }
    if !waiting.is_empty() {
        send(&mut waiting);
    }
}
