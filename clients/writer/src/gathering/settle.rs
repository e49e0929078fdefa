//! The outcomes of batches that were sent.

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use super::calls::Calls;
use super::flights::{Flight, Stage};
use super::schedule::BUFFER_AGAIN_MS;
use super::state::State;
use super::Gathering;
use crate::buffer::BufferError;
use crate::errors::{Reason, WriteError};
use crate::failure::{Failure, FailureKind};
use crate::id::BatchId;
use crate::retry::Attempts;
use crate::rows::Body;

impl Gathering {
    /// Ends a batch all of whose rows are stored.
    pub fn stored(&self, id: BatchId) {
        let mut calls = Calls::default();
        let mut state = self.lock();
        if state.is_abandoned {
            return;
        }
        if let Some(flight) = state.flights.remove(id) {
            state.counts.rows_stored += flight.sealed.rows;
            state.counts.batches_stored += 1;
            self.mark_done(&mut state, id);
            self.free(&mut state, flight.sealed.positions, flight.sealed.held_bytes, None, &mut calls);
        }
        drop(state);
        calls.run(self);
        self.wake();
    }

    /// Takes note of an attempt that has failed. The batch is sent again, cut, or handed over.
    pub fn failed(&self, id: BatchId, failure: Failure, now_ms: u64) {
        let survives = self.buffer.survives();
        let may_pass = failure.kind == FailureKind::Passing || failure.kind == FailureKind::Refused && survives;
        // Asked without the lock: a program's own policy may look at the writer.
        let attempts = may_pass.then(|| self.count_failure(id, now_ms)).flatten();
        let again_after_ms = attempts.and_then(|attempts| {
            let mut retry = self.retry.lock().unwrap_or_else(PoisonError::into_inner);
            retry.again_after_ms(&failure, attempts)
        });
        let again_ms = again_after_ms.map(|after_ms| now_ms.saturating_add(after_ms));
        let mut calls = Calls::default();
        let mut state = self.lock();
        if !state.is_abandoned {
            self.judge(&mut state, id, failure, again_ms, now_ms, &mut calls);
        }
        drop(state);
        calls.run(self);
        self.wake();
    }

    fn judge(
        &self,
        state: &mut State,
        id: BatchId,
        failure: Failure,
        again_ms: Option<u64>,
        now_ms: u64,
        calls: &mut Calls,
    ) {
        let survives = self.buffer.survives();
        state.counts.last_error = Some(failure.message.clone());
        let Some(flight) = state.flights.get_mut(id) else { return };
        let rows = flight.sealed.rows;
        match failure.kind {
            FailureKind::Values if rows > 1 => self.narrow(state, id, &failure, now_ms),
            FailureKind::Values => self.hand_over(state, id, Reason::Values, &failure, now_ms, calls),
            FailureKind::MaybeStored => self.hand_over(state, id, Reason::MaybeStored, &failure, now_ms, calls),
            FailureKind::Refused if !survives => self.hand_over(state, id, Reason::Refused, &failure, now_ms, calls),
            FailureKind::Passing | FailureKind::Refused => match again_ms {
                // What is refused may be so for ever: it doesn't keep others from being sent.
                Some(until_ms) => {
                    let keeps_share = failure.kind == FailureKind::Passing;
                    state.flights.set_stage(id, Stage::Waiting { until_ms, keeps_share });
                }
                None => self.hand_over(state, id, Reason::GaveUp, &failure, now_ms, calls),
            },
        }
    }

    fn count_failure(&self, id: BatchId, now_ms: u64) -> Option<Attempts> {
        let mut state = self.lock();
        let flight = state.flights.get_mut(id)?;
        if flight.failed_attempts == 0 {
            flight.first_failed_ms = now_ms;
        }
        flight.failed_attempts = flight.failed_attempts.saturating_add(1);
        Some(Attempts {
            failed: flight.failed_attempts,
            elapsed_ms: now_ms.saturating_sub(flight.first_failed_ms),
            survives: self.buffer.survives(),
        })
    }

    /// Cuts out the row that the error names, or else cuts the batch in half.
    fn narrow(&self, state: &mut State, id: BatchId, failure: &Failure, now_ms: u64) {
        let Some(flight) = state.flights.get_mut(id) else { return };
        let rows = flight.sealed.rows as usize;
        let named = failure.row.and_then(|row| usize::try_from(row).ok()).filter(|row| (1..=rows).contains(row));
        let mut cuts = named.map_or(vec![rows / 2], |row| vec![row - 1, row]);
        cuts.retain(|&cut| cut > 0 && cut < rows);
        match self.buffer.split(id, &cuts) {
            Ok(pieces) => {
                state.counts.batches_split += 1;
                state.flights.replace(id, pieces);
            }
            // It is sent again as it is, and then cut.
            Err(error) => {
                state.counts.last_error = Some(error.to_string());
                let until_ms = now_ms.saturating_add(BUFFER_AGAIN_MS);
                state.flights.set_stage(id, Stage::Waiting { until_ms, keeps_share: true });
            }
        }
    }

    pub(super) fn hand_over(
        &self,
        state: &mut State,
        id: BatchId,
        reason: Reason,
        failure: &Failure,
        now_ms: u64,
        calls: &mut Calls,
    ) {
        let rows = match self.buffer.load(id) {
            Ok(body) => body.detached(),
            Err(BufferError::Damaged(_) | BufferError::UnknownBatch(_)) => Body::new(Vec::new(), Vec::new()),
            // They come to their end when they can be read again.
            Err(error) => {
                state.counts.last_error = Some(error.to_string());
                let until_ms = now_ms.saturating_add(BUFFER_AGAIN_MS);
                return state.flights.set_stage(id, Stage::Waiting { until_ms, keeps_share: true });
            }
        };
        let Some(flight) = state.flights.remove(id) else { return };
        let error = Arc::new(self.write_error(&flight, reason, failure, rows));
        state.counts.rows_failed += flight.sealed.rows;
        self.mark_done(state, id);
        if self.error_hook.get().is_none() {
            state.errors.push(error.clone());
        }
        calls.failed(error, flight.sealed.positions, flight.sealed.held_bytes);
    }

    fn write_error(&self, flight: &Flight, reason: Reason, failure: &Failure, rows: Body) -> WriteError {
        WriteError {
            batch_id: flight.sealed.id,
            reason,
            code: failure.code,
            message: failure.message.clone(),
            row_count: flight.sealed.rows,
            rows,
            destination: flight.destination(&self.destination),
        }
    }

    /// Marks a batch as done. If that fails, the batch is sent again after a crash, under the same id.
    fn mark_done(&self, state: &mut State, id: BatchId) {
        if let Err(error) = self.buffer.done(id) {
            state.counts.last_error = Some(error.to_string());
        }
    }

    /// Settles rows: gives back their room, and tells the callers who wait for them.
    pub(super) fn free(
        &self,
        state: &mut State,
        positions: Range<u64>,
        held_bytes: u64,
        error: Option<&Arc<WriteError>>,
        calls: &mut Calls,
    ) {
        self.held_bytes.fetch_sub(held_bytes, Ordering::SeqCst);
        state.settled.settle(positions, error, calls);
        self.tell_room(state, true, calls);
    }
}
