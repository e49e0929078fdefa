//! ListOffsets: the offsets where a partition begins and ends, and the offset that belongs to a time.

use crate::error_code::KafkaErrorCode;
use crate::wire::by_topic::ByTopic;
use crate::wire::fetch::Isolation;
use crate::wire::reader::{Read, Reader};
use crate::wire::request::{Api, Decode, Request};
use crate::wire::writer::Writer;

/// The place in a partition whose offset is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OffsetAt {
    /// The first offset that is still kept.
    Earliest,
    /// The offset that the next record will get, or with [`Isolation::ReadCommitted`] the offset of the first
    /// open transaction.
    Latest,
    /// The offset of the first record that is at least so late.
    TimestampMs(i64),
}

impl OffsetAt {
    fn on_the_wire(self) -> i64 {
        match self {
            OffsetAt::Earliest => -2,
            OffsetAt::Latest => -1,
            OffsetAt::TimestampMs(timestamp_ms) => timestamp_ms.max(0),
        }
    }
}

#[derive(Debug, Clone)]
pub struct ListOffsetsRequest {
    pub isolation: Isolation,
    pub topics: Vec<ByTopic<OffsetQuery>>,
}

#[derive(Debug, Clone, Copy)]
pub struct OffsetQuery {
    pub partition: i32,
    pub at: OffsetAt,
}

#[derive(Debug, Clone)]
pub struct ListOffsetsResponse {
    pub topics: Vec<ByTopic<ListedOffset>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListedOffset {
    pub partition: i32,
    pub error: KafkaErrorCode,
    /// Timestamp of the record that was found by a time, otherwise -1.
    pub timestamp_ms: i64,
    /// The offset, or -1 if no record is so late.
    pub offset: i64,
    pub leader_epoch: i32,
}

impl Request for ListOffsetsRequest {
    const API: Api = Api { name: "ListOffsets", key: 2, versions: (5, 5), flexible_from: 6 };
    type Response = ListOffsetsResponse;

    fn encode(&self, writer: &mut Writer, _version: i16) {
        let (not_a_replica, any_leader_epoch) = (-1, -1);
        writer.i32(not_a_replica);
        writer.i8(self.isolation.on_the_wire());
        ByTopic::encode_all(&self.topics, writer, |writer, query| {
            writer.i32(query.partition);
            writer.i32(any_leader_epoch);
            writer.i64(query.at.on_the_wire());
            writer.end_structure();
        });
        writer.end_structure();
    }
}

impl Decode for ListOffsetsResponse {
    fn decode(reader: &mut Reader<'_>, _version: i16) -> Read<Self> {
        let topics = ByTopic::decode_all(reader, |reader| {
            let listed = ListedOffset {
                partition: reader.i32()?,
                error: KafkaErrorCode(reader.i16()?),
                timestamp_ms: reader.i64()?,
                offset: reader.i64()?,
                leader_epoch: reader.i32()?,
            };
            reader.end_structure()?;
            Ok(listed)
        })?;
        reader.end_structure()?;
        Ok(Self { topics })
    }
}
