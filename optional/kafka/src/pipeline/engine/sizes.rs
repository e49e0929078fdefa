//! Bounds for fetching, holding and storing, from the pipeline's options and from the allowed latency.

use std::time::Duration;

use crate::consumer::FetchSizes;
use windrow_engine::policy::{DeadlineLimits, Micros};

use crate::pipeline::options::PipelineOptions;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    /// Bytes that may be fetched and not read.
    pub(crate) prefetch_bytes: usize,
    /// Bytes of rows that may be read and not stored.
    pub(crate) held_bytes: u64,
    pub(crate) batch_rows: u64,
    pub(crate) batch_bytes: u64,
    pub(crate) fetch: FetchSizes,
    pub(crate) max_latency: Duration,
    pub(crate) flush_interval: Option<Duration>,
}

const MEMORY_BYTES: u64 = 80 << 20;
/// Rows of a batch. ClickHouse makes one part of this number of rows, but not of many more.
const BATCH_ROWS: u64 = 1_000_000;
const BATCH_BYTES: u64 = 64 << 20;
const PARTITION_BYTES: usize = 1 << 20;

impl Sizes {
    /// Returns the sizes for each of the pipeline's consumers. A quarter of the memory is for fetched
    /// messages. Of the rest, a batch takes at most half, since one is stored while the next is gathered.
    pub(crate) fn of(options: &PipelineOptions) -> Sizes {
        let overrides = &options.overrides;
        let consumers = overrides.consumers.unwrap_or(1).max(1) as u64;
        let memory = overrides.max_memory_bytes.unwrap_or(MEMORY_BYTES) / consumers;
        let prefetch_bytes = (memory / 4).max(1) as usize;
        let held_bytes = (memory - memory / 4).max(1);
        let defaults = FetchSizes::default();
        let max_bytes = overrides.fetch_max_bytes.map_or((prefetch_bytes / 3).min(8 << 20), |bytes| bytes as usize);
        // What the broker waits for more is time that the rows have not.
        let max_wait = overrides.fetch_max_wait.map_or(defaults.max_wait_ms, |wait| wait.as_millis() as u64);
        Sizes {
            prefetch_bytes,
            held_bytes,
            batch_rows: overrides.max_batch_rows.unwrap_or(BATCH_ROWS).max(1),
            batch_bytes: overrides.max_batch_bytes.unwrap_or(BATCH_BYTES).clamp(1, (held_bytes / 2).max(1)),
            fetch: FetchSizes {
                min_bytes: overrides.fetch_min_bytes.map_or(defaults.min_bytes, |bytes| bytes as usize),
                max_bytes: max_bytes.max(1),
                max_partition_bytes: max_bytes.clamp(1, PARTITION_BYTES),
                max_wait_ms: max_wait,
            },
            max_latency: options.max_latency,
            flush_interval: overrides.flush_interval,
        }
    }

    pub(crate) fn limits(&self) -> DeadlineLimits {
        let micros = |duration: Duration| Micros(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX));
        DeadlineLimits {
            max_latency: micros(self.max_latency),
            max_rows: self.batch_rows,
            max_bytes: self.batch_bytes,
            flush_interval: self.flush_interval.map(micros),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::options::tests::options;
    use crate::pipeline::options::Overrides;

    fn sizes(overrides: Overrides) -> Sizes {
        Sizes::of(&PipelineOptions { overrides, ..options() })
    }

    #[test]
    fn what_is_held_stays_within_the_memory() {
        for memory in [1, 1 << 20, 80 << 20, 4 << 30] {
            for consumers in [1, 4] {
                let overrides =
                    Overrides { max_memory_bytes: Some(memory), consumers: Some(consumers), ..Overrides::default() };
                let sizes = sizes(overrides);
                let held = (sizes.prefetch_bytes as u64 + sizes.held_bytes) * consumers as u64;
                assert!(held <= memory.max(2 * consumers as u64), "{memory}: {sizes:?}");
                assert!(sizes.batch_bytes <= (sizes.held_bytes / 2).max(1), "{memory}: {sizes:?}");
                assert!(sizes.fetch.max_partition_bytes <= sizes.fetch.max_bytes, "{memory}: {sizes:?}");
            }
        }
    }

    #[test]
    fn what_is_set_is_taken() {
        let overrides = Overrides {
            max_batch_rows: Some(7),
            max_batch_bytes: Some(5_000),
            fetch_min_bytes: Some(10),
            fetch_max_wait: Some(Duration::from_millis(40)),
            flush_interval: Some(Duration::from_millis(300)),
            ..Overrides::default()
        };
        let sizes = sizes(overrides);
        assert_eq!((sizes.batch_rows, sizes.batch_bytes), (7, 5_000));
        assert_eq!((sizes.fetch.min_bytes, sizes.fetch.max_wait_ms), (10, 40));
        assert_eq!(sizes.limits().flush_interval, Some(Micros::from_millis(300)));
    }
}
