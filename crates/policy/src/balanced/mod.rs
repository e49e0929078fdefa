//! The balanced policy.

mod pressure;
mod stream;
mod writers;

use crate::{Arrival, BufferPolicy, FlushLimits, Micros, SealReason, Verdict};

use pressure::Pressure;
use stream::Stream;
use writers::Writers;

/// How far past the maximum a timer may hold for one more insert. ClickHouse's own deadline thread is late by up to 10 ms.
const GRACE: Micros = Micros::from_millis(5);

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
pub(crate) struct Outlook {
    pub until: Micros,
    pub then: SealReason,
}

impl Balanced {
    pub(crate) fn buffer_opened(&mut self, buffer: &BufferPolicy) {
        self.writers.buffer_opened(buffer.id);
    }

    pub(crate) fn arrive(&mut self, now: Micros, buffer: &mut BufferPolicy, arrival: &Arrival, limits: &FlushLimits) {
        let horizon = Micros::from_millis(limits.min_timeout_ms());
        if arrival.waits && self.writers.arrive(now, arrival.writer, buffer.id, horizon) {
            return;
        }
        let pause = self.stream.arrive(now, limits.max_timeout());
        if buffer.inserts() == 1 && pause > limits.max_timeout() {
            buffer.due = Some(SealReason::Idle);
        }
    }

    pub(crate) fn decide(&mut self, now: Micros, buffer: &BufferPolicy, occasion: Occasion) -> Verdict {
        let gate = self.pressure.earliest_start();
        if now < gate {
            return Verdict::HoldUntil(gate);
        }
        let latest = match occasion {
            Occasion::AnInsertJoined => buffer.deadline,
            Occasion::TimePassed => buffer.deadline + GRACE,
        };
        if now >= latest {
            return Verdict::Seal(SealReason::Deadline);
        }
        if let Some(expiry) = self.writers.expected_until(now) {
            return Verdict::HoldUntil(expiry.min(buffer.deadline + GRACE));
        }
        let outlook = self.stream.outlook(now, buffer, GRACE);
        if now < outlook.until {
            return Verdict::HoldUntil(outlook.until);
        }
        if self.writers.all_in(buffer) {
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

    pub(crate) fn flush_ended(&mut self, now: Micros, buffer: crate::BufferId, duration: Micros) {
        self.pressure.flush_ended(now, duration);
        self.writers.flush_ended(now, buffer);
    }

    pub(crate) fn parts(&mut self, active_in_worst_partition: u64, parts_to_throw: u64) {
        self.pressure.parts(active_in_worst_partition, parts_to_throw);
    }
}
