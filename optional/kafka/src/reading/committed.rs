//! The offsets that a group has committed, asked of its coordinator.

use std::collections::HashMap;
use std::sync::Arc;

use crate::client::{Client, Purpose, Retry};
use crate::consumer::Committed;
use crate::error::Error;
use crate::error_code::KafkaErrorCode;
use crate::topic_partition::TopicPartition;
use crate::wire::{ByTopic, FetchedOffset, OffsetFetchRequest, OffsetFetchResponse};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommittedOffset {
    pub partition: TopicPartition,
    /// The committed offset, or `None` if the group has committed nothing of this partition.
    pub committed: Option<Committed>,
}

impl Client {
    /// Returns the group's offsets in the order of the partitions, which may name one twice. Asks again while
    /// that can help. The caller need not be a member of the group.
    ///
    /// # Errors
    /// Fails where the coordinator can't be asked within the time for retries, refuses, or leaves out a partition.
    pub async fn committed(&self, group: &str, partitions: &[TopicPartition]) -> Result<Vec<CommittedOffset>, Error> {
        let named = partitions.iter().map(|each| (each.topic.clone(), each.partition));
        let request = OffsetFetchRequest { group: group.to_owned(), topics: Some(ByTopic::collect(named)) };
        let mut retry = Retry::new(self.options());
        loop {
            match self.ask_for_committed(&request).await {
                Ok(answer) => return in_order(answer, partitions, group),
                Err(error) => retry.after(error).await?,
            }
        }
    }

    async fn ask_for_committed(&self, request: &OffsetFetchRequest) -> Result<OffsetFetchResponse, Error> {
        let coordinator = self.coordinator(&request.group).await?;
        let answer = self.connection(coordinator, Purpose::Commit).await?.call(request).await?;
        let wrong = answer.topics.iter().flat_map(|topic| &topic.partitions).map(|partition| partition.error);
        match std::iter::once(answer.error).chain(wrong).find(KafkaErrorCode::is_error) {
            Some(code) => Err(refused(&request.group, code)),
            None => Ok(answer),
        }
    }
}

fn in_order(
    answer: OffsetFetchResponse,
    partitions: &[TopicPartition],
    group: &str,
) -> Result<Vec<CommittedOffset>, Error> {
    let mut found: HashMap<(Arc<str>, i32), FetchedOffset> = HashMap::new();
    for ByTopic { topic, partitions } in answer.topics {
        found.extend(partitions.into_iter().map(|offset| ((topic.clone(), offset.partition), offset)));
    }
    let find = |partition: &TopicPartition| {
        let offset = found.get(&(partition.topic.clone(), partition.partition)).cloned();
        // A partition without an answer is not one without an offset: to begin anew would be wrong.
        let offset = offset.ok_or_else(|| refused(group, KafkaErrorCode::UNKNOWN_TOPIC_OR_PARTITION))?;
        let FetchedOffset { offset, leader_epoch, metadata, .. } = offset;
        let committed = (offset >= 0).then_some(Committed { offset, leader_epoch, metadata });
        Ok(CommittedOffset { partition: partition.clone(), committed })
    };
    partitions.iter().map(find).collect()
}

fn refused(group: &str, code: KafkaErrorCode) -> Error {
    Error::Refused { doing: format!("ask for the offsets of the group '{group}'"), code, reason: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(partitions: &[i32]) -> OffsetFetchResponse {
        let of = |&partition: &i32| FetchedOffset {
            partition,
            offset: if partition == 0 { -1 } else { i64::from(partition) * 10 },
            leader_epoch: 3,
            metadata: String::new(),
            error: KafkaErrorCode::NONE,
        };
        let topics = vec![ByTopic { topic: "events".into(), partitions: partitions.iter().map(of).collect() }];
        OffsetFetchResponse { error: KafkaErrorCode::NONE, topics }
    }

    fn offsets(answered: &[i32], asked: &[i32]) -> Result<Vec<Option<i64>>, Error> {
        let asked: Vec<TopicPartition> =
            asked.iter().map(|&partition| TopicPartition { topic: "events".into(), partition }).collect();
        let found = in_order(answer(answered), &asked, "windrow")?;
        assert!(found.iter().map(|each| &each.partition).eq(&asked));
        Ok(found.into_iter().map(|each| each.committed.map(|committed| committed.offset)).collect())
    }

    #[test]
    fn answers_are_in_the_order_of_the_question() {
        assert_eq!(offsets(&[0, 1, 2], &[2, 0, 1]).unwrap(), [Some(20), None, Some(10)]);
    }

    #[test]
    fn a_partition_may_be_named_twice() {
        assert_eq!(offsets(&[1, 2], &[2, 1, 2]).unwrap(), [Some(20), Some(10), Some(20)]);
        assert_eq!(offsets(&[1, 1], &[1, 1]).unwrap(), [Some(10), Some(10)]);
    }

    #[test]
    fn a_partition_without_an_answer_is_not_one_without_an_offset() {
        assert!(offsets(&[1], &[1, 2]).unwrap_err().to_string().contains("UNKNOWN_TOPIC_OR_PARTITION"));
    }
}
