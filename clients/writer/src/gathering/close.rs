//! The end of a writer.

use std::sync::atomic::Ordering;
use std::sync::Arc;

use super::calls::Calls;
use super::flights::Stage;
use super::state::State;
use super::Gathering;
use crate::errors::{Reason, WriteError};
use crate::failure::Failure;
use crate::id::BatchId;
use crate::rows::Body;

const NOT_STORED: &str = "the writer was closed before these rows were known to be stored";

/// The rows that a writer had in hand when it was abandoned.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CloseReport {
    /// Rows that were handed over with an error, as they don't survive the process.
    pub rows_handed_over: u64,
    /// Rows that stay in the buffer: for the next process that opens it, or for the process that has taken them.
    pub rows_kept: u64,
}

impl Gathering {
    /// Closes the writer: no more rows are taken, and those that were taken are sent without waiting for
    /// more. [`Next::Drained`](super::Next) says when that is done.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        let mut calls = Calls::default();
        self.tell_room(&mut self.lock(), false, &mut calls);
        calls.run(self);
        self.wake();
    }

    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    /// Says whether the writer is closed and all rows that were taken have settled.
    pub(super) fn is_drained(&self, state: &State) -> bool {
        self.is_closed() && state.flights.is_empty() && self.held_bytes.load(Ordering::SeqCst) == 0
    }

    /// Ends a writer at once, drained or not, and lets go of its buffer. Rows in memory are handed over with
    /// an error. Reports of batches that are still under way change nothing any more.
    pub fn abandon(&self) -> CloseReport {
        self.close();
        let mut calls = Calls::default();
        let mut state = self.lock();
        let mut report = CloseReport::default();
        if !state.is_abandoned {
            // Also those of this writer that another process has taken.
            let own_rows = self.buffer.next_position().saturating_sub(state.settled.count());
            match self.buffer.survives() {
                true => report.rows_kept = own_rows + state.flights.left_over_rows(),
                false => report.rows_handed_over = self.hand_over_all(&mut state, &mut calls),
            }
            state.is_abandoned = true;
            // It may wait for its own thread, which may be about to tell of an event.
            drop(state);
            self.buffer.close();
            if !self.buffer.survives() {
                // An append that had seen an open writer may have come in before the buffer closed.
                report.rows_handed_over += self.hand_over_all(&mut self.lock(), &mut calls);
            }
        } else {
            drop(state);
        }
        calls.run(self);
        let mut calls = Calls::default();
        let mut state = self.lock();
        let waiting = std::mem::take(&mut state.settled);
        waiting.let_go(&self.closed_error(), &mut calls);
        state.kept.let_go(&mut calls);
        drop(state);
        calls.run(self);
        self.wake();
        report
    }

    /// Makes the error for callers who wait for rows: these rows are in the buffer, or were handed over.
    fn closed_error(&self) -> Arc<WriteError> {
        Arc::new(WriteError {
            batch_id: BatchId(0),
            reason: Reason::Closed,
            code: None,
            message: NOT_STORED.to_owned(),
            row_count: 0,
            rows: Body::new(Vec::new(), Vec::new()),
            destination: self.destination().clone(),
        })
    }

    fn hand_over_all(&self, state: &mut State, calls: &mut Calls) -> u64 {
        while let Ok(Some(sealed)) = self.buffer.seal() {
            state.flights.push(sealed);
        }
        let failure = Failure::passing(NOT_STORED);
        let before = state.counts.rows_failed;
        for id in state.flights.ids() {
            let is_sent = state.flights.get_mut(id).is_some_and(|flight| flight.stage == Stage::Sent);
            let reason = if is_sent { Reason::MaybeStored } else { Reason::Closed };
            self.hand_over(state, id, reason, &failure, 0, calls);
        }
        state.counts.rows_failed - before
    }
}
