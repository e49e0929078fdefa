//! Latencies in a fixed number of buckets: exact below 128 µs, from there on 64 buckets per power of two, so that no
//! figure is off by more than 1.6 %, whatever its size. Adding one costs a few instructions and never allocates.

use std::time::Duration;

const SUB_BUCKET_BITS: u32 = 6;
const SUB_BUCKETS: usize = 1 << SUB_BUCKET_BITS;
/// Enough for 2^36 µs, nineteen hours; longer ones are counted in the last bucket.
const MAX_EXPONENT: u32 = 36;
const BUCKETS: usize = (MAX_EXPONENT - SUB_BUCKET_BITS + 1) as usize * SUB_BUCKETS;

#[derive(Clone)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
    max_us: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram { counts: vec![0; BUCKETS], total: 0, max_us: 0 }
    }
}

impl Histogram {
    pub fn add(&mut self, latency: Duration) {
        let us = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
        self.counts[bucket_of(us)] += 1;
        self.total += 1;
        self.max_us = self.max_us.max(us);
    }

    pub fn merge(&mut self, other: &Histogram) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.total += other.total;
        self.max_us = self.max_us.max(other.max_us);
    }

    pub fn max_ms(&self) -> f64 {
        self.max_us as f64 / 1000.0
    }

    /// The latency that `quantile` of the requests did not exceed; 0 when there were none.
    pub fn quantile_ms(&self, quantile: f64) -> f64 {
        let rank = ((self.total as f64 * quantile).ceil() as u64).max(1);
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return upper_bound_us(bucket).min(self.max_us) as f64 / 1000.0;
            }
        }
        0.0
    }
}

fn bucket_of(us: u64) -> usize {
    let us = us.min((1 << MAX_EXPONENT) - 1);
    if us < SUB_BUCKETS as u64 {
        return us as usize;
    }
    let exponent = 63 - us.leading_zeros();
    let shift = exponent - SUB_BUCKET_BITS;
    (shift as usize + 1) * SUB_BUCKETS + ((us >> shift) as usize - SUB_BUCKETS)
}

fn upper_bound_us(bucket: usize) -> u64 {
    if bucket < SUB_BUCKETS {
        return bucket as u64;
    }
    let shift = (bucket / SUB_BUCKETS - 1) as u32;
    let first = ((bucket % SUB_BUCKETS + SUB_BUCKETS) as u64) << shift;
    first + (1 << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_cover_every_value_within_two_percent() {
        let mut random = fastrand::Rng::with_seed(3);
        for _ in 0..100_000 {
            let us = random.u64(..) >> random.u32(28..64);
            let bound = upper_bound_us(bucket_of(us));
            assert!(bound >= us && bound as f64 <= us as f64 * 1.016, "seed 3: {us} in a bucket up to {bound}");
        }
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_agree_with_a_sorted_list() {
        let mut random = fastrand::Rng::with_seed(5);
        let mut histogram = Histogram::default();
        let mut other = Histogram::default();
        let mut sorted: Vec<u64> = (0..10_000).map(|_| random.u64(1..1_000_000)).collect();
        for (at, us) in sorted.iter().enumerate() {
            let half = if at % 2 == 0 { &mut histogram } else { &mut other };
            half.add(Duration::from_micros(*us));
        }
        histogram.merge(&other);
        sorted.sort_unstable();
        for quantile in [0.5, 0.95, 0.99, 1.0] {
            let exact = sorted[(10_000.0 * quantile) as usize - 1] as f64 / 1000.0;
            let measured = histogram.quantile_ms(quantile);
            assert!((measured / exact - 1.0).abs() < 0.017, "seed 5: {quantile}: {measured} instead of {exact}");
        }
        assert_eq!(histogram.max_ms(), sorted[9_999] as f64 / 1000.0);
    }

    #[test]
    fn an_empty_one_answers_zero() {
        assert_eq!((Histogram::default().quantile_ms(0.99), Histogram::default().max_ms()), (0.0, 0.0));
    }
}
