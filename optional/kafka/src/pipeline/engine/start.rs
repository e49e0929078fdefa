//! The offsets where partitions go on that were given to us, or whose state at the coordinator isn't known any more.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::consumer::Claim;
use crate::{Client, CommittedOffset, Isolation, KafkaErrorCode, OffsetAt, TopicId, TopicPartition};
use tokio::sync::OnceCell;

use crate::pipeline::accounts::{judge, RecordRejection, Shown};
use crate::pipeline::engine::endless_retries;
use crate::pipeline::options::{StartAt, Topics};
use crate::pipeline::record::{decode_topic, BatchRecord, Range, RecordError};
use crate::pipeline::view::View;

/// A partition that was given to us.
#[derive(Debug, Clone)]
pub(crate) struct Given {
    pub(crate) claim: Claim,
    pub(crate) topic_id: TopicId,
}

impl Given {
    pub(crate) fn partition(&self) -> TopicPartition {
        TopicPartition { topic: self.claim.topic.clone(), partition: self.claim.partition }
    }
}

#[derive(Debug)]
pub(crate) enum StartPoint {
    /// The partition goes on at the committed offset. `leader_epoch` is that of the message before it, or -1
    /// if it isn't known.
    At {
        offset: i64,
        leader_epoch: i32,
    },
    /// The group has no offset yet: the partition begins here, as the settings say.
    New(i64),
    Replay(BatchRecord),
}

/// The partitions that existed when the pipeline began. Partitions that come later are read from their
/// beginning, wherever the others begin.
#[derive(Debug, Default)]
pub(crate) struct Existing {
    /// Number of partitions and topic id, by the topic's name.
    partitions: OnceCell<HashMap<Arc<str>, (i32, TopicId)>>,
}

impl Existing {
    /// Asks the brokers, only the first time.
    pub(crate) async fn find(&self, client: &Client, topics: &Topics) -> Result<(), crate::Error> {
        let named = match topics {
            Topics::Named(names) => Some(names.iter().map(|name| Arc::from(name.as_str())).collect()),
            Topics::Pattern(_) => None,
        };
        let ask = async {
            let metadata = client.metadata(named).await?;
            let counts = metadata.topics.into_iter().map(|topic| {
                let beyond = topic.partitions.iter().map(|partition| partition.partition + 1).max();
                (topic.name, (beyond.unwrap_or(0), topic.id))
            });
            Ok(counts.collect())
        };
        self.partitions.get_or_try_init(|| ask).await.map(|_| ())
    }

    /// Says whether the partition existed. A topic that was made anew did not exist.
    fn has(&self, given: &Given) -> bool {
        let known = self.partitions.get().and_then(|counts| counts.get(&given.claim.topic));
        known.is_some_and(|(count, id)| given.claim.partition < *count && !id.is_other(given.topic_id))
    }
}

/// The settings that decide where a partition begins.
#[derive(Clone)]
pub(crate) struct StartSettings {
    pub(crate) start: StartAt,
    pub(crate) existing: Arc<Existing>,
}

impl StartSettings {
    fn start(&self, given: &Given) -> StartAt {
        match self.existing.has(given) {
            true => self.start,
            false => StartAt::Earliest,
        }
    }
}

/// Asks the coordinator for its state of these partitions, and decides where each goes on. Asks until the
/// coordinator answers. The result is `None` for a partition whose beginning nobody can tell at present: the
/// others don't wait for it.
pub(crate) async fn look_up(
    client: Client,
    group: String,
    beginner: StartSettings,
    given: Vec<Given>,
    view: Arc<View>,
) -> Vec<(Given, Option<StartPoint>)> {
    let mut backoff = endless_retries();
    loop {
        match try_look_up(&client, &group, &beginner, &given, &view).await {
            Ok(beginnings) => return given.into_iter().zip(beginnings).collect(),
            Err(error) => view.kafka_trouble(&format!("the offsets of the group can't be read: {error}")),
        }
        backoff.pause().await;
    }
}

