//! The status of a pipeline, shown as a row of `system.windrow_kafka` for each of its partitions.

use std::sync::Arc;

#[derive(Debug, Clone)]
pub struct PipelineStatus {
    pub pipeline: String,
    pub group: String,
    pub database: String,
    pub table: String,
    pub format: String,
    pub guarantee: Guarantee,
    pub state: State,
    pub max_latency_seconds: f64,
    pub rebalances: u64,
    pub replays: u64,
    /// Last error of the pipeline as a whole: brokers, group, table.
    pub last_error: Option<LastError>,
    /// Text `topic:partition:first-last` of each range of the latest batch, joined by commas.
    pub last_token: String,
    /// Partitions that the pipeline owns now, by topic and number.
    pub partitions: Vec<PartitionStatus>,
}

#[derive(Debug, Clone)]
pub struct PartitionStatus {
    pub topic: Arc<str>,
    pub partition: i32,
    pub state: State,
    /// Committed offset, or `None` while it isn't known.
    pub committed_offset: Option<i64>,
    pub stored_offset: Option<i64>,
    pub high_watermark: Option<i64>,
    pub lag_messages: u64,
    pub oldest_unstored_seconds: f64,
    /// Latency of the last minute, from a message's timestamp until it was stored, or `None` if no message was.
    pub latency: Option<Quantiles>,
    /// Mean time of the last minute until messages were fetched. The next two fields are means of the last
    /// minute, too.
    pub kafka_seconds: f64,
    pub gathering_seconds: f64,
    pub storing_seconds: f64,
    pub messages: u64,
    pub rows: u64,
    pub bytes: u64,
    pub batches: u64,
    pub dead_letters: u64,
    pub skipped: u64,
    pub tombstones: u64,
    /// Offsets that were read and that a later leader lacks.
    pub truncated_offsets: u64,
    pub last_error: Option<LastError>,
    pub last_token: String,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quantiles {
    pub p50_seconds: f64,
    pub p95_seconds: f64,
    pub p99_seconds: f64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastError {
    pub text: String,
    /// Time of the error, in microseconds since 1970.
    pub at_wall_micros: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum State {
    /// The pipeline is connecting, or has no partition.
    #[default]
    Waiting,
    Running,
    /// Messages are not fetched until some of the held rows are stored.
    Paused,
    /// A batch of an earlier run, or of another member, is stored first.
    Replaying,
    /// A backend or a broker refuses or can't be reached, and is tried again.
    Failed,
    /// A command has stopped the pipeline, or a message that can't be stored, where the settings say so.
    Stopped,
}

impl State {
    pub const fn as_str(self) -> &'static str {
        match self {
            State::Waiting => "waiting",
            State::Running => "running",
            State::Paused => "paused",
            State::Replaying => "replaying",
            State::Failed => "failed",
            State::Stopped => "stopped",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guarantee {
    ExactlyOnce,
    AtLeastOnce,
}

impl Guarantee {
    pub const fn as_str(self) -> &'static str {
        match self {
            Guarantee::ExactlyOnce => "exactly once",
            Guarantee::AtLeastOnce => "at least once",
        }
    }
}
