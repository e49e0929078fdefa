//! Kafka's protocol on the wire: its primitives, and one file for each API.
//!
//! The versions of each API are those that Kafka 2.4 knows and 4.1 still accepts. Metadata and Fetch have newer ones
//! too, for the ids of topics, and so have JoinGroup and SyncGroup. Bytes from a broker are not trusted: the
//! connection limits the size of a frame, and no memory is allocated for a length that is only claimed.

mod api_versions;
mod by_topic;
mod fetch;
mod find_coordinator;
#[cfg(test)]
pub(crate) mod golden;
mod group;
mod list_offsets;
mod malformed;
mod metadata;
mod offset_commit;
mod offset_fetch;
mod offset_for_leader_epoch;
mod reader;
mod request;
mod sasl;
mod writer;

pub(crate) use api_versions::{ApiVersionsRequest, ApiVersionsResponse};
pub use by_topic::ByTopic;
pub use fetch::{
    AbortedTransaction, FetchPartition, FetchRequest, FetchResponse, FetchTopic, FetchedPartition, FetchedTopic,
    Isolation,
};
pub(crate) use find_coordinator::FindCoordinatorRequest;
pub use group::{
    GroupMember, HeartbeatRequest, HeartbeatResponse, JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest,
    LeaveGroupResponse, MemberAssignment, SupportedProtocol, SyncGroupRequest, SyncGroupResponse,
};
pub use list_offsets::{ListOffsetsRequest, ListOffsetsResponse, ListedOffset, OffsetAt, OffsetQuery};
pub use malformed::Malformed;
pub use metadata::{BrokerAddress, MetadataRequest, MetadataResponse, PartitionMetadata, TopicId, TopicMetadata};
pub use offset_commit::{CommitOffset, CommittedPartition, OffsetCommitRequest, OffsetCommitResponse};
pub use offset_fetch::{FetchedOffset, OffsetFetchRequest, OffsetFetchResponse};
pub use offset_for_leader_epoch::{EpochEnd, EpochQuery, OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse};
pub(crate) use reader::{Read, Reader};
#[cfg(feature = "fuzzing")]
pub use request::decode as decode_response;
pub(crate) use request::{correlation_id, decode, encode};
pub use request::{Answer, Api, Request};
pub(crate) use sasl::{SaslAuthenticateRequest, SaslHandshakeRequest};
pub(crate) use writer::Writer;
