//! The topics that exist, and the group's offsets in them.

use std::sync::Arc;

use crate::consumer::TopicPattern;
use crate::{Client, Error, TopicPartition};

use super::report::CheckedTopic;
use crate::pipeline::options::Topics;

pub(super) struct FoundTopics {
    pub names: Vec<Arc<str>>,
    pub problems: Vec<String>,
}

pub(super) async fn find(client: &Client, wanted: &Topics) -> Result<FoundTopics, Error> {
    let named = match wanted {
        Topics::Named(names) => Some(names.iter().map(|name| Arc::from(name.as_str())).collect()),
        Topics::Pattern(_) => None,
    };
    let metadata = client.metadata(named).await?;
    let mut found = FoundTopics { names: Vec::new(), problems: Vec::new() };
    match wanted {
        Topics::Named(names) => {
            for name in names {
                match metadata.topics.iter().find(|topic| *topic.name == **name) {
                    Some(topic) if topic.error.is_error() => {
                        found.problems.push(format!("the topic {name} can't be read: {}", topic.error));
                    }
                    Some(topic) => found.names.push(topic.name.clone()),
                    None => found.problems.push(format!("the topic {name} is not there")),
                }
            }
        }
        Topics::Pattern(pattern) => {
            let matcher = TopicPattern::new(pattern)?;
            let matching = metadata.topics.iter().filter(|topic| !topic.is_internal && matcher.matches(&topic.name));
            found.names.extend(matching.map(|topic| topic.name.clone()));
            found.names.sort();
            if found.names.is_empty() {
                found.problems.push(format!("no topic's whole name matches the pattern {pattern}"));
            }
        }
    }
    Ok(found)
}

/// Enters the offsets that the group has committed.
pub(super) async fn committed(client: &Client, group: &str, topics: &mut [CheckedTopic]) -> Result<(), Error> {
    let partitions: Vec<TopicPartition> = topics
        .iter()
        .flat_map(|topic| topic.partitions.iter().map(|it| TopicPartition::new(topic.name.as_str(), it.partition)))
        .collect();
    if partitions.is_empty() {
        return Ok(());
    }
    let mut answers = client.committed(group, &partitions).await?.into_iter();
    for partition in topics.iter_mut().flat_map(|topic| &mut topic.partitions) {
        let answer = answers.next().and_then(|answer| answer.committed);
        partition.committed = answer.map(|committed| committed.offset);
    }
    Ok(())
}
