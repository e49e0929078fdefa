//! The writer for Rust programs.

use std::any::TypeId;
use std::cell::RefCell;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};

use tokio::sync::{oneshot, Notify};
use tokio::task::JoinHandle;
use windrow_clickhouse::Client;

use super::driver::Driver;
use super::error::WriterError;
use super::options::{WriterBuffer, WriterOptions};
use super::row::{Row, RowError};
use super::table::{deduplicates, describe};
use super::value::Column;
use crate::buffer::{AppendError, Buffer, Kept};
use crate::destination::Destination;
use crate::disk::{DiskBuffer, DiskOptions};
use crate::errors::WriteError;
use crate::gathering::{CloseReport, Gathering, OnReached, Taken};
use crate::memory::MemoryBuffer;
use crate::rows::Rows;
use crate::statistics::Statistics;

/// A writer that gathers rows for one table and stores them in batches, from any number of tasks and threads.
pub struct Writer {
    gathering: Arc<Gathering>,
    columns: Vec<Column>,
    checked: Checked,
    wait: bool,
    task: Mutex<Option<JoinHandle<()>>>,
}

/// Types of rows that are known to fit: nearly always a single one.
#[derive(Default)]
struct Checked {
    first: OnceLock<TypeId>,
    others: RwLock<Vec<TypeId>>,
}

/// The most bytes of a piece. Rows are appended in such pieces, each of them at once or not at all.
const PIECE_BYTES: usize = 256 << 10;
const PIECE_ROWS: usize = 10_000;

thread_local! {
    static ENCODED: RefCell<Encoded> = RefCell::default();
}

#[derive(Default)]
struct Encoded {
    bytes: Vec<u8>,
    lengths: Vec<u32>,
}

impl Writer {
    /// Opens a writer for a table, `table` or `database.table`, and some of its columns, or all. Needs a
    /// tokio runtime, and looks at the table first. A writer over a disk stores what dead writers have left
    /// in its folder.
    ///
    /// # Errors
    /// Fails where the table can't be looked at or written to, a column is missing, or the buffer can't be opened.
    pub async fn open(
        client: Arc<Client>,
        table: &str,
        columns: &[&str],
        options: WriterOptions,
    ) -> Result<Writer, WriterError> {
        let table = describe(&client, table, columns).await?;
        let core = crate::Options {
            batch_rows: options.batch_rows.max(1),
            batch_bytes: options.batch_bytes.max(1),
            flush_interval_ms: options.flush_interval.as_millis() as u64,
            max_bytes: options.max_bytes,
            max_in_flight: options.max_in_flight.max(1),
            ordered: options.ordered,
            retry: options.retry,
            ..crate::Options::default()
        };
        let buffer = open_buffer(options.buffer, table.destination.clone(), &core).await?;
        if buffer.survives() && !deduplicates(&client, &table.destination).await? {
            let Destination { database, table, .. } = &*table.destination;
            tracing::warn!(database, table, "rows that are sent again after a crash may be stored twice: the table remembers no batches; set non_replicated_deduplication_window, or write through Windrow");
        }
        let gathering = Gathering::new(buffer, table.destination, core);
        if let Some(on_error) = options.on_error {
            gathering.set_error_hook(Box::new(move |error| {
                on_error(error);
                true
            }));
        }
        let woken = Arc::new(Notify::new());
        let waker = woken.clone();
        gathering.set_waker(Box::new(move || waker.notify_one()));
        let (settings, started) = (options.settings, Instant::now());
        let driver = Driver { gathering: gathering.clone(), client, settings, woken, started };
        let task = Mutex::new(Some(tokio::spawn(Arc::new(driver).run())));
        Ok(Writer { gathering, columns: table.columns, checked: Checked::default(), wait: options.wait, task })
    }

    /// Takes a row; waits while there is no room, and, with [`WriterOptions::wait`], until the row is stored.
    ///
    /// # Errors
    /// Fails where the row doesn't fit the columns, the buffer refuses it, or, with `wait`, it could not be
    /// stored.
    pub async fn write_row<R: Row>(&self, row: R) -> Result<(), WriterError> {
        self.check::<R>()?;
        let encoded = match self.wait {
            // The usual way: nothing is copied but into the buffer.
            false => match self.try_append(&row)? {
                Attempt::Taken(taken) => return self.kept(taken).await,
                Attempt::Full => self.encode([row])?,
            },
            true => self.encode([row])?,
        };
        self.append_all(&encoded).await
    }

