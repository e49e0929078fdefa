//! The policy of one table: the state that its shapes share, whichever policy each of its inserts asks for.

use crate::policy::adaptive::Adaptive;
use crate::policy::balanced::{Balanced, Occasion};
use crate::policy::{
    Arrival, BufferId, BufferPolicy, FlushLimits, Lane, Micros, PolicyKind, SealReason, Stretch, Verdict,
};

/// The end of a flush, with all its retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlushEnd {
    pub buffer: BufferId,
    /// Time spent by the sink, without the time for which the batch waited.
    pub duration: Micros,
    /// True if the batch was stored.
    pub ok: bool,
}

/// The policy of one table, behind the table's lock. A time that lies before an earlier one counts as that
/// earlier time.
#[derive(Clone, Debug, Default)]
pub struct TablePolicy {
    now: Micros,
    next_buffer: u64,
    stretch: Stretch,
    adaptive: Adaptive,
    balanced: Balanced,
}

impl TablePolicy {
    pub fn new() -> Self {
        TablePolicy::default()
    }

    /// Sets the factor of the holds from now on.
    pub fn stretch(&mut self, stretch: Stretch) {
        self.stretch = stretch;
        self.balanced.stretch(stretch);
    }

    /// Creates a new, empty buffer of one of the table's shapes.
    pub fn open_buffer(&mut self) -> BufferPolicy {
        let buffer = BufferPolicy::new(BufferId(self.next_buffer));
        self.next_buffer += 1;
        self.balanced.buffer_opened(buffer.id);
        buffer
    }

    /// Notes an insert that was put into `buffer`, and decides about the buffer.
    pub fn arrive(
        &mut self,
        now: Micros,
        buffer: &mut BufferPolicy,
        arrival: &Arrival,
        limits: &FlushLimits,
        lane: Lane,
    ) -> Verdict {
        let now = self.tick(now);
        let limits = limits.stretched(self.stretch);
        let full = buffer.add(now, arrival, &limits);
        match buffer.kind {
            PolicyKind::Adaptive => self.arrive_adaptive(now, buffer, &limits),
            PolicyKind::Fixed => {}
            PolicyKind::Balanced => self.balanced.arrive(now, buffer, arrival, &limits),
        }
        match full {
            Some(reason) => Verdict::Seal(reason),
            None => self.judge(now, buffer, lane, Occasion::AnInsertJoined),
        }
    }

    /// Decides again after time has passed, or the flush in front has ended. The buffer must not be empty.
    pub fn decide(&mut self, now: Micros, buffer: &BufferPolicy, lane: Lane) -> Verdict {
        let now = self.tick(now);
        self.judge(now, buffer, lane, Occasion::TimePassed)
    }

    /// Notes that the first attempt to store a sealed batch begins.
    pub fn flush_started(&mut self, now: Micros) {
        let now = self.tick(now);
        self.balanced.flush_started(now);
    }

    /// Notes that the batch was stored or given up. It is to be called before the writers are answered and
    /// before `decide` is called again.
    pub fn flush_ended(&mut self, now: Micros, end: &FlushEnd) {
        let now = self.tick(now);
        if end.ok {
            self.adaptive.flush_succeeded(now);
        }
        self.balanced.flush_ended(now, end.buffer, end.duration);
    }

    /// Sets the active parts of the partition that has most of them, and the table's `parts_to_throw_insert`.
    pub fn parts(&mut self, active_in_worst_partition: u64, parts_to_throw: u64) {
        self.balanced.parts(active_in_worst_partition, parts_to_throw);
    }

    fn arrive_adaptive(&mut self, now: Micros, buffer: &mut BufferPolicy, limits: &FlushLimits) {
        let held = self.adaptive.arrive(now, limits);
        if buffer.inserts() == 1 {
            buffer.deadline = now + held.timeout;
        }
        if held.lonely {
            buffer.due = Some(SealReason::Idle);
        }
    }

    fn judge(&mut self, now: Micros, buffer: &BufferPolicy, lane: Lane, occasion: Occasion) -> Verdict {
        if lane == Lane::Busy {
            return Verdict::HoldForFlush;
        }
        if buffer.count_is_due() {
            return Verdict::Seal(SealReason::Count);
        }
        match buffer.kind {
            PolicyKind::Balanced => self.balanced.decide(now, buffer, occasion),
            PolicyKind::Adaptive | PolicyKind::Fixed => by_deadline(now, buffer),
        }
    }

    fn tick(&mut self, now: Micros) -> Micros {
        self.now = self.now.max(now);
        self.now
    }
}

