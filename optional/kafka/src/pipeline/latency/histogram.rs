//! Prometheus metrics that the library lacks: a histogram that counts many values at once, and a gauge that
//! grows by itself.

use std::fmt;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::{MetricType, TypedMetric};

use crate::pipeline::latency::spread::spread;

const BOUNDS_SECONDS: [f64; 23] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 5.0, 7.5, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0,
    600.0, 1800.0, 3600.0,
];

#[derive(Debug, Clone, Default)]
pub(crate) struct LatencyHistogram {
    counts: Arc<[AtomicU64; BOUNDS_SECONDS.len() + 1]>,
    sum_seconds: Arc<Mutex<f64>>,
}

impl LatencyHistogram {
    /// Counts `count` values that lie evenly between the two.
    pub(crate) fn observe(&self, low_seconds: f64, high_seconds: f64, count: u64) {
        spread(&BOUNDS_SECONDS, low_seconds, high_seconds, count, |bucket, more| {
            self.counts[bucket].fetch_add(more, Ordering::Relaxed);
        });
        let sum_seconds = 0.5 * (low_seconds + high_seconds) * count as f64;
        *self.sum_seconds.lock().unwrap_or_else(PoisonError::into_inner) += sum_seconds;
    }
}

impl TypedMetric for LatencyHistogram {
    const TYPE: MetricType = MetricType::Histogram;
}

impl EncodeMetric for LatencyHistogram {
    fn encode(&self, mut encoder: MetricEncoder) -> Result<(), fmt::Error> {
        let bounds = BOUNDS_SECONDS.iter().copied().chain([f64::MAX]);
        let counts = self.counts.iter().map(|count| count.load(Ordering::Relaxed));
        let buckets: Vec<(f64, u64)> = bounds.zip(counts).collect();
        let count = buckets.iter().map(|(_, count)| count).sum();
        let sum = *self.sum_seconds.lock().unwrap_or_else(PoisonError::into_inner);
        encoder.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

/// A gauge of the age of an event at the time of reading, in seconds, or 0 if there is no event.
#[derive(Debug, Clone)]
pub(crate) struct AgeGauge {
    since_ms: Arc<AtomicI64>,
}

const NOTHING: i64 = i64::MIN;

impl Default for AgeGauge {
    fn default() -> Self {
        AgeGauge { since_ms: Arc::new(AtomicI64::new(NOTHING)) }
    }
}

impl AgeGauge {
    /// Sets the time of the event, in milliseconds since 1970.
    pub(crate) fn set(&self, since_ms: Option<i64>) {
        self.since_ms.store(since_ms.unwrap_or(NOTHING), Ordering::Relaxed);
    }

    pub(crate) fn seconds(&self) -> f64 {
        match self.since_ms.load(Ordering::Relaxed) {
            NOTHING => 0.0,
            since_ms => (wall_ms().saturating_sub(since_ms)).max(0) as f64 / 1e3,
        }
    }
}

impl TypedMetric for AgeGauge {
    const TYPE: MetricType = MetricType::Gauge;
}

impl EncodeMetric for AgeGauge {
    fn encode(&self, mut encoder: MetricEncoder) -> Result<(), fmt::Error> {
        encoder.encode_gauge(&self.seconds())
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

/// Returns the time in milliseconds since 1970, which is the unit of messages' timestamps.
pub(crate) fn wall_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;

    #[test]
    fn it_is_written_as_prometheus_reads_it() {
        let (mut registry, histogram, age) = (Registry::default(), LatencyHistogram::default(), AgeGauge::default());
        registry.register("latency", "Help", histogram.clone());
        registry.register("age", "Help", age.clone());
        histogram.observe(0.2, 0.2, 3);
        histogram.observe(4_000.0, 4_000.0, 1);
        age.set(Some(wall_ms() - 600_000));
        let mut text = String::new();
        encode(&mut text, &registry).expect("writing to a string");
        for line in [
            "latency_sum 4000.6",
            "latency_count 4",
            "latency_bucket{le=\"0.25\"} 3",
            "latency_bucket{le=\"+Inf\"} 4",
            "age 600",
        ] {
            assert!(text.contains(line), "{line} is missing in\n{text}");
        }
        age.set(None);
        assert_eq!(age.seconds(), 0.0);
    }
}