    /// Takes the row if there is room, and says whether. Never waits, also not with [`WriterOptions::wait`].
    ///
    /// # Errors
    /// Fails where the row doesn't fit the columns, or the buffer refuses it for another reason than room.
    pub fn try_write_row<R: Row>(&self, row: R) -> Result<bool, WriterError> {
        self.check::<R>()?;
        Ok(matches!(self.try_append(&row)?, Attempt::Taken(_)))
    }

    /// Takes rows in their order; waits as `write_row` does.
    ///
    /// # Errors
    /// Fails as `write_row` does. If the values of one row don't fit, none is taken; otherwise earlier rows
    /// may be taken.
    pub async fn write_rows<R: Row>(&self, rows: impl IntoIterator<Item = R>) -> Result<(), WriterError> {
        self.check::<R>()?;
        let encoded = self.encode(rows)?;
        self.append_all(&encoded).await
    }

    /// Returns when every row that was taken before is stored, or handed over with its error.
    pub async fn flush(&self) {
        let (told, telling) = oneshot::channel();
        self.gathering.flush(tell(told));
        // The sender is only dropped unused when the writer ends.
        let _ = telling.await;
    }

    /// Stores the rows that were taken, for so long at most, and ends the writer. Rows that are left then
    /// stay in a buffer that survives; from memory they are handed over with an error.
    pub async fn close(&self, timeout: Duration) -> CloseReport {
        self.gathering.close();
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut task) = task {
            if tokio::time::timeout(timeout, &mut task).await.is_err() {
                task.abort();
            }
        }
        let gathering = self.gathering.clone();
        let abandoned = tokio::task::spawn_blocking(move || gathering.abandon()).await;
        abandoned.unwrap_or_default()
    }

    /// Takes the errors that are there now, oldest first, each with the rows it is about. Errors that nobody
    /// takes are dropped when they become too many, and counted.
    pub fn errors(&self) -> impl Iterator<Item = Arc<WriteError>> + '_ {
        std::iter::from_fn(|| self.gathering.take_error())
    }

    pub fn statistics(&self) -> Statistics {
        self.gathering.statistics()
    }

    /// Returns the columns that rows give values to, in their order.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    #[inline]
    fn check<R: Row>(&self) -> Result<(), RowError> {
        let shape = TypeId::of::<R::Shape>();
        match self.checked.first.get() == Some(&shape) {
            true => Ok(()),
            false => self.check_other::<R>(shape),
        }
    }

    #[cold]
    fn check_other<R: Row>(&self, shape: TypeId) -> Result<(), RowError> {
        let others = &self.checked.others;
        if others.read().unwrap_or_else(PoisonError::into_inner).contains(&shape) {
            return Ok(());
        }
        R::check(&self.columns)?;
        if self.checked.first.set(shape).is_err() {
            others.write().unwrap_or_else(PoisonError::into_inner).push(shape);
        }
        Ok(())
    }

    #[inline]
    fn try_append<R: Row>(&self, row: &R) -> Result<Attempt, WriterError> {
        ENCODED.with_borrow_mut(|encoded| {
            encoded.bytes.clear();
            row.encode(&self.columns, &mut encoded.bytes)?;
            let length = [row_length(encoded.bytes.len(), 0)?];
            match self.gathering.append(Rows::new(&encoded.bytes, &length)) {
                Ok(taken) => Ok(Attempt::Taken(taken)),
                Err(AppendError::Full) => Ok(Attempt::Full),
                Err(error) => Err(error.into()),
            }
        })
    }

    fn encode<R: Row>(&self, rows: impl IntoIterator<Item = R>) -> Result<Encoded, RowError> {
        let mut encoded = ENCODED.take();
        encoded.bytes.clear();
        encoded.lengths.clear();
        for (index, row) in rows.into_iter().enumerate() {
            let start = encoded.bytes.len();
            let written = row.encode(&self.columns, &mut encoded.bytes);
            written.map_err(|error| RowError { row: index, ..error })?;
            encoded.lengths.push(row_length(encoded.bytes.len() - start, index)?);
        }
        Ok(encoded)
    }

    async fn append_all(&self, encoded: &Encoded) -> Result<(), WriterError> {
        let mut rest = Rows::new(&encoded.bytes, &encoded.lengths);
        let mut waiting = Vec::new();
        let mut room = None;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.fitting(PIECE_ROWS, PIECE_BYTES, 1));
            match self.append_piece(now, &mut waiting) {
                Ok(taken) => {
                    self.kept(taken).await?;
                    rest = later;
                }
                Err(AppendError::Full) => match room.take() {
                    // Asked for before it is tried once more: room that became free in between is not overlooked.
                    None => room = Some(self.room_for(now)),
                    Some(room) => drop(room.await),
                },
                Err(error) => return Err(error.into()),
            }
        }
        for settled in waiting {
            // The sender is told, or the writer is gone.
            settled.await.unwrap_or(Ok(())).map_err(WriterError::NotStored)?;
        }
        Ok(())
    }

    fn append_piece(
        &self,
        rows: Rows<'_>,
        waiting: &mut Vec<oneshot::Receiver<Settled>>,
    ) -> Result<Taken, AppendError> {
        if !self.wait {
            return self.gathering.append(rows);
        }
        let (told, telling) = oneshot::channel();
        let taken = self.gathering.append_watched(rows, Box::new(move |settled| drop(told.send(settled))))?;
        waiting.push(telling);
        Ok(taken)
    }

    fn room_for(&self, rows: Rows<'_>) -> oneshot::Receiver<()> {
        let (told, telling) = oneshot::channel();
        // A buffer's own limit is not known here: then anything that settles is a reason to try again.
        let bytes = if self.gathering.has_room(rows.held_bytes()) { 0 } else { rows.held_bytes() };
        self.gathering.wait_for_room(bytes, tell(told));
        telling
    }

    #[inline]
    async fn kept(&self, taken: Taken) -> Result<(), WriterError> {
        if taken.kept == Kept::Now {
            return Ok(());
        }
        let (told, telling) = oneshot::channel();
        self.gathering.on_kept(taken, Box::new(move |kept| drop(told.send(kept))));
        Ok(telling.await.unwrap_or(Ok(()))?)
    }
}

