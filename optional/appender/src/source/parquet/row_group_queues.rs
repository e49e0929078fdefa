//! Decoded batches between the threads that decode and the one that reads, in the order of the row groups.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use arrow_array::RecordBatch;

use crate::cut::batch_bytes;
use crate::source::SourceError;

/// The most bytes of batches that may lie ready of groups whose turn has not come.
pub(super) const MAX_AHEAD_BYTES: u64 = 192 << 20;

pub(super) struct RowGroupQueues {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    queues: Vec<RowGroupQueue>,
    /// The next group that a thread takes.
    next: usize,
    /// The group whose batches are being read.
    current: usize,
    ahead_bytes: u64,
    closed: bool,
}

#[derive(Default)]
struct RowGroupQueue {
    batches: VecDeque<RecordBatch>,
    end: Option<Result<(), SourceError>>,
}

impl RowGroupQueues {
    pub(super) fn new(groups: usize) -> RowGroupQueues {
        let queues = std::iter::repeat_with(RowGroupQueue::default).take(groups).collect();
        let state = State { queues, next: 0, current: 0, ahead_bytes: 0, closed: false };
        RowGroupQueues { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing is done under this lock that could leave it half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the group that a thread decodes next; `None` when there is no more to do.
    pub(super) fn next_group(&self) -> Option<usize> {
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        (!state.closed && number < state.queues.len()).then_some(number)
    }

    /// Waits for room and puts a batch on its queue. Returns false if nobody wants it any more.
    pub(super) fn put(&self, number: usize, batch: RecordBatch) -> bool {
        let bytes = batch_bytes(&batch);
        let mut state = self.lock();
        while !state.closed && number != state.current && state.ahead_bytes + bytes > MAX_AHEAD_BYTES {
            state = self.wait(state);
        }
        if state.closed {
            return false;
        }
        state.ahead_bytes += bytes;
        state.queues[number].batches.push_back(batch);
        drop(state);
        self.changed.notify_all();
        true
    }

    pub(super) fn end_group(&self, number: usize, outcome: Result<(), SourceError>) {
        self.lock().queues[number].end = Some(outcome);
        self.changed.notify_all();
    }

    /// Returns the next batch in order; waits for it.
    pub(super) fn take(&self) -> Result<Option<RecordBatch>, SourceError> {
        let mut state = self.lock();
        loop {
            let current = state.current;
            let Some(queue) = state.queues.get_mut(current) else { return Ok(None) };
            if let Some(batch) = queue.batches.pop_front() {
                state.ahead_bytes -= batch_bytes(&batch);
                drop(state);
                self.changed.notify_all();
                return Ok(Some(batch));
            }
            match &queue.end {
                Some(Err(error)) => return Err(error.clone()),
                Some(Ok(())) => {
                    state.current += 1;
                    self.changed.notify_all();
                }
                None => state = self.wait(state),
            }
        }
    }

    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }
}
