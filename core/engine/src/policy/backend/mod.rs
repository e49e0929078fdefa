//! The policy above the tables' own: which lane flushes next, and how many flushes the backend has at once.
//!
//! # What it has to do
//!
//! A part costs ClickHouse about the same however few rows it has, so what a backend can bear is a number of flushes,
//! and all tables share it. A table's policy knows its own inserts only: with a thousand tables of a few inserts each,
//! every one of them would be right to flush, and all together would be too much.
//!
//! # How
//!
//! A table's policy says when a lane is *due*. A lane that is due waits for its turn, and its buffer stays open and
//! gathers on. So when the backend is the bottleneck all holds widen together, each by just what it takes; no hold is
//! computed.
//!
//! - **Slots** (`slots.rs`): so many flushes are in the air at a time, from [`slots::SLOTS_PER_CPU`] for each CPU of
//!   the backend to [`slots::MOST_SLOTS`]. While all are taken and flushes still take about as long as the quickest do,
//!   they wait for a disk or the network, and there is room for more; when they take much longer, they are in each
//!   other's way. An overload that the backend reports (too many parts, no memory) halves the slots; each flush that
//!   comes in time then gives a part of one back.
//! - **Leases** (`flights.rs`): a flush takes its slot for [`flights::LEASE_FLUSHES`] times as long as usual at most. A
//!   lane whose last flush took longer takes none, until one of it comes in time again: a locked table keeps its own
//!   lane, and nobody else's turn, and so do some hundreds of them.
//! - **Order** (`waiting.rs`): lanes take turns, the one first that was due first, each with one batch a turn: a busy
//!   table can't starve a quiet one. Lanes that somebody waits for go before those that nobody waits for. When these
//!   are overdue they have every second turn, however many there are.
//! - **Credit** (`credit.rs`): what nobody waits for may take a share of the backend's time only,
//!   [`credit::UNWAITED_SHARE`] of each CPU. Time in flushes is what is counted, so a busy backend, where each takes
//!   longer, gets fewer; less of it where flushes have been seen not to keep a CPU busy (`pace.rs`). A lane goes
//!   without credit when it is the only one and nothing is in the air (one table is held as if there were no such
//!   policy), when its batch is full or large enough to be worth a part ([`WORTH_A_PART`]), when memory is scarce, or
//!   when it is overdue.
//!
//! # What it promises
//!
//! Whoever waits is held by nothing but other flushes. What nobody waits for is sealed no later than
//! [`longest_hold`](BackendPolicy::set_longest_hold) after its lane was due, as far as the backend has slots for all
//! that is overdue, half of them if somebody waits for others.
//!
//! # What grows with what
//!
//! Turns are kept in two maps ordered by time, flushes in the air in one: a lane that becomes due, or gets its turn,
//! costs the logarithm of the number of lanes that wait or fly. Lanes that are not due, and tables that are idle, cost
//! nothing, but for the last thousand that were held up. Flushes in the air are as many as there are slots, and one for
//! each such lane.
//!
//! # What was tried and did not help
//!
//! - Leases of 8 usual durations and 250 ms at least, instead of 4 and 100 ms: with 300 of 1,000 tables held up for 150
//!   ms, at 500 inserts/s, the p99 of the others was 317 ms. It is 70 ms now, and 69 ms if none is held up.
//! - A "quickest" that rises also while all slots are taken, by 0.001 % per flush: 200 writers on 1,000 tables, who
//!   keep two CPUs busy, had a p99 of 323 ms in the first minute and of 509 ms in the fifth. It is 312 ms now in both.
//!
//! # What it is not for
//!
//! It doesn't know what is in a batch. Tables whose batches take a second of work, among many that take a few
//! milliseconds, look as if they were held up, and take no slots. A backend that becomes slow for another reason than
//! its load, while all slots are taken without a pause, gets no more slots until there is one.

mod credit;
mod flights;
mod held_up;
mod pace;
mod slots;
mod waiting;

#[cfg(test)]
mod tests;

use crate::policy::Micros;
use credit::Credit;
use flights::Flights;
use slots::FlushSlots;
use waiting::Waiting;

