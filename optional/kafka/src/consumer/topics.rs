//! The topics of interest that exist, with their partitions and leaders.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::consumer::options::Topics;
use crate::consumer::pattern::TopicPattern;
use crate::consumer::shared::Leader;
use crate::error::Error;
use crate::error_code::KafkaErrorCode;
use crate::group::PartitionCounts;
use crate::topic_partition::TopicPartition;
use crate::wire::{MetadataResponse, TopicId, TopicMetadata};

/// Time after which an unknown topic counts as gone. A broker that has just started may not know of a topic yet.
const GONE_AFTER: Duration = Duration::from_secs(1);

/// The topics that are subscribed to.
#[derive(Debug)]
pub(super) enum Subscribed {
    Named(BTreeSet<Arc<str>>),
    Pattern(TopicPattern),
}

impl Subscribed {
    pub fn new(topics: &Topics) -> Result<Self, Error> {
        match topics {
            Topics::Named(names) if names.iter().all(|name| name.is_empty()) => {
                Err(Error::Options("No topic is named".to_owned()))
            }
            Topics::Named(names) => Ok(Self::Named(names.iter().map(|name| Arc::from(name.as_str())).collect())),
            Topics::Pattern(pattern) => TopicPattern::new(pattern).map(Self::Pattern),
        }
    }
}

#[derive(Debug)]
pub(super) struct Topic {
    pub id: TopicId,
    /// Leader of each partition, or `None` while the partition has no leader.
    pub partitions: BTreeMap<i32, Option<Leader>>,
    missing_since: Option<Instant>,
}

impl Topic {
    /// Keeps leaders that are newer than those of this answer: a broker that has lost contact with the others
    /// still names earlier leaders.
    fn keep_later_leaders(&mut self, before: &Topic) {
        if self.id != before.id || !self.id.is_known() {
            return;
        }
        for (number, leader) in &mut self.partitions {
            let Some(Some(known)) = before.partitions.get(number) else { continue };
            if leader.is_some_and(|leader| leader.epoch < known.epoch) {
                *leader = Some(*known);
            }
        }
    }
}

#[derive(Debug)]
pub(super) struct TopicTable {
    pub subscribed: Subscribed,
    known: BTreeMap<Arc<str>, Topic>,
}

impl TopicTable {
    pub fn new(subscribed: Subscribed) -> Self {
        Self { subscribed, known: BTreeMap::new() }
    }

    /// Returns the topics that metadata is asked for, together with `besides`: `None`, which means all
    /// topics, for a pattern.
    pub fn to_ask(&self, besides: impl IntoIterator<Item = Arc<str>>) -> Option<Vec<Arc<str>>> {
        match &self.subscribed {
            Subscribed::Named(names) => {
                let all: BTreeSet<Arc<str>> = names.iter().cloned().chain(besides).collect();
                Some(all.into_iter().collect())
            }
            Subscribed::Pattern(_) => None,
        }
    }

    pub fn topic(&self, name: &str) -> Option<&Topic> {
        self.known.get(name)
    }

    pub fn leader(&self, partition: &TopicPartition) -> Option<Leader> {
        *self.known.get(&partition.topic)?.partitions.get(&partition.partition)?
    }

    /// Learns from an answer. `asked` names the topics that were asked for; `None` means all topics.
    pub fn learn(&mut self, asked: Option<&[Arc<str>]>, metadata: &MetadataResponse, now: Instant) {
        let mut seen = BTreeSet::new();
        for topic in metadata.topics.iter().filter(|topic| topic.error == KafkaErrorCode::NONE && !topic.is_internal) {
            seen.insert(topic.name.clone());
            let mut found = known(topic);
            if let Some(before) = self.known.get(&topic.name) {
                found.keep_later_leaders(before);
            }
            self.known.insert(topic.name.clone(), found);
        }
        let was_asked = |name: &Arc<str>| asked.is_none_or(|asked| asked.contains(name));
        self.known.retain(|name, topic| {
            if seen.contains(name) || !was_asked(name) {
                return true;
            }
            let since = *topic.missing_since.get_or_insert(now);
            now.duration_since(since) < GONE_AFTER
        });
    }

    /// Returns the topics that the member subscribes to.
    pub fn names(&self) -> Vec<Arc<str>> {
        match &self.subscribed {
            Subscribed::Named(names) => names.iter().cloned().collect(),
            Subscribed::Pattern(pattern) => self.known.keys().filter(|name| pattern.matches(name)).cloned().collect(),
        }
    }

    /// Returns the topics that are named in the subscription but do not exist.
    pub fn missing(&self) -> Vec<Arc<str>> {
        self.names().into_iter().filter(|name| !self.known.contains_key(name)).collect()
    }

