//! A range of a partition's offsets, whoever owns the partition.

use std::ops::RangeInclusive;

use crate::batch::VisibleBatches;
use crate::client::Client;
use crate::error::Error;
use crate::topic_partition::TopicPartition;
use crate::wire::{Isolation, TopicId};

#[derive(Debug, Clone, Copy)]
pub struct ReadOptions {
    pub isolation: Isolation,
    /// Asked for at once; a batch that is larger comes all the same.
    pub max_bytes: usize,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { isolation: Isolation::ReadCommitted, max_bytes: 4 << 20 }
    }
}

#[derive(Debug, Clone)]
pub enum RangeError {
    /// The topic was deleted, or made anew: what was meant is gone.
    AnotherTopic {
        found: Option<TopicId>,
    },
    Client(Error),
}

/// Some of the range's records, next to those before.
#[derive(Debug, Clone)]
pub struct RangePart {
    /// Records before `from_offset`, and behind the range's end, are to be left out.
    pub batches: VisibleBatches,
    pub from_offset: i64,
    pub next_offset: i64,
    pub high_watermark: i64,
}

#[derive(Debug)]
pub struct RangeReader {
    client: Client,
    partition: TopicPartition,
    topic_id: TopicId,
    options: ReadOptions,
    position: i64,
    last: i64,
    gaps: Vec<RangeInclusive<i64>>,
}

impl Client {
    /// `topic_id` is the one of the topic that is meant; unknown, any topic of the name is.
    pub fn read_range(
        &self,
        partition: TopicPartition,
        topic_id: TopicId,
        offsets: RangeInclusive<i64>,
        options: ReadOptions,
    ) -> RangeReader {
        let (position, last) = offsets.into_inner();
        RangeReader { client: self.clone(), partition, topic_id, options, position, last, gaps: Vec::new() }
    }
}

impl RangeReader {
    /// Nothing at the end of the range. Asked again while that can help; after an error it can be called again.
    pub async fn next(&mut self) -> Result<Option<RangePart>, RangeError> {
        let _ = (&self.client, &self.partition, self.topic_id, self.options, self.position, self.last);
        Ok(None)
    }

    /// Offsets of the range that are no longer in the log: expired, or lost with a leader.
    pub fn gaps(&self) -> &[RangeInclusive<i64>] {
        &self.gaps
    }
}
