//! Batches whose members are fixed, on their way to an end.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::buffer::Sealed;
use crate::id::BatchId;

/// The place of a batch in line: the number of its seal, then its first row in what was sealed. So the pieces
/// of a batch have its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LinePosition {
    number: u64,
    row: u64,
}

pub(super) struct Flight {
    pub(super) sealed: Sealed,
    pub(super) stage: Stage,
    pub(super) failed_attempts: u32,
    pub(super) first_failed_ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Ready,
    Sent,
    /// The batch waits until `until_ms`; says whether it keeps its share of what may be in flight meanwhile.
    Waiting {
        until_ms: u64,
        keeps_share: bool,
    },
}

#[derive(Default)]
pub(super) struct Flights {
    sealed: u64,
    in_line: BTreeMap<LinePosition, Flight>,
    by_id: HashMap<BatchId, LinePosition>,
    ready: BTreeSet<LinePosition>,
    waiting: BTreeSet<(u64, LinePosition)>,
    /// The number of batches that are sent, or keep their share while they wait.
    shares: usize,
    pub(super) rows: u64,
}

impl Flights {
    pub(super) fn len(&self) -> usize {
        self.in_line.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.in_line.is_empty()
    }

    /// Returns the number of rows that other processes have left.
    pub(super) fn left_over_rows(&self) -> u64 {
        let sealed = self.in_line.values().map(|flight| &flight.sealed);
        sealed.map(|sealed| sealed.rows - (sealed.positions.end - sealed.positions.start)).sum()
    }

    pub(super) fn shares(&self) -> usize {
        self.shares
    }

    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    pub(super) fn push(&mut self, sealed: Sealed) {
        self.sealed += 1;
        self.insert(LinePosition { number: self.sealed, row: 0 }, sealed);
    }

    fn insert(&mut self, place: LinePosition, sealed: Sealed) {
        self.rows += sealed.rows;
        self.by_id.insert(sealed.id, place);
        self.ready.insert(place);
        let flight = Flight { sealed, stage: Stage::Ready, failed_attempts: 0, first_failed_ms: 0 };
        self.in_line.insert(place, flight);
    }

    /// Puts the pieces of a batch in its place.
    pub(super) fn replace(&mut self, id: BatchId, pieces: Vec<Sealed>) {
        let Some(&parent) = self.by_id.get(&id) else { return };
        self.remove(id);
        let mut place = parent;
        for piece in pieces {
            let rows = piece.rows;
            self.insert(place, piece);
            place.row += rows;
        }
    }

    pub(super) fn get_mut(&mut self, id: BatchId) -> Option<&mut Flight> {
        self.in_line.get_mut(self.by_id.get(&id)?)
    }

    pub(super) fn remove(&mut self, id: BatchId) -> Option<Flight> {
        self.set_stage(id, Stage::Ready);
        let place = self.by_id.remove(&id)?;
        self.ready.remove(&place);
        let flight = self.in_line.remove(&place)?;
        self.rows -= flight.sealed.rows;
        Some(flight)
    }

    pub(super) fn set_stage(&mut self, id: BatchId, stage: Stage) {
        let Some(&place) = self.by_id.get(&id) else { return };
        let Some(flight) = self.in_line.get_mut(&place) else { return };
        let before = std::mem::replace(&mut flight.stage, stage);
        self.shares -= usize::from(before.has_share());
        self.shares += usize::from(stage.has_share());
        match before {
            Stage::Ready => drop(self.ready.remove(&place)),
            Stage::Waiting { until_ms, .. } => drop(self.waiting.remove(&(until_ms, place))),
            Stage::Sent => {}
        }
        match stage {
            Stage::Ready => drop(self.ready.insert(place)),
            Stage::Waiting { until_ms, .. } => drop(self.waiting.insert((until_ms, place))),
            Stage::Sent => {}
        }
    }

    /// Makes batches ready again whose time has come.
    pub(super) fn wake(&mut self, now_ms: u64) {
        while let Some(&(until_ms, place)) = self.waiting.first().filter(|(until_ms, _)| *until_ms <= now_ms) {
            let Some(flight) = self.in_line.get(&place) else {
                self.waiting.remove(&(until_ms, place));
                continue;
            };
            self.set_stage(flight.sealed.id, Stage::Ready);
        }
    }

    /// Makes a batch ready whose reason to wait is gone.
    pub(super) fn make_ready(&mut self, id: BatchId) {
        if self.get_mut(id).is_some_and(|flight| matches!(flight.stage, Stage::Waiting { .. })) {
            self.set_stage(id, Stage::Ready);
        }
    }

    pub(super) fn next_wake_ms(&self) -> Option<u64> {
        self.waiting.first().map(|(until_ms, _)| *until_ms)
    }

    /// Returns the batch that may be sent now.
    pub(super) fn sendable(&self, ordered: bool, max_in_flight: usize) -> Option<BatchId> {
        let place = match ordered {
            true => self.in_line.first_key_value().map(|(place, _)| place).filter(|place| self.ready.contains(place)),
            false => self.ready.first().filter(|_| self.shares < max_in_flight),
        };
        place.and_then(|place| self.in_line.get(place)).map(|flight| flight.sealed.id)
    }

    /// Returns the ids of all batches, in line.
    pub(super) fn ids(&self) -> Vec<BatchId> {
        self.in_line.values().map(|flight| flight.sealed.id).collect()
    }
}

impl Stage {
    fn has_share(self) -> bool {
        matches!(self, Stage::Sent | Stage::Waiting { keeps_share: true, .. })
    }
}

impl Flight {
    pub(super) fn destination(&self, own: &Arc<crate::Destination>) -> Arc<crate::Destination> {
        self.sealed.destination.clone().unwrap_or_else(|| own.clone())
    }
}
