//! Kafka's error codes: their names, and which of them pass by themselves.

use std::fmt;

/// The result code that a broker gives to a request, a topic or a partition.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct KafkaErrorCode(pub i16);

/// Names of the codes from 0 on.
const NAMES: [&str; 104] = [
    "NONE",
    "OFFSET_OUT_OF_RANGE",
    "CORRUPT_MESSAGE",
    "UNKNOWN_TOPIC_OR_PARTITION",
    "INVALID_FETCH_SIZE",
    "LEADER_NOT_AVAILABLE",
    "NOT_LEADER_OR_FOLLOWER",
    "REQUEST_TIMED_OUT",
    "BROKER_NOT_AVAILABLE",
    "REPLICA_NOT_AVAILABLE",
    "MESSAGE_TOO_LARGE",
    "STALE_CONTROLLER_EPOCH",
    "OFFSET_METADATA_TOO_LARGE",
    "NETWORK_EXCEPTION",
    "COORDINATOR_LOAD_IN_PROGRESS",
    "COORDINATOR_NOT_AVAILABLE",
    "NOT_COORDINATOR",
    "INVALID_TOPIC_EXCEPTION",
    "RECORD_LIST_TOO_LARGE",
    "NOT_ENOUGH_REPLICAS",
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
    "INVALID_REQUIRED_ACKS",
    "ILLEGAL_GENERATION",
    "INCONSISTENT_GROUP_PROTOCOL",
    "INVALID_GROUP_ID",
    "UNKNOWN_MEMBER_ID",
    "INVALID_SESSION_TIMEOUT",
    "REBALANCE_IN_PROGRESS",
    "INVALID_COMMIT_OFFSET_SIZE",
    "TOPIC_AUTHORIZATION_FAILED",
    "GROUP_AUTHORIZATION_FAILED",
    "CLUSTER_AUTHORIZATION_FAILED",
    "INVALID_TIMESTAMP",
    "UNSUPPORTED_SASL_MECHANISM",
    "ILLEGAL_SASL_STATE",
    "UNSUPPORTED_VERSION",
    "TOPIC_ALREADY_EXISTS",
    "INVALID_PARTITIONS",
    "INVALID_REPLICATION_FACTOR",
    "INVALID_REPLICA_ASSIGNMENT",
    "INVALID_CONFIG",
    "NOT_CONTROLLER",
    "INVALID_REQUEST",
    "UNSUPPORTED_FOR_MESSAGE_FORMAT",
    "POLICY_VIOLATION",
    "OUT_OF_ORDER_SEQUENCE_NUMBER",
    "DUPLICATE_SEQUENCE_NUMBER",
    "INVALID_PRODUCER_EPOCH",
    "INVALID_TXN_STATE",
    "INVALID_PRODUCER_ID_MAPPING",
    "INVALID_TRANSACTION_TIMEOUT",
    "CONCURRENT_TRANSACTIONS",
    "TRANSACTION_COORDINATOR_FENCED",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
    "SECURITY_DISABLED",
    "OPERATION_NOT_ATTEMPTED",
    "KAFKA_STORAGE_ERROR",
    "LOG_DIR_NOT_FOUND",
    "SASL_AUTHENTICATION_FAILED",
    "UNKNOWN_PRODUCER_ID",
    "REASSIGNMENT_IN_PROGRESS",
    "DELEGATION_TOKEN_AUTH_DISABLED",
    "DELEGATION_TOKEN_NOT_FOUND",
    "DELEGATION_TOKEN_OWNER_MISMATCH",
    "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED",
    "DELEGATION_TOKEN_AUTHORIZATION_FAILED",
    "DELEGATION_TOKEN_EXPIRED",
    "INVALID_PRINCIPAL_TYPE",
    "NON_EMPTY_GROUP",
    "GROUP_ID_NOT_FOUND",
    "FETCH_SESSION_ID_NOT_FOUND",
    "INVALID_FETCH_SESSION_EPOCH",
    "LISTENER_NOT_FOUND",
    "TOPIC_DELETION_DISABLED",
    "FENCED_LEADER_EPOCH",
    "UNKNOWN_LEADER_EPOCH",
    "UNSUPPORTED_COMPRESSION_TYPE",
    "STALE_BROKER_EPOCH",
    "OFFSET_NOT_AVAILABLE",
    "MEMBER_ID_REQUIRED",
    "PREFERRED_LEADER_NOT_AVAILABLE",
    "GROUP_MAX_SIZE_REACHED",
    "FENCED_INSTANCE_ID",
    "ELIGIBLE_LEADERS_NOT_AVAILABLE",
    "ELECTION_NOT_NEEDED",
    "NO_REASSIGNMENT_IN_PROGRESS",
    "GROUP_SUBSCRIBED_TO_TOPIC",
    "INVALID_RECORD",
    "UNSTABLE_OFFSET_COMMIT",
    "THROTTLING_QUOTA_EXCEEDED",
    "PRODUCER_FENCED",
    "RESOURCE_NOT_FOUND",
    "DUPLICATE_RESOURCE",
    "UNACCEPTABLE_CREDENTIAL",
    "INCONSISTENT_VOTER_SET",
    "INVALID_UPDATE_VERSION",
    "FEATURE_UPDATE_FAILED",
    "PRINCIPAL_DESERIALIZATION_FAILURE",
    "SNAPSHOT_NOT_FOUND",
    "POSITION_OUT_OF_RANGE",
    "UNKNOWN_TOPIC_ID",
    "DUPLICATE_BROKER_REGISTRATION",
    "BROKER_ID_NOT_REGISTERED",
    "INCONSISTENT_TOPIC_ID",
];

