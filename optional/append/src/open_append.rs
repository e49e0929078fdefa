//! One append that is open: the state that all requests to it share.
//!
//! Requests bring batches and wait for the end; one task applies the batches (`applying.rs`). All that they
//! know of each other is under one short lock, and a channel wakes those that wait for something to change.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::watch;

use crate::answer::{Progress, Put, State};
use crate::ended::End;
use crate::error::AppendError;
use crate::errors;
use crate::id::AppendId;
use crate::progress::{Idleness, Next, Sequence, Standing};
use crate::request::OpenRequest;
use crate::room::{Grant, Window};
use crate::spool::Spooled;
use crate::target::{Target, Totals};

/// A batch that waits for its turn, and the room that it takes.
pub(crate) enum HeldBatch<B> {
    Memory { batch: B, grant: Grant },
    Spooled { file: Spooled, grant: Grant },
}

impl<B> HeldBatch<B> {
    fn bytes(&self) -> u64 {
        match self {
            HeldBatch::Memory { grant, .. } | HeldBatch::Spooled { grant, .. } => grant.bytes(),
        }
    }
}

pub(crate) struct Append<T: Target> {
    pub(crate) id: AppendId,
    pub(crate) opening: OpenRequest,
    pub(crate) table: Arc<T::Table>,
    pub(crate) window: Arc<Window>,
    pub(crate) window_bytes: u64,
    pub(crate) opened_at: Instant,
    /// True if any batch was in a file.
    has_spooled: AtomicBool,
    inner: Mutex<Inner<T::Batch>>,
    changed: watch::Sender<()>,
}

struct Inner<B> {
    sequence: Sequence<HeldBatch<B>>,
    idleness: Idleness,
    rows: u64,
    bytes: u64,
    is_committing: bool,
    end: Option<End>,
    /// True if the append has ended, and nothing of it is left in the store that would still have to go.
    is_settled: bool,
}

/// The next step of the applying task.
pub(crate) enum Step<B> {
    Apply(Vec<(u64, HeldBatch<B>)>),
    Commit(Totals),
    /// The append has ended.
    Stop,
    /// The append has been silent for too long.
    Expire(AppendError),
    /// Ask again after so long, or when something has changed.
    Wait {
        ms: u64,
    },
}

/// The most ranges of received numbers that are told.
const MAX_RANGES: usize = 1000;

