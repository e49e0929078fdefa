//! Tests on the requests that Kafka 4.1 got and on its answers, byte for byte: requests are written the same,
//! answers are read, and truncated or changed answers do no harm.

use std::fmt::Debug;
use std::path::PathBuf;

use bytes::Bytes;

use super::*;
use crate::error_code::KafkaErrorCode;

const CORRELATION_ID: i32 = 7;
const SEED: u64 = 20260101;

pub(crate) fn golden(name: &str) -> Bytes {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(format!("{name}.bin"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())).into()
}

/// Reads an answer, then every truncation of it, which must be refused, and changes of it, which must do no harm.
fn answer<R: Request>(name: &str, version: i16) -> R::Response
where
    R::Response: Debug,
{
    let frame = golden(name);
    assert_eq!(correlation_id(&frame), Some(CORRELATION_ID), "{name}");
    for length in 0..frame.len() {
        let cut = decode::<R>(&frame.slice(..length), version);
        assert!(cut.is_err(), "{name} cut at {length}: {cut:?}");
    }
    let mut random = fastrand::Rng::with_seed(SEED);
    for _ in 0..2_000 {
        let mut changed = frame.to_vec();
        for _ in 0..random.usize(1..4) {
            let at = random.usize(..changed.len());
            changed[at] = random.u8(..);
        }
        let _ = decode::<R>(&changed.into(), version);
    }
    decode::<R>(&frame, version).unwrap_or_else(|error| panic!("{name}: {error}")).response
}

fn assert_written_as<R: Request>(name: &str, version: i16, request: &R) {
    let frame = encode(request, version, CORRELATION_ID, "golden");
    assert_eq!(frame[..4], (frame.len() as i32 - 4).to_be_bytes(), "{name}");
    assert_eq!(Bytes::from(frame).slice(4..), golden(&format!("{name}_request")), "{name}");
}

fn member_id() -> String {
    answer::<JoinGroupRequest>("join_group_v6", 6).member_id
}

/// Returns the group's name in a recorded request, since that name contains the time.
fn group_of(name: &str) -> String {
    let request = golden(name);
    let start = request.windows(7).position(|window| window == b"golden-").unwrap();
    String::from_utf8(request[start..start + 17].to_vec()).unwrap()
}

#[test]
fn api_versions() {
    let versions = answer::<ApiVersionsRequest>("api_versions_v3", 3);
    assert_eq!(versions.error, KafkaErrorCode::NONE);
    assert_eq!(versions.common(&FetchRequest::API, 13), Some(13));
    assert_eq!(versions.common(&MetadataRequest::API, 12), Some(12));
    assert_eq!(versions.common(&JoinGroupRequest::API, 7), Some(7));
    for api in [
        FindCoordinatorRequest::API,
        SyncGroupRequest::API,
        HeartbeatRequest::API,
        LeaveGroupRequest::API,
        OffsetCommitRequest::API,
        OffsetFetchRequest::API,
        ListOffsetsRequest::API,
        OffsetForLeaderEpochRequest::API,
    ] {
        assert_eq!(versions.common(&api, api.versions.1), Some(api.versions.1), "{}", api.name);
    }
}

#[test]
fn no_common_version_is_none() {
    let range = |min, max| api_versions::ApiRange { key: FetchRequest::API.key, min, max };
    let common = |apis| ApiVersionsResponse { error: KafkaErrorCode::NONE, apis }.common(&FetchRequest::API, 12);
    assert_eq!(common(vec![range(0, 10)]), None);
    assert_eq!(common(vec![range(13, 20)]), None);
    assert_eq!(common(vec![range(11, 11)]), Some(11));
    assert_eq!(common(vec![range(4, 17)]), Some(12), "this request can't be written newer");
    assert_eq!(common(Vec::new()), None);
}

