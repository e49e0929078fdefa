//! Fetch: the records of partitions.
//!
//! In a *session* (an id, and an epoch that counts requests) a request names only partitions whose offset or
//! limits changed, and an answer names only partitions with news. Session 0 with epoch 0 asks for a new
//! session; with epoch -1 there is none.
//!
//! From version 13 on topics have ids instead of names. So an offset of a deleted topic is never taken for
//! one of a newer topic of the same name.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;

use crate::error_code::KafkaErrorCode;
use crate::wire::by_topic::ByTopic;
use crate::wire::metadata::TopicId;
use crate::wire::reader::{Read, Reader};
use crate::wire::request::{Api, Decode, Request};
use crate::wire::writer::Writer;

/// The choice whether records of transactions are seen before they are committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Isolation {
    ReadUncommitted,
    #[default]
    ReadCommitted,
}

impl Isolation {
    pub(crate) fn on_the_wire(self) -> i8 {
        match self {
            Isolation::ReadUncommitted => 0,
            Isolation::ReadCommitted => 1,
        }
    }
}

#[derive(Debug, Clone)]
pub struct FetchRequest {
    /// Time for which the broker may wait for `min_bytes`.
    pub max_wait_ms: i32,
    pub min_bytes: i32,
    /// Largest size of the whole answer. A larger first batch comes all the same: otherwise it would never come.
    pub max_bytes: i32,
    pub isolation: Isolation,
    pub topics: Vec<ByTopic<FetchPartition, FetchTopic>>,
}

/// A topic by name and id. An id of zeros means any topic of the name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchTopic {
    pub name: Arc<str>,
    pub id: TopicId,
}

#[derive(Debug, Clone, Copy)]
pub struct FetchPartition {
    pub partition: i32,
    /// Epoch of the partition's leader, or -1 if it is unknown.
    pub current_leader_epoch: i32,
    pub offset: i64,
    pub max_bytes: i32,
}

#[derive(Debug, Clone)]
pub struct FetchResponse {
    pub error: KafkaErrorCode,
    pub topics: Vec<ByTopic<FetchedPartition, FetchedTopic>>,
}

/// A topic by name or by id, as in the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FetchedTopic {
    Name(Arc<str>),
    Id(TopicId),
}

impl FetchRequest {
    /// Returns the partitions of an answer by the names of their topics.
    pub fn by_name(&self, answer: FetchResponse) -> impl Iterator<Item = ByTopic<FetchedPartition>> {
        let names: HashMap<TopicId, Arc<str>> =
            self.topics.iter().map(|asked| (asked.topic.id, asked.topic.name.clone())).collect();
        answer.topics.into_iter().filter_map(move |ByTopic { topic, partitions }| {
            let topic = match topic {
                FetchedTopic::Name(name) => name,
                FetchedTopic::Id(id) => names.get(&id)?.clone(),
            };
            Some(ByTopic { topic, partitions })
        })
    }
}

#[derive(Debug, Clone)]
pub struct FetchedPartition {
    pub partition: i32,
    pub error: KafkaErrorCode,
    /// The offset behind the last record that all replicas have.
    pub high_watermark: i64,
    /// The offset of the first open transaction.
    pub last_stable_offset: i64,
    /// The first offset that is still kept.
    pub log_start_offset: i64,
    /// Aborted transactions in the answer, which come only with [`Isolation::ReadCommitted`].
    pub aborted_transactions: Vec<AbortedTransaction>,
    /// Record batches, the last of which may be cut off. They share the answer's memory.
    pub records: Bytes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AbortedTransaction {
    pub producer_id: i64,
    pub first_offset: i64,
}

const FLEXIBLE: i16 = 12;
const WITH_IDS: i16 = 13;

impl Request for FetchRequest {
    const API: Api = Api { name: "Fetch", key: 1, versions: (11, WITH_IDS), flexible_from: FLEXIBLE };
    type Response = FetchResponse;

    fn newest_version(&self) -> i16 {
        match self.topics.iter().all(|asked| asked.topic.id.is_known()) {
            true => WITH_IDS,
            false => FLEXIBLE,
        }
    }

    fn wait_ms(&self) -> u64 {
        u64::try_from(self.max_wait_ms).unwrap_or_default()
    }

    fn encode(&self, writer: &mut Writer, version: i16) {
        let (not_a_replica, no_follower) = (-1, -1);
        writer.i32(not_a_replica);
        writer.i32(self.max_wait_ms);
        writer.i32(self.min_bytes);
        writer.i32(self.max_bytes);
        writer.i8(self.isolation.on_the_wire());
        let (no_session, no_session_epoch) = (0, -1);
        writer.i32(no_session);
        writer.i32(no_session_epoch);
        let topic = |writer: &mut Writer, topic: &FetchTopic| match version >= WITH_IDS {
            true => writer.uuid(topic.id.0),
            false => writer.string(&topic.name),
        };
        ByTopic::encode_named(&self.topics, writer, topic, |writer, wanted| {
            writer.i32(wanted.partition);
            writer.i32(wanted.current_leader_epoch);
            writer.i64(wanted.offset);
            if version >= FLEXIBLE {
                let unknown_last_fetched_epoch = -1;
                writer.i32(unknown_last_fetched_epoch);
            }
            writer.i64(no_follower);
            writer.i32(wanted.max_bytes);
            writer.end_structure();
        });
        let (forgotten_by_the_session, no_rack): (&[ByTopic<i32>], &str) = (&[], "");
        ByTopic::encode_all(forgotten_by_the_session, writer, |writer, partition| writer.i32(*partition));
        writer.string(no_rack);
        writer.end_structure();
    }
}

impl Decode for FetchResponse {
    fn decode(reader: &mut Reader<'_>, version: i16) -> Read<Self> {
        let error = KafkaErrorCode(reader.i16()?);
        let _session_id = reader.i32()?;
        let topic = |reader: &mut Reader<'_>| match version >= WITH_IDS {
            true => Ok(FetchedTopic::Id(TopicId(reader.uuid()?))),
            false => Ok(FetchedTopic::Name(reader.string()?.into())),
        };
        let topics = ByTopic::decode_named(reader, topic, decode_partition)?;
        reader.end_structure()?;
        Ok(Self { error, topics })
    }
}

fn decode_partition(reader: &mut Reader<'_>) -> Read<FetchedPartition> {
    let (partition, error) = (reader.i32()?, KafkaErrorCode(reader.i16()?));
    let (high_watermark, last_stable_offset, log_start_offset) = (reader.i64()?, reader.i64()?, reader.i64()?);
    let aborted_transactions = reader.array(|reader| {
        let aborted = AbortedTransaction { producer_id: reader.i64()?, first_offset: reader.i64()? };
        reader.end_structure()?;
        Ok(aborted)
    })?;
    // None is offered to who has no rack.
    let _preferred_read_replica = reader.i32()?;
    let records = reader.shared_bytes()?;
    reader.end_structure()?;
    Ok(FetchedPartition {
        partition,
        error,
        high_watermark,
        last_stable_offset,
        log_start_offset,
        aborted_transactions,
        records,
    })
}
