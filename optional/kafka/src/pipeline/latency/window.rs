//! Latencies of the last minute: quantiles and means, without keeping the values.

use std::sync::LazyLock;

use crate::pipeline::latency::spread::spread;
use crate::pipeline::status::Quantiles;

/// Ratio of two neighbouring bounds. A quantile is exact to 5 %.
const GROWTH: f64 = 1.05;
const LEAST_SECONDS: f64 = 0.001;
const BUCKETS: usize = 440;
/// Number of slots: six full ones and the one that is being filled.
const SLOTS: usize = 7;
const SLOT_MS: i64 = 10_000;

static BOUNDS_SECONDS: LazyLock<Vec<f64>> = LazyLock::new(|| {
    let bounds = std::iter::successors(Some(LEAST_SECONDS), |bound| Some(bound * GROWTH));
    bounds.take(BUCKETS).collect()
});

/// A sliding window of latencies. A time before the latest one counts as the latest.
#[derive(Debug)]
pub(crate) struct Window {
    intervals: Vec<Interval>,
    /// Number of the ten seconds that the newest slot is for.
    newest: i64,
}

#[derive(Debug, Clone, Default)]
struct Interval {
    counts: Vec<u32>,
    messages: u64,
    kafka_seconds: f64,
    gathering_seconds: f64,
    storing_seconds: f64,
}

/// Latencies of a chunk of messages, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Took {
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// Mean time until the messages were fetched. The next two fields are means, too.
    pub(crate) kafka: f64,
    pub(crate) gathering: f64,
    pub(crate) storing: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Means {
    pub(crate) kafka_seconds: f64,
    pub(crate) gathering_seconds: f64,
    pub(crate) storing_seconds: f64,
}

impl Default for Window {
    fn default() -> Self {
        Window { intervals: vec![Interval::default(); SLOTS], newest: 0 }
    }
}

impl Window {
    pub(crate) fn observe(&mut self, now_ms: i64, took: Took, messages: u64) {
        self.turn(now_ms);
        let interval = &mut self.intervals[self.newest.rem_euclid(SLOTS as i64) as usize];
        interval.counts.resize(BUCKETS + 1, 0);
        spread(&BOUNDS_SECONDS, took.low, took.high, messages, |bucket, more| {
            interval.counts[bucket] = interval.counts[bucket].saturating_add(more.min(u64::from(u32::MAX)) as u32);
        });
        interval.messages += messages;
        interval.kafka_seconds += took.kafka * messages as f64;
        interval.gathering_seconds += took.gathering * messages as f64;
        interval.storing_seconds += took.storing * messages as f64;
    }

    pub(crate) fn quantiles(&mut self, now_ms: i64) -> Option<Quantiles> {
        self.turn(now_ms);
        let mut counts = vec![0u64; BUCKETS + 1];
        for interval in &self.intervals {
            counts.iter_mut().zip(&interval.counts).for_each(|(all, of_slot)| *all += u64::from(*of_slot));
        }
        let all: u64 = counts.iter().sum();
        let quantile = |share: f64| {
            let rank = ((all as f64 * share).ceil() as u64).max(1);
            let mut seen = 0;
            let found = counts.iter().position(|count| {
                seen += count;
                seen >= rank
            });
            BOUNDS_SECONDS[found.unwrap_or(0).min(BUCKETS - 1)]
        };
        (all > 0).then(|| Quantiles {
            p50_seconds: quantile(0.5),
            p95_seconds: quantile(0.95),
            p99_seconds: quantile(0.99),
        })
    }

    pub(crate) fn means(&mut self, now_ms: i64) -> Means {
        self.turn(now_ms);
        let messages = self.intervals.iter().map(|interval| interval.messages).sum::<u64>().max(1) as f64;
        let mean = |of: fn(&Interval) -> f64| self.intervals.iter().map(of).sum::<f64>() / messages;
        Means {
            kafka_seconds: mean(|interval| interval.kafka_seconds),
            gathering_seconds: mean(|interval| interval.gathering_seconds),
            storing_seconds: mean(|interval| interval.storing_seconds),
        }
    }

    /// Empties the slots of times in which no messages came.
    fn turn(&mut self, now_ms: i64) {
        let newest = now_ms.div_euclid(SLOT_MS).max(self.newest);
        let first = (self.newest + 1).max(newest - SLOTS as i64 + 1);
        for interval in first..=newest {
            self.intervals[interval.rem_euclid(SLOTS as i64) as usize] = Interval::default();
        }
        self.newest = newest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_MS: i64 = 1_790_000_000_000;

    fn took(seconds: f64) -> Took {
        Took { low: seconds, high: seconds, kafka: seconds / 2.0, gathering: seconds / 4.0, storing: seconds / 4.0 }
    }

    #[test]
    fn quantiles_are_close_and_of_the_last_minute() {
        let mut window = Window::default();
        assert_eq!(window.quantiles(NOW_MS), None);
        window.observe(NOW_MS, Took { low: 0.0, high: 1.0, ..took(0.5) }, 100_000);
        let found = window.quantiles(NOW_MS + 59_000).expect("there are some");
        for (found, exact) in [(found.p50_seconds, 0.5), (found.p95_seconds, 0.95), (found.p99_seconds, 0.99)] {
            assert!((found / exact - 1.0).abs() <= 0.06, "{found} is not {exact}");
        }
        assert_eq!(window.means(NOW_MS + 59_000).kafka_seconds, 0.25);
        assert_eq!(window.quantiles(NOW_MS + 75_000), None);
        assert_eq!(window.means(NOW_MS + 75_000), Means::default());
    }

    #[test]
    fn what_is_hours_late_and_a_clock_that_goes_back_do_no_harm() {
        let mut window = Window::default();
        window.observe(NOW_MS, took(1e9), 10);
        window.observe(NOW_MS - 500_000, took(600.0), 90);
        let found = window.quantiles(NOW_MS).expect("there are some");
        assert!((found.p50_seconds / 600.0 - 1.0).abs() <= 0.06);
        assert!(found.p99_seconds > 1e6);
    }
}
