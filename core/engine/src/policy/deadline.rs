//! The policy `deadline`, for a source that sets the latest time for its rows, and wants as few parts as that
//! allows.
//!
//! - **In time**: a batch is held until its oldest row has just so much time left as storing will take, by
//!   the durations of the latest flushes, and a margin.
//! - **Late already**: a row that can't be in time any more counts as if it had been written when it came. So
//!   a source that is behind stores batches as large as they may be, one after another, and catches up; and a
//!   source whose rows are always old makes no more parts than another.
//! - Between two seals lies a quarter of the latency at least, unless a batch is full: delays elsewhere must
//!   not become a flood of parts.

use std::collections::VecDeque;

use crate::policy::{Lane, Micros, SealReason, Verdict};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeadlineLimits {
    /// The longest time from the writing of a row until it is stored.
    pub max_latency: Micros,
    pub max_rows: u64,
    pub max_bytes: u64,
    /// The exact time for which every batch is held, instead of the latency.
    pub flush_interval: Option<Micros>,
}

/// The policy of one pipeline. A time that lies before an earlier one counts as that earlier time.
#[derive(Clone, Debug)]
pub struct DeadlinePolicy {
    limits: DeadlineLimits,
    now: Micros,
    open: Option<Open>,
    sealed_at: Option<Micros>,
    flushes: VecDeque<Flush>,
}

/// The rows that are gathered.
#[derive(Clone, Copy, Debug)]
struct Open {
    opened_at: Micros,
    /// The time by which its oldest row is to be stored.
    stored_by: Micros,
    rows: u64,
    bytes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Flush {
    took: Micros,
    rows: u64,
}

/// The number of latest flushes that are remembered. A stall in one of them should not be forgotten at once,
/// nor be remembered for long.
const REMEMBERED_FLUSHES: usize = 8;

impl DeadlinePolicy {
    pub fn new(limits: DeadlineLimits) -> Self {
        let flushes = VecDeque::with_capacity(REMEMBERED_FLUSHES);
        DeadlinePolicy { limits, now: Micros::ZERO, open: None, sealed_at: None, flushes }
    }

    /// Notes rows that were put into the open batch; the oldest of them was written `age` ago.
    pub fn gather(&mut self, now: Micros, rows: u64, bytes: u64, age: Micros) {
        let now = self.tick(now);
        let all_rows = rows + self.open.map_or(0, |open| open.rows);
        let max_latency = self.limits.max_latency;
        let left = max_latency - age;
        let stored_by = match left > self.storing(all_rows) {
            true => now + left,
            false => now + max_latency,
        };
        let open = self.open.get_or_insert(Open { opened_at: now, stored_by, rows: 0, bytes: 0 });
        open.stored_by = open.stored_by.min(stored_by);
        open.rows += rows;
        open.bytes += bytes;
    }

    /// Decides about the open batch. `lane` says whether another batch is on its way.
    pub fn decide(&mut self, now: Micros, lane: Lane) -> Verdict {
        let now = self.tick(now);
        let Some(open) = self.open else { return Verdict::HoldUntil(Micros::NEVER) };
        if open.rows >= self.limits.max_rows || open.bytes >= self.limits.max_bytes {
            return Verdict::Seal(SealReason::Size);
        }
        if lane == Lane::Busy {
            return Verdict::HoldForFlush;
        }
        let due = self.due(open);
        match now >= due {
            true => Verdict::Seal(SealReason::Deadline),
            false => Verdict::HoldUntil(due),
        }
    }

    fn due(&self, open: Open) -> Micros {
        if let Some(interval) = self.limits.flush_interval {
            return open.opened_at + interval;
        }
        let due = open.stored_by - self.storing(open.rows) - self.margin();
        let soonest = self.sealed_at.map_or(Micros::ZERO, |sealed_at| sealed_at + self.limits.max_latency.scale(0.25));
        due.max(soonest)
    }

    /// Notes that the batch was sealed: the next row opens another.
    pub fn sealed(&mut self, now: Micros) {
        let now = self.tick(now);
        self.sealed_at = Some(now);
        self.open = None;
    }

    /// Notes that all gathered rows are dropped.
    pub fn dropped(&mut self) {
        self.open = None;
    }

    /// Notes that a batch is stored. `took` counts from its sealing.
    pub fn flush_ended(&mut self, now: Micros, rows: u64, took: Micros) {
        self.tick(now);
        if self.flushes.len() == REMEMBERED_FLUSHES {
            self.flushes.pop_front();
        }
        self.flushes.push_back(Flush { took, rows });
    }

    /// Returns the time that storing `rows` rows may take: as long as the slowest of the latest flushes.
    /// Half of a flush's time grows with its rows, so that a burst is expected to take longer than the
    /// flushes before it.
    fn storing(&self, rows: u64) -> Micros {
        let scaled = |flush: &Flush| {
            let growth = rows as f64 / flush.rows.max(1) as f64;
            flush.took.scale((0.5 + 0.5 * growth).clamp(1.0, 4.0))
        };
        // Before anything is known, as good as anything.
        self.flushes.iter().map(scaled).max().unwrap_or(self.limits.max_latency.scale(0.25))
    }

