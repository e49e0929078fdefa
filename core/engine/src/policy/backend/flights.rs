//! Flushes in the air: which of them take a slot, and for how long.

use std::collections::BTreeMap;

use super::held_up::HeldUp;
use super::pace::Pace;
use super::{FlushId, LaneId};
use crate::policy::Micros;

/// A flush takes its slot for this many times the usual duration at most...
pub(super) const LEASE_FLUSHES: f64 = 4.0;
/// ... and for this long at least.
const SHORTEST_LEASE: Micros = Micros::from_millis(100);

#[derive(Clone, Debug)]
pub(super) struct Flights {
    cpus: f64,
    next: u64,
    /// Whose lease is not over. By the order of their beginning, which is also that in which their leases end.
    leased: BTreeMap<FlushId, Flight>,
    slots_taken: usize,
    /// What a flush would have had of a CPU since the start, if those with a slot share the CPUs evenly.
    cpu_us: f64,
    held_up: HeldUp,
    pace: Pace,
}

#[derive(Clone, Copy, Debug)]
struct Flight {
    lane: LaneId,
    began: Micros,
    began_cpu_us: f64,
    takes_slot: bool,
    paid_us: Option<f64>,
}

/// Of a flush that came in time.
pub(super) struct Ended {
    /// What it took of the credit when it began, if it needed any.
    pub(super) paid_us: Option<f64>,
    pub(super) cost_us: f64,
}

impl Flights {
    pub(super) fn new(cpus: u32) -> Self {
        Flights {
            cpus: f64::from(cpus),
            next: 0,
            leased: BTreeMap::new(),
            slots_taken: 0,
            cpu_us: 0.0,
            held_up: HeldUp::default(),
            pace: Pace::default(),
        }
    }

    pub(super) fn set_cpus(&mut self, cpus: u32) {
        self.cpus = f64::from(cpus);
    }

    pub(super) fn slots_taken(&self) -> usize {
        self.slots_taken
    }

    pub(super) fn pace(&self) -> &Pace {
        &self.pace
    }

    /// What one costs in credit.
    pub(super) fn usual_cost_us(&self) -> f64 {
        self.pace.usual_us() * self.pace.cpu_share()
    }

    pub(super) fn begin(&mut self, now: Micros, lane: LaneId, paid_us: Option<f64>) -> FlushId {
        let id = FlushId(self.next);
        self.next += 1;
        let takes_slot = !self.held_up.contains(lane);
        self.slots_taken += usize::from(takes_slot);
        self.leased.insert(id, Flight { lane, began: now, began_cpu_us: self.cpu_us, takes_slot, paid_us });
        id
    }

    /// `None`: its lease has ended before.
    pub(super) fn end(&mut self, now: Micros, id: FlushId, is_full: bool) -> Option<Ended> {
        let flight = self.leased.remove(&id)?;
        let took = now - flight.began;
        self.give_back(&flight);
        self.held_up.came_in_time(flight.lane);
        self.pace.came_in_time(took, self.cpu_us - flight.began_cpu_us, is_full);
        Some(Ended { paid_us: flight.paid_us, cost_us: took.0 as f64 * self.pace.cpu_share() })
    }

    pub(super) fn next_lease_end(&self) -> Option<Micros> {
        self.leased.first_key_value().map(|(_, oldest)| oldest.began + lease(&self.pace))
    }

    /// `passed`, up to `now`, without a flush that began or ended.
    pub(super) fn time_passed(&mut self, passed: Micros, now: Micros) {
        self.cpu_us += passed.0 as f64 * (self.cpus / self.slots_taken.max(1) as f64).min(1.0);
        while let Some(oldest) = self.leased.first_entry() {
            if oldest.get().began + lease(&self.pace) > now {
                break;
            }
            let late = oldest.remove();
            self.end_lease(&late);
        }
    }

    /// What it has paid is what flushes usually cost; it has waited for the rest.
    fn end_lease(&mut self, late: &Flight) {
        // If many come late that were not held up before, it is the backend that has become slow, and leases are too
        // short.
        if late.takes_slot {
            self.pace.took(lease(&self.pace));
        }
        self.give_back(late);
        self.held_up.was_late(late.lane);
    }

    fn give_back(&mut self, flight: &Flight) {
        self.slots_taken -= usize::from(flight.takes_slot);
    }
}

fn lease(pace: &Pace) -> Micros {
    Micros((pace.usual_us() * LEASE_FLUSHES) as u64).max(SHORTEST_LEASE)
}