async fn try_look_up(
    client: &Client,
    group: &str,
    beginner: &StartSettings,
    given: &[Given],
    view: &View,
) -> Result<Vec<Option<StartPoint>>, crate::Error> {
    let ours: Vec<TopicPartition> = given.iter().map(Given::partition).collect();
    let mut shown = HashMap::new();
    keep(&mut shown, client.committed(group, &ours).await?, view);
    // The other partitions of their batches.
    let records = shown.values().filter_map(|shown: &Option<Shown>| shown.as_ref()?.record.as_ref());
    let mut others: Vec<TopicPartition> =
        records.flat_map(|record| &record.ranges).map(|range| range.partition()).collect();
    others.retain(|partition| !shown.contains_key(partition));
    others.sort_unstable();
    others.dedup();
    if !others.is_empty() {
        keep(&mut shown, client.committed(group, &others).await?, view);
    }
    let recorded = shown
        .values()
        .filter_map(|shown| shown.as_ref()?.record.as_ref())
        .flat_map(|record| record.ranges.iter().map(|range| (range.topic.clone(), range.topic_id)));
    let marked =
        shown.iter().filter_map(|(partition, shown)| Some((partition.topic.clone(), shown.as_ref()?.topic_id)));
    let recorded: HashSet<(Arc<str>, TopicId)> = recorded.chain(marked.filter(|(_, id)| id.is_known())).collect();
    let gone = deleted(client, recorded).await?;
    let is_gone = |range: &Range| gone.contains(&(range.topic.clone(), range.topic_id));
    let mut beginnings = Vec::with_capacity(given.len());
    for given in given {
        let partition = given.partition();
        let beginning = match shown.get(&partition).cloned().flatten() {
            None => first_offset(client, &partition, beginner.start(given)).await.map(StartPoint::New),
            // One that is not gone is a later one, which we shall hear of.
            Some(Shown { topic_id, record: None, .. })
                if topic_id.is_other(given.topic_id) && gone.contains(&(partition.topic.clone(), topic_id)) =>
            {
                tracing::warn!(%partition, "the committed offset is of a former topic of this name");
                first_offset(client, &partition, StartAt::Earliest).await.map(StartPoint::New)
            }
            Some(Shown { offset, leader_epoch, record: None, .. }) => Ok(StartPoint::At { offset, leader_epoch }),
            Some(Shown { offset, leader_epoch, record: Some(record), .. }) => {
                let at = StartPoint::At { offset, leader_epoch };
                let find = |partition: &TopicPartition| shown.get(partition).cloned().flatten();
                match judge(&record, &partition, given.topic_id, find, is_gone) {
                    Ok(()) => Ok(StartPoint::Replay(record)),
                    Err(void) => begin_anew(client, &partition, at, &record, void).await,
                }
            }
        };
        if let Err(error) = &beginning {
            view.kafka_trouble(&format!("{partition}: it can't be said where reading begins: {error}"));
        }
        beginnings.push(beginning.ok());
    }
    Ok(beginnings)
}

/// Returns those of these topics that do not exist any more. There may be another topic of the same name by now.
async fn deleted(
    client: &Client,
    mut topics: HashSet<(Arc<str>, TopicId)>,
) -> Result<HashSet<(Arc<str>, TopicId)>, crate::Error> {
    if topics.is_empty() {
        return Ok(topics);
    }
    let names: HashSet<Arc<str>> = topics.iter().map(|(name, _)| name.clone()).collect();
    let metadata = client.metadata(Some(names.into_iter().collect())).await?;
    topics.retain(|(name, id)| {
        metadata.topics.iter().filter(|found| found.name == *name).any(|found| match found.error {
            KafkaErrorCode::NONE => found.id.is_other(*id),
            code => code == KafkaErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
        })
    });
    Ok(topics)
}

async fn begin_anew(
    client: &Client,
    partition: &TopicPartition,
    at: StartPoint,
    record: &BatchRecord,
    void: RecordRejection,
) -> Result<StartPoint, crate::Error> {
    tracing::warn!(%partition, batch = %record.id, why = %void, "the recorded batch doesn't count");
    match void {
        // Its offsets mean nothing in this one, of which nothing was read.
        RecordRejection::OtherTopic => Ok(StartPoint::New(first_offset(client, partition, StartAt::Earliest).await?)),
        RecordRejection::Moved | RecordRejection::NotShownBy(_) => Ok(at),
    }
}

fn keep(shown: &mut HashMap<TopicPartition, Option<Shown>>, offsets: Vec<CommittedOffset>, view: &View) {
    for CommittedOffset { partition, committed } in offsets {
        let of_partition = committed.map(|committed| {
            let record = match BatchRecord::decode(&committed.metadata) {
                Ok(record) => Some(record),
                Err(RecordError::Foreign) => None,
                Err(error) => {
                    view.kafka_trouble(&format!("{partition}: the record of a batch can't be read: {error}"));
                    None
                }
            };
            Shown {
                offset: committed.offset,
                leader_epoch: committed.leader_epoch,
                topic_id: decode_topic(&committed.metadata),
                record,
            }
        });
        shown.insert(partition, of_partition);
    }
}

/// Returns the offset where a partition begins if the group has no offset of it.
async fn first_offset(client: &Client, partition: &TopicPartition, start: StartAt) -> Result<i64, crate::Error> {
    let at = match start {
        StartAt::Earliest => OffsetAt::Earliest,
        StartAt::Latest => OffsetAt::Latest,
        StartAt::Time(timestamp_ms) => OffsetAt::TimestampMs(timestamp_ms),
    };
    client.list_offset_or_end(partition, Isolation::ReadCommitted, at).await
}
