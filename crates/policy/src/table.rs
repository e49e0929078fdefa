//! The policy of one table: what its shapes share, whichever policy each of its inserts asks for.

use crate::adaptive::Adaptive;
use crate::balanced::{Balanced, Occasion};
use crate::{Arrival, BufferId, BufferPolicy, FlushLimits, Lane, Micros, PolicyKind, SealReason, Verdict};

/// How a flush ended, with all its retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlushEnd {
    pub buffer: BufferId,
    /// Time spent by the sink, without what the batch waited for.
    pub duration: Micros,
    /// Whether the batch was stored.
    pub ok: bool,
}

/// One per table, behind the table's lock. Times that lie before one already told count as that one.
#[derive(Clone, Debug, Default)]
pub struct TablePolicy {
    now: Micros,
    next_buffer: u64,
    adaptive: Adaptive,
    balanced: Balanced,
}

impl TablePolicy {
    pub fn new() -> Self {
        TablePolicy::default()
    }

    /// A new, empty buffer of one of the table's shapes.
    pub fn open_buffer(&mut self) -> BufferPolicy {
        let buffer = BufferPolicy::new(BufferId(self.next_buffer));
        self.next_buffer += 1;
        self.balanced.buffer_opened(buffer.id);
        buffer
    }

    /// An insert was put into `buffer`.
    pub fn arrive(
        &mut self,
        now: Micros,
        buffer: &mut BufferPolicy,
        arrival: &Arrival,
        limits: &FlushLimits,
        lane: Lane,
    ) -> Verdict {
        let now = self.tick(now);
        let full = buffer.add(now, arrival, limits);
        match buffer.kind {
            PolicyKind::Adaptive => self.arrive_adaptive(now, buffer, limits),
            PolicyKind::Fixed => {}
            PolicyKind::Balanced => self.balanced.arrive(now, buffer, arrival, limits),
        }
        match full {
            Some(reason) => Verdict::Seal(reason),
            None => self.judge(now, buffer, lane, Occasion::AnInsertJoined),
        }
    }

    /// Time has passed, or the flush in front has ended. An empty buffer must not be asked about.
    pub fn decide(&mut self, now: Micros, buffer: &BufferPolicy, lane: Lane) -> Verdict {
        let now = self.tick(now);
        self.judge(now, buffer, lane, Occasion::TimePassed)
    }

    /// The first attempt to store a sealed batch begins.
    pub fn flush_started(&mut self, now: Micros) {
        let now = self.tick(now);
        self.balanced.flush_started(now);
    }

    /// The batch was stored or given up; to be told before the writers are answered and before `decide` is asked again.
    pub fn flush_ended(&mut self, now: Micros, end: &FlushEnd) {
        let now = self.tick(now);
        if end.ok {
            self.adaptive.flush_succeeded(now);
        }
        self.balanced.flush_ended(now, end.buffer, end.duration);
    }

    /// Active parts of the partition that has most of them, and the table's `parts_to_throw_insert`.
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
