//! The balanced policy: it holds a batch only as long as more inserts are likely to join.
//!
//! # The task
//!
//! There are two bad extremes, a part per insert and a fixed delay for every insert. Between them the
//! questions are which inserts may still come, and whether their coming saves more than the holding costs.
//! The requirement is, at every rate from 1 to 20,000 inserts/s and whether or not the writers wait, waiting
//! times (median and p99) and inserts per part that are both at least as good as ClickHouse's `adaptive`. An
//! `arrive` is on the path of every insert, so it has to take about 100 ns: a lookup in a map, a few
//! averages.
//!
//! # Two kinds of inserts
//!
//! An insert that an acknowledgement caused, by a writer that waits and comes back within the minimum
//! time-out (50 ms), is a **return**; every other insert is the **stream**. They are predicted in different
//! ways:
//!
//! - *Returns* (`writers.rs`) are known by name. After the end of a flush its loops are expected, for as long
//!   as loops usually take to come back plus eight deviations. While some are expected the batch is held;
//!   when none is, every writer that could send is in the buffer, and holding gains nothing. A writer counts
//!   as a loop after its first return, so a connection that inserts once is never waited for. A table's only
//!   writer is never held, however long it pauses. A loop that opens a connection for each insert has no
//!   name; it is known by its rhythm (`chain.rs`).
//! - *The stream* (`stream.rs`) is known by its gaps. After a long pause: go at sight; or 5 ms later if
//!   pauses of this table usually end in a burst. Evenly spaced: hold exactly for the next insert, if it is
//!   due within the minimum, else go. Stopped (silent for 12 mean gaps): go. Otherwise hold for a time that
//!   walks between the minimum and the maximum, 1.2 times up with every gap shorter than the minimum, down
//!   with every long one; and let go early when the buffer holds 1.85 times as many inserts as the hold was
//!   expected to bring, because then many wait for few (not if no client waits and a hundred or more were
//!   expected). A buffer that turns out to be in a rush (24 inserts) takes the hold that is right by then,
//!   not the one that was right when it opened.
//!
//! In addition (`pressure.rs`), a flush is followed by a rest of half its duration, unless every writer is in
//! the buffer; and from half of `parts_to_throw_insert` on, flushes are spaced out, up to 5 s at 0.95 of it.
//! Only that spacing may hold a batch beyond the maximum (by more than the 10 ms by which ClickHouse's own
//! timer is late). Full buffers go at once, whatever this policy decides. Among several gateways
//! (`policy/stretch.rs`) the two time-outs are longer, and so are the rounds of loops that share a buffer.
//!
//! # What was tried and did not help
//!
//! - A hold computed from the estimated rate (`maximum * rate * minimum`, and steps of it). At 10 inserts/s
//!   it lost: a hold of medium length for all gives a worse median than ClickHouse's mixture of short and
//!   long ones at the same inserts per part (88 or 96 ms against 67). The walk makes that mixture.
//! - Ending a hold with an insert that comes within 0.3 or 0.6 mean gaps of its end: the median gained as
//!   much as inserts per part lost. Only letting go of *unusually full* buffers won on both counts.
//! - Dropping ClickHouse's condition that flushes, too, have to be far apart before an insert goes at sight:
//!   at 2 to 5 inserts/s in bursts it cost up to 7 % of the inserts per part. It is dropped only for pauses
//!   of 20 maximum holds.
//! - No allowance for lateness at the maximum: 1.6 % fewer inserts per part at 50/s, since ClickHouse's
//!   deadline thread, woken by the next insert or its 10 ms poll, takes one along. Hence 5 ms.
//!
//! # Limits
//!
//! The policy does not order flushes, count memory or retry; the gatherer does that. It can't make up for
//! order: one flush of a shape runs at a time, so a sink that takes 40 ms stores 11,000 inserts/s in batches
//! of 450 (see `CountLimit::Trigger`).

mod average;
mod chain;
mod pressure;
mod stream;
mod writers;

#[cfg(test)]
mod tests;

