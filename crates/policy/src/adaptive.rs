//! ClickHouse's adaptive time-out, rule for rule, with its state kept per table instead of per shard.
//!
//! Every insert moves the time-out `T`: up when the insert before it is less than the minimum ago, down when both that insert
//! and the flush before the last are long enough past. A buffer takes the `T` of the moment at which it opens. On top, an insert
//! that follows a long pause is flushed at sight if the flushes, too, were far apart.

use crate::{FlushLimits, Micros};

#[derive(Clone, Debug, Default)]
pub(crate) struct Adaptive {
    /// None until the first insert, which starts from the lower of the two limits.
    timeout_ms: Option<u64>,
    last_insert: Option<Micros>,
    flush_before_last: Option<Micros>,
    last_flush: Option<Micros>,
}

/// What an insert that arrives now is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub timeout: Micros,
    pub lonely: bool,
}

impl Adaptive {
    pub(crate) fn arrive(&mut self, now: Micros, limits: &FlushLimits) -> Held {
        let timeout_ms = self.next_timeout_ms(now, limits);
        let held = Held { timeout: Micros::from_millis(timeout_ms), lonely: self.is_lonely(now, limits) };
        self.timeout_ms = Some(timeout_ms);
        self.last_insert = Some(now);
        held
    }

    /// Failed flushes must not be told: they would make a table in trouble look like an idle one.
    pub(crate) fn flush_succeeded(&mut self, now: Micros) {
        self.flush_before_last = self.last_flush;
        self.last_flush = Some(now);
    }

    fn next_timeout_ms(&self, now: Micros, limits: &FlushLimits) -> u64 {
        let (lo, hi) = (limits.min_timeout_ms(), limits.busy_timeout_max_ms);
        let current = self.timeout_ms.unwrap_or(lo);
        let (Some(last_insert), Some(older), Some(newer)) = (self.last_insert, self.flush_before_last, self.last_flush)
        else {
            return current.clamp(lo, hi);
        };
        // `as u64` truncates, as ClickHouse's cast to whole milliseconds does.
        let lower = ((current as f64 / (1.0 + limits.decrease_rate)) as u64).min(current.saturating_sub(1));
        let higher = ((current as f64 * (1.0 + limits.increase_rate)) as u64).max(current.saturating_add(1));
        if last_insert + Micros::from_millis(lo) > now {
            return higher.clamp(lo, hi);
        }
        let step = Micros::from_millis(lower);
        if last_insert + step < now && older + step < newer {
            return lower.clamp(lo, hi);
        }
        current.clamp(lo, hi)
    }

    fn is_lonely(&self, now: Micros, limits: &FlushLimits) -> bool {
        let (Some(last_insert), Some(older), Some(newer)) = (self.last_insert, self.flush_before_last, self.last_flush)
        else {
            return false;
        };
        let pause = limits.max_timeout();
        last_insert + pause < now && older + pause < newer
    }
}
