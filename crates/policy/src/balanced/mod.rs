//! The balanced policy.

mod average;
mod pressure;
mod stream;
mod writers;

use crate::{Arrival, BufferId, BufferPolicy, FlushLimits, Micros, SealReason, Verdict};

use pressure::Pressure;
use stream::Stream;
use writers::Writers;

#[derive(Clone, Debug, Default)]
pub(crate) struct Balanced {
    stream: Stream,
    writers: Writers,
    pressure: Pressure,
}

/// What made the policy be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Occasion {
    AnInsertJoined,
    TimePassed,
}

/// How long company is likely, and what to call the sealing afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Outlook {
    until: Micros,
    then: SealReason,
}

impl Outlook {
    fn over(then: SealReason) -> Self {
        Outlook { until: Micros::ZERO, then }
    }

    fn first_of(silence: Micros, deadline: Micros) -> Self {
        if silence < deadline {
            Outlook { until: silence, then: SealReason::Quiet }
        } else {
            Outlook { until: deadline, then: SealReason::Deadline }
        }
    }
}

impl Balanced {
    pub(crate) fn buffer_opened(&mut self, buffer: BufferId) {
        self.writers.buffer_opened(buffer);
    }

    pub(crate) fn arrive(&mut self, now: Micros, buffer: &mut BufferPolicy, arrival: &Arrival, limits: &FlushLimits) {
        let horizon = Micros::from_millis(limits.min_timeout_ms());
        let came_back = if arrival.waits {
            self.writers.arrive(now, arrival.writer, buffer.id, horizon)
        } else {
            self.writers.arrive_unblocked();
            false
        };
        if !came_back {
            self.stream.arrive(now, buffer, limits);
        }
    }

    /// Only asked while no flush of the shape is in front.
    pub(crate) fn decide(&mut self, now: Micros, buffer: &BufferPolicy, occasion: Occasion) -> Verdict {
        let spaced = self.pressure.earliest_start();
        if now < spaced {
            return Verdict::HoldUntil(spaced);
        }
        let last_call = buffer.deadline + stream::LATE_WHEN_EVEN;
        let late = match occasion {
            Occasion::AnInsertJoined => now > buffer.deadline,
            Occasion::TimePassed => now >= last_call,
        };
        if late {
            return Verdict::Seal(SealReason::Deadline);
        }
        if let Some(given_up) = self.writers.expected_until(now) {
            return Verdict::HoldUntil(given_up.min(last_call));
        }
        if self.writers.sole_writer_is_in(buffer) {
            return Verdict::Seal(SealReason::EveryWriterIsHere);
        }
        let outlook = self.stream.outlook(now, buffer);
        if now < outlook.until {
            return Verdict::HoldUntil(outlook.until);
        }
        if self.writers.only_loops_in(buffer) {
            return Verdict::Seal(SealReason::EveryWriterIsHere);
        }
        let rested = self.pressure.rested_at().min(buffer.deadline);
        if now < rested {
            return Verdict::HoldUntil(rested);
        }
        Verdict::Seal(outlook.then)
    }

    pub(crate) fn flush_started(&mut self, now: Micros) {
        self.pressure.flush_started(now);
    }

    pub(crate) fn flush_ended(&mut self, now: Micros, buffer: BufferId, duration: Micros) {
        self.pressure.flush_ended(now, duration);
        self.stream.flush_ended(now);
        self.writers.flush_ended(now, buffer);
    }

    pub(crate) fn parts(&mut self, active_in_worst_partition: u64, parts_to_throw: u64) {
        self.pressure.parts(active_in_worst_partition, parts_to_throw);
    }
}
