//! The check that a leader's log has the records that were read of a partition before (KIP-320).
//!
//! A broker that lacks the last messages becomes the leader where a topic allows that
//! (`unclean.leader.election.enable`), or comes back without what it had not yet synced. Other messages get
//! the same offsets then: a reader that goes on at its old offset misses those before it. Each batch has the
//! epoch of the leader that took it, so the present leader can be asked where the records up to that epoch
//! end in its log.

use std::time::Instant;

use crate::consumer::fetcher::{Fetcher, Report, UnderWay, AFTER_ERROR};
use crate::consumer::shared::{Shared, State};
use crate::error::Error;
use crate::error_code::KafkaErrorCode;
use crate::topic_partition::TopicPartition;
use crate::wire::{ByTopic, EpochEnd, EpochQuery, OffsetForLeaderEpochRequest};

/// The point where a leader's log has parted from the records that were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Divergence {
    pub offset: i64,
    /// Epoch of that leader.
    pub leader_epoch: i32,
}

/// A request to the leader that is under way.
pub(super) struct Checking<'s> {
    under_way: UnderWay<'s>,
    request: OffsetForLeaderEpochRequest,
}

impl<'s> Checking<'s> {
    /// Prepares the question for each partition, with the epoch of the record before its position.
    pub fn begin(shared: &'s Shared, state: &mut State, unchecked: Vec<(TopicPartition, i32)>) -> Checking<'s> {
        let mut under_way = UnderWay::begin(shared, state);
        let mut queries = Vec::with_capacity(unchecked.len());
        for (named, leader_epoch) in unchecked {
            let Some(asked) = under_way.add(state, named) else { continue };
            let partition = asked.partition.partition;
            let query = EpochQuery { partition, current_leader_epoch: asked.leader_epoch, leader_epoch };
            queries.push((asked.partition.topic.clone(), query));
        }
        Checking { under_way, request: OffsetForLeaderEpochRequest { topics: ByTopic::collect(queries) } }
    }
}

impl Fetcher {
    pub(super) async fn check(&self, checking: Checking<'_>) -> Result<(), Error> {
        let answer = match self.connection().await?.call(&checking.request).await {
            Ok(answer) => Some(answer.topics),
            // Nobody can say it: what there is is read, as it is.
            Err(Error::Unsupported { .. }) => None,
            Err(error) => return Err(error),
        };
        let mut reports = Vec::new();
        let mut state = self.shared.state();
        for asked in &checking.under_way.asked {
            let claim = asked.claim();
            let number = checking.under_way.number;
            let Some(partition) = state.of(&claim).filter(|partition| partition.asked_in == Some(number)) else {
                continue;
            };
            let said = answer.as_deref().map(|topics| end_of(topics, &asked.partition));
            match said {
                Some(Err(code)) if code.is_retriable() => {
                    partition.not_before = Some(Instant::now() + AFTER_ERROR);
                    reports.push(match code.means_stale_metadata() {
                        true => Report::StaleMetadata,
                        false => Report::Trouble(format!("Kafka: check the log of {}: {code}", asked.partition)),
                    });
                }
                Some(Ok(end_offset)) if (0..asked.offset).contains(&end_offset) => {
                    partition.position = None;
                    let divergence = Divergence { offset: end_offset, leader_epoch: asked.leader_epoch };
                    let (start, offset) = (asked.start, asked.offset);
                    reports.push(Report::Diverged { claim, start, offset, divergence });
                }
                None | Some(Ok(_) | Err(_)) => partition.checked_in = Some(asked.leader_epoch),
            }
        }
        drop(state);
        drop(checking);
        for report in reports {
            let _ = self.reports.send(report);
        }
        Ok(())
    }
}

/// Returns the end of the epoch in the leader's log, or -1 where the leader can't say it.
fn end_of(topics: &[ByTopic<EpochEnd>], named: &TopicPartition) -> Result<i64, KafkaErrorCode> {
    let ends = topics.iter().filter(|topic| topic.topic == named.topic).flat_map(|topic| &topic.partitions);
    match ends.copied().find(|end| end.partition == named.partition) {
        Some(end) if end.error.is_error() => Err(end.error),
        Some(end) => Ok(end.end_offset),
        None => Err(KafkaErrorCode::UNKNOWN_TOPIC_OR_PARTITION),
    }
}
