//! The policy above the tables' own: which lane flushes next, and how many flushes the backend has at once.
//!
//! # What it has to do
//!
//! A part costs ClickHouse about the same however few rows it has, so what a backend can bear is a number of flushes, and all
//! tables share it. A table's policy knows its own inserts only: with a thousand tables of a few inserts each, every one of
//! them would be right to flush, and all together would be too much.
//!
//! # How
//!
//! A table's policy says when a lane is *due*. A lane that is due waits for its turn, and its buffer stays open and gathers
//! on. So when the backend is the bottleneck all holds widen together, each by just what it takes; no hold is computed.
//!
//! - **Slots**: at most [`SLOTS_PER_CPU`] flushes for each CPU of the backend count at a time. A flush that takes
//!   [`LEASE_FLUSHES`] times as long as usual counts no longer: a locked table keeps its own lane, and nobody else's turn.
//!   An overload that the backend reports (too many parts, no memory) halves the slots; each flush that succeeds then
//!   gives a part of one back.
//! - **Order**: lanes take turns, the one first that was due first, each with one batch a turn: a busy table can't starve a
//!   quiet one. Lanes that somebody waits for go before those that nobody waits for, until these are overdue.
//! - **Credit**: what nobody waits for may take a share of the backend's time only, [`UNWAITED_SHARE`] of each CPU. Time in
//!   flushes is what is counted, so a busy backend, where each takes longer, gets fewer. A lane goes without credit when it is
//!   the only one and nothing is in the air (one table is held as if there were no such policy), when its batch is full or
//!   large enough to be worth a part ([`WORTH_A_PART`]), when memory is scarce, or when it is overdue.
//!
//! # What it promises
//!
//! Whoever waits is held by nothing but other flushes. What nobody waits for is sealed no later than
//! [`longest_hold`](BackendPolicy::set_longest_hold) after its lane was due, as far as the backend has slots.
//!
//! # What grows with what
//!
//! Turns are kept in two maps ordered by time: a lane that becomes due, or gets its turn, costs the logarithm of the number
//! of lanes that wait. Lanes that are not due, and tables that are idle, cost nothing.

mod flights;
mod waiting;

#[cfg(test)]
mod tests;

use crate::Micros;
use flights::Flights;
use waiting::Waiting;

/// Flushes in the air for each CPU of the backend: enough to keep it busy while some of them wait for its disk.
pub const SLOTS_PER_CPU: u32 = 4;
/// Before anybody has said how many CPUs there are.
const CPUS_UNKNOWN: u32 = 2;
const LEAST_CPUS: u32 = 2;
/// Beyond this the connections to the backend are what is scarce.
const MOST_SLOTS: u32 = 128;
/// The share of each CPU's time that flushes may take which nobody waits for.
pub const UNWAITED_SHARE: f64 = 0.25;
/// Unused credit is kept up to this: after a pause a few hundred tables go at sight.
const MOST_CREDIT: Micros = Micros::from_millis(1_000);
/// A flush counts for this many times the usual duration at most...
pub const LEASE_FLUSHES: f64 = 8.0;
/// ... and for this long at least.
const SHORTEST_LEASE: Micros = Micros::from_millis(250);
/// Inserts in a batch that make it worth a part of its own: ClickHouse's own limit of inserts for one.
pub const WORTH_A_PART: u64 = 450;
const LONGEST_HOLD: Micros = Micros::from_millis(60_000);

/// Names a lane among those of all tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LaneId(pub u64);

/// Names a flush in the air.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlushId(u64);

/// How much is gained by a lane's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// Nobody waits for it, and there is little in it.
    Unwaited,
    /// Somebody waits, or it is full, or worth a part.
    Urgent,
}

#[derive(Clone, Debug)]
pub struct BackendPolicy {
    now: Micros,
    waiting: Waiting,
    flights: Flights,
    slots: f64,
    most_slots: f64,
    /// Flush time that may be spent on what nobody waits for. Below zero: it was spent in advance.
    credit_us: f64,
    credit_per_us: f64,
    longest_hold: Micros,
    memory_is_scarce: bool,
}

impl Default for BackendPolicy {
    fn default() -> Self {
        BackendPolicy::new()
    }
}

impl BackendPolicy {
    pub fn new() -> Self {
        let mut policy = BackendPolicy {
            now: Micros::ZERO,
            waiting: Waiting::default(),
            flights: Flights::default(),
            slots: 0.0,
            most_slots: 0.0,
            credit_us: MOST_CREDIT.0 as f64,
            credit_per_us: 0.0,
            longest_hold: LONGEST_HOLD,
            memory_is_scarce: false,
        };
        policy.set_cpus(CPUS_UNKNOWN);
        policy
    }

