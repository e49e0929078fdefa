//! The policy above the tables' own: which lane flushes next, and how many flushes the backend has at once.
//!
//! # The task
//!
//! A part costs ClickHouse about the same however few rows it has, so the capacity of a backend is a number
//! of flushes, and all tables share it. A table's policy knows its own inserts only: with a thousand tables
//! of a few inserts each, every one of them would be right to flush, and all together would be too much.
//!
//! # How
//!
//! A table's policy says when a lane is *due*. A lane that is due waits for its turn, and its buffer stays
//! open and gathers on. So when the backend is the bottleneck, the holds of all lanes grow together, each by
//! just the time that is needed; no hold is computed.
//!
//! - **Slots** (`slots.rs`): a limit of flushes at a time, from [`slots::SLOTS_PER_CPU`] for each CPU of the
//!   backend to [`slots::MOST_SLOTS`]. While all are taken and flushes still take about as long as the
//!   quickest do, they wait for a disk or the network, and there is room for more; when they take much
//!   longer, they slow each other down. An overload that the backend reports (too many parts, no memory)
//!   halves the slots; each flush that comes in time then gives a part of one back.
//! - **Leases** (`flights.rs`): a flush takes its slot for at most [`flights::LEASE_FLUSHES`] times the usual
//!   duration. A lane whose last flush took longer takes no slot until one of its flushes comes in time
//!   again: a locked table occupies its own lane, and no turn of others, and so do some hundreds of them.
//! - **Order** (`waiting.rs`): lanes take turns, the lane that was due first goes first, each with one batch
//!   a turn: a busy table can't starve a quiet one. Lanes with a waiting client go before those without one.
//!   When the latter are overdue they have every second turn, however many they are.
//! - **Credit** (`credit.rs`): batches that no client waits for may only take a share of the backend's time,
//!   [`credit::UNWAITED_SHARE`] of each CPU. Time in flushes is counted, so a busy backend, where each flush
//!   takes longer, gets fewer; less of the time is counted where flushes have been seen not to keep a CPU
//!   busy (`pace.rs`). A lane needs no credit when it is the only one and no flush is running (one table is
//!   held as if there were no such policy), when its batch is full or large enough to be worth a part
//!   ([`WORTH_A_PART`]), when memory is scarce, or when it is overdue.
//!
//! # What it promises
//!
//! A waiting client is held by nothing but other flushes. A batch that no client waits for is sealed no later
//! than [`longest_hold`](BackendPolicy::set_longest_hold) after its lane was due, as far as the backend has
//! slots for all overdue lanes, and half of the slots if clients wait for others.
//!
//! # Costs
//!
//! Turns are kept in two maps ordered by time, flights in one: a lane that becomes due, or gets its turn,
//! costs the logarithm of the number of lanes that wait or fly. Lanes that are not due, and tables that are
//! idle, cost nothing, except for the last thousand that were held up. The number of flights is that of the
//! slots, plus one for each lane that was held up.
//!
//! # What was tried and did not help
//!
//! - Leases of 8 usual durations and 250 ms at least, instead of 4 and 100 ms: with 300 of 1,000 tables held
//!   up for 150 ms, at 500 inserts/s, the p99 of the others was 317 ms. It is 70 ms now, and 69 ms if none is
//!   held up.
//! - A "quickest" that rises also while all slots are taken, by 0.001 % per flush: 200 writers on 1,000
//!   tables, who keep two CPUs busy, had a p99 of 323 ms in the first minute and of 509 ms in the fifth. It
//!   is 312 ms now in both.
//!
//! # Limits
//!
//! The policy doesn't know the contents of a batch. Tables whose batches take a second of work, among many
//! that take a few milliseconds, look as if they were held up, and take no slots. A backend that becomes slow
//! for another reason than its load, while all slots are taken without a pause, gets no more slots until
//! there is a pause.

mod credit;
mod flights;
mod pace;
mod slots;
mod slow_lanes;
mod waiting;

#[cfg(test)]
mod tests;

use crate::policy::Micros;
use credit::Credit;
use flights::Flights;
use slots::FlushSlots;
use waiting::Waiting;

/// The number of CPUs that is assumed until the real number is set.
const CPUS_UNKNOWN: u32 = 2;
const LEAST_CPUS: u32 = 2;
/// The number of inserts in a batch that make it worth a part of its own: then the cost of the part itself (2
/// to 4 ms of ClickHouse's CPU) is little beside the cost of its inserts (some 20 µs each, in the gateway and
/// in ClickHouse).
pub const WORTH_A_PART: u64 = 2_000;
const LONGEST_HOLD: Micros = Micros::from_millis(60_000);

/// The id of a lane among those of all tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LaneId(pub u64);

/// The id of a running flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlushId(u64);

/// The gain from a lane's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// No client waits for the lane, and its batch is small.
    Unwaited,
    /// A client waits, or the batch is full, or worth a part.
    Urgent,
}

#[derive(Clone, Debug)]
pub struct BackendPolicy {
    now: Micros,
    waiting: Waiting,
    flights: Flights,
    slots: FlushSlots,
    credit: Credit,
    /// True if the last turn was that of a lane which no client waits for.
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

    /// Sets the longest time that a lane which no client waits for has to wait for credit.
    pub fn set_longest_hold(&mut self, longest_hold: Micros) {
        self.longest_hold = longest_hold;
    }

    /// Sets the number of the backend's CPUs.
    pub fn set_cpus(&mut self, cpus: u32) {
        let cpus = cpus.max(LEAST_CPUS);
        self.slots.set_cpus(cpus);
        self.credit.set_cpus(cpus);
        self.flights.set_cpus(cpus);
    }

    /// Sets whether memory is scarce. While it is, no lane is held for want of credit.
    pub fn set_memory_is_scarce(&mut self, is_scarce: bool) {
        self.memory_is_scarce = is_scarce;
    }

    /// Notes that a lane is due. Returns its flush, which begins now, if the lane has its turn; with `None`
    /// the lane waits for [`next`](Self::next).
    pub fn due(&mut self, now: Micros, lane: LaneId, urgency: Urgency) -> Option<FlushId> {
        self.tick(now);
        self.waiting.enter(self.now, lane, urgency);
        let (first, urgency) = self.first()?;
        (first == lane).then(|| self.begin(lane, urgency))
    }

    /// Makes a waiting lane urgent. Its place among the urgent ones is that of its first due time.
    pub fn raise(&mut self, lane: LaneId) {
        self.waiting.raise(lane);
    }

    /// Returns the lane that has its turn; its flush begins now.
    pub fn next(&mut self, now: Micros) -> Option<(LaneId, FlushId)> {
        self.tick(now);
        let (lane, urgency) = self.first()?;
        Some((lane, self.begin(lane, urgency)))
    }

    /// Notes that a flush has ended, with any outcome.
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

    /// Notes that the backend has refused a flush because it has too much to do.
    pub fn overloaded(&mut self) {
        self.slots.overloaded();
    }

    /// Returns the time at which [`next`](Self::next) may have another answer though no flush has ended.
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

    /// Returns the number of lanes that wait for their turn.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the lane that may go now.
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

    /// Returns the time since which an overdue lane has been due.
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
