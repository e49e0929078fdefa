//! ClickHouse's adaptive time-out, rule for rule, with its state kept per table instead of per shard.
//!
//! Every insert moves the time-out `T`: up when the insert before it came less than the minimum ago, down
//! when both that insert and the flush before the last are long enough in the past. A buffer takes the `T` of
//! the moment at which it opens. Besides, an insert that follows a long pause is flushed at sight if the
//! flushes, too, were far apart.

use crate::policy::{FlushLimits, Micros};

#[derive(Clone, Debug, Default)]
pub(crate) struct Adaptive {
    /// The current time-out; `None` until the first insert, which starts from the lower of the two limits.
    timeout_ms: Option<u64>,
    last_insert: Option<Micros>,
    flush_before_last: Option<Micros>,
    last_flush: Option<Micros>,
}

/// The hold of an insert that arrives now.
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

    /// Notes a stored flush. Failed flushes must not be noted: they would make a table in trouble look like
    /// an idle one.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Micros {
        Micros::from_millis(millis)
    }

    /// Returns a state with two flushes 1000 ms apart, so that nothing but the inserts decides.
    fn warm(timeout_ms: u64, last_insert: Micros) -> Adaptive {
        Adaptive {
            timeout_ms: Some(timeout_ms),
            last_insert: Some(last_insert),
            flush_before_last: Some(ms(1000)),
            last_flush: Some(ms(2000)),
        }
    }

    fn arrive(adaptive: &mut Adaptive, at_ms: u64) -> u64 {
        adaptive.arrive(ms(at_ms), &FlushLimits::default()).timeout.0 / 1000
    }

    #[test]
    fn stays_at_the_minimum_until_two_flushes_succeeded() {
        let mut adaptive = Adaptive::default();
        assert_eq!([arrive(&mut adaptive, 1), arrive(&mut adaptive, 2)], [50, 50]);
        adaptive.flush_succeeded(ms(60));
        assert_eq!(arrive(&mut adaptive, 61), 50);
        adaptive.flush_succeeded(ms(120));
        assert_eq!(arrive(&mut adaptive, 100), 60);
    }

    #[test]
    fn grows_by_whole_milliseconds_up_to_the_maximum() {
        let mut adaptive = warm(50, ms(3000));
        let grown: Vec<_> = (0..10).map(|i| arrive(&mut adaptive, 3010 + i * 10)).collect();
        // trunc(50*1.2)=60, 72, trunc(86.4)=86, trunc(103.2)=103, trunc(123.6)=123, trunc(147.6)=147, trunc(176.4)=176,
        // then 200
        assert_eq!(grown, [60, 72, 86, 103, 123, 147, 176, 200, 200, 200]);
    }

    #[test]
    fn grows_and_shrinks_by_at_least_one_millisecond() {
        let limits = FlushLimits {
            busy_timeout_min_ms: 10,
            increase_rate: 0.001,
            decrease_rate: 0.001,
            ..FlushLimits::default()
        };
        assert_eq!(warm(50, ms(3000)).arrive(ms(3001), &limits).timeout, ms(51));
        assert_eq!(warm(50, ms(3000)).arrive(ms(3100), &limits).timeout, ms(49));
    }

    #[test]
    fn shrinks_only_after_a_long_gap_and_far_flushes() {
        // trunc(200/1.2)=166, trunc(166/1.2)=138, trunc(115), trunc(95.8), trunc(79.1), trunc(65.8), trunc(54.1), then
        // 50
        let mut adaptive = warm(200, ms(3000));
        let shrunk: Vec<_> = (1..=9).map(|i| arrive(&mut adaptive, 3000 + i * 500)).collect();
        assert_eq!(shrunk, [166, 138, 115, 95, 79, 65, 54, 50, 50]);
        // Exactly as long as the next lower value is not longer.
        assert_eq!(arrive(&mut warm(200, ms(3000)), 3166), 200);
        let mut close = warm(200, ms(3000));
        close.flush_succeeded(ms(2166));
        assert_eq!(arrive(&mut close, 3500), 200);
        close.flush_succeeded(ms(2333));
        assert_eq!(arrive(&mut close, 4000), 166);
    }

    #[test]
    fn keeps_its_value_in_between() {
        // The gap is not below the minimum (50) and not above 100/1.2.
        assert_eq!(arrive(&mut warm(100, ms(3000)), 3050), 100);
        assert_eq!(arrive(&mut warm(100, ms(3000)), 3083), 100);
        assert_eq!(arrive(&mut warm(100, ms(3000)), 3084), 83);
    }

    #[test]
    fn a_lonely_insert_needs_a_pause_of_inserts_and_of_flushes() {
        let limits = FlushLimits::default();
        let lonely = |adaptive: &mut Adaptive, at_ms| adaptive.arrive(ms(at_ms), &limits).lonely;
        assert!(!lonely(&mut Adaptive::default(), 5000));
        assert!(!lonely(&mut warm(50, ms(3000)), 3200));
        assert!(lonely(&mut warm(50, ms(3000)), 3201));
        let mut close = warm(50, ms(3000));
        close.flush_succeeded(ms(2200));
        assert!(!lonely(&mut close, 3500));
        close.flush_succeeded(ms(2401));
        assert!(lonely(&mut close, 4000));
    }

    #[test]
    fn survives_absurd_settings() {
        let limits = FlushLimits {
            busy_timeout_min_ms: u64::MAX,
            busy_timeout_max_ms: u64::MAX,
            increase_rate: f64::MAX,
            decrease_rate: f64::MIN_POSITIVE,
            ..FlushLimits::default()
        };
        let mut adaptive = warm(u64::MAX, ms(3000));
        assert_eq!(adaptive.arrive(Micros::NEVER, &limits).timeout, Micros::NEVER);
        assert_eq!(adaptive.arrive(Micros::NEVER, &FlushLimits::default()).timeout, ms(200));
    }
}