    /// The longest that a lane which nobody waits for has to wait for credit.
    pub fn set_longest_hold(&mut self, longest_hold: Micros) {
        self.longest_hold = longest_hold;
    }

    /// How many CPUs the backend has.
    pub fn set_cpus(&mut self, cpus: u32) {
        let cpus = cpus.max(LEAST_CPUS);
        let most = f64::from(cpus.saturating_mul(SLOTS_PER_CPU).min(MOST_SLOTS));
        if most != self.most_slots {
            (self.most_slots, self.slots) = (most, most);
        }
        self.credit_per_us = UNWAITED_SHARE * f64::from(cpus);
    }

    /// While memory is scarce nothing is held for want of credit.
    pub fn set_memory_is_scarce(&mut self, is_scarce: bool) {
        self.memory_is_scarce = is_scarce;
    }

    /// A lane is due. `Some`: it is its turn, and its flush begins now. `None`: it waits for [`next`](Self::next).
    pub fn due(&mut self, now: Micros, lane: LaneId, urgency: Urgency) -> Option<FlushId> {
        self.tick(now);
        self.waiting.enter(self.now, lane, urgency);
        match self.waiting.len() {
            // The usual case: nobody else wants to go.
            1 => self.next(now).map(|(_, flush)| flush),
            _ => None,
        }
    }

    /// More is gained by a waiting lane's turn than was said: its place among the urgent ones is that of its first due time.
    pub fn raise(&mut self, lane: LaneId) {
        self.waiting.raise(lane);
    }

    /// The lane whose turn it is; its flush begins now.
    pub fn next(&mut self, now: Micros) -> Option<(LaneId, FlushId)> {
        self.tick(now);
        if self.flights.counted() as f64 >= self.slots.floor() {
            return None;
        }
        let (lane, urgency) = self.waiting.first(self.overdue_since(), self.unwaited_may_go())?;
        self.waiting.leave(lane);
        let charge = if urgency == Urgency::Unwaited { self.flights.usual() } else { Micros::ZERO };
        self.credit_us -= charge.0 as f64;
        Some((lane, self.flights.begin(self.now, charge)))
    }

    /// A flush has ended, whatever came of it.
    pub fn ended(&mut self, now: Micros, flush: FlushId) {
        self.tick(now);
        let Some(end) = self.flights.end(self.now, flush) else { return };
        self.settle(end);
        self.slots = (self.slots + 1.0 / self.slots).min(self.most_slots);
    }

    /// The backend has refused a flush because it has too much to do.
    pub fn overloaded(&mut self) {
        self.slots = (self.slots / 2.0).max(1.0);
    }

    /// When [`next`](Self::next) may have another answer though nothing has ended.
    pub fn next_wake(&self) -> Option<Micros> {
        if self.waiting.len() == 0 {
            return None;
        }
        let lease_ends = self.flights.next_lease_end();
        if self.flights.counted() as f64 >= self.slots.floor() {
            return lease_ends;
        }
        let credited = self.now + Micros((-self.credit_us).max(0.0).div_euclid(self.credit_per_us) as u64 + 1);
        let overdue = self.waiting.first_unwaited().map(|due_at| due_at + self.longest_hold);
        [lease_ends, Some(credited), overdue].into_iter().flatten().min()
    }

    /// Lanes that wait for their turn.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    fn unwaited_may_go(&self) -> bool {
        let alone = self.waiting.len() == 1 && self.flights.counted() == 0;
        alone || self.memory_is_scarce || self.credit_us > 0.0
    }

    /// What has waited since then has waited long enough.
    fn overdue_since(&self) -> Option<Micros> {
        self.now.0.checked_sub(self.longest_hold.0).map(Micros)
    }

    fn settle(&mut self, end: flights::End) {
        if end.charged > Micros::ZERO {
            self.credit_us += end.charged.0 as f64 - end.took.0 as f64;
        }
    }

    fn tick(&mut self, now: Micros) {
        let passed = now - self.now;
        self.now = self.now.max(now);
        self.credit_us = (self.credit_us + passed.0 as f64 * self.credit_per_us).min(MOST_CREDIT.0 as f64);
        while let Some(end) = self.flights.end_lease(self.now) {
            self.settle(end);
        }
    }
}
