//! Flushes in the air: how many count, and how long they usually take.

use std::collections::BTreeMap;

use super::{FlushId, LEASE_FLUSHES, SHORTEST_LEASE};
use crate::Micros;

/// Of the usual duration, before any flush has ended.
const FIRST_GUESS: Micros = Micros::from_millis(5);
/// The mean reaches back over about this many flushes.
const MEMORY: f64 = 32.0;

#[derive(Clone, Debug)]
pub(super) struct Flights {
    next: u64,
    /// By the order of their beginning, which is also that in which their leases end.
    counted: BTreeMap<FlushId, Flight>,
    usual_us: f64,
}

#[derive(Clone, Copy, Debug)]
struct Flight {
    began: Micros,
    charged: Micros,
}

/// What a flush that counts no longer has cost.
pub(super) struct End {
    pub(super) took: Micros,
    /// What of that was taken from the credit when it began; zero for urgent ones.
    pub(super) charged: Micros,
}

impl Default for Flights {
    fn default() -> Self {
        Flights { next: 0, counted: BTreeMap::new(), usual_us: FIRST_GUESS.0 as f64 }
    }
}

impl Flights {
    pub(super) fn counted(&self) -> usize {
        self.counted.len()
    }

    pub(super) fn usual(&self) -> Micros {
        Micros(self.usual_us as u64).max(Micros(1))
    }

    pub(super) fn begin(&mut self, now: Micros, charged: Micros) -> FlushId {
        let id = FlushId(self.next);
        self.next += 1;
        self.counted.insert(id, Flight { began: now, charged });
        id
    }

    /// `None`: its lease has ended before.
    pub(super) fn end(&mut self, now: Micros, id: FlushId) -> Option<End> {
        let flight = self.counted.remove(&id)?;
        Some(self.learn(now, flight))
    }

    /// Ends the lease of the oldest, if it is over.
    pub(super) fn end_lease(&mut self, now: Micros) -> Option<End> {
        let oldest = self.counted.first_entry().filter(|oldest| oldest.get().began + lease(self.usual_us) <= now)?;
        let flight = oldest.remove();
        Some(self.learn(now, flight))
    }

    pub(super) fn next_lease_end(&self) -> Option<Micros> {
        self.counted.first_key_value().map(|(_, oldest)| oldest.began + lease(self.usual_us))
    }

    fn learn(&mut self, now: Micros, flight: Flight) -> End {
        let took = now - flight.began;
        // One that is held up for ever counts with its lease: many of them make leases longer, one hardly.
        let seen = took.min(lease(self.usual_us));
        self.usual_us += (seen.0 as f64 - self.usual_us) / MEMORY;
        End { took: seen, charged: flight.charged }
    }
}

fn lease(usual_us: f64) -> Micros {
    Micros((usual_us * LEASE_FLUSHES) as u64).max(SHORTEST_LEASE)
}
