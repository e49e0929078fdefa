//! Percentiles of waiting times in constant memory.

use std::time::Duration;

/// Growth of the buckets: each is this much wider than the one before, so a percentile is right to about one
/// per cent.
const GROWTH: f64 = 1.02;
/// Count of buckets, from 1 µs on. The last one has everything beyond half an hour.
const BUCKETS: usize = 1080;

/// Counts of waiting times in buckets of growing width.
#[derive(Debug, Clone)]
pub(crate) struct Histogram {
    counts: Vec<u64>,
    total: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: vec![0; BUCKETS], total: 0 }
    }
}

impl Histogram {
    pub fn add(&mut self, waited: Duration) {
        self.counts[bucket_of(waited)] += 1;
        self.total += 1;
    }

    /// Returns the time that the share `quantile` of all stayed below, in milliseconds, or `None` before the first.
    pub fn quantile_ms(&self, quantile: f64) -> Option<f64> {
        Self::of_both(self, &Histogram { counts: Vec::new(), total: 0 }, quantile)
    }

    fn of_both(a: &Self, b: &Self, quantile: f64) -> Option<f64> {
        let total = a.total + b.total;
        if total == 0 {
            return None;
        }
        let rank = ((quantile * total as f64).ceil() as u64).clamp(1, total);
        let mut seen = 0;
        for (index, count) in a.counts.iter().enumerate() {
            seen += count + b.counts.get(index).copied().unwrap_or(0);
            if seen >= rank {
                return Some(middle_ms(index));
            }
        }
        None
    }
}

fn bucket_of(waited: Duration) -> usize {
    let micros = waited.as_micros().max(1) as f64;
    ((micros.ln() / GROWTH.ln()) as usize).min(BUCKETS - 1)
}

fn middle_ms(index: usize) -> f64 {
    GROWTH.powf(index as f64 + 0.5) / 1000.0
}

/// Percentiles of the recent past, which is the last one to two windows.
#[derive(Debug, Default)]
pub(crate) struct Rolling {
    current: Histogram,
    previous: Histogram,
    window: u64,
}

impl Rolling {
    /// Adds a waiting time. `window` is the number of the present window of time, and never falls.
    pub fn add(&mut self, window: u64, waited: Duration) {
        self.turn_to(window);
        self.current.add(waited);
    }

    pub fn quantile_ms(&mut self, window: u64, quantile: f64) -> Option<f64> {
        self.turn_to(window);
        Histogram::of_both(&self.current, &self.previous, quantile)
    }

    fn turn_to(&mut self, window: u64) {
        if window <= self.window {
            return;
        }
        let last = std::mem::take(&mut self.current);
        self.previous = if window == self.window + 1 { last } else { Histogram::default() };
        self.window = window;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(actual: Option<f64>, expected_ms: f64) {
        let actual = actual.expect("a value");
        assert!((actual / expected_ms - 1.0).abs() < 0.02, "{actual} is not {expected_ms}");
    }

    #[test]
    fn percentiles_are_those_of_a_sorted_list() {
        let mut random = fastrand::Rng::with_seed(5);
        let mut histogram = Histogram::default();
        let mut sorted: Vec<u64> = (0..10_000).map(|_| (random.f64() * 16.0).exp() as u64 + 50).collect();
        for micros in &sorted {
            histogram.add(Duration::from_micros(*micros));
        }
        sorted.sort_unstable();
        for quantile in [0.01, 0.5, 0.9, 0.99, 1.0] {
            let exact = sorted[((quantile * sorted.len() as f64).ceil() as usize).max(1) - 1];
            close(histogram.quantile_ms(quantile), exact as f64 / 1000.0);
        }
    }

    #[test]
    fn extremes_stay_inside() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.quantile_ms(0.5), None);
        histogram.add(Duration::ZERO);
        assert!(histogram.quantile_ms(0.5).is_some_and(|ms| ms < 0.01));
        histogram.add(Duration::from_secs(1_000_000));
        assert!(histogram.quantile_ms(1.0).is_some_and(|ms| ms > 1_000_000.0));
    }

    #[test]
    fn rolling_forgets_old_windows() {
        let mut rolling = Rolling::default();
        rolling.add(0, Duration::from_millis(10));
        rolling.add(1, Duration::from_millis(1000));
        close(rolling.quantile_ms(1, 0.5), 10.0);
        close(rolling.quantile_ms(2, 0.5), 1000.0);
        assert_eq!(rolling.quantile_ms(3, 0.5), None);
        rolling.add(3, Duration::from_millis(5));
        assert_eq!(rolling.quantile_ms(7, 0.5), None);
    }
}
