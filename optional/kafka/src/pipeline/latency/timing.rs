//! The times of a chunk of messages: written, fetched, read, pushed and stored.

use crate::pipeline::latency::window::Took;

/// Number of messages in a chunk, and their times in milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Timing {
    pub(crate) messages: u64,
    /// Oldest timestamp of the messages. The time when they were fetched, if they have none.
    pub(crate) oldest_ms: i64,
    pub(crate) newest_ms: i64,
    pub(crate) fetched_ms: i64,
    pub(crate) read_ms: i64,
}

/// The stage that took most of the time of late messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum MissedReason {
    /// The messages waited in Kafka, or had old timestamps already.
    ConsumerBehind,
    /// The messages were fetched and waited to be read.
    Parse,
    SinkSlow,
    /// The table had too many parts.
    Parts,
}

impl MissedReason {
    pub(crate) const ALL: [MissedReason; 4] =
        [MissedReason::ConsumerBehind, MissedReason::Parse, MissedReason::SinkSlow, MissedReason::Parts];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            MissedReason::ConsumerBehind => "consumer_behind",
            MissedReason::Parse => "parse",
            MissedReason::SinkSlow => "sink_slow",
            MissedReason::Parts => "parts",
        }
    }
}

impl Timing {
    /// Returns the latency of the oldest and of the newest message, and of the stages between. A timestamp in
    /// the future counts as now.
    pub(crate) fn took(&self, pushed_ms: i64, stored_ms: i64) -> Took {
        let seconds = |from_ms: i64, to_ms: i64| to_ms.saturating_sub(from_ms).max(0) as f64 / 1e3;
        let middle_ms = self.oldest_ms.midpoint(self.newest_ms);
        Took {
            low: seconds(self.newest_ms, stored_ms),
            high: seconds(self.oldest_ms, stored_ms),
            kafka: seconds(middle_ms, self.fetched_ms),
            gathering: seconds(self.fetched_ms, pushed_ms),
            storing: seconds(pushed_ms, stored_ms),
        }
    }

    /// Returns the number of messages that were stored later than allowed.
    pub(crate) fn missed(&self, stored_ms: i64, max_latency_ms: i64) -> u64 {
        // Those before this time are late.
        let limit_ms = stored_ms.saturating_sub(max_latency_ms);
        let width = self.newest_ms.saturating_sub(self.oldest_ms);
        match limit_ms.saturating_sub(self.oldest_ms) {
            late if late <= 0 => 0,
            late if late > width => self.messages,
            late => (self.messages as f64 * late as f64 / width as f64).ceil() as u64,
        }
    }

    pub(crate) fn reason(&self, pushed_ms: i64, stored_ms: i64, had_too_many_parts: bool) -> MissedReason {
        let waited_ms = self.fetched_ms.saturating_sub(self.oldest_ms);
        let read_ms = self.read_ms.saturating_sub(self.fetched_ms);
        // What was gathered behind a slow flush waited for the sink.
        let storing_ms = stored_ms.saturating_sub(pushed_ms).max(pushed_ms.saturating_sub(self.read_ms));
        if waited_ms >= storing_ms.max(read_ms) {
            MissedReason::ConsumerBehind
        } else if read_ms >= storing_ms {
            MissedReason::Parse
        } else if had_too_many_parts {
            MissedReason::Parts
        } else {
            MissedReason::SinkSlow
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNK: Timing =
        Timing { messages: 100, oldest_ms: 1_000, newest_ms: 2_000, fetched_ms: 2_100, read_ms: 2_200 };

    #[test]
    fn stages_add_up() {
        let took = CHUNK.took(2_500, 3_000);
        assert_eq!(took, Took { low: 1.0, high: 2.0, kafka: 0.6, gathering: 0.4, storing: 0.5 });
        assert_eq!(took.kafka + took.gathering + took.storing, 0.5 * (took.low + took.high));
    }

    #[test]
    fn those_that_are_late_are_counted() {
        assert_eq!(CHUNK.missed(3_000, 2_000), 0);
        assert_eq!(CHUNK.missed(3_000, 1_500), 50);
        assert_eq!(CHUNK.missed(3_000, 999), 100);
        assert_eq!(Timing { newest_ms: 1_000, ..CHUNK }.missed(3_000, 1_999), 100);
    }

    #[test]
    fn the_longest_stage_is_the_reason() {
        let old = Timing { oldest_ms: -600_000, ..CHUNK };
        assert_eq!(old.reason(2_500, 3_000, false), MissedReason::ConsumerBehind);
        assert_eq!(CHUNK.reason(2_500, 9_000, false), MissedReason::SinkSlow);
        assert_eq!(CHUNK.reason(2_500, 9_000, true), MissedReason::Parts);
        assert_eq!(CHUNK.reason(8_500, 9_000, false), MissedReason::SinkSlow);
        assert_eq!(Timing { read_ms: 7_000, ..CHUNK }.reason(7_100, 7_200, false), MissedReason::Parse);
    }

    #[test]
    fn a_clock_that_is_ahead_does_no_harm() {
        let took = Timing { oldest_ms: 90_000, newest_ms: i64::MAX, ..CHUNK }.took(2_500, 3_000);
        assert_eq!((took.low, took.high, took.kafka), (0.0, 0.0, 0.0));
    }
}