impl KafkaErrorCode {
    pub const NONE: KafkaErrorCode = KafkaErrorCode(0);
    pub const OFFSET_OUT_OF_RANGE: KafkaErrorCode = KafkaErrorCode(1);
    pub const CORRUPT_MESSAGE: KafkaErrorCode = KafkaErrorCode(2);
    pub const UNKNOWN_TOPIC_OR_PARTITION: KafkaErrorCode = KafkaErrorCode(3);
    pub const LEADER_NOT_AVAILABLE: KafkaErrorCode = KafkaErrorCode(5);
    pub const NOT_LEADER_OR_FOLLOWER: KafkaErrorCode = KafkaErrorCode(6);
    pub const REPLICA_NOT_AVAILABLE: KafkaErrorCode = KafkaErrorCode(9);
    pub const COORDINATOR_LOAD_IN_PROGRESS: KafkaErrorCode = KafkaErrorCode(14);
    pub const COORDINATOR_NOT_AVAILABLE: KafkaErrorCode = KafkaErrorCode(15);
    pub const NOT_COORDINATOR: KafkaErrorCode = KafkaErrorCode(16);
    pub const ILLEGAL_GENERATION: KafkaErrorCode = KafkaErrorCode(22);
    pub const INCONSISTENT_GROUP_PROTOCOL: KafkaErrorCode = KafkaErrorCode(23);
    pub const UNKNOWN_MEMBER_ID: KafkaErrorCode = KafkaErrorCode(25);
    pub const REBALANCE_IN_PROGRESS: KafkaErrorCode = KafkaErrorCode(27);
    pub const TOPIC_AUTHORIZATION_FAILED: KafkaErrorCode = KafkaErrorCode(29);
    pub const GROUP_AUTHORIZATION_FAILED: KafkaErrorCode = KafkaErrorCode(30);
    pub const CLUSTER_AUTHORIZATION_FAILED: KafkaErrorCode = KafkaErrorCode(31);
    pub const UNSUPPORTED_VERSION: KafkaErrorCode = KafkaErrorCode(35);
    pub const KAFKA_STORAGE_ERROR: KafkaErrorCode = KafkaErrorCode(56);
    pub const SASL_AUTHENTICATION_FAILED: KafkaErrorCode = KafkaErrorCode(58);
    pub const FETCH_SESSION_ID_NOT_FOUND: KafkaErrorCode = KafkaErrorCode(70);
    pub const INVALID_FETCH_SESSION_EPOCH: KafkaErrorCode = KafkaErrorCode(71);
    pub const FENCED_LEADER_EPOCH: KafkaErrorCode = KafkaErrorCode(74);
    pub const UNKNOWN_LEADER_EPOCH: KafkaErrorCode = KafkaErrorCode(75);
    pub const OFFSET_NOT_AVAILABLE: KafkaErrorCode = KafkaErrorCode(78);
    pub const MEMBER_ID_REQUIRED: KafkaErrorCode = KafkaErrorCode(79);
    pub const FENCED_INSTANCE_ID: KafkaErrorCode = KafkaErrorCode(82);
    pub const UNKNOWN_TOPIC_ID: KafkaErrorCode = KafkaErrorCode(100);
    pub const INCONSISTENT_TOPIC_ID: KafkaErrorCode = KafkaErrorCode(103);

