//! Histogram of durations, which is fine enough to tell quantiles, and cheap enough for every insert.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::{MetricType, TypedMetric};

/// Number of buckets for each doubling of a time: a quantile is right within an eighth.
const STEPS: u64 = 8;
const STEP_BITS: u32 = STEPS.trailing_zeros();
/// Bits of the longest time that is told apart, which is 2^32 microseconds: over an hour.
const MAX_BITS: u32 = 32;
const BUCKETS: usize = ((MAX_BITS - STEP_BITS + 1) as u64 * STEPS) as usize;
/// Buckets that a time-series database sees: powers of two from 64 us to 134 s.
const EXPORTED_BITS: std::ops::RangeInclusive<u32> = 6..=27;

/// A histogram of durations. Clones are handles of the same histogram.
#[derive(Clone)]
pub struct LatencyHistogram {
    shared: Arc<Shared>,
}

struct Shared {
    buckets: [AtomicU64; BUCKETS],
    sum_micros: AtomicU64,
}

/// Counts of a histogram up to one moment.
#[derive(Clone)]
pub struct LatencyCounts {
    buckets: [u64; BUCKETS],
}

impl Default for LatencyHistogram {
    fn default() -> LatencyHistogram {
        let buckets = std::array::from_fn(|_| AtomicU64::new(0));
        LatencyHistogram { shared: Arc::new(Shared { buckets, sum_micros: AtomicU64::new(0) }) }
    }
}

impl Default for LatencyCounts {
    fn default() -> LatencyCounts {
        LatencyCounts { buckets: [0; BUCKETS] }
    }
}

impl fmt::Debug for LatencyHistogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} durations", self.counts().total())
    }
}

impl LatencyHistogram {
    pub fn observe(&self, duration: Duration) {
        let micros = duration.as_micros().min(u128::from(u64::MAX)) as u64;
        self.shared.buckets[bucket_of(micros)].fetch_add(1, Ordering::Relaxed);
        self.shared.sum_micros.fetch_add(micros, Ordering::Relaxed);
    }

    pub fn counts(&self) -> LatencyCounts {
        LatencyCounts { buckets: std::array::from_fn(|bucket| self.shared.buckets[bucket].load(Ordering::Relaxed)) }
    }
}

impl LatencyCounts {
    /// Returns what was counted after `before`.
    pub fn since(&self, before: &LatencyCounts) -> LatencyCounts {
        LatencyCounts {
            buckets: std::array::from_fn(|bucket| self.buckets[bucket].saturating_sub(before.buckets[bucket])),
        }
    }

    pub fn total(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Returns the duration that this share of all durations does not exceed, or `None` if there are none.
    pub fn quantile_seconds(&self, share: f64) -> Option<f64> {
        let total = self.total();
        let rank = ((total as f64 * share).ceil() as u64).clamp(1, total.max(1));
        let mut seen = 0;
        let bucket = self.buckets.iter().position(|count| {
            seen += count;
            *count > 0 && seen >= rank
        })?;
        // The middle of the bucket.
        Some((lower_micros(bucket) + lower_micros(bucket + 1)) as f64 / 2e6)
    }

    /// Returns the number of durations shorter than 2^bits microseconds.
    fn below(&self, bits: u32) -> u64 {
        self.buckets[..bucket_of(1 << bits)].iter().sum()
    }
}

fn bucket_of(micros: u64) -> usize {
    if micros < STEPS {
        return micros as usize;
    }
    let bits = micros.ilog2();
    let step = (micros >> (bits - STEP_BITS)) & (STEPS - 1);
    ((u64::from(bits - STEP_BITS + 1) * STEPS + step) as usize).min(BUCKETS - 1)
}

fn lower_micros(bucket: usize) -> u64 {
    let (doubling, step) = (bucket as u64 / STEPS, bucket as u64 % STEPS);
    match doubling {
        0 => step,
        _ => (STEPS + step) << (doubling - 1),
    }
}

impl TypedMetric for LatencyHistogram {
    const TYPE: MetricType = MetricType::Histogram;
}

impl EncodeMetric for LatencyHistogram {
    fn encode(&self, mut encoder: MetricEncoder) -> fmt::Result {
        let counts = self.counts();
        let mut before = 0;
        let mut buckets: Vec<(f64, u64)> = EXPORTED_BITS
            .map(|bits| {
                let below = counts.below(bits);
                ((1u64 << bits) as f64 / 1e6, below - std::mem::replace(&mut before, below))
            })
            .collect();
        buckets.push((f64::MAX, counts.total() - before));
        let sum = self.shared.sum_micros.load(Ordering::Relaxed) as f64 / 1e6;
        encoder.encode_histogram::<NoLabelSet>(sum, counts.total(), &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_duration_has_its_bucket() {
        for micros in (0..100_000).chain([1 << 31, (1 << 32) - 1]) {
            let bucket = bucket_of(micros);
            assert!((lower_micros(bucket)..lower_micros(bucket + 1)).contains(&micros), "{micros} in {bucket}");
        }
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_are_right_within_an_eighth() {
        let histogram = LatencyHistogram::default();
        (1..=10_000).for_each(|micros| histogram.observe(Duration::from_micros(micros * 10)));
        let before = histogram.counts();
        for (share, expected) in [(0.5, 0.05), (0.99, 0.099), (1.0, 0.1)] {
            let told = before.quantile_seconds(share).unwrap();
            assert!((told / expected - 1.0).abs() < 0.125, "{share}: {told}");
        }
        histogram.observe(Duration::from_secs(2));
        let since = histogram.counts().since(&before);
        assert_eq!(since.total(), 1);
        assert!((since.quantile_seconds(0.5).unwrap() / 2.0 - 1.0).abs() < 0.125);
        assert_eq!(LatencyCounts::default().quantile_seconds(0.5), None);
    }
}
