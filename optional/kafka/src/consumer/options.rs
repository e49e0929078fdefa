//! What a member of a group reads, and how much of it at once.

use crate::group::Assignor;
use crate::wire::Isolation;

#[derive(Debug, Clone)]
pub struct ConsumerOptions {
    pub topics: Topics,
    pub group: String,
    /// A static member keeps its partitions when it comes back within the session timeout, under the same id.
    pub group_instance_id: Option<String>,
    /// In order of preference. With [`Assignor::CooperativeSticky`] alone a group of others that don't know it can't be joined.
    pub assignors: Vec<Assignor>,
    /// After so long a silence the group gives the member's partitions to others.
    pub session_timeout_ms: u64,
    pub heartbeat_interval_ms: u64,
    /// How long the others wait for a member that has to finish what is under way before it gives partitions up.
    pub rebalance_timeout_ms: u64,
    /// How often new partitions and new topics are looked for.
    pub metadata_refresh_ms: u64,
    pub isolation: Isolation,
    pub fetch: FetchSizes,
    /// Of records that were fetched and are still held, those in [`Fetched`](crate::consumer::Fetched) included until they are dropped.
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

/// What is asked of a broker at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchSizes {
    /// The broker waits for so much, but no longer than `max_wait_ms`.
    pub min_bytes: usize,
    pub max_bytes: usize,
    pub max_partition_bytes: usize,
    pub max_wait_ms: u64,
}

impl Default for FetchSizes {
    /// For the least latency: the broker answers as soon as there is a record.
    fn default() -> Self {
        Self { min_bytes: 1, max_bytes: 16 << 20, max_partition_bytes: 4 << 20, max_wait_ms: 500 }
    }
}
