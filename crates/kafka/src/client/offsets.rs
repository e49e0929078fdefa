//! Where partitions begin and end, asked of their leaders.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::client::backoff::Retry;
use crate::client::cluster::{Client, Purpose};
use crate::error::Error;
use crate::error_code::ErrorCode;
use crate::wire::{ByTopic, Isolation, ListOffsetsRequest, ListedOffset, MetadataResponse, OffsetQuery};

type Queries = Vec<(Arc<str>, OffsetQuery)>;

/// What one round of questions has brought.
#[derive(Default)]
struct Round {
    listed: Vec<(Arc<str>, ListedOffset)>,
    /// To be asked again, and the last reason why.
    again: Queries,
    error: Option<Error>,
}

impl Round {
    fn postpone(&mut self, queries: Queries, error: Error) {
        self.again.extend(queries);
        self.error = Some(error);
    }
}

impl Client {
    /// An answer to each query, asked again while that can help. What is wrong with a partition for good is said there.
    pub async fn list_offsets(
        &self,
        isolation: Isolation,
        queries: Vec<(Arc<str>, OffsetQuery)>,
    ) -> Result<Vec<ByTopic<ListedOffset>>, Error> {
        let mut retry = Retry::new(self.options());
        let (mut listed, mut waiting) = (Vec::new(), queries);
        while !waiting.is_empty() {
            let mut round = self.ask_leaders(isolation, waiting).await?;
            listed.append(&mut round.listed);
            waiting = round.again;
            if let Some(error) = round.error {
                retry.after(error).await?;
            }
        }
        Ok(ByTopic::collect(listed))
    }

    async fn ask_leaders(&self, isolation: Isolation, queries: Queries) -> Result<Round, Error> {
        let mut topics: Vec<Arc<str>> = queries.iter().map(|(topic, _)| topic.clone()).collect();
        topics.sort();
        topics.dedup();
        let metadata = self.metadata(Some(topics)).await?;
        let mut round = Round::default();
        let mut by_leader: BTreeMap<i32, Queries> = BTreeMap::new();
        for (topic, query) in queries {
            match leader_of(&metadata, &topic, query.partition) {
                Ok(leader_id) => by_leader.entry(leader_id).or_default().push((topic, query)),
                Err(code) if code.is_retriable() && code != ErrorCode::UNKNOWN_TOPIC_OR_PARTITION => {
                    round.postpone(vec![(topic, query)], refused(code));
                }
                Err(code) => round.listed.push((topic, without_offset(query.partition, code))),
            }
        }
        for (leader_id, queries) in by_leader {
            self.ask_leader(leader_id, isolation, queries, &mut round).await?;
        }
        Ok(round)
    }

    async fn ask_leader(
        &self,
        leader_id: i32,
        isolation: Isolation,
        queries: Queries,
        round: &mut Round,
    ) -> Result<(), Error> {
        let request = ListOffsetsRequest { isolation, topics: ByTopic::collect(queries.iter().cloned()) };
        let answer = match self.connection(leader_id, Purpose::Control).await {
            Ok(connection) => connection.call(&request).await,
            Err(error) => Err(error),
        };
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) if error.is_retriable() => {
                round.postpone(queries, error);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        for (topic, query) in queries {
            let found = answer.topics.iter().filter(|each| each.topic == topic).flat_map(|each| &each.partitions);
            match found.copied().find(|listed| listed.partition == query.partition) {
                Some(listed) if listed.error.is_retriable() => {
                    round.postpone(vec![(topic, query)], refused(listed.error))
                }
                Some(listed) => round.listed.push((topic, listed)),
                None => round.postpone(vec![(topic, query)], refused(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)),
            }
        }
        Ok(())
    }
}

fn leader_of(metadata: &MetadataResponse, topic: &str, partition: i32) -> Result<i32, ErrorCode> {
    let topic =
        metadata.topics.iter().find(|each| *each.name == *topic).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
    if topic.error.is_error() {
        return Err(topic.error);
    }
    let found = topic.partitions.iter().find(|each| each.partition == partition);
    let found = found.ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
    match found.leader_id {
        -1 => Err(ErrorCode::LEADER_NOT_AVAILABLE),
        leader_id => Ok(leader_id),
    }
}

fn refused(code: ErrorCode) -> Error {
    Error::Refused { doing: "list the offsets of partitions".to_owned(), code, reason: None }
}

fn without_offset(partition: i32, error: ErrorCode) -> ListedOffset {
    ListedOffset { partition, error, timestamp_ms: -1, offset: -1, leader_epoch: -1 }
}