    pub fn is_error(&self) -> bool {
        *self != Self::NONE
    }

    pub fn name(self) -> &'static str {
        let named = usize::try_from(self.0).ok().and_then(|index| NAMES.get(index));
        named.copied().unwrap_or("UNKNOWN_SERVER_ERROR")
    }

    /// Says whether the same request can succeed later, or when it is sent to the right broker.
    pub fn is_retriable(self) -> bool {
        matches!(self.0, 2 | 3 | 5..=7 | 9 | 13..=16 | 19 | 20 | 41 | 51 | 56 | 70..=72 | 74 | 75 | 78 | 80 | 88 | 89
            | 100 | 103)
    }

    /// Says whether the known leaders of partitions are out of date.
    pub fn means_stale_metadata(self) -> bool {
        matches!(
            self,
            Self::UNKNOWN_TOPIC_OR_PARTITION
                | Self::LEADER_NOT_AVAILABLE
                | Self::NOT_LEADER_OR_FOLLOWER
                | Self::REPLICA_NOT_AVAILABLE
                | Self::KAFKA_STORAGE_ERROR
                | Self::FENCED_LEADER_EPOCH
                | Self::UNKNOWN_LEADER_EPOCH
                | Self::UNKNOWN_TOPIC_ID
                | Self::INCONSISTENT_TOPIC_ID
        )
    }

    /// Says whether the known coordinator of a group is out of date.
    pub fn means_stale_coordinator(self) -> bool {
        matches!(self, Self::COORDINATOR_NOT_AVAILABLE | Self::NOT_COORDINATOR)
    }

    pub fn is_authorization(self) -> bool {
        matches!(self.0, 29..=31 | 53 | 65)
    }

    pub fn is_authentication(self) -> bool {
        matches!(self.0, 33 | 34 | 58)
    }
}

impl fmt::Display for KafkaErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name(), self.0)
    }
}

impl fmt::Debug for KafkaErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_at_their_codes() {
        for (code, name) in [
            (KafkaErrorCode::NONE, "NONE"),
            (KafkaErrorCode::ILLEGAL_GENERATION, "ILLEGAL_GENERATION"),
            (KafkaErrorCode::SASL_AUTHENTICATION_FAILED, "SASL_AUTHENTICATION_FAILED"),
            (KafkaErrorCode::FENCED_LEADER_EPOCH, "FENCED_LEADER_EPOCH"),
            (KafkaErrorCode::FENCED_INSTANCE_ID, "FENCED_INSTANCE_ID"),
            (KafkaErrorCode(89), "THROTTLING_QUOTA_EXCEEDED"),
            (KafkaErrorCode(-1), "UNKNOWN_SERVER_ERROR"),
            (KafkaErrorCode(12345), "UNKNOWN_SERVER_ERROR"),
        ] {
            assert_eq!(code.name(), name);
        }
    }
}