/// Before anybody has said how many CPUs there are.
const CPUS_UNKNOWN: u32 = 2;
const LEAST_CPUS: u32 = 2;
/// Inserts in a batch that make it worth a part of its own: then what a part costs by itself (2 to 4 ms of ClickHouse's
/// CPU) is little beside what its inserts cost (some 20 µs each, in the gateway and in ClickHouse).
pub const WORTH_A_PART: u64 = 2_000;
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
    slots: FlushSlots,
    credit: Credit,
    /// The last turn was that of a lane which nobody waits for.
    unwaited_went: bool,
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
        BackendPolicy {
            now: Micros::ZERO,
            waiting: Waiting::default(),
            flights: Flights::new(CPUS_UNKNOWN),
            slots: FlushSlots::new(CPUS_UNKNOWN),
            credit: Credit::new(CPUS_UNKNOWN),
            unwaited_went: false,
            longest_hold: LONGEST_HOLD,
            memory_is_scarce: false,
        }
    }

    /// The longest that a lane which nobody waits for has to wait for credit.
    pub fn set_longest_hold(&mut self, longest_hold: Micros) {
        self.longest_hold = longest_hold;
    }

    /// How many CPUs the backend has.
    pub fn set_cpus(&mut self, cpus: u32) {
        let cpus = cpus.max(LEAST_CPUS);
        self.slots.set_cpus(cpus);
        self.credit.set_cpus(cpus);
        self.flights.set_cpus(cpus);
    }

    /// While memory is scarce nothing is held for want of credit.
    pub fn set_memory_is_scarce(&mut self, is_scarce: bool) {
        self.memory_is_scarce = is_scarce;
    }

    /// A lane is due. `Some`: it is its turn, and its flush begins now. `None`: it waits for [`next`](Self::next).
    pub fn due(&mut self, now: Micros, lane: LaneId, urgency: Urgency) -> Option<FlushId> {
        self.tick(now);
        self.waiting.enter(self.now, lane, urgency);
        let (first, urgency) = self.first()?;
        (first == lane).then(|| self.begin(lane, urgency))
    }

    /// More is gained by a waiting lane's turn than was said: its place among the urgent ones is that of its first due
    /// time.
    pub fn raise(&mut self, lane: LaneId) {
        self.waiting.raise(lane);
    }

    /// The lane whose turn it is; its flush begins now.
    pub fn next(&mut self, now: Micros) -> Option<(LaneId, FlushId)> {
        self.tick(now);
        let (lane, urgency) = self.first()?;
        Some((lane, self.begin(lane, urgency)))
    }

    /// A flush has ended, whatever came of it.
    pub fn ended(&mut self, now: Micros, flush: FlushId) {
        self.tick(now);
        // Also when several have ended, and nobody has had their slots yet.
        let is_full = !self.has_slot() || self.first().is_some();
        let Some(ended) = self.flights.end(self.now, flush, is_full) else { return };
        if let Some(paid_us) = ended.paid_us {
            self.credit.settle(paid_us, ended.cost_us);
        }
        self.slots.ended(is_full, self.flights.pace());
    }

    /// The backend has refused a flush because it has too much to do.
    pub fn overloaded(&mut self) {
        self.slots.overloaded();
    }

    /// When [`next`](Self::next) may have another answer though nothing has ended.
    pub fn next_wake(&self) -> Option<Micros> {
        if self.waiting.len() == 0 {
            return None;
        }
        if self.first().is_some() {
            return Some(self.now);
        }
        let lease_ends = self.flights.next_lease_end();
        if !self.has_slot() {
            return lease_ends;
        }
        let credited = self.now + self.credit.is_left_in();
        let overdue = self.waiting.first_unwaited().map(|due_at| due_at + self.longest_hold);
        [lease_ends, Some(credited), overdue].into_iter().flatten().min()
    }

    /// Lanes that wait for their turn.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// The lane that may go now.
    fn first(&self) -> Option<(LaneId, Urgency)> {
        if !self.has_slot() {
            return None;
        }
        self.waiting.first(self.overdue_since(), self.unwaited_may_go(), self.unwaited_went)
    }

    fn has_slot(&self) -> bool {
        self.slots.has_free(self.flights.slots_taken())
    }

    fn begin(&mut self, lane: LaneId, urgency: Urgency) -> FlushId {
        self.waiting.leave(lane);
        self.unwaited_went = urgency == Urgency::Unwaited;
        let paid_us = self.unwaited_went.then(|| self.credit.take(self.flights.usual_cost_us()));
        self.flights.begin(self.now, lane, paid_us)
    }

    fn unwaited_may_go(&self) -> bool {
        let alone = self.waiting.len() == 1 && self.flights.slots_taken() == 0;
        alone || self.memory_is_scarce || self.credit.is_left()
    }

    /// What has waited since then has waited long enough.
    fn overdue_since(&self) -> Option<Micros> {
        self.now.0.checked_sub(self.longest_hold.0).map(Micros)
    }

    fn tick(&mut self, now: Micros) {
        let passed = now - self.now;
        self.now = self.now.max(now);
        self.credit.time_passed(passed);
        self.flights.time_passed(passed, self.now);
    }
}
