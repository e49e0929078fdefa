//! A query's result on its way from the thread that waits for the database to the task that reads it.

use std::sync::{Arc, Mutex, PoisonError};

use adbc_core::CancelHandle;
use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};
use arrow_select::concat::concat_batches;
use tokio::sync::{mpsc, oneshot};
use windrow_clickhouse::{ErrorCode, Exception};

use crate::database::spawn;

/// The most batches that wait for their reader; then the query pauses.
const BATCHES_AHEAD: usize = 2;

/// A result as it comes. Dropping it stops the query.
pub struct RecordStream {
    schema: SchemaRef,
    batches: mpsc::Receiver<Result<RecordBatch, Exception>>,
    _stop: Stop,
}

impl RecordStream {
    /// Runs `work` on a thread of its own, and waits until the query has begun. `closed` is the error if the
    /// thread ends without an answer.
    ///
    /// # Errors
    /// Fails where no thread can be started, or the query is refused.
    pub async fn begin(
        closed: Exception,
        work: impl FnOnce(Answering) + Send + 'static,
    ) -> Result<RecordStream, Exception> {
        let signal = StopSignal::default();
        let stop = Stop { signal: signal.clone() };
        let (opened, schema) = oneshot::channel();
        let (sender, batches) = mpsc::channel(BATCHES_AHEAD);
        let answering = Answering { opened, sender, signal };
        spawn("windrow-query", move || work(answering))
            .map_err(|error| Exception::new(ErrorCode::CANNOT_SCHEDULE_TASK, &error.to_string(), ""))?;
        let schema = schema.await.map_err(|_| closed)??;
        Ok(RecordStream { schema, batches, _stop: stop })
    }

    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// Returns the next batch, or `None` at the result's end. Nothing comes after an error.
    pub async fn next(&mut self) -> Option<Result<RecordBatch, Exception>> {
        self.batches.recv().await
    }
}

/// A guard that stops a query when it is dropped. A query that has ended has released its handle.
struct Stop {
    signal: StopSignal,
}

/// A signal to a query's thread that nobody needs the result any more.
#[derive(Clone, Default)]
pub struct StopSignal {
    state: Arc<Mutex<StopState>>,
}

#[derive(Default)]
struct StopState {
    handle: Option<Box<dyn CancelHandle + Send>>,
    asked: bool,
}

impl StopSignal {
    /// Keeps the handle that stops the query, and says whether the query may run at all.
    pub fn may_run(&self, handle: Box<dyn CancelHandle>) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.handle = Some(handle);
        !state.asked
    }

    pub fn was_given(&self) -> bool {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).asked
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        let mut state = self.signal.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.asked = true;
        if let Some(handle) = state.handle.take() {
            // Fails only where the query is over.
            let _ = handle.try_cancel();
        }
    }
}

/// The thread's side of a result that has not begun.
pub struct Answering {
    opened: oneshot::Sender<Result<SchemaRef, Exception>>,
    sender: mpsc::Sender<Result<RecordBatch, Exception>>,
    signal: StopSignal,
}

impl Answering {
    pub fn signal(&self) -> StopSignal {
        self.signal.clone()
    }

    pub fn refused(self, exception: Exception) {
        // Who doesn't wait any more needs no error.
        let _ = self.opened.send(Err(exception));
    }

    /// Announces the result's schema. Returns `None` where nobody needs the result any more.
    pub fn begun(self, schema: SchemaRef) -> Option<BatchSender> {
        self.opened.send(Ok(schema)).is_ok().then_some(BatchSender { sender: self.sender })
    }
}

/// The thread's side of a result that is being read.
pub struct BatchSender {
    sender: mpsc::Sender<Result<RecordBatch, Exception>>,
}

/// The most rows of one batch that is sent. Databases return 2,048 rows at a time or less, which costs more
/// to send than to make. So batches are joined, as long as the reader is busy with earlier ones.
const ROWS_TOGETHER: usize = 65_536;
const BYTES_TOGETHER: usize = 4 << 20;

impl BatchSender {
    pub fn failed(&self, exception: Exception) {
        let _ = self.sender.blocking_send(Err(exception));
    }

    /// Sends batches until the result ends, or its reader is gone. `to_exception` makes an exception of an error that
    /// comes in the middle.
    ///
    /// # Errors
    /// Fails with that exception.
    pub fn hand_over(
        &self,
        schema: &SchemaRef,
        batches: impl Iterator<Item = Result<RecordBatch, ArrowError>>,
        to_exception: impl Fn(&ArrowError) -> Exception,
    ) -> Result<(), Exception> {
        let (mut waiting, mut rows, mut bytes) = (Vec::new(), 0, 0);
        let send = |waiting: &mut Vec<RecordBatch>| {
            let together = concat_batches(schema, waiting.iter()).map_err(|error| to_exception(&error));
            waiting.clear();
            self.sender.blocking_send(together).is_ok()
        };
        for batch in batches {
            let batch = match batch {
                Ok(batch) => batch,
                Err(error) => {
                    let is_there = waiting.is_empty() || send(&mut waiting);
                    return if is_there { Err(to_exception(&error)) } else { Ok(()) };
                }
            };
            rows += batch.num_rows();
            bytes += batch.get_array_memory_size();
            waiting.push(batch);
            let reader_waits = self.sender.capacity() == BATCHES_AHEAD;
            if reader_waits || rows >= ROWS_TOGETHER || bytes >= BYTES_TOGETHER {
                if !send(&mut waiting) {
                    return Ok(());
                }
                (rows, bytes) = (0, 0);
            }
        }
        if !waiting.is_empty() {
            send(&mut waiting);
        }
        Ok(())
    }
}