use crate::policy::{Arrival, BufferId, BufferPolicy, FlushLimits, Micros, SealReason, Stretch, Verdict};

use chain::Chain;
use pressure::Pressure;
use stream::Stream;
use writers::Writers;

#[derive(Clone, Debug, Default)]
pub(crate) struct Balanced {
    stream: Stream,
    writers: Writers,
    chain: Chain,
    pressure: Pressure,
}

/// The reason why the policy is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Occasion {
    AnInsertJoined,
    TimePassed,
}

/// The time until which more inserts are likely, and the reason to seal after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct HoldForecast {
    until: Micros,
    then: SealReason,
}

impl HoldForecast {
    fn over(then: SealReason) -> Self {
        HoldForecast { until: Micros::ZERO, then }
    }

    fn first_of(silence: Micros, deadline: Micros) -> Self {
        if silence < deadline {
            HoldForecast { until: silence, then: SealReason::Quiet }
        } else {
            HoldForecast { until: deadline, then: SealReason::Deadline }
        }
    }
}

impl Balanced {
    pub(crate) fn stretch(&mut self, stretch: Stretch) {
        self.pressure.stretch(stretch);
        self.stream.stretch(stretch);
    }

    pub(crate) fn buffer_opened(&mut self, buffer: BufferId) {
        self.writers.buffer_opened(buffer);
    }

    pub(crate) fn arrive(&mut self, now: Micros, buffer: &mut BufferPolicy, arrival: &Arrival, limits: &FlushLimits) {
        let horizon = Micros::from_millis(limits.min_timeout_ms());
        self.chain.arrive(now, buffer.id, arrival.waits);
        let came_back = match (arrival.waits, arrival.back_after) {
            (false, _) => {
                self.writers.arrive_unblocked();
                false
            }
            (true, None) => self.writers.arrive(now, arrival.writer, buffer.id, horizon),
            (true, Some(back_after)) => {
                self.writers.arrive_roaming(arrival.writer, buffer.id, back_after <= horizon);
                back_after <= horizon
            }
        };
        if !came_back {
            self.stream.arrive(now, buffer, limits);
        }
    }

    /// Decides about a buffer. It is only asked while no flush of the shape runs or waits before the buffer.
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
        if self.writers.sole_writer_is_in(buffer) || self.chain.holds(buffer.id) {
            return self.everybody_is_here(now, buffer, last_call);
        }
        let outlook = self.stream.outlook(now, buffer);
        if now < outlook.until {
            return Verdict::HoldUntil(outlook.until);
        }
        if self.writers.only_loops_in(buffer) {
            return self.everybody_is_here(now, buffer, last_call);
        }
        let rested = self.pressure.rested_at().min(buffer.deadline);
        if now < rested {
            return Verdict::HoldUntil(rested);
        }
        Verdict::Seal(outlook.then)
    }

    /// Decides about a buffer with every writer in it. Several gateways would each make a part of their share
    /// of the writers as often as one gateway makes a part of them all, so a buffer is held for a longer
    /// round. A writer that is alone in the buffer saves no part by waiting.
    fn everybody_is_here(&self, now: Micros, buffer: &BufferPolicy, last_call: Micros) -> Verdict {
        let round_ends = self.pressure.round_ends(buffer.last_at, buffer.min_timeout).min(last_call);
        match buffer.inserts() > 1 && now < round_ends {
            true => Verdict::HoldUntil(round_ends),
            false => Verdict::Seal(SealReason::EveryWriterIsHere),
        }
    }

    pub(crate) fn flush_started(&mut self, now: Micros) {
        self.pressure.flush_started(now);
    }

    pub(crate) fn flush_ended(&mut self, now: Micros, buffer: BufferId, duration: Micros) {
        self.pressure.flush_ended(now, duration);
        self.stream.flush_ended(now);
        self.writers.flush_ended(now, buffer);
        self.chain.flush_ended(now, buffer);
    }

    pub(crate) fn parts(&mut self, active_in_worst_partition: u64, parts_to_throw: u64) {
        self.pressure.parts(active_in_worst_partition, parts_to_throw);
    }
}
