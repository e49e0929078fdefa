#![no_main]
//! Reads subscriptions and assignments of any bytes, and assigns partitions to groups of members with such
//! subscriptions.

use std::collections::BTreeSet;
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use windrow_kafka::{decode_assignment, encode_assignment, Assignor, Member, PartitionCounts, Subscription};

const MAX_MEMBERS: usize = 8;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(partitions) = decode_assignment(bytes) {
        let again = decode_assignment(&encode_assignment(&partitions)).unwrap();
        assert_eq!(again.iter().collect::<BTreeSet<_>>(), partitions.iter().collect::<BTreeSet<_>>());
    }
    if let Ok(subscription) = Subscription::decode(bytes) {
        let again = Subscription::decode(&subscription.encode()).unwrap();
        assert_eq!((again.topics, again.generation), (subscription.topics, subscription.generation));
    }
    let Some((counts, rest)) = bytes.split_first() else { return };
    let mut partitions = PartitionCounts::new();
    let mut members = Vec::new();
    for (index, part) in rest.split(|byte| *byte == 0xFF).take(MAX_MEMBERS).enumerate() {
        // What can be read is taken as it is; of the rest each byte says something.
        let subscription = Subscription::decode(part).unwrap_or_else(|_| from_bytes(part));
        for topic in &subscription.topics {
            partitions.entry(topic.clone()).or_insert(usize::from(*counts) % 7 + index);
        }
        members.push(Member { id: format!("m{index}"), instance_id: None, subscription });
    }
    for assignor in [Assignor::CooperativeSticky, Assignor::Range] {
        let assigned = assignor.assign(&members, &partitions);
        assert_eq!(assigned.len(), members.len());
        let mut seen = BTreeSet::new();
        for member in &members {
            for partition in &assigned[&member.id] {
                assert!(seen.insert(partition.clone()), "{partition} is given twice");
                assert!(member.subscription.topics.contains(&partition.topic));
                assert!((0..partitions[&partition.topic] as i32).contains(&partition.partition));
            }
        }
    }
});

fn from_bytes(bytes: &[u8]) -> Subscription {
    let topic = |byte: &u8| -> Arc<str> { format!("t{}", byte >> 6).into() };
    let owned = |byte: &u8| windrow_kafka::TopicPartition::new(topic(byte), i32::from(byte >> 2 & 15));
    Subscription {
        topics: bytes.iter().filter(|byte| **byte & 1 == 1).map(topic).collect::<BTreeSet<_>>().into_iter().collect(),
        owned: bytes.iter().filter(|byte| **byte & 2 == 2).map(owned).collect(),
        generation: bytes.first().map_or(-1, |byte| i32::from(byte % 3)),
    }
}