impl<T: Target> Append<T> {
    pub(crate) fn new(
        id: AppendId,
        opening: OpenRequest,
        table: T::Table,
        window_bytes: u64,
        idle_timeout_ms: u64,
    ) -> Append<T> {
        let inner = Inner {
            sequence: Sequence::new(opening.ordered),
            idleness: Idleness::new(idle_timeout_ms, 0),
            rows: 0,
            bytes: 0,
            is_committing: false,
            end: None,
            is_settled: false,
        };
        Append {
            id,
            opening,
            table: Arc::new(table),
            window: Window::new(window_bytes),
            window_bytes,
            opened_at: Instant::now(),
            has_spooled: AtomicBool::new(false),
            inner: Mutex::new(inner),
            changed: watch::Sender::new(()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner<T::Batch>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_ms(&self) -> u64 {
        self.opened_at.elapsed().as_millis() as u64
    }

    pub(crate) fn table_name(&self) -> String {
        format!("{}.{}", self.opening.database, self.opening.table)
    }

    /// Returns a receiver that becomes ready when something has changed after this call.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    pub(crate) fn end(&self) -> Option<End> {
        self.lock().end.clone()
    }

    /// Returns what a number means now. Fails with the end of an append that has ended.
    pub(crate) fn standing(&self, number: u64) -> Result<Standing, End> {
        let inner = self.lock();
        match &inner.end {
            Some(end) => Err(end.clone()),
            None => Ok(inner.sequence.standing(number)),
        }
    }

    /// Says whether the batches that it holds get fewer by themselves.
    pub(crate) fn is_moving(&self) -> bool {
        self.lock().sequence.is_moving()
    }

    pub(crate) fn lowest_missing(&self) -> u64 {
        self.lock().sequence.lowest_missing()
    }

    /// Notes that a batch is on its way, or a client is there to send some, until the guard is dropped.
    pub(crate) fn receiving(self: &Arc<Append<T>>) -> Receiving<T> {
        let now_ms = self.now_ms();
        self.lock().idleness.begins(now_ms);
        Receiving(self.clone())
    }

    /// Keeps a batch, if none of its number has come meanwhile.
    pub(crate) fn keep(
        &self,
        number: u64,
        kept: HeldBatch<T::Batch>,
        rows: u64,
        bytes: u64,
    ) -> Result<Put, AppendError> {
        let mut inner = self.lock();
        if let Some(end) = &inner.end {
            return late_put(self.id, number, end);
        }
        let refused = match inner.sequence.arrived(number, kept) {
            Ok(()) => {
                inner.rows += rows;
                inner.bytes += bytes;
                None
            }
            Err((standing, kept)) => Some((standing, kept)),
        };
        let next = inner.sequence.lowest_missing();
        drop(inner);
        self.changed.send_replace(());
        match refused {
            None => Ok(Put { id: self.id, batch: number, repeated: false, next }),
            Some((Standing::BehindEnd { batches }, _)) => Err(errors::behind_end(number, batches)),
            Some((Standing::TooLarge, _)) => Err(errors::number_too_large(number)),
            Some((Standing::TooFarAhead, _)) => Err(errors::no_room(next)),
            Some(_) => Ok(Put { id: self.id, batch: number, repeated: true, next }),
        }
    }

    /// Notes how many batches there are.
    pub(crate) fn ends_with(&self, batches: u64) -> Result<(), AppendError> {
        let now_ms = self.now_ms();
        let mut inner = self.lock();
        inner.idleness.sign(now_ms);
        let known = inner.sequence.ends_with(batches);
        drop(inner);
        self.changed.send_replace(());
        known.map_err(|why| errors::no_end(batches, why))
    }

    /// Returns the next step of the applying task. `max_bytes` bounds the batches that are taken at once.
    pub(crate) fn step(&self, max_bytes: u64, idle_timeout_ms: u64) -> Step<T::Batch> {
        let now_ms = self.now_ms();
        let mut inner = self.lock();
        if inner.end.is_some() {
            return Step::Stop;
        }
        match inner.sequence.next(max_bytes, HeldBatch::bytes) {
            Next::Apply(batches) => Step::Apply(batches),
            Next::Finish => {
                inner.is_committing = true;
                let batches = inner.sequence.batches().unwrap_or(0);
                Step::Commit(Totals { rows: inner.rows, bytes: inner.bytes, batches, elapsed_ms: now_ms })
            }
            Next::Wait => match inner.idleness.left_ms(now_ms) {
                0 => Step::Expire(errors::idle(idle_timeout_ms, inner.sequence.lowest_missing())),
                ms => Step::Wait { ms },
            },
        }
    }

    /// Notes that all batches that were taken are applied.
    pub(crate) fn applied(&self) {
        let now_ms = self.now_ms();
        let mut inner = self.lock();
        inner.sequence.applied();
        inner.idleness.sign(now_ms);
        drop(inner);
        self.changed.send_replace(());
    }

    /// Ends the append. Returns false if it had ended before. Unless `even_committing`, an append that is
    /// being committed goes on.
    pub(crate) fn finish(&self, end: End, even_committing: bool) -> bool {
        let mut inner = self.lock();
        if inner.end.is_some() || (inner.is_committing && !even_committing) {
            return false;
        }
        inner.end = Some(end);
        // Freed outside the lock: it may be much.
        let held = inner.sequence.take_all();
        drop(inner);
        drop(held);
        self.changed.send_replace(());
        true
    }

    pub(crate) fn is_committing(&self) -> bool {
        self.lock().is_committing
    }

    /// Notes that the append's task is done: it writes no more, and has cleared away what it could.
    pub(crate) fn settle(&self) {
        self.lock().is_settled = true;
        self.changed.send_replace(());
    }

    pub(crate) fn is_settled(&self) -> bool {
        self.lock().is_settled
    }

    pub(crate) async fn settled(&self) {
        let mut changes = self.changes();
        while !self.is_settled() {
            // The sender lives as long as `self`.
            let _ = changes.changed().await;
        }
    }

    pub(crate) fn spools(&self) {
        self.has_spooled.store(true, Ordering::Release);
    }

    pub(crate) fn has_spooled(&self) -> bool {
        self.has_spooled.load(Ordering::Acquire)
    }

    /// Waits for the append's end.
    pub(crate) async fn ended(&self) -> End {
        let mut changes = self.changes();
        loop {
            if let Some(end) = self.end() {
                return end;
            }
            // The sender lives as long as `self`.
            let _ = changes.changed().await;
        }
    }

    /// Says whether all batches are here, so that the end is a matter of the store alone.
    pub(crate) fn is_whole(&self) -> bool {
        self.lock().sequence.is_whole()
    }

    pub(crate) fn progress(&self) -> Progress {
        let inner = self.lock();
        Progress {
            id: self.id,
            state: if inner.is_committing { State::Committing } else { State::Open },
            table: self.table_name(),
            source: self.opening.source.clone(),
            columns: T::columns(&self.table),
            next: inner.sequence.lowest_missing(),
            received: inner.sequence.received(MAX_RANGES),
            window_bytes: self.window_bytes,
            atomic: T::atomicity(&self.table),
        }
    }
}

/// Returns the answer to a batch that comes after the end.
pub(crate) fn late_put(id: AppendId, number: u64, end: &End) -> Result<Put, AppendError> {
    match end {
        End::Committed(committed) if number < committed.batches => {
            Ok(Put { id, batch: number, repeated: true, next: committed.batches })
        }
        End::Committed(committed) => Err(errors::behind_end(number, committed.batches)),
        End::Aborted => Err(errors::aborted(id)),
        End::Failed(error) => Err(error.clone()),
    }
}

/// A guard for a batch that is on its way, or a client that is there.
pub(crate) struct Receiving<T: Target>(Arc<Append<T>>);

impl<T: Target> Drop for Receiving<T> {
    fn drop(&mut self) {
        let now_ms = self.0.now_ms();
        self.0.lock().idleness.ends(now_ms);
    }
}