    /// Returns the number of partitions of each topic, which is 0 for a topic that does not exist.
    pub fn counts(&self, names: impl IntoIterator<Item = Arc<str>>) -> PartitionCounts {
        let count = |name: Arc<str>| {
            let count = self.known.get(&name).map_or(0, |topic| topic.partitions.len());
            (name, count)
        };
        names.into_iter().map(count).collect()
    }
}

fn known(topic: &TopicMetadata) -> Topic {
    let leader = |partition: &crate::wire::PartitionMetadata| {
        let is_there = partition.leader_id >= 0;
        is_there.then_some(Leader { node_id: partition.leader_id, epoch: partition.leader_epoch })
    };
    let partitions = topic.partitions.iter().map(|each| (each.partition, leader(each))).collect();
    Topic { id: topic.id, partitions, missing_since: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::PartitionMetadata;

    fn metadata(topics: &[(&str, KafkaErrorCode)]) -> MetadataResponse {
        let topic = |(name, error): &(&str, KafkaErrorCode)| TopicMetadata {
            error: *error,
            name: Arc::from(*name),
            id: TopicId::default(),
            is_internal: name.starts_with("__"),
            partitions: Vec::new(),
        };
        MetadataResponse { brokers: Vec::new(), controller_id: 1, topics: topics.iter().map(topic).collect() }
    }

    fn names(table: &TopicTable) -> Vec<String> {
        table.names().iter().map(|name| name.to_string()).collect()
    }

    #[test]
    fn what_is_kafkas_own_is_left_out_of_a_pattern() {
        let pattern = Subscribed::new(&Topics::Pattern("a|events-.*|__.*".into())).unwrap();
        let mut table = TopicTable::new(pattern);
        let all = ["a", "ab", "events-1", "my-events-1", "__consumer_offsets"].map(|name| (name, KafkaErrorCode::NONE));
        table.learn(None, &metadata(&all), Instant::now());
        assert_eq!(names(&table), ["a", "events-1"]);
        assert!(Subscribed::new(&Topics::Pattern("(".into())).is_err());
        assert!(Subscribed::new(&Topics::Named(Vec::new())).is_err());
    }

    #[test]
    fn a_topic_is_gone_when_nobody_has_known_it_for_a_while() {
        let mut table = TopicTable::new(Subscribed::new(&Topics::Pattern(".*".into())).unwrap());
        let (now, asked) = (Instant::now(), [Arc::from("b")]);
        let unknown = metadata(&[("b", KafkaErrorCode::UNKNOWN_TOPIC_OR_PARTITION)]);
        let both = metadata(&[("a", KafkaErrorCode::NONE), ("b", KafkaErrorCode::NONE)]);
        table.learn(None, &both, now);
        table.learn(Some(&asked), &unknown, now);
        table.learn(None, &both, now);
        table.learn(Some(&asked), &unknown, now + GONE_AFTER);
        assert_eq!(names(&table), ["a", "b"]);
        table.learn(Some(&asked), &unknown, now + 2 * GONE_AFTER);
        assert_eq!(names(&table), ["a"]);
    }

    /// Returns the leader of the one partition of a topic after these answers, which come one after another.
    /// Each has the topic's id, the leader and its epoch.
    fn leader_after(answers: &[(u8, i32, i32)]) -> Option<i32> {
        let mut table = TopicTable::new(Subscribed::new(&Topics::Named(vec!["a".to_owned()])).unwrap());
        for (id, leader_id, leader_epoch) in answers.iter().copied() {
            let mut said = metadata(&[("a", KafkaErrorCode::NONE)]);
            said.topics[0].id = TopicId([id; 16]);
            let partition = PartitionMetadata { error: KafkaErrorCode::NONE, partition: 0, leader_id, leader_epoch };
            said.topics[0].partitions.push(partition);
            table.learn(None, &said, Instant::now());
        }
        table.leader(&TopicPartition::new("a", 0)).map(|leader| leader.node_id)
    }

    #[test]
    fn a_broker_that_was_left_behind_does_not_bring_back_the_leader_of_before() {
        assert_eq!(leader_after(&[(7, 1, 5), (7, 2, 6)]), Some(2));
        assert_eq!(leader_after(&[(7, 1, 5), (7, 2, 6), (7, 1, 5)]), Some(2));
        assert_eq!(leader_after(&[(7, 1, 5), (7, 2, 5)]), Some(2), "the same epoch is as good");
        assert_eq!(leader_after(&[(7, 1, 5), (7, -1, 6)]), None);
        assert_eq!(leader_after(&[(7, 1, 5), (8, 2, 0)]), Some(2), "another topic begins anew");
        assert_eq!(leader_after(&[(0, 1, 5), (0, 2, 0)]), Some(2), "which can't be told where there are no ids");
    }
}
