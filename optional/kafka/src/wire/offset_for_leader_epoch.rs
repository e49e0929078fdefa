//! OffsetForLeaderEpoch: the offset up to which the log of a partition's present leader is the one that an
//! earlier leader wrote.

use crate::error_code::KafkaErrorCode;
use crate::wire::by_topic::ByTopic;
use crate::wire::reader::{Read, Reader};
use crate::wire::request::{Api, Decode, Request};
use crate::wire::writer::Writer;

#[derive(Debug, Clone)]
pub struct OffsetForLeaderEpochRequest {
    pub topics: Vec<ByTopic<EpochQuery>>,
}

#[derive(Debug, Clone, Copy)]
pub struct EpochQuery {
    pub partition: i32,
    /// Epoch of the broker that is asked, as metadata says it. A broker with another epoch refuses.
    pub current_leader_epoch: i32,
    /// Epoch of the record that was read last.
    pub leader_epoch: i32,
}

#[derive(Debug, Clone)]
pub struct OffsetForLeaderEpochResponse {
    pub topics: Vec<ByTopic<EpochEnd>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EpochEnd {
    pub partition: i32,
    pub error: KafkaErrorCode,
    /// The latest epoch in the log that is not later than the one asked for, or -1 if there is none.
    pub leader_epoch: i32,
    /// The offset where the records of later epochs begin, or the log's end if there are none, or -1 if it
    /// can't be said.
    pub end_offset: i64,
}

impl Request for OffsetForLeaderEpochRequest {
    const API: Api = Api { name: "OffsetForLeaderEpoch", key: 23, versions: (3, 3), flexible_from: 4 };
    type Response = OffsetForLeaderEpochResponse;

    fn encode(&self, writer: &mut Writer, _version: i16) {
        let not_a_replica = -1;
        writer.i32(not_a_replica);
        ByTopic::encode_all(&self.topics, writer, |writer, query| {
            writer.i32(query.partition);
            writer.i32(query.current_leader_epoch);
            writer.i32(query.leader_epoch);
            writer.end_structure();
        });
        writer.end_structure();
    }
}

impl Decode for OffsetForLeaderEpochResponse {
    fn decode(reader: &mut Reader<'_>, _version: i16) -> Read<Self> {
        let topics = ByTopic::decode_all(reader, |reader| {
            let error = KafkaErrorCode(reader.i16()?);
            let end =
                EpochEnd { partition: reader.i32()?, error, leader_epoch: reader.i32()?, end_offset: reader.i64()? };
            reader.end_structure()?;
            Ok(end)
        })?;
        reader.end_structure()?;
        Ok(Self { topics })
    }
}
