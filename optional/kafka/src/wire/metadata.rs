//! Metadata: the brokers, topics and partitions that exist, and the partitions' leaders.

use std::fmt;
use std::sync::Arc;

use crate::error_code::KafkaErrorCode;
use crate::wire::reader::{Read, Reader};
use crate::wire::request::{Api, Decode, Request};
use crate::wire::writer::Writer;

/// The id that distinguishes a topic from a deleted one of the same name. It is all zeros where the broker
/// (before 2.8) has none.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct TopicId(pub [u8; 16]);

impl TopicId {
    pub fn is_known(&self) -> bool {
        self.0 != [0; 16]
    }

    /// Says whether the two ids certainly belong to different topics. An unknown id proves nothing: brokers
    /// that had no ids may have them by now.
    pub fn is_other(&self, than: TopicId) -> bool {
        *self != than && self.is_known() && than.is_known()
    }
}

impl fmt::Display for TopicId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for TopicId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[derive(Debug, Clone)]
pub struct MetadataRequest {
    /// Topics to describe, or `None` for all. Asking for a topic does not create it.
    pub topics: Option<Vec<Arc<str>>>,
}

#[derive(Debug, Clone)]
pub struct MetadataResponse {
    pub brokers: Vec<BrokerAddress>,
    pub controller_id: i32,
    pub topics: Vec<TopicMetadata>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerAddress {
    pub node_id: i32,
    pub host: String,
    pub port: u16,
}

impl fmt::Display for BrokerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

#[derive(Debug, Clone)]
pub struct TopicMetadata {
    pub error: KafkaErrorCode,
    pub name: Arc<str>,
    pub id: TopicId,
    pub is_internal: bool,
    pub partitions: Vec<PartitionMetadata>,
}

#[derive(Debug, Clone)]
pub struct PartitionMetadata {
    pub error: KafkaErrorCode,
    pub partition: i32,
    /// Id of the leader, or -1 while there is none.
    pub leader_id: i32,
    pub leader_epoch: i32,
}

impl Request for MetadataRequest {
    const API: Api = Api { name: "Metadata", key: 3, versions: (9, 12), flexible_from: 9 };
    type Response = MetadataResponse;

    fn encode(&self, writer: &mut Writer, version: i16) {
        match &self.topics {
            None => writer.null_array(),
            Some(topics) => writer.array(topics, |writer, topic| {
                if version >= 10 {
                    writer.uuid([0; 16]);
                }
                writer.string(topic);
                writer.end_structure();
            }),
        }
        let allow_auto_topic_creation = false;
        writer.bool(allow_auto_topic_creation);
        if version <= 10 {
            let include_cluster_authorized_operations = false;
            writer.bool(include_cluster_authorized_operations);
        }
        let include_topic_authorized_operations = false;
        writer.bool(include_topic_authorized_operations);
        writer.end_structure();
    }
}

impl Decode for MetadataResponse {
    fn decode(reader: &mut Reader<'_>, version: i16) -> Read<Self> {
        let brokers = reader.array(decode_broker)?;
        let _cluster_id = reader.nullable_string()?;
        let controller_id = reader.i32()?;
        let topics = reader.array(|reader| decode_topic(reader, version))?;
        if version <= 10 {
            let _cluster_authorized_operations = reader.i32()?;
        }
        reader.end_structure()?;
        Ok(Self { brokers, controller_id, topics })
    }
}

fn decode_broker(reader: &mut Reader<'_>) -> Read<BrokerAddress> {
    let node_id = reader.i32()?;
    let host = reader.string()?;
    let port = reader.port()?;
    let _rack = reader.nullable_string()?;
    reader.end_structure()?;
    Ok(BrokerAddress { node_id, host, port })
}

fn decode_topic(reader: &mut Reader<'_>, version: i16) -> Read<TopicMetadata> {
    let error = KafkaErrorCode(reader.i16()?);
    // Null only for topics asked for by id, which is not done here.
    let name = reader.nullable_string()?.unwrap_or_default().into();
    let id = if version >= 10 { TopicId(reader.uuid()?) } else { TopicId::default() };
    let is_internal = reader.bool()?;
    let partitions = reader.array(decode_partition)?;
    let _authorized_operations = reader.i32()?;
    reader.end_structure()?;
    Ok(TopicMetadata { error, name, id, is_internal, partitions })
}

fn decode_partition(reader: &mut Reader<'_>) -> Read<PartitionMetadata> {
    let error = KafkaErrorCode(reader.i16()?);
    let partition = reader.i32()?;
    let leader_id = reader.i32()?;
    let leader_epoch = reader.i32()?;
    for _list in ["replicas", "in sync", "offline"] {
        reader.array(Reader::i32)?;
    }
    reader.end_structure()?;
    Ok(PartitionMetadata { error, partition, leader_id, leader_epoch })
}
