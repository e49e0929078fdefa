//! A client of Kafka, written for reading many records: a broker's answer is decoded batch by batch, without
//! an allocation per record.
//!
//! Layers, lowest first: `wire` (the protocol's bytes), `batch` (the records in these bytes), `client`
//! (connections to a cluster's brokers), `reading` (reading without a group), `group` (membership of a group,
//! as a state machine without I/O), `consumer` (a member that reads).

mod batch;
mod client;
pub mod consumer;
mod error;
mod error_code;
mod group;
pub mod messages;
pub mod pipeline;
mod reading;
mod topic_partition;
mod wire;

pub use batch::*;
pub use client::*;
pub use error::Error;
pub use error_code::KafkaErrorCode;
pub use group::Assignor;
#[cfg(feature = "fuzzing")]
pub use group::{decode_assignment, encode_assignment, Member, PartitionCounts, Subscription};
pub use reading::*;
pub use topic_partition::TopicPartition;
pub use wire::*;
