//! Flights: running flushes, which of them take a slot, and for how long.

use std::collections::BTreeMap;

use super::pace::Pace;
use super::slow_lanes::SlowLanes;
use super::{FlushId, LaneId};
use crate::policy::Micros;

/// The longest time for which a flush takes its slot, as a multiple of the usual duration.
pub(super) const LEASE_FLUSHES: f64 = 4.0;
/// The lower bound of that time.
const SHORTEST_LEASE: Micros = Micros::from_millis(100);

#[derive(Clone, Debug)]
pub(super) struct Flights {
    cpus: f64,
    next: u64,
    /// Flights whose lease is not over, by the order of their beginning, in which their leases also end.
    leased: BTreeMap<FlushId, Flight>,
    slots_taken: usize,
    /// CPU time that a flush would have had since the start, if the flushes with a slot share the CPUs evenly.
    cpu_us: f64,
    slow_lanes: SlowLanes,
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

/// The costs of a flush that came in time.
pub(super) struct Ended {
    /// The credit that the flush took when it began, if it needed any.
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
            slow_lanes: SlowLanes::default(),
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

    /// Returns the credit that a flush usually costs.
    pub(super) fn usual_cost_us(&self) -> f64 {
        self.pace.usual_us() * self.pace.cpu_share()
    }

    pub(super) fn begin(&mut self, now: Micros, lane: LaneId, paid_us: Option<f64>) -> FlushId {
        let id = FlushId(self.next);
        self.next += 1;
        let takes_slot = !self.slow_lanes.contains(lane);
        self.slots_taken += usize::from(takes_slot);
        self.leased.insert(id, Flight { lane, began: now, began_cpu_us: self.cpu_us, takes_slot, paid_us });
        id
    }

    /// Ends a flight. Returns `None` where its lease has ended before.
    pub(super) fn end(&mut self, now: Micros, id: FlushId, is_full: bool) -> Option<Ended> {
        let flight = self.leased.remove(&id)?;
        let took = now - flight.began;
        self.give_back(&flight);
        self.slow_lanes.came_in_time(flight.lane);
        self.pace.came_in_time(took, self.cpu_us - flight.began_cpu_us, is_full);
        Some(Ended { paid_us: flight.paid_us, cost_us: took.0 as f64 * self.pace.cpu_share() })
    }

    pub(super) fn next_lease_end(&self) -> Option<Micros> {
        self.leased.first_key_value().map(|(_, oldest)| oldest.began + lease(&self.pace))
    }

    /// Lets the time pass up to `now`, without a flush that began or ended in it.
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

    /// Ends the lease of a late flight. The flight has paid the usual cost of a flush; it has waited for the
    /// rest.
    fn end_lease(&mut self, late: &Flight) {
        // If many come late that were not held up before, it is the backend that has become slow, and leases are too
        // short.
        if late.takes_slot {
            self.pace.took(lease(&self.pace));
        }
        self.give_back(late);
        self.slow_lanes.was_late(late.lane);
    }

    fn give_back(&mut self, flight: &Flight) {
        self.slots_taken -= usize::from(flight.takes_slot);
    }
}

fn lease(pace: &Pace) -> Micros {
    Micros((pace.usual_us() * LEASE_FLUSHES) as u64).max(SHORTEST_LEASE)
}
