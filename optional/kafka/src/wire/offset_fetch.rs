//! OffsetFetch: the committed offsets of a group.

use crate::error_code::KafkaErrorCode;
use crate::wire::by_topic::ByTopic;
use crate::wire::reader::{Read, Reader};
use crate::wire::request::{Api, Decode, Request};
use crate::wire::writer::Writer;

#[derive(Debug, Clone)]
pub struct OffsetFetchRequest {
    pub group: String,
    /// Numbers of partitions, or `None` for everything that was committed.
    pub topics: Option<Vec<ByTopic<i32>>>,
}

#[derive(Debug, Clone)]
pub struct OffsetFetchResponse {
    pub error: KafkaErrorCode,
    pub topics: Vec<ByTopic<FetchedOffset>>,
}

#[derive(Debug, Clone)]
pub struct FetchedOffset {
    pub partition: i32,
    /// Offset of the next record to be read, or -1 if nothing was committed.
    pub offset: i64,
    pub leader_epoch: i32,
    pub metadata: String,
    pub error: KafkaErrorCode,
}

impl Request for OffsetFetchRequest {
    const API: Api = Api { name: "OffsetFetch", key: 9, versions: (6, 6), flexible_from: 6 };
    type Response = OffsetFetchResponse;

    fn encode(&self, writer: &mut Writer, _version: i16) {
        writer.string(&self.group);
        match &self.topics {
            None => writer.null_array(),
            Some(topics) => ByTopic::encode_all(topics, writer, |writer, partition| writer.i32(*partition)),
        }
        writer.end_structure();
    }
}

impl Decode for OffsetFetchResponse {
    fn decode(reader: &mut Reader<'_>, _version: i16) -> Read<Self> {
        let topics = ByTopic::decode_all(reader, |reader| {
            let fetched = FetchedOffset {
                partition: reader.i32()?,
                offset: reader.i64()?,
                leader_epoch: reader.i32()?,
                metadata: reader.nullable_string()?.unwrap_or_default(),
                error: KafkaErrorCode(reader.i16()?),
            };
            reader.end_structure()?;
            Ok(fetched)
        })?;
        let error = KafkaErrorCode(reader.i16()?);
        reader.end_structure()?;
        Ok(Self { error, topics })
    }
}
