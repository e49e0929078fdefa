//! The offsets where partitions begin and end, asked of their leaders.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::client::backoff::Retry;
use crate::client::cluster::{Client, Purpose};
use crate::error::Error;
use crate::error_code::KafkaErrorCode;
use crate::topic_partition::TopicPartition;
use crate::wire::{ByTopic, Isolation, ListOffsetsRequest, ListedOffset, MetadataResponse, OffsetAt, OffsetQuery};

/// Results of one round of requests to the leaders.
#[derive(Default)]
struct Round {
    listed: Vec<(TopicPartition, ListedOffset)>,
    /// Partitions that have to be asked again. `error` is the last reason.
    again: Vec<TopicPartition>,
    error: Option<Error>,
}

impl Round {
    fn postpone(&mut self, partitions: Vec<TopicPartition>, error: Error) {
        self.again.extend(partitions);
        self.error = Some(error);
    }
}

impl Client {
    /// Returns the offset of one partition at `at`, or -1 if no record is so late.
    ///
    /// # Errors
    /// Fails where a broker refuses the partition, or can't be asked within the time for retries.
    pub async fn list_offset(&self, named: &TopicPartition, isolation: Isolation, at: OffsetAt) -> Result<i64, Error> {
        let listed = self.list_offsets(vec![named.clone()], isolation, at).await?.pop().map(|(_, listed)| listed);
        let code = listed.map_or(KafkaErrorCode::UNKNOWN_TOPIC_OR_PARTITION, |listed| listed.error);
        match listed {
            Some(listed) if !code.is_error() => Ok(listed.offset),
            _ => Err(Error::Refused { doing: format!("list the offsets of {named}"), code, reason: None }),
        }
    }

    /// Returns the same as [`list_offset`](Self::list_offset), but the partition's end where no record is so late.
    ///
    /// # Errors
    /// Fails where a broker refuses the partition, or can't be asked within the time for retries.
    pub async fn list_offset_or_end(
        &self,
        named: &TopicPartition,
        isolation: Isolation,
        at: OffsetAt,
    ) -> Result<i64, Error> {
        match self.list_offset(named, isolation, at).await? {
            -1 => self.list_offset(named, isolation, OffsetAt::Latest).await,
            offset => Ok(offset),
        }
    }

    /// Returns an answer for each partition, and asks again while that can help. The error of one partition,
    /// if it won't pass, is in its answer.
    ///
    /// # Errors
    /// Fails where a leader can't be asked, or answers with a passing error for longer than the time for retries.
    pub async fn list_offsets(
        &self,
        partitions: Vec<TopicPartition>,
        isolation: Isolation,
        at: OffsetAt,
    ) -> Result<Vec<(TopicPartition, ListedOffset)>, Error> {
        let mut retry = Retry::new(self.options());
        let (mut listed, mut waiting) = (Vec::new(), partitions);
        while !waiting.is_empty() {
            let mut round = self.ask_leaders(waiting, isolation, at).await?;
            listed.append(&mut round.listed);
            waiting = round.again;
            if let Some(error) = round.error {
                retry.after(error).await?;
            }
        }
        Ok(listed)
    }

    async fn ask_leaders(
        &self,
        partitions: Vec<TopicPartition>,
        isolation: Isolation,
        at: OffsetAt,
    ) -> Result<Round, Error> {
        let mut topics: Vec<Arc<str>> = partitions.iter().map(|named| named.topic.clone()).collect();
        topics.sort();
        topics.dedup();
        let metadata = self.metadata(Some(topics)).await?;
        let mut round = Round::default();
        let mut by_leader: BTreeMap<i32, Vec<TopicPartition>> = BTreeMap::new();
        for named in partitions {
            match leader_of(&metadata, &named.topic, named.partition) {
                Ok(leader_id) => by_leader.entry(leader_id).or_default().push(named),
                Err(code) if code.is_retriable() && code != KafkaErrorCode::UNKNOWN_TOPIC_OR_PARTITION => {
                    round.postpone(vec![named], refused(code));
                }
                Err(code) => {
                    let listed = without_offset(named.partition, code);
                    round.listed.push((named, listed));
                }
            }
        }
        for (leader_id, partitions) in by_leader {
            self.ask_leader(leader_id, partitions, isolation, at, &mut round).await?;
        }
        Ok(round)
    }

    async fn ask_leader(
        &self,
        leader_id: i32,
        partitions: Vec<TopicPartition>,
        isolation: Isolation,
        at: OffsetAt,
        round: &mut Round,
    ) -> Result<(), Error> {
        let query = |named: &TopicPartition| (named.topic.clone(), OffsetQuery { partition: named.partition, at });
        let request = ListOffsetsRequest { isolation, topics: ByTopic::collect(partitions.iter().map(query)) };
        let answer = match self.connection(leader_id, Purpose::Control).await {
            Ok(connection) => connection.call(&request).await,
            Err(error) => Err(error),
        };
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) if error.is_retriable() => {
                round.postpone(partitions, error);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        for named in partitions {
            let found = answer.topics.iter().filter(|each| each.topic == named.topic).flat_map(|each| &each.partitions);
            match found.copied().find(|listed| listed.partition == named.partition) {
                Some(listed) if listed.error.is_retriable() => round.postpone(vec![named], refused(listed.error)),
                Some(listed) => round.listed.push((named, listed)),
                None => round.postpone(vec![named], refused(KafkaErrorCode::UNKNOWN_TOPIC_OR_PARTITION)),
            }
        }
        Ok(())
    }
}

fn leader_of(metadata: &MetadataResponse, topic: &str, partition: i32) -> Result<i32, KafkaErrorCode> {
    let topic =
        metadata.topics.iter().find(|each| *each.name == *topic).ok_or(KafkaErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
    if topic.error.is_error() {
        return Err(topic.error);
    }
    let found = topic.partitions.iter().find(|each| each.partition == partition);
    let found = found.ok_or(KafkaErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
    match found.leader_id {
        -1 => Err(KafkaErrorCode::LEADER_NOT_AVAILABLE),
        leader_id => Ok(leader_id),
    }
}

fn refused(code: KafkaErrorCode) -> Error {
    Error::Refused { doing: "list the offsets of partitions".to_owned(), code, reason: None }
}

fn without_offset(partition: i32, error: KafkaErrorCode) -> ListedOffset {
    ListedOffset { partition, error, timestamp_ms: -1, offset: -1, leader_epoch: -1 }
}
