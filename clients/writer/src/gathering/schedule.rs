//! The decision on what is to be done now: send a batch, or wait.

use std::sync::atomic::Ordering;
use std::sync::Arc;

use super::calls::Calls;
use super::flights::Stage;
use super::state::State;
use super::Gathering;
use crate::buffer::{BufferError, LeftOvers, Open};
use crate::destination::Destination;
use crate::errors::Reason;
use crate::failure::Failure;
use crate::id::BatchId;
use crate::rows::Body;

/// The next step of a driver.
#[derive(Debug)]
pub enum Next {
    /// Send this batch, and ask again without waiting for its end.
    Send(Outgoing),
    /// Ask again at this time, and whenever woken.
    Wait { until_ms: Option<u64> },
    /// The writer is closed, and nothing is left to be done.
    Drained,
}

/// A batch to be sent.
#[derive(Debug, Clone)]
pub struct Outgoing {
    /// The batch's id, which is sent as `insert_deduplication_token`.
    pub id: BatchId,
    pub destination: Arc<Destination>,
    pub body: Body,
    /// The number of the attempt: 1 for the first.
    pub attempt: u32,
}

/// The time for which a buffer is left alone after it failed, in milliseconds.
pub(super) const BUFFER_AGAIN_MS: u64 = 500;

impl Gathering {
    /// Returns what to do at this time, in milliseconds by any clock that doesn't go backwards.
    pub fn next(&self, now_ms: u64) -> Next {
        self.look_for_left_overs(now_ms);
        let mut calls = Calls::default();
        let next = self.decide(&mut self.lock(), now_ms, &mut calls);
        calls.run(self);
        next
    }

    fn decide(&self, state: &mut State, now_ms: u64, calls: &mut Calls) -> Next {
        if state.is_abandoned {
            return Next::Drained;
        }
        state.flights.wake(now_ms);
        self.tell_room(state, false, calls);
        loop {
            let (ordered, max_in_flight) = (state.options.ordered, state.options.max_in_flight.max(1));
            if let Some(id) = state.flights.sendable(ordered, max_in_flight) {
                match self.load(state, id, now_ms, calls) {
                    Some(outgoing) => return Next::Send(outgoing),
                    None => continue,
                }
            }
            if !self.seal(state, now_ms) {
                break;
            }
        }
        if self.is_drained(state) {
            return Next::Drained;
        }
        if self.is_rest_elsewhere(state) {
            let soon_ms = now_ms.saturating_add(BUFFER_AGAIN_MS);
            state.left_overs_at_ms = state.left_overs_at_ms.map(|at_ms| at_ms.min(soon_ms));
        }
        Next::Wait { until_ms: self.wake_at(state, now_ms) }
    }

    /// Says whether the writer is closing and has nothing to send any more, though rows of it are not stored:
    /// another process has taken them, and may die before it has stored them.
    fn is_rest_elsewhere(&self, state: &State) -> bool {
        let is_closing = self.is_closed() && self.buffer.survives();
        let is_idle = is_closing && state.flights.is_empty() && self.buffer.open().rows == 0;
        is_idle && self.held_bytes.load(Ordering::SeqCst) > 0
    }

    /// Says whether to look for rows of other writers. A closing writer doesn't begin with them, unless its
    /// own may be among them.
    fn is_looking(&self, state: &State) -> bool {
        !self.is_closed() || self.is_rest_elsewhere(state)
    }

    fn load(&self, state: &mut State, id: BatchId, now_ms: u64, calls: &mut Calls) -> Option<Outgoing> {
        let loaded = self.buffer.load(id);
        let own = &self.destination;
        match loaded {
            Ok(body) => {
                state.flights.set_stage(id, Stage::Sent);
                let flight = state.flights.get_mut(id)?;
                let attempt = flight.failed_attempts + 1;
                state.counts.retries += u64::from(attempt > 1);
                Some(Outgoing { id, destination: flight.destination(own), body, attempt })
            }
            // Nobody can read it any more: that is told, and others go on.
            Err(BufferError::Damaged(text)) => {
                self.hand_over(state, id, Reason::Lost, &Failure::passing(text), now_ms, calls);
                None
            }
            // Another process has it now, and its rows with it.
            Err(BufferError::UnknownBatch(_)) => {
                state.flights.remove(id);
                None
            }
            Err(error) => {
                match error {
                    BufferError::NotYet => state.unrecorded.push(id),
                    _ => state.counts.last_error = Some(error.to_string()),
                }
                let until_ms = now_ms + BUFFER_AGAIN_MS;
                state.flights.set_stage(id, Stage::Waiting { until_ms, keeps_share: true });
                None
            }
        }
    }

