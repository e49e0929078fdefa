//! News that a buffer tells by itself: rows that are kept now, or were not taken, or were stored by another
//! process.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Weak};

use super::calls::{Calls, OnKept};
use super::Gathering;
use crate::buffer::{BufferError, BufferEvents};

/// The callers who wait for the buffer's promise.
#[derive(Default)]
pub(super) struct KeptRows {
    before: u64,
    /// Rows that were not taken after all, as long as somebody may ask for them.
    refused: BTreeMap<u64, (u64, BufferError)>,
    watched: BTreeMap<u64, (u64, OnKept)>,
    /// True when the buffer is closed and tells nothing any more.
    has_ended: bool,
}

/// The most refusals that are remembered for callers who have not asked yet.
const MAX_REFUSED: usize = 10_000;

impl KeptRows {
    pub(super) fn outcome(&self, positions: &Range<u64>) -> Option<Result<(), BufferError>> {
        let refused = self.refused.range(..positions.end).next_back();
        if let Some((_, (_, error))) = refused.filter(|(_, (end, _))| *end > positions.start) {
            return Some(Err(error.clone()));
        }
        match positions.end <= self.before {
            true => Some(Ok(())),
            false => self.has_ended.then(|| Err(not_known())),
        }
    }

    pub(super) fn watch(&mut self, positions: Range<u64>, call: OnKept) {
        self.watched.insert(positions.start, (positions.end, call));
    }

    fn reach(&mut self, before: u64, calls: &mut Calls) {
        self.before = self.before.max(before);
        while let Some(entry) = self.watched.first_entry() {
            if entry.get().0 > self.before {
                break;
            }
            let positions = *entry.key()..entry.get().0;
            let (_, call) = entry.remove();
            let outcome = self.outcome(&positions).unwrap_or(Ok(()));
            calls.push(Box::new(move || call(outcome)));
        }
    }

    /// Ends all waiting for a buffer that is closed: each caller is told that the outcome is not known.
    pub(super) fn let_go(&mut self, calls: &mut Calls) {
        self.has_ended = true;
        for (_, (_, call)) in std::mem::take(&mut self.watched) {
            calls.push(Box::new(move || call(Err(not_known()))));
        }
    }

    fn refuse(&mut self, positions: Range<u64>, error: BufferError, calls: &mut Calls) {
        self.refused.insert(positions.start, (positions.end, error));
        while self.refused.len() > MAX_REFUSED {
            self.refused.pop_first();
        }
        self.reach(positions.end, calls);
    }
}

fn not_known() -> BufferError {
    BufferError::Other("the writer was closed before these rows were known to be kept: they may be stored".into())
}

/// A receiver of the buffer's events that does not keep the writer alive.
pub(super) struct Reporter(Weak<Gathering>);

impl Reporter {
    pub(super) fn new(gathering: &Arc<Gathering>) -> Reporter {
        Reporter(Arc::downgrade(gathering))
    }

    fn report(&self, tell: impl FnOnce(&Gathering, &mut Calls)) {
        let Some(gathering) = self.0.upgrade() else { return };
        let mut calls = Calls::default();
        tell(&gathering, &mut calls);
        calls.run(&gathering);
        gathering.wake();
    }
}

impl BufferEvents for Reporter {
    fn kept(&self, before: u64) {
        self.report(|gathering, calls| gathering.lock().kept.reach(before, calls));
    }

    fn refused(&self, positions: Range<u64>, held_bytes: u64, error: BufferError) {
        self.report(|gathering, calls| {
            let mut state = gathering.lock();
            state.kept.refuse(positions.clone(), error, calls);
            gathering.free(&mut state, positions, held_bytes, None, calls);
        });
    }

    fn stored_elsewhere(&self, positions: Range<u64>, held_bytes: u64) {
        self.report(|gathering, calls| {
            let mut state = gathering.lock();
            state.counts.rows_stored += positions.end - positions.start;
            state.sealed_before = state.sealed_before.max(positions.end);
            gathering.free(&mut state, positions, held_bytes, None, calls);
        });
    }

    fn wake(&self) {
        self.report(|gathering, _| {
            let mut state = gathering.lock();
            for id in std::mem::take(&mut state.unrecorded) {
                state.flights.make_ready(id);
            }
        });
    }
}
