//! Topics made and removed, groups looked at.

use std::time::{Duration, Instant};

use super::producer::Topic;
use super::wire::{Answer, Api, Wire};
use crate::error::BenchError;

const LIST_OFFSETS: Api = Api { name: "ListOffsets", key: 2, version: 1 };
const METADATA: Api = Api { name: "Metadata", key: 3, version: 1 };
const OFFSET_FETCH: Api = Api { name: "OffsetFetch", key: 9, version: 1 };
const DESCRIBE_GROUPS: Api = Api { name: "DescribeGroups", key: 15, version: 0 };
const CREATE_TOPICS: Api = Api { name: "CreateTopics", key: 19, version: 2 };
const DELETE_TOPICS: Api = Api { name: "DeleteTopics", key: 20, version: 1 };
const TIMEOUT_MS: i32 = 30_000;
const TAKES_MESSAGES_WITHIN: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(20);

pub struct BrokerClient {
    wire: Wire,
}

impl BrokerClient {
    pub fn connect(address: &str) -> Result<Self, BenchError> {
        Ok(BrokerClient { wire: Wire::connect(address)? })
    }

    /// How many brokers know of each other: 0 in one that has only just begun.
    pub fn brokers(&mut self) -> Result<usize, BenchError> {
        let no_topics: [&str; 0] = [];
        let mut answer =
            self.wire.call(METADATA, |writer| writer.array(no_topics.iter(), |writer, topic| writer.string(topic)))?;
        let brokers = answer.array(|answer| {
            let node_id = answer.i32()?;
            let (_host, _port, _rack) = (answer.string()?, answer.i32()?, answer.string()?);
            Ok(node_id)
        })?;
        Ok(brokers.len())
    }

    pub fn create_topic(&mut self, topic: &Topic) -> Result<(), BenchError> {
        let mut answer = self.wire.call(CREATE_TOPICS, |writer| {
            writer.array([topic].iter(), |writer, topic| {
                writer.string(&topic.name);
                writer.i32(topic.partitions);
                let replicas = 1;
                writer.i16(replicas);
                writer.i32(0);
                writer.i32(0);
            });
            writer.i32(TIMEOUT_MS);
            writer.bool(false);
        })?;
        let _throttle_ms = answer.i32()?;
        let refused = answer.array(|answer| {
            let (_name, code, reason) = (answer.string()?, answer.i16()?, answer.string()?);
            Ok((code, reason))
        })?;
        match refused.into_iter().find(|(code, _)| *code != 0) {
            None => self.wait_until_it_takes_messages(topic),
            Some((code, reason)) => {
                Err(BenchError::Setup(format!("the broker did not make the topic {}: {code} {reason}", topic.name)))
            }
        }
    }

    /// The broker leads its partitions a moment after it has made them.
    fn wait_until_it_takes_messages(&mut self, topic: &Topic) -> Result<(), BenchError> {
        let until = Instant::now() + TAKES_MESSAGES_WITHIN;
        while !self.leads(topic)? {
            if Instant::now() > until {
                return Err(BenchError::Setup(format!("the topic {} has partitions without a leader", topic.name)));
            }
            std::thread::sleep(POLL);
        }
        Ok(())
    }

    fn leads(&mut self, topic: &Topic) -> Result<bool, BenchError> {
        let (not_a_replica, latest) = (-1, -1);
        let mut answer = self.wire.call(LIST_OFFSETS, |writer| {
            writer.i32(not_a_replica);
            writer.array([topic].iter(), |writer, topic| {
                writer.string(&topic.name);
                writer.array(0..topic.partitions as usize, |writer, partition| {
                    writer.i32(partition as i32);
                    writer.i64(latest);
                });
            });
        })?;
        let codes = answer.array(|answer| {
            let _topic = answer.string()?;
            answer.array(|answer| {
                let (_partition, code) = (answer.i32()?, answer.i16()?);
                let _time_and_offset = (answer.i64()?, answer.i64()?);
                Ok(code)
            })
        })?;
        Ok(codes.iter().flatten().all(|code| *code == 0))
    }

    pub fn delete_topic(&mut self, name: &str) -> Result<(), BenchError> {
        let mut answer = self.wire.call(DELETE_TOPICS, |writer| {
            writer.array([name].iter(), |writer, name| writer.string(name));
            writer.i32(TIMEOUT_MS);
        })?;
        let _throttle_ms = answer.i32()?;
        let codes = answer.array(|answer| {
            let _name = answer.string()?;
            answer.i16()
        })?;
        match codes.iter().find(|code| **code != 0) {
            None => Ok(()),
            Some(code) => Err(BenchError::Setup(format!("the broker did not delete the topic {name}: {code}"))),
        }
    }

    /// How many messages of the topic the group has committed. A partition of which nothing is committed counts as
    /// none.
    pub fn committed(&mut self, group: &str, topic: &Topic) -> Result<u64, BenchError> {
        let mut answer = self.wire.call(OFFSET_FETCH, |writer| {
            writer.string(group);
            writer.array([topic].iter(), |writer, topic| {
                writer.string(&topic.name);
                writer.array(0..topic.partitions as usize, |writer, partition| writer.i32(partition as i32));
            });
        })?;
        let topics = answer.array(|answer| {
            let _topic = answer.string()?;
            answer.array(|answer| {
                let (_partition, offset) = (answer.i32()?, answer.i64()?);
                let (_metadata, _code) = (answer.string()?, answer.i16()?);
                Ok(u64::try_from(offset).unwrap_or(0))
            })
        })?;
        Ok(topics.into_iter().flatten().sum())
    }

    /// The group has its members, and each of them knows its partitions.
    pub fn is_stable(&mut self, group: &str) -> Result<bool, BenchError> {
        let mut answer = self.wire.call(DESCRIBE_GROUPS, |writer| {
            writer.array([group].iter(), |writer, group| writer.string(group));
        })?;
        let groups = answer.array(|answer: &mut Answer| {
            let (_code, _group, state) = (answer.i16()?, answer.string()?, answer.string()?);
            let (_kind, _protocol) = (answer.string()?, answer.string()?);
            let members = answer.array(|answer| {
                let _names = (answer.string()?, answer.string()?, answer.string()?);
                let _metadata = answer.bytes()?;
                let _assignment = answer.bytes()?;
                Ok(())
            })?;
            Ok(state == "Stable" && !members.is_empty())
        })?;
        Ok(groups.into_iter().all(|stable| stable))
    }
}