fn by_deadline(now: Micros, buffer: &BufferPolicy) -> Verdict {
    match buffer.due {
        Some(reason) => Verdict::Seal(reason),
        None if now >= buffer.deadline => Verdict::Seal(SealReason::Deadline),
        None => Verdict::HoldUntil(buffer.deadline),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::CountLimit;

    const ONE: Arrival = Arrival { writer: 1, waits: true, back_after: None, rows: 1, bytes: 10 };
    const KINDS: [PolicyKind; 3] = [PolicyKind::Adaptive, PolicyKind::Fixed, PolicyKind::Balanced];

    fn ms(millis: u64) -> Micros {
        Micros::from_millis(millis)
    }

    #[test]
    fn fixed_holds_exactly_from_the_opening() {
        let limits = FlushLimits { kind: PolicyKind::Fixed, busy_timeout_max_ms: 300, ..FlushLimits::default() };
        let mut table = TablePolicy::new();
        let mut buffer = table.open_buffer();
        let held = Verdict::HoldUntil(ms(1300));
        assert_eq!(table.arrive(ms(1000), &mut buffer, &ONE, &limits, Lane::Free), held);
        assert_eq!(table.arrive(ms(1299), &mut buffer, &ONE, &limits, Lane::Free), held);
        assert_eq!(table.decide(Micros(1_299_999), &buffer, Lane::Free), held);
        assert_eq!(table.decide(ms(1300), &buffer, Lane::Free), Verdict::Seal(SealReason::Deadline));
    }

    #[test]
    fn sizes_seal_at_once_whatever_the_policy() {
        for kind in KINDS {
            for lane in [Lane::Free, Lane::Busy] {
                let limits = FlushLimits { kind, max_data_size_bytes: 10, ..FlushLimits::default() };
                let mut table = TablePolicy::new();
                let mut buffer = table.open_buffer();
                let verdict = table.arrive(ms(1), &mut buffer, &ONE, &limits, lane);
                assert_eq!(verdict, Verdict::Seal(SealReason::Size), "{kind:?} {lane:?}");

                let limits = FlushLimits { max_data_size_bytes: 1000, max_query_number: 1, ..limits };
                let mut buffer = table.open_buffer();
                let verdict = table.arrive(ms(1), &mut buffer, &ONE, &limits, lane);
                assert_eq!(verdict, Verdict::Seal(SealReason::Count), "{kind:?} {lane:?}");
            }
        }
    }

    #[test]
    fn the_count_gives_way_behind_a_flush_when_it_is_a_trigger() {
        for kind in KINDS {
            let count_limit = CountLimit::Trigger;
            let limits = FlushLimits { kind, max_query_number: 2, count_limit, ..FlushLimits::default() };
            let mut table = TablePolicy::new();
            let mut buffer = table.open_buffer();
            for at in 1..5 {
                let verdict = table.arrive(ms(at), &mut buffer, &ONE, &limits, Lane::Busy);
                assert_eq!(verdict, Verdict::HoldForFlush);
            }
            assert_eq!(table.decide(ms(5), &buffer, Lane::Free), Verdict::Seal(SealReason::Count));
        }
    }

    #[test]
    fn without_deduplication_the_count_means_nothing() {
        let limits = FlushLimits { max_query_number: 1, count_limit: CountLimit::Off, ..FlushLimits::default() };
        let limits = FlushLimits { kind: PolicyKind::Fixed, ..limits };
        let mut table = TablePolicy::new();
        let mut buffer = table.open_buffer();
        for _ in 0..10 {
            let verdict = table.arrive(ms(1), &mut buffer, &ONE, &limits, Lane::Free);
            assert_eq!(verdict, Verdict::HoldUntil(ms(201)));
        }
    }

    #[test]
    fn behind_a_flush_time_seals_nothing() {
        for kind in KINDS {
            let limits = FlushLimits { kind, ..FlushLimits::default() };
            let mut table = TablePolicy::new();
            let mut buffer = table.open_buffer();
            let verdict = table.arrive(ms(1), &mut buffer, &ONE, &limits, Lane::Busy);
            assert_eq!(verdict, Verdict::HoldForFlush, "{kind:?}");
            assert_eq!(table.decide(ms(10_000), &buffer, Lane::Busy), Verdict::HoldForFlush, "{kind:?}");
            assert!(matches!(table.decide(ms(10_000), &buffer, Lane::Free), Verdict::Seal(_)), "{kind:?}");
        }
    }

    #[test]
    fn a_failed_flush_tells_adaptive_nothing() {
        let limits = FlushLimits { kind: PolicyKind::Adaptive, ..FlushLimits::default() };
        for (ok, expected) in [(true, Verdict::Seal(SealReason::Idle)), (false, Verdict::HoldUntil(ms(9050)))] {
            let mut table = TablePolicy::new();
            for at in [1000, 2000] {
                let mut buffer = table.open_buffer();
                table.arrive(ms(at), &mut buffer, &ONE, &limits, Lane::Free);
                table.flush_started(ms(at + 50));
                table.flush_ended(ms(at + 60), &FlushEnd { buffer: buffer.id(), duration: ms(10), ok });
            }
            let mut buffer = table.open_buffer();
            assert_eq!(table.arrive(ms(9000), &mut buffer, &ONE, &limits, Lane::Free), expected);
        }
    }

    #[test]
    fn time_never_runs_backwards() {
        let limits = FlushLimits { kind: PolicyKind::Fixed, ..FlushLimits::default() };
        let mut table = TablePolicy::new();
        let mut buffer = table.open_buffer();
        table.arrive(ms(1000), &mut buffer, &ONE, &limits, Lane::Free);
        table.arrive(ms(1150), &mut buffer, &ONE, &limits, Lane::Free);
        assert_eq!(table.decide(ms(3), &buffer, Lane::Free), Verdict::HoldUntil(ms(1200)));
    }
}
