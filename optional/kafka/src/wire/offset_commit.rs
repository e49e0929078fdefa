//! OffsetCommit: the new offsets of a group, with a text beside each.

use crate::error_code::KafkaErrorCode;
use crate::wire::by_topic::ByTopic;
use crate::wire::reader::{Read, Reader};
use crate::wire::request::{Api, Decode, Request};
use crate::wire::writer::Writer;

#[derive(Debug, Clone)]
pub struct OffsetCommitRequest {
    pub group: String,
    /// Generation of the member. -1 with an empty member id commits for a group without members.
    pub generation_id: i32,
    pub member_id: String,
    pub group_instance_id: Option<String>,
    pub topics: Vec<ByTopic<CommitOffset>>,
}

#[derive(Debug, Clone)]
pub struct CommitOffset {
    pub partition: i32,
    /// Offset of the next record to be read.
    pub offset: i64,
    /// Epoch of the leader that wrote the record before the offset, or -1 if it is unknown.
    pub leader_epoch: i32,
    /// Text beside the offset, of at most 4096 bytes (`offset.metadata.max.bytes` of the broker).
    pub metadata: String,
}

#[derive(Debug, Clone)]
pub struct OffsetCommitResponse {
    pub topics: Vec<ByTopic<CommittedPartition>>,
}

#[derive(Debug, Clone, Copy)]
pub struct CommittedPartition {
    pub partition: i32,
    pub error: KafkaErrorCode,
}

impl Request for OffsetCommitRequest {
    const API: Api = Api { name: "OffsetCommit", key: 8, versions: (8, 8), flexible_from: 8 };
    type Response = OffsetCommitResponse;

    fn encode(&self, writer: &mut Writer, _version: i16) {
        writer.string(&self.group);
        writer.i32(self.generation_id);
        writer.string(&self.member_id);
        writer.nullable_string(self.group_instance_id.as_deref());
        ByTopic::encode_all(&self.topics, writer, |writer, commit| {
            writer.i32(commit.partition);
            writer.i64(commit.offset);
            writer.i32(commit.leader_epoch);
            writer.string(&commit.metadata);
            writer.end_structure();
        });
        writer.end_structure();
    }
}

impl Decode for OffsetCommitResponse {
    fn decode(reader: &mut Reader<'_>, _version: i16) -> Read<Self> {
        let topics = ByTopic::decode_all(reader, |reader| {
            let committed = CommittedPartition { partition: reader.i32()?, error: KafkaErrorCode(reader.i16()?) };
            reader.end_structure()?;
            Ok(committed)
        })?;
        reader.end_structure()?;
        Ok(Self { topics })
    }
}
