//! The bytes that members of a consumer group send each other through the broker, which passes them on unread.
//!
//! A *subscription* (member to leader): version, topics, user data; from version 1 on the partitions that the
//! member still has, from 2 on the generation that gave them, from 3 on its rack. An *assignment* (leader to
//! member): version, partitions, user data. Both are in the classic encoding, and a reader ignores fields
//! that a later version has added.

use std::sync::Arc;

use bytes::Bytes;

use crate::topic_partition::TopicPartition;
use crate::wire::{ByTopic, Malformed, Read, Reader, Writer};

const SUBSCRIPTION_VERSION: i16 = 2;
const ASSIGNMENT_VERSION: i16 = 1;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Subscription {
    pub topics: Vec<Arc<str>>,
    pub owned: Vec<TopicPartition>,
    /// The generation that gave the owned partitions, or -1 if it isn't known.
    pub generation: i32,
}

impl Subscription {
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::new(false);
        writer.i16(SUBSCRIPTION_VERSION);
        writer.array(&self.topics, |writer, topic| writer.string(topic));
        write_user_data(&mut writer);
        write_partitions(&mut writer, &self.owned);
        writer.i32(self.generation);
        writer.into_bytes()
    }

    pub fn decode(bytes: &[u8]) -> Read<Self> {
        let bytes = Bytes::copy_from_slice(bytes);
        let mut reader = Reader::new(&bytes, false);
        let version = read_version(&mut reader)?;
        let topics = reader.array(|reader| Ok(Arc::from(reader.string()?)))?;
        let _user_data = reader.shared_bytes()?;
        let owned = if version >= 1 { read_partitions(&mut reader)? } else { Vec::new() };
        let generation = if version >= 2 { reader.i32()? } else { -1 };
        Ok(Self { topics, owned, generation })
    }
}

pub fn encode_assignment(partitions: &[TopicPartition]) -> Vec<u8> {
    let mut writer = Writer::new(false);
    writer.i16(ASSIGNMENT_VERSION);
    write_partitions(&mut writer, partitions);
    write_user_data(&mut writer);
    writer.into_bytes()
}

/// Reads the partitions of an assignment. There are none in an empty text, which the broker gives to a member
/// that its leader forgot.
pub fn decode_assignment(bytes: &[u8]) -> Read<Vec<TopicPartition>> {
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    let bytes = Bytes::copy_from_slice(bytes);
    let mut reader = Reader::new(&bytes, false);
    read_version(&mut reader)?;
    let partitions = read_partitions(&mut reader)?;
    let _user_data = reader.shared_bytes()?;
    Ok(partitions)
}

fn read_version(reader: &mut Reader<'_>) -> Read<i16> {
    match reader.i16()? {
        version @ 0.. => Ok(version),
        _ => Err(Malformed("a version is negative")),
    }
}

fn write_user_data(writer: &mut Writer) {
    writer.bytes(&[]);
}

fn write_partitions(writer: &mut Writer, partitions: &[TopicPartition]) {
    let topics = ByTopic::collect(partitions.iter().map(|each| (each.topic.clone(), each.partition)));
    ByTopic::encode_all(&topics, writer, |writer, partition| writer.i32(*partition));
}

fn read_partitions(reader: &mut Reader<'_>) -> Read<Vec<TopicPartition>> {
    let mut partitions = Vec::new();
    for ByTopic { topic, partitions: numbers } in ByTopic::decode_all(reader, |reader| reader.i32())? {
        partitions.extend(numbers.into_iter().map(|number| TopicPartition::new(topic.clone(), number)));
    }
    Ok(partitions)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partitions() -> Vec<TopicPartition> {
        vec![TopicPartition::new("a", 0), TopicPartition::new("a", 7), TopicPartition::new("b", 1)]
    }

    fn subscription() -> Subscription {
        Subscription { topics: vec!["a".into(), "b".into()], owned: partitions(), generation: 5 }
    }

    #[test]
    fn both_come_back_and_need_all_their_bytes() {
        let bytes = subscription().encode();
        assert_eq!(Subscription::decode(&bytes), Ok(subscription()));
        let assignment = encode_assignment(&partitions());
        assert_eq!(decode_assignment(&assignment), Ok(partitions()));
        for cut in 0..bytes.len() {
            assert!(Subscription::decode(&bytes[..cut]).is_err(), "{cut}");
        }
        for cut in 1..assignment.len() {
            assert!(decode_assignment(&assignment[..cut]).is_err(), "{cut}");
        }
        assert_eq!(decode_assignment(&[]), Ok(Vec::new()));
    }

    #[test]
    fn older_and_newer_versions_are_read() {
        // Version 0 has the topics and nothing else but null for user data.
        let oldest = [&[0, 0, 0, 0, 0, 1, 0, 1][..], b"a", &[0xFF; 4]].concat();
        let expected = Subscription { topics: vec!["a".into()], owned: Vec::new(), generation: -1 };
        assert_eq!(Subscription::decode(&oldest), Ok(expected));
        let mut newer = subscription().encode();
        newer[1] = 9;
        newer.extend_from_slice(b"what will be there one day");
        assert_eq!(Subscription::decode(&newer), Ok(subscription()));
        assert!(Subscription::decode(&[0xFF; 40]).is_err());
    }

    #[test]
    fn lengths_that_are_only_claimed_get_no_memory() {
        let claimed = [&[0, 1][..], &i32::MAX.to_be_bytes(), &[0; 20]].concat();
        assert!(Subscription::decode(&claimed).is_err());
        assert!(decode_assignment(&claimed).is_err());
    }
}
