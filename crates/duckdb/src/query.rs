//! Queries: each on a thread and a connection of its own, its result handed over batch by batch.

use std::sync::{Arc, Mutex, PoisonError};

use adbc_core::CancelHandle;
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use tokio::sync::{mpsc, oneshot, OwnedSemaphorePermit};
use windrow_client::Exception;

use crate::connection::{arrow_exception, Connection};
use crate::database::{spawn, DuckDb};
use crate::single;

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
            Ok(mut connection) => answer(&mut connection, &sql, &session, state, opened, sender),
            Err(exception) => drop(opened.send(Err(exception))),
        };
        drop(permit);
    };
    spawn("windrow-query", job).map_err(|error| Exception::new(439, &error.to_string(), ""))?;
    let schema = schema.await.map_err(|_| closed)??;
    Ok(RecordStream { schema, batches, _stop: stop })
}

fn answer(
    connection: &mut Connection,
    sql: &str,
    session: &Session,
    state: Arc<Mutex<StopState>>,
    opened: oneshot::Sender<Result<SchemaRef, Exception>>,
    sender: mpsc::Sender<Result<RecordBatch, Exception>>,
) {
    let begun = begin(connection, session).and_then(|()| {
        connection.query(sql, |handle| {
            state.lock().unwrap_or_else(PoisonError::into_inner).handle = Some(handle);
        })
    });
    let running = match begun {
        Ok(running) => running,
        Err(exception) => return drop(opened.send(Err(exception))),
    };
    if opened.send(Ok(running.reader.schema())).is_err() {
        return;
    }
    for batch in running.reader {
        let batch = batch.map_err(|error| arrow_exception(&error, connection.version()));
        let failed = batch.is_err();
        if sender.blocking_send(batch).is_err() || failed {
            break;
        }
    }
}

fn begin(connection: &mut Connection, session: &Session) -> Result<(), Exception> {
    connection.use_schema(&session.schema)?;
    if session.readonly {
        connection.execute("BEGIN TRANSACTION READ ONLY")?;
    }
    Ok(())
}