    /// Returns the time for delays that can't be foreseen: the next chunk that is read before the batch can
    /// be sealed, a moment without the CPU.
    fn margin(&self) -> Micros {
        self.limits.max_latency.scale(0.1).max(Micros::from_millis(10)).min(self.limits.max_latency.scale(0.5))
    }

    fn tick(&mut self, now: Micros) -> Micros {
        self.now = self.now.max(now);
        self.now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: DeadlineLimits =
        DeadlineLimits { max_latency: Micros(1_000_000), max_rows: 1_000, max_bytes: 1 << 20, flush_interval: None };

    fn ms(millis: u64) -> Micros {
        Micros::from_millis(millis)
    }

    #[test]
    fn a_batch_is_held_until_storing_would_make_it_late() {
        let mut policy = DeadlinePolicy::new(SECOND);
        policy.flush_ended(ms(0), 10, ms(200));
        policy.gather(ms(1_000), 10, 100, ms(50));
        // Written at 950, to be stored by 1950; 200 for storing and 100 for what can't be foreseen.
        assert_eq!(policy.decide(ms(1_000), Lane::Free), Verdict::HoldUntil(ms(1_650)));
        assert_eq!(policy.decide(ms(1_649), Lane::Busy), Verdict::HoldForFlush);
        assert_eq!(policy.decide(ms(1_650), Lane::Free), Verdict::Seal(SealReason::Deadline));
        policy.sealed(ms(1_650));
        assert_eq!(policy.decide(ms(1_650), Lane::Free), Verdict::HoldUntil(Micros::NEVER));
    }

    #[test]
    fn the_oldest_row_counts() {
        let mut policy = DeadlinePolicy::new(SECOND);
        policy.flush_ended(ms(0), 30, ms(200));
        policy.gather(ms(1_000), 10, 100, ms(50));
        policy.gather(ms(1_100), 10, 100, ms(250));
        policy.gather(ms(1_200), 10, 100, ms(0));
        assert_eq!(policy.decide(ms(1_200), Lane::Free), Verdict::HoldUntil(ms(1_550)));
    }

    #[test]
    fn what_is_late_already_makes_no_more_parts_than_what_is_not() {
        let mut policy = DeadlinePolicy::new(SECOND);
        policy.flush_ended(ms(0), 10, ms(200));
        policy.gather(ms(1_000), 10, 100, ms(600_000));
        assert_eq!(policy.decide(ms(1_000), Lane::Free), Verdict::HoldUntil(ms(1_700)));
    }

    #[test]
    fn a_full_batch_goes_at_once_also_behind_another() {
        let mut policy = DeadlinePolicy::new(SECOND);
        policy.gather(ms(1_000), 999, 100, ms(0));
        assert!(matches!(policy.decide(ms(1_000), Lane::Busy), Verdict::HoldForFlush));
        policy.gather(ms(1_000), 1, 100, ms(0));
        assert_eq!(policy.decide(ms(1_000), Lane::Busy), Verdict::Seal(SealReason::Size));
        policy.sealed(ms(1_000));
        policy.gather(ms(1_000), 1, 1 << 20, ms(0));
        assert_eq!(policy.decide(ms(1_000), Lane::Free), Verdict::Seal(SealReason::Size));
    }

    #[test]
    fn delays_elsewhere_do_not_become_a_flood_of_parts() {
        let mut policy = DeadlinePolicy::new(SECOND);
        policy.flush_ended(ms(0), 10, ms(20));
        policy.sealed(ms(1_000));
        policy.gather(ms(1_010), 10, 100, ms(950));
        assert_eq!(policy.decide(ms(1_010), Lane::Free), Verdict::HoldUntil(ms(1_250)));
    }

    #[test]
    fn a_burst_is_expected_to_take_longer() {
        let mut policy = DeadlinePolicy::new(SECOND);
        policy.flush_ended(ms(0), 100, ms(100));
        policy.gather(ms(1_000), 500, 100, ms(0));
        assert_eq!(policy.decide(ms(1_000), Lane::Free), Verdict::HoldUntil(ms(1_600)));
    }

    #[test]
    fn an_interval_is_held_exactly() {
        let mut policy = DeadlinePolicy::new(DeadlineLimits { flush_interval: Some(ms(300)), ..SECOND });
        policy.gather(ms(1_000), 10, 100, ms(990));
        assert_eq!(policy.decide(ms(1_000), Lane::Free), Verdict::HoldUntil(ms(1_300)));
    }

    #[test]
    fn absurd_latencies_do_not_wrap() {
        for max_latency in [Micros(1), Micros::NEVER] {
            let mut policy = DeadlinePolicy::new(DeadlineLimits { max_latency, ..SECOND });
            policy.flush_ended(Micros::NEVER, 0, Micros::NEVER);
            policy.gather(ms(1), 10, 100, Micros::NEVER);
            policy.decide(Micros::NEVER, Lane::Free);
        }
    }
}
