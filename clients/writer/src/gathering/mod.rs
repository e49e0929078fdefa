//! The core that decides what a writer does next. It sends nothing and reads no clock: drivers do.
//!
//! A driver asks [`Gathering::next`] in a loop, with the time: it sends the batch that it is given, or waits
//! until a time or until it is woken. It reports the outcome of a batch by [`Gathering::stored`] and
//! [`Gathering::failed`]. Appends come from any thread; they take no lock but the buffer's, and wake the
//! driver only when there is something to be done.
//!
//! A row is taken (it counts in `held_bytes` before the buffer has it), waits in the buffer, is sealed with others to a
//! batch, and *settles*: its batch is stored, or it is handed over with an error. Only then is its room free again. A
//! writer that is closing is through when nothing is held, so no row that was taken can be overlooked.
//!
//! Locks: `state`, then the buffer's own. Callbacks run under neither. [`Gathering::append`] takes the buffer's alone.

mod buffer_events;
mod calls;
mod close;
mod flights;
mod room;
mod schedule;
mod settle;
mod settled;
mod state;

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

pub use calls::{ErrorHook, OnKept, OnReached, OnSettled};
pub use close::CloseReport;
pub use schedule::{Next, Outgoing};

use crate::buffer::{AppendError, Buffer, Kept, Ready};
use crate::destination::Destination;
use crate::errors::WriteError;
use crate::options::Options;
use crate::retry::{Backoff, Retry};
use crate::rows::Rows;
use crate::statistics::Statistics;
use calls::Calls;
use state::State;

pub struct Gathering {
    buffer: Arc<dyn Buffer>,
    destination: Arc<Destination>,
    max_bytes: u64,
    held_bytes: AtomicU64,
    is_closed: AtomicBool,
    /// True while anybody waits for room.
    is_room_awaited: AtomicBool,
    state: Mutex<State>,
    retry: Mutex<Box<dyn Retry>>,
    waker: OnceLock<Box<dyn Fn() + Send + Sync>>,
    error_hook: OnceLock<ErrorHook>,
}

/// Rows that were taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// The position of the first row: rows are counted from 0, in the order in which they were taken.
    pub first: u64,
    pub rows: u64,
    /// The state of the buffer's promise; if it does not hold yet, [`Gathering::on_kept`] tells when it does.
    pub kept: Kept,
}

impl Taken {
    pub fn positions(&self) -> Range<u64> {
        self.first..self.first + self.rows
    }
}

impl Gathering {
    pub fn new(buffer: Arc<dyn Buffer>, destination: Arc<Destination>, mut options: Options) -> Arc<Gathering> {
        let retry = std::mem::replace(&mut options.retry, Box::new(Backoff::default()));
        let gathering = Arc::new(Gathering {
            buffer: buffer.clone(),
            destination,
            max_bytes: options.max_bytes,
            held_bytes: AtomicU64::new(0),
            is_closed: AtomicBool::new(false),
            is_room_awaited: AtomicBool::new(false),
            state: Mutex::new(State::new(options)),
            retry: Mutex::new(retry),
            waker: OnceLock::new(),
            error_hook: OnceLock::new(),
        });
        buffer.attach(Arc::new(buffer_events::Reporter::new(&gathering)));
        gathering
    }

    /// Sets the function that is called whenever `next` may have something else to say, from any thread. The
    /// function must not block. Only the first one counts.
    pub fn set_waker(&self, waker: Box<dyn Fn() + Send + Sync>) {
        let _ = self.waker.set(waker);
    }

    /// Sets the callback for errors. Only the first one counts.
    pub fn set_error_hook(&self, hook: ErrorHook) {
        let _ = self.error_hook.set(hook);
    }

    pub fn buffer(&self) -> &Arc<dyn Buffer> {
        &self.buffer
    }

    pub fn destination(&self) -> &Arc<Destination> {
        &self.destination
    }

    /// Takes all of the rows, or none. Never waits for room.
    ///
    /// # Errors
    /// Fails where there is no room, the rows are larger than `max_bytes`, or the writer is closed or its
    /// buffer broken.
    #[inline]
    pub fn append(&self, rows: Rows<'_>) -> Result<Taken, AppendError> {
        let bytes = rows.held_bytes();
        self.reserve(bytes)?;
        // Matched in place: moving the outcome around is felt at millions of rows a second.
        match self.buffer.append(rows) {
            Ok(ref appended) => {
                if appended.ready != Ready::No {
                    self.wake();
                }
                Ok(Taken { first: appended.first, rows: rows.count() as u64, kept: appended.kept })
            }
            Err(error) => {
                self.give_back(bytes);
                Err(error)
            }
        }
    }

    /// Takes rows as `append` does; `call` is told when the rows have settled, from whichever thread reports it.
    ///
    /// # Errors
    /// Fails where `append` fails; `call` is not told then.
    pub fn append_watched(&self, rows: Rows<'_>, call: OnSettled) -> Result<Taken, AppendError> {
        let bytes = rows.held_bytes();
        self.reserve(bytes)?;
        // Nothing is sealed under the lock, so that these rows can't settle before they are watched.
        let mut state = self.lock();
        let outcome = self.buffer.append(rows);
        let unwatched = match &outcome {
            Ok(appended) if !rows.is_empty() => {
                state.settled.watch(appended.first..appended.first + rows.count() as u64, call);
                None
            }
            _ => Some(call),
        };
        drop(state);
        let appended = outcome.inspect_err(|_| self.give_back(bytes))?;
        if let Some(call) = unwatched {
            call(Ok(()));
        }
        if appended.ready != Ready::No {
            self.wake();
        }
        Ok(Taken { first: appended.first, rows: rows.count() as u64, kept: appended.kept })
    }

    /// Tells `call` when all rows that were taken before are settled. These rows need not wait for others any
    /// more.
    pub fn flush(&self, call: OnReached) {
        let mut calls = Calls::default();
        let mut state = self.lock();
        let before = self.buffer.next_position();
        state.settled.flush(before, call, &mut calls);
        drop(state);
        calls.run(self);
        self.wake();
    }

    /// Tells `call` when the rows are kept, or why they were not taken after all.
    pub fn on_kept(&self, taken: Taken, call: OnKept) {
        let mut state = self.lock();
        let known = match taken.kept {
            Kept::Now => Some(Ok(())),
            Kept::Later => state.kept.outcome(&taken.positions()),
        };
        match known {
            None => state.kept.watch(taken.positions(), call),
            Some(outcome) => {
                drop(state);
                call(outcome);
            }
        }
    }

    /// Takes the oldest error that nobody has taken yet.
    pub fn take_error(&self) -> Option<Arc<WriteError>> {
        self.lock().errors.pop()
    }

    pub fn statistics(&self) -> Statistics {
        let open = self.buffer.open();
        let state = self.lock();
        Statistics {
            rows_written: self.buffer.next_position(),
            rows_waiting: open.rows,
            rows_in_flight: state.flights.rows,
            batches_in_flight: state.flights.len() as u64,
            bytes_held: self.held_bytes.load(Ordering::Relaxed),
            errors_dropped: state.errors.dropped,
            ..state.counts.clone()
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        if let Some(waker) = self.waker.get() {
            waker();
        }
    }
}
