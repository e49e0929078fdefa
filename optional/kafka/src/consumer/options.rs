//! Options of a member of a group: the topics that it reads, and the sizes of its requests.

use crate::group::Assignor;
use crate::wire::Isolation;

#[derive(Debug, Clone)]
pub struct ConsumerOptions {
    pub topics: Topics,
    pub group: String,
    /// Id of a static member. Such a member keeps its partitions when it comes back under this id within the
    /// session timeout.
    pub group_instance_id: Option<String>,
    /// Assignors in order of preference. With [`Assignor::CooperativeSticky`] alone, a group whose members
    /// don't know it can't be joined.
    pub assignors: Vec<Assignor>,
    /// Time without a heartbeat after which the group gives the member's partitions to others.
    pub session_timeout_ms: u64,
    pub heartbeat_interval_ms: u64,
    /// Time that the others wait for a member that finishes its work before it gives partitions up.
    pub rebalance_timeout_ms: u64,
    /// Time between two searches for new partitions and new topics.
    pub metadata_refresh_ms: u64,
    pub isolation: Isolation,
    pub fetch: FetchSizes,
    /// Bytes of fetched records that may be held. Those in [`Fetched`](crate::consumer::Fetched) count until
    /// they are dropped.
    pub max_prefetch_bytes: usize,
}

impl ConsumerOptions {
    pub fn new(topics: Topics, group: impl Into<String>) -> Self {
        Self {
            topics,
            group: group.into(),
            group_instance_id: None,
            assignors: vec![Assignor::CooperativeSticky, Assignor::Range],
            session_timeout_ms: 10_000,
            heartbeat_interval_ms: 3_000,
            rebalance_timeout_ms: 60_000,
            metadata_refresh_ms: 10_000,
            isolation: Isolation::ReadCommitted,
            fetch: FetchSizes::default(),
            max_prefetch_bytes: 32 << 20,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Topics {
    Named(Vec<String>),
    /// A regular expression that a name has to match from its beginning to its end. Kafka's own topics are left out.
    Pattern(String),
}

/// The sizes of one request to a broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchSizes {
    /// Bytes that the broker waits for, but no longer than `max_wait_ms`.
    pub min_bytes: usize,
    pub max_bytes: usize,
    pub max_partition_bytes: usize,
    pub max_wait_ms: u64,
}

impl Default for FetchSizes {
    /// Returns the sizes for the least latency: the broker answers as soon as there is a record.
    fn default() -> Self {
        Self { min_bytes: 1, max_bytes: 16 << 20, max_partition_bytes: 4 << 20, max_wait_ms: 500 }
    }
}
