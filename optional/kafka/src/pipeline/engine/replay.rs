//! Fetching a batch's ranges again: for a batch that an earlier run or another member has recorded, or that
//! could not be stored at first.

use std::collections::HashSet;
use std::sync::Arc;

use crate::{Client, RangeError, RangePart, ReadOptions, TopicId, TopicPartition};

use crate::pipeline::engine::chunk::{Chunk, RangeRows, Reading};
use crate::pipeline::engine::read::{read, Fetch, ReadTrouble, Readers};
use crate::pipeline::latency::wall_ms;
use crate::pipeline::record::{BatchRecord, Range};

/// Fetches all rows of the batch. `left_out` returns the offsets of a range, ascending, that are dead letters
/// already since they could not be read.
pub(crate) async fn fetch_batch(
    client: &Client,
    readers: &Arc<Readers>,
    reading: &Arc<Reading>,
    record: &BatchRecord,
    left_out: impl Fn(&Range) -> Vec<i64>,
) -> Result<Vec<RangeRows>, String> {
    let mut ranges = Vec::with_capacity(record.ranges.len());
    let mut deleted: HashSet<(Arc<str>, TopicId)> = HashSet::new();
    for range in &record.ranges {
        let left_out: Arc<[i64]> = left_out(range).into();
        let topic = (range.topic.clone(), range.topic_id);
        // Brokers take their time to be sure of it: once for a topic is enough.
        let mut chunks = Vec::new();
        if !deleted.contains(&topic) {
            let mut parts = Parts::of(client, range);
            chunks = fetch_range(&mut parts, readers, reading, range, left_out).await?;
            deleted.extend(parts.topic_is_gone.then_some(topic));
        }
        ranges.push(RangeRows { range: range.clone(), chunks });
    }
    Ok(ranges)
}

async fn fetch_range(
    parts: &mut Parts,
    readers: &Arc<Readers>,
    reading: &Arc<Reading>,
    range: &Range,
    left_out: Arc<[i64]>,
) -> Result<Vec<Chunk>, String> {
    let mut chunks = Vec::new();
    while let Some(mut fetch) = parts.next().await? {
        loop {
            let (readers, reading, left_out) = (readers.clone(), reading.clone(), left_out.clone());
            let again = fetch.clone();
            let outcome = on_thread(move || read(&readers, &reading, again, &left_out)).await;
            let chunk = outcome.map_err(ReadTrouble::into_text)?;
            if let Some(bad) = &chunk.stopped_by {
                return Err(format!("{}:{}: {}", range.partition(), bad.offset, bad.error));
            }
            fetch.first_offset = chunk.next_offset;
            chunks.push(chunk);
            if fetch.first_offset >= fetch.next_offset {
                break;
            }
        }
    }
    Ok(chunks)
}

/// The parts of a range as the broker sends them.
pub(crate) struct Parts {
    reader: crate::RangeReader,
    partition: TopicPartition,
    next_offset: i64,
    gaps_told: usize,
    /// True if the topic was deleted, or made anew.
    topic_is_gone: bool,
}

impl Parts {
    pub(crate) fn of(client: &Client, range: &Range) -> Parts {
        let offsets = range.first_offset..=range.last_offset;
        let options = ReadOptions { leader_epoch: range.leader_epoch, ..ReadOptions::default() };
        let reader = client.read_range(range.partition(), range.topic_id, offsets, options);
        Parts {
            reader,
            partition: range.partition(),
            next_offset: range.next_offset(),
            gaps_told: 0,
            topic_is_gone: false,
        }
    }

    pub(crate) async fn next(&mut self) -> Result<Option<Fetch>, String> {
        let part = self.reader.next().await;
        for gap in &self.reader.gaps()[self.gaps_told..] {
            tracing::warn!(
                partition = %self.partition, first = gap.start(), last = gap.end(),
                "messages of a recorded batch are no longer in the log; what is left of it is stored under its id"
            );
        }
        self.gaps_told = self.reader.gaps().len();
        match part {
            Ok(None) => Ok(None),
            Ok(Some(RangePart { batches, from_offset, next_offset, .. })) => Ok(Some(Fetch {
                partition: self.partition.clone(),
                batches: vec![batches],
                first_offset: from_offset,
                next_offset: next_offset.min(self.next_offset),
                fetched_ms: wall_ms(),
            })),
            Err(RangeError::AnotherTopic { .. }) => {
                self.topic_is_gone = true;
                tracing::warn!(
                    partition = %self.partition,
                    "the topic of a recorded batch was deleted; what other topics gave to it is stored under its id"
                );
                Ok(None)
            }
            Err(RangeError::Client(error)) => Err(format!("{}: {error}", self.partition)),
        }
    }
}

/// Runs work on a thread where it may block.
pub(crate) async fn on_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime ends, and with it this task.
            Err(_) => std::future::pending().await,
        },
    }
}