    /// Makes a batch of the rows that wait, if there is a reason and a free place. Says whether there is a
    /// new batch.
    fn seal(&self, state: &mut State, now_ms: u64) -> bool {
        let open = self.buffer.open();
        if open.rows == 0 {
            state.waiting_since_ms = None;
            return false;
        }
        let since_ms = *state.waiting_since_ms.get_or_insert(now_ms);
        let is_free = state.flights.shares() < state.options.max_in_flight.max(1) && !state.flights.has_ready();
        let is_turn = if state.options.ordered { state.flights.is_empty() } else { is_free };
        if !is_turn || now_ms < state.buffer_again_ms || !self.has_reason(state, open, since_ms, now_ms) {
            return false;
        }
        match self.buffer.seal() {
            Ok(Some(sealed)) => {
                state.sealed_before = state.sealed_before.max(sealed.positions.end);
                state.flights.push(sealed);
                // What is left came while this batch was gathered.
                state.waiting_since_ms = None;
                true
            }
            Ok(None) => false,
            Err(error) => {
                state.counts.last_error = Some(error.to_string());
                state.buffer_again_ms = now_ms + BUFFER_AGAIN_MS;
                false
            }
        }
    }

    fn has_reason(&self, state: &State, open: Open, since_ms: u64, now_ms: u64) -> bool {
        open.full_batches > 0
            || now_ms >= since_ms.saturating_add(state.options.flush_interval_ms)
            || state.settled.flush_before() > state.sealed_before
            || self.is_closed.load(Ordering::SeqCst)
    }

    /// Returns when something will be due that no call announces.
    fn wake_at(&self, state: &State, now_ms: u64) -> Option<u64> {
        let seal_ms = state.waiting_since_ms.map(|since_ms| since_ms.saturating_add(state.options.flush_interval_ms));
        // While every place is taken, only the end of a batch changes anything; that wakes.
        let is_full = match state.options.ordered {
            true => !state.flights.is_empty(),
            false => state.flights.shares() >= state.options.max_in_flight.max(1),
        };
        let seal_ms = seal_ms.filter(|_| !is_full);
        // A buffer that has failed is not asked before its time, whatever is due.
        let seal_ms = seal_ms.map(|due_ms| if now_ms < state.buffer_again_ms { state.buffer_again_ms } else { due_ms });
        let left_overs_ms = state.left_overs_at_ms.filter(|_| self.is_looking(state));
        [seal_ms, left_overs_ms, state.flights.next_wake_ms()].into_iter().flatten().min()
    }

    /// Looks for batches of dead writers, not under the lock: there may be much to read.
    fn look_for_left_overs(&self, now_ms: u64) {
        if !self.buffer.survives() || !self.is_time_to_look(&mut self.lock(), now_ms) {
            return;
        }
        let found = self.buffer.left_overs();
        let state = &mut *self.lock();
        match found {
            Ok(LeftOvers { batches, damaged_bytes, complaints }) => {
                state.counts.damaged_bytes += damaged_bytes;
                state.counts.last_error = complaints.into_iter().last().or(state.counts.last_error.take());
                for sealed in batches {
                    // One that was given up to another process, and came back when that had died, is still under way
                    // here.
                    if state.flights.get_mut(sealed.id).is_none() {
                        state.counts.rows_left_over += sealed.rows;
                        state.flights.push(sealed);
                    }
                }
            }
            Err(error) => state.counts.last_error = Some(error.to_string()),
        }
    }

    /// Says whether to look now. Every writer looks once, also one that is closing.
    fn is_time_to_look(&self, state: &mut State, now_ms: u64) -> bool {
        let is_time = match state.left_overs_at_ms {
            None => true,
            Some(at_ms) => now_ms >= at_ms && self.is_looking(state),
        };
        if is_time {
            let interval_ms = state.options.left_overs_interval_ms.max(1);
            state.left_overs_at_ms = Some(now_ms.saturating_add(interval_ms));
        }
        is_time
    }
}