/// Makes a callback that sends to a caller who may have stopped waiting.
fn tell(told: oneshot::Sender<()>) -> OnReached {
    Box::new(move || {
        let _ = told.send(());
    })
}

type Settled = Result<(), Arc<WriteError>>;

enum Attempt {
    Taken(Taken),
    Full,
}

#[inline]
fn row_length(bytes: usize, row: usize) -> Result<u32, RowError> {
    u32::try_from(bytes).map_err(|_| RowError { column: None, message: "a row has more than 4 GiB".into(), row })
}

/// Ends a writer that is let go without [`Writer::close`]: it still stores what it has taken, for as long as
/// the runtime lives.
impl Drop for Writer {
    fn drop(&mut self) {
        self.gathering.close();
    }
}

async fn open_buffer(
    buffer: WriterBuffer,
    destination: Arc<Destination>,
    options: &crate::Options,
) -> Result<Arc<dyn Buffer>, WriterError> {
    let (batch_rows, batch_bytes) = (options.batch_rows, options.batch_bytes);
    match buffer {
        WriterBuffer::Memory => Ok(Arc::new(MemoryBuffer::new(batch_rows, batch_bytes))),
        WriterBuffer::Own(buffer) => Ok(buffer),
        WriterBuffer::Disk { folder, max_disk_bytes, sync } => {
            let options = DiskOptions { batch_rows, batch_bytes, max_disk_bytes, sync, ..DiskOptions::default() };
            let opening = tokio::task::spawn_blocking(move || DiskBuffer::open(folder, destination, options));
            let opened = opening.await.map_err(|error| WriterError::Table(error.to_string()))?;
            Ok(Arc::new(opened?))
        }
    }
}
