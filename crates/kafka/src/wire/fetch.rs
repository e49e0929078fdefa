//! Fetch: the records themselves.
//!
//! In a *session* (an id, and an epoch that counts requests) a request names only partitions whose offset or limits changed, and an
//! answer only those that have something to say. Session 0 with epoch 0 asks for a new one; epoch -1 goes without.

use bytes::Bytes;

use crate::error_code::ErrorCode;
use crate::wire::by_topic::ByTopic;
use crate::wire::reader::{Read, Reader};
use crate::wire::request::{Api, Decode, Request};
use crate::wire::writer::Writer;

/// Whether records of transactions are seen before they are committed.
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
    /// How long the broker may wait for `min_bytes`.
    pub max_wait_ms: i32,
    pub min_bytes: i32,
    /// Of the whole answer. A first batch that is larger comes all the same, or nothing ever would.
    pub max_bytes: i32,
    pub isolation: Isolation,
    pub topics: Vec<ByTopic<FetchPartition>>,
}

#[derive(Debug, Clone, Copy)]
pub struct FetchPartition {
    pub partition: i32,
    /// -1 if unknown.
    pub current_leader_epoch: i32,
    pub offset: i64,
    pub max_bytes: i32,
}

#[derive(Debug, Clone)]
pub struct FetchResponse {
    pub error: ErrorCode,
    pub topics: Vec<ByTopic<FetchedPartition>>,
}

#[derive(Debug, Clone)]
pub struct FetchedPartition {
    pub partition: i32,
    pub error: ErrorCode,
    /// The offset behind the last record that all replicas have.
    pub high_watermark: i64,
    /// The offset of the first open transaction.
    pub last_stable_offset: i64,
    /// The first offset that is still kept.
    pub log_start_offset: i64,
    /// Only with [`Isolation::ReadCommitted`].
    pub aborted_transactions: Vec<AbortedTransaction>,
    /// Record batches, the last of which may be cut off. They share the answer's memory.
    pub records: Bytes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AbortedTransaction {
    pub producer_id: i64,
    pub first_offset: i64,
}

impl Request for FetchRequest {
    const API: Api = Api { name: "Fetch", key: 1, versions: (11, 11), flexible_from: 12 };
    type Response = FetchResponse;

    fn wait_ms(&self) -> u64 {
        u64::try_from(self.max_wait_ms).unwrap_or_default()
    }

    fn encode(&self, writer: &mut Writer, _version: i16) {
        let (not_a_replica, no_follower) = (-1, -1);
        writer.i32(not_a_replica);
        writer.i32(self.max_wait_ms);
        writer.i32(self.min_bytes);
        writer.i32(self.max_bytes);
        writer.i8(self.isolation.on_the_wire());
        let (no_session, no_session_epoch) = (0, -1);
        writer.i32(no_session);
        writer.i32(no_session_epoch);
        ByTopic::encode_all(&self.topics, writer, |writer, wanted| {
            writer.i32(wanted.partition);
            writer.i32(wanted.current_leader_epoch);
            writer.i64(wanted.offset);
            writer.i64(no_follower);
            writer.i32(wanted.max_bytes);
        });
        let (forgotten_by_the_session, no_rack): (&[ByTopic<i32>], &str) = (&[], "");
        ByTopic::encode_all(forgotten_by_the_session, writer, |writer, partition| writer.i32(*partition));
        writer.string(no_rack);
    }
}

impl Decode for FetchResponse {
    fn decode(reader: &mut Reader<'_>, _version: i16) -> Read<Self> {
        let error = ErrorCode(reader.i16()?);
        let _session_id = reader.i32()?;
        Ok(Self { error, topics: ByTopic::decode_all(reader, decode_partition)? })
    }
}

fn decode_partition(reader: &mut Reader<'_>) -> Read<FetchedPartition> {
    let (partition, error) = (reader.i32()?, ErrorCode(reader.i16()?));
    let (high_watermark, last_stable_offset, log_start_offset) = (reader.i64()?, reader.i64()?, reader.i64()?);
    let aborted_transactions =
        reader.array(|reader| Ok(AbortedTransaction { producer_id: reader.i64()?, first_offset: reader.i64()? }))?;
    // None is offered to who has no rack.
    let _preferred_read_replica = reader.i32()?;
    let records = reader.shared_bytes()?;
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