#[test]
fn a_broker_that_does_not_know_the_version_of_api_versions_says_so() {
    let frame = golden("api_versions_v99");
    let versions = decode::<ApiVersionsRequest>(&frame, 3).unwrap().response;
    assert_eq!(versions.error, KafkaErrorCode::UNSUPPORTED_VERSION);
}

#[test]
fn metadata() {
    for version in 9..=12 {
        let name = format!("metadata_v{version}");
        let topics = Some(vec!["golden-txn".into(), "nothing".into()]);
        assert_written_as(&name, version, &MetadataRequest { topics });
        let metadata = answer::<MetadataRequest>(&name, version);
        assert_eq!(metadata.brokers, [BrokerAddress { node_id: 1, host: "127.0.0.1".to_owned(), port: 39092 }]);
        assert_eq!(metadata.controller_id, 1);
        let named = |name: &str| metadata.topics.iter().find(|topic| *topic.name == *name).unwrap();
        let (known, unknown) = (named("golden-txn"), named("nothing"));
        assert_eq!((known.error, known.id.is_known(), known.is_internal), (KafkaErrorCode::NONE, version >= 10, false));
        assert_eq!(known.partitions.len(), 1);
        assert_eq!((known.partitions[0].leader_id, known.partitions[0].leader_epoch), (1, 0));
        assert_eq!(unknown.error, KafkaErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    }
}

#[test]
fn list_offsets() {
    let query = |partition, at| OffsetQuery { partition, at };
    let partitions = vec![query(0, OffsetAt::Latest), query(9, OffsetAt::Earliest)];
    let topics = vec![ByTopic { topic: "golden-txn".into(), partitions }];
    assert_written_as("list_offsets_v5", 5, &ListOffsetsRequest { isolation: Isolation::ReadCommitted, topics });
    let mut listed = answer::<ListOffsetsRequest>("list_offsets_v5", 5).topics.remove(0).partitions;
    listed.sort_by_key(|listed| listed.partition);
    assert_eq!((listed[0].error, listed[1].error), (KafkaErrorCode::NONE, KafkaErrorCode::UNKNOWN_TOPIC_OR_PARTITION));
    assert!(listed[0].offset > 10);
}

#[test]
fn offset_for_leader_epoch() {
    let query = |partition, leader_epoch| EpochQuery {
        partition,
        current_leader_epoch: if partition == 0 { 0 } else { -1 },
        leader_epoch,
    };
    let partitions = vec![query(0, 0), query(1, 3), query(9, 0)];
    let topics = vec![ByTopic { topic: "golden-epochs".into(), partitions }];
    assert_written_as("offset_for_leader_epoch_v3", 3, &OffsetForLeaderEpochRequest { topics });
    let mut ends = answer::<OffsetForLeaderEpochRequest>("offset_for_leader_epoch_v3", 3).topics.remove(0).partitions;
    ends.sort_by_key(|end| end.partition);
    assert_eq!(ends[0], EpochEnd { partition: 0, error: KafkaErrorCode::NONE, leader_epoch: 0, end_offset: 3 });
    assert_eq!(ends[1], EpochEnd { partition: 1, error: KafkaErrorCode::NONE, leader_epoch: -1, end_offset: -1 });
    assert_eq!(ends[2].error, KafkaErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
}

#[test]
fn find_coordinator() {
    assert_written_as("find_coordinator_v3", 3, &FindCoordinatorRequest { group: "golden".to_owned() });
    let found = answer::<FindCoordinatorRequest>("find_coordinator_v3", 3);
    assert_eq!((found.error, found.coordinator.node_id, found.coordinator.port), (KafkaErrorCode::NONE, 1, 39092));
}

#[test]
fn joining_and_leaving_a_group() {
    let refused = answer::<JoinGroupRequest>("join_group_v6_member_id_required", 6);
    assert_eq!(refused.error, KafkaErrorCode::MEMBER_ID_REQUIRED);
    assert_eq!(refused.member_id, member_id());
    for version in 6..=7 {
        let name = format!("join_group_v{version}");
        let request = JoinGroupRequest {
            group: group_of(&format!("{name}_request")),
            session_timeout_ms: 30_000,
            rebalance_timeout_ms: 30_000,
            member_id: member_id(),
            group_instance_id: None,
            protocol_type: "consumer".to_owned(),
            protocols: vec![SupportedProtocol { name: "range".to_owned(), metadata: vec![0, 1, 0, 0] }],
        };
        assert_eq!(request.wait_ms(), 30_000);
        assert_written_as(&name, version, &request);
        let joined = answer::<JoinGroupRequest>(&name, version);
        assert_eq!((joined.error, joined.protocol_name.as_str()), (KafkaErrorCode::NONE, "range"));
        assert_eq!((joined.leader, joined.members.len()), (joined.member_id, 1));
        assert_eq!(joined.members[0].metadata, [0, 1, 0, 0]);
    }
    let group = group_of("leave_group_v4_request");
    let request = LeaveGroupRequest { group, member_id: member_id(), group_instance_id: None };
    assert_written_as("leave_group_v4", 4, &request);
    assert_eq!(answer::<LeaveGroupRequest>("leave_group_v4", 4).error, KafkaErrorCode::NONE);
    assert_eq!(answer::<LeaveGroupRequest>("leave_group_v4_unknown", 4).error, KafkaErrorCode::UNKNOWN_MEMBER_ID);
}

#[test]
fn being_in_a_group() {
    for version in 4..=5 {
        let name = format!("sync_group_v{version}");
        let request = SyncGroupRequest {
            group: group_of(&format!("{name}_request")),
            generation_id: 1,
            member_id: member_id(),
            group_instance_id: None,
            protocol_type: "consumer".to_owned(),
            protocol_name: "range".to_owned(),
            assignments: vec![MemberAssignment { member_id: member_id(), assignment: b"assigned".to_vec() }],
        };
        assert_written_as(&name, version, &request);
        assert_eq!(answer::<SyncGroupRequest>(&name, version).assignment, b"assigned");
    }
    let group = group_of("heartbeat_v4_request");
    let request = HeartbeatRequest { group, generation_id: 1, member_id: member_id(), group_instance_id: None };
    assert_written_as("heartbeat_v4", 4, &request);
    assert_eq!(answer::<HeartbeatRequest>("heartbeat_v4", 4).error, KafkaErrorCode::NONE);
    let refused = answer::<HeartbeatRequest>("heartbeat_v4_illegal_generation", 4);
    assert_eq!(refused.error, KafkaErrorCode::ILLEGAL_GENERATION);
}

#[test]
fn offsets_of_a_group() {
    let metadata = "0-4 v1".to_owned();
    let partitions = vec![CommitOffset { partition: 0, offset: 5, leader_epoch: -1, metadata }];
    let request = OffsetCommitRequest {
        group: group_of("offset_commit_v8_request"),
        generation_id: 1,
        member_id: member_id(),
        group_instance_id: None,
        topics: vec![ByTopic { topic: "golden-txn".into(), partitions }],
    };
    assert_written_as("offset_commit_v8", 8, &request);
    let committed = answer::<OffsetCommitRequest>("offset_commit_v8", 8);
    assert_eq!(committed.topics[0].partitions[0].error, KafkaErrorCode::NONE);

    let topics = Some(vec![ByTopic { topic: "golden-txn".into(), partitions: vec![0, 1] }]);
    let request = OffsetFetchRequest { group: group_of("offset_fetch_v6_request"), topics };
    assert_written_as("offset_fetch_v6", 6, &request);
    let fetched = answer::<OffsetFetchRequest>("offset_fetch_v6", 6).topics.remove(0).partitions;
    assert_eq!((fetched[0].offset, fetched[0].metadata.as_str()), (5, "0-4 v1"));
    assert_eq!((fetched[1].offset, fetched[1].metadata.as_str()), (-1, ""));
}

/// Id of the topic in the recorded requests of version 13.
const GOLDEN_ID: [u8; 16] = 0x936129c30d6546b0b852c836b27a3145_u128.to_be_bytes();

fn fetch_request(id: [u8; 16]) -> FetchRequest {
    let wanted = FetchPartition { partition: 0, current_leader_epoch: -1, offset: 0, max_bytes: 10_000_000 };
    let topic = FetchTopic { name: "golden-txn".into(), id: TopicId(id) };
    FetchRequest {
        max_wait_ms: 500,
        min_bytes: 1,
        max_bytes: 10_000_000,
        isolation: Isolation::ReadCommitted,
        topics: vec![ByTopic { topic, partitions: vec![wanted] }],
    }
}

#[test]
fn fetch() {
    for (version, id) in [(11, [0; 16]), (12, [0; 16]), (13, GOLDEN_ID)] {
        let request = fetch_request(id);
        assert_eq!(request.wait_ms(), 500);
        assert_eq!(request.newest_version(), version.max(12), "without ids there are names");
        let name = format!("fetch_v{version}_committed");
        assert_written_as(&name, version, &request);
        let mut named = request.by_name(answer::<FetchRequest>(&name, version));
        let of_topic = named.next().unwrap();
        assert_eq!(&*of_topic.topic, "golden-txn");
        let committed = &of_topic.partitions[0];
        assert_eq!(committed.error, KafkaErrorCode::NONE);
        assert_eq!(committed.aborted_transactions.len(), 2);
        assert!(committed.last_stable_offset < committed.high_watermark);
    }
    let fetched = |name: &str, version| answer::<FetchRequest>(name, version).topics.remove(0).partitions.remove(0);
    let (all, committed) = (fetched("fetch_v11_uncommitted", 11), fetched("fetch_v11_committed", 11));
    assert!(all.aborted_transactions.is_empty() && all.records.len() > committed.records.len());
    assert_eq!(fetched("fetch_v11_out_of_range", 11).error, KafkaErrorCode::OFFSET_OUT_OF_RANGE);
    assert_eq!(fetched("fetch_v13_out_of_range", 13).error, KafkaErrorCode::OFFSET_OUT_OF_RANGE);
    assert_eq!(fetched("fetch_v11_unknown_topic", 11).error, KafkaErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    assert_eq!(fetched("fetch_v13_unknown_topic", 13).error, KafkaErrorCode::UNKNOWN_TOPIC_ID);
}

#[test]
fn an_answer_of_a_topic_that_was_not_asked_for_is_passed_over() {
    let answered = answer::<FetchRequest>("fetch_v13_committed", 13);
    assert_eq!(fetch_request([1; 16]).by_name(answered).count(), 0);
}

#[test]
fn sasl() {
    assert_written_as("sasl_handshake_v1", 1, &SaslHandshakeRequest { mechanism: "PLAIN" });
    let handshake = answer::<SaslHandshakeRequest>("sasl_handshake_v1", 1);
    assert_eq!(handshake.error, KafkaErrorCode::NONE);
    assert!(handshake.mechanisms.contains(&"SCRAM-SHA-512".to_owned()));
    let refused = answer::<SaslHandshakeRequest>("sasl_handshake_v1_unsupported", 1);
    assert_eq!(refused.error, KafkaErrorCode(33));
    let message = b"\0ann\0a secret".to_vec();
    assert_written_as("sasl_authenticate_v1", 1, &SaslAuthenticateRequest { message });
    assert_eq!(answer::<SaslAuthenticateRequest>("sasl_authenticate_v1", 1).error, KafkaErrorCode::NONE);
    let refused = answer::<SaslAuthenticateRequest>("sasl_authenticate_v1_refused", 1);
    assert_eq!(refused.error, KafkaErrorCode::SASL_AUTHENTICATION_FAILED);
    assert!(refused.error_message.unwrap().contains("username"));
}
