//! A sample of the newest records of a topic.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::batch::{BatchError, Decompressor, Record};
use crate::client::Client;
use crate::error::Error;
use crate::error_code::KafkaErrorCode;
use crate::reading::range::{RangeError, ReadOptions};
use crate::topic_partition::TopicPartition;
use crate::wire::{Isolation, ListedOffset, OffsetAt, TopicId};

/// Number of partitions that are sampled. More are not needed to see what a topic contains.
const MAX_SAMPLED_PARTITIONS: usize = 16;
/// Number of attempts, each further back, where a range held fewer records than it has offsets.
const MAX_STEPS_BACK: usize = 4;
const MAX_KEPT_BYTES: usize = 32 << 20;
const MAX_BATCH_BYTES: usize = 128 << 20;

/// A view of a topic at present.
#[derive(Debug, Clone)]
pub struct Sample {
    pub topic_id: TopicId,
    pub partitions: Vec<SampledPartition>,
    /// Records of all partitions, the oldest first.
    pub records: Vec<SampledRecord>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampledPartition {
    pub partition: i32,
    pub earliest: i64,
    /// Offset of the next record, or of the first open transaction, if there is one.
    pub latest: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampledRecord {
    pub partition: i32,
    pub offset: i64,
    pub timestamp_ms: i64,
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
    pub headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

impl SampledRecord {
    fn of(partition: i32, record: &Record<'_>) -> Self {
        let headers = record.headers.iter().map(|header| (header.key.to_vec(), header.value.map(<[u8]>::to_vec)));
        Self {
            partition,
            offset: record.offset,
            timestamp_ms: record.timestamp_ms,
            key: record.key.map(<[u8]>::to_vec),
            value: record.value.map(<[u8]>::to_vec),
            headers: headers.collect(),
        }
    }

    fn bytes(&self) -> usize {
        let length = |bytes: &Option<Vec<u8>>| bytes.as_ref().map_or(0, Vec::len);
        length(&self.key) + length(&self.value) + self.headers.iter().map(|(key, _)| key.len()).sum::<usize>()
    }
}

impl Client {
    /// Returns at most `count` of the newest committed records, from a large topic's first partitions that
    /// have any. Joins no group and commits nothing.
    ///
    /// # Errors
    /// Fails where the topic does not exist, a record can't be read, or a broker refuses or can't be asked
    /// within the time for retries.
    pub async fn sample(&self, topic: Arc<str>, count: usize) -> Result<Sample, Error> {
        let metadata = self.metadata(Some(vec![topic.clone()])).await?;
        let found = metadata.topics.into_iter().find(|each| each.name == topic);
        let code = found.as_ref().map_or(KafkaErrorCode::UNKNOWN_TOPIC_OR_PARTITION, |found| found.error);
        let Some(found) = found.filter(|_| !code.is_error()) else {
            return Err(Error::Refused { doing: format!("look at the topic '{topic}'"), code, reason: None });
        };
        let numbers: Vec<i32> = found.partitions.iter().map(|partition| partition.partition).collect();
        let mut partitions = self.ends_of(&topic, &numbers).await?;
        partitions.sort_by_key(|sampled| sampled.partition);
        let mut records = Vec::new();
        let filled = partitions.iter().filter(|sampled| sampled.latest > sampled.earliest);
        for sampled in filled.take(MAX_SAMPLED_PARTITIONS) {
            records.extend(self.newest(&topic, found.id, sampled, count).await?);
        }
        records.sort_by_key(|record| (record.timestamp_ms, record.partition, record.offset));
        records.drain(..records.len().saturating_sub(count));
        Ok(Sample { topic_id: found.id, partitions, records })
    }

    async fn ends_of(&self, topic: &Arc<str>, numbers: &[i32]) -> Result<Vec<SampledPartition>, Error> {
        let mut ends: [Vec<ListedOffset>; 2] = Default::default();
        for (ends, at) in ends.iter_mut().zip([OffsetAt::Earliest, OffsetAt::Latest]) {
            let partitions = numbers.iter().map(|partition| TopicPartition::new(topic.clone(), *partition)).collect();
            let listed = self.list_offsets(partitions, Isolation::ReadCommitted, at).await?;
            *ends = listed.into_iter().map(|(_, listed)| listed).collect();
            if let Some(wrong) = ends.iter().find(|listed| listed.error.is_error()) {
                let doing = format!("list the offsets of {topic}:{}", wrong.partition);
                return Err(Error::Refused { doing, code: wrong.error, reason: None });
            }
        }
        let [earliest, latest] = ends;
        let both = earliest.iter().filter_map(|first| {
            let last = latest.iter().find(|last| last.partition == first.partition)?;
            Some(SampledPartition { partition: first.partition, earliest: first.offset, latest: last.offset })
        });
        Ok(both.collect())
    }

    async fn newest(
        &self,
        topic: &Arc<str>,
        topic_id: TopicId,
        sampled: &SampledPartition,
        count: usize,
    ) -> Result<VecDeque<SampledRecord>, Error> {
        let mut offsets = i64::try_from(count).unwrap_or(i64::MAX);
        for step in 1.. {
            let from = sampled.latest.saturating_sub(offsets).max(sampled.earliest);
            let records = self.last_of(topic, topic_id, sampled.partition, from..=sampled.latest - 1, count).await?;
            if records.len() >= count || from == sampled.earliest || step == MAX_STEPS_BACK {
                return Ok(records);
            }
            // Markers of transactions, and what compaction has removed, have offsets too.
            offsets = offsets.saturating_mul(8);
        }
        Ok(VecDeque::new())
    }

    async fn last_of(
        &self,
        topic: &Arc<str>,
        topic_id: TopicId,
        partition: i32,
        offsets: std::ops::RangeInclusive<i64>,
        count: usize,
    ) -> Result<VecDeque<SampledRecord>, Error> {
        let named = TopicPartition::new(topic.clone(), partition);
        // A look at some messages is not to wait for those that are not there.
        let options = ReadOptions { gone_after_ms: self.options().retry_for_ms, ..ReadOptions::default() };
        let mut reader = self.read_range(named.clone(), topic_id, offsets.clone(), options);
        let mut decompressor = Decompressor::new(MAX_BATCH_BYTES);
        let (mut records, mut bytes) = (VecDeque::new(), 0);
        while let Some(part) = reader.next().await.map_err(|error| client_error(&named, error))? {
            for batch in part.batches {
                let batch = batch.map_err(|error| unreadable(&named, &error))?;
                for record in decompressor.records(&batch).map_err(|error| unreadable(&named, &error))? {
                    let record = record.map_err(|error| unreadable(&named, &error))?;
                    if record.offset < part.from_offset || !offsets.contains(&record.offset) {
                        continue;
                    }
                    let record = SampledRecord::of(partition, &record);
                    bytes += record.bytes();
                    records.push_back(record);
                    while records.len() > count || (bytes > MAX_KEPT_BYTES && records.len() > 1) {
                        bytes -= records.pop_front().map_or(0, |record| record.bytes());
                    }
                }
            }
        }
        Ok(records)
    }
}

fn client_error(named: &TopicPartition, error: RangeError) -> Error {
    match error {
        RangeError::Client(error) => error,
        RangeError::AnotherTopic { .. } => {
            let code = KafkaErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
            Error::Refused { doing: format!("read {named}"), code, reason: Some(error.to_string()) }
        }
    }
}

fn unreadable(named: &TopicPartition, error: &BatchError) -> Error {
    let code = KafkaErrorCode::CORRUPT_MESSAGE;
    Error::Refused { doing: format!("read {named}"), code, reason: Some(error.to_string()) }
}
