//! The rule that cuts each topic's partitions into ranges, one for each member. The first ones are longer by
//! one where the number can't be divided evenly.

use std::collections::BTreeMap;

use crate::group::assignor::{Member, PartitionCounts};
use crate::topic_partition::TopicPartition;

pub(super) fn assign(members: &[Member], partitions: &PartitionCounts) -> BTreeMap<String, Vec<TopicPartition>> {
    // Static members stand where they stood before they came back under another id.
    let mut members: Vec<&Member> = members.iter().collect();
    members.sort_by_key(|member| (member.instance_id.is_none(), member.instance_id.as_deref(), &member.id));
    let mut assigned: BTreeMap<String, Vec<TopicPartition>> =
        members.iter().map(|member| (member.id.clone(), Vec::new())).collect();
    for (topic, count) in partitions {
        let subscribed: Vec<&&Member> =
            members.iter().filter(|member| member.subscription.topics.contains(topic)).collect();
        let mut next = 0..*count as i32;
        for (index, member) in subscribed.iter().enumerate() {
            let row = count / subscribed.len() + usize::from(index < count % subscribed.len());
            let row = next.by_ref().take(row).map(|partition| TopicPartition::new(topic.clone(), partition));
            assigned.entry(member.id.clone()).or_default().extend(row);
        }
    }
    assigned
}
