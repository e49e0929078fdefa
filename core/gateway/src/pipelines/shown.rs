//! The pipelines that the gateway shows, and their JSON for the admin port.

use std::sync::{Arc, OnceLock};

use serde_json::{json, Value};
use windrow_kafka::pipeline::{LastError, PartitionStatus, PipelineStatus, Quantiles};

/// A function that returns the state of all pipelines at this moment.
pub type PipelineSource = Arc<dyn Fn() -> Vec<PipelineStatus> + Send + Sync>;

/// The source of the shown pipelines. It is set when the binary has started some.
#[derive(Default)]
pub(crate) struct ShownPipelines(OnceLock<PipelineSource>);

impl ShownPipelines {
    pub(crate) fn set(&self, source: PipelineSource) {
        // Who comes second has nothing else to say.
        let _ = self.0.set(source);
    }

    pub(crate) fn get(&self) -> Vec<PipelineStatus> {
        self.0.get().map(|source| source()).unwrap_or_default()
    }
}

/// Returns the JSON of `/api/v1/kafka`.
pub fn pipelines_json(pipelines: &[PipelineStatus]) -> Value {
    json!({ "pipelines": pipelines.iter().map(pipeline).collect::<Vec<_>>() })
}

fn pipeline(status: &PipelineStatus) -> Value {
    json!({
        "pipeline": status.pipeline,
        "group": status.group,
        "database": status.database,
        "table": status.table,
        "format": status.format,
        "guarantee": status.guarantee.as_str(),
        "state": status.state.as_str(),
        "max_latency_seconds": status.max_latency_seconds,
        "rebalances": status.rebalances,
        "replays": status.replays,
        "last_error": status.last_error.as_ref().map(last_error),
        "last_token": status.last_token,
        "partitions": status.partitions.iter().map(partition).collect::<Vec<_>>(),
    })
}

fn partition(status: &PartitionStatus) -> Value {
    json!({
        "topic": &*status.topic,
        "partition": status.partition,
        "state": status.state.as_str(),
        "committed_offset": status.committed_offset,
        "stored_offset": status.stored_offset,
        "high_watermark": status.high_watermark,
        "lag_messages": status.lag_messages,
        "oldest_unstored_seconds": status.oldest_unstored_seconds,
        "latency_seconds": status.latency.map(quantiles),
        "kafka_seconds": status.kafka_seconds,
        "gathering_seconds": status.gathering_seconds,
        "storing_seconds": status.storing_seconds,
        "messages": status.messages,
        "rows": status.rows,
        "bytes": status.bytes,
        "batches": status.batches,
        "dead_letters": status.dead_letters,
        "skipped": status.skipped,
        "tombstones": status.tombstones,
        "truncated_offsets": status.truncated_offsets,
        "last_error": status.last_error.as_ref().map(last_error),
        "last_token": status.last_token,
    })
}

fn quantiles(latency: Quantiles) -> Value {
    json!({ "p50": latency.p50_seconds, "p95": latency.p95_seconds, "p99": latency.p99_seconds })
}

fn last_error(error: &LastError) -> Value {
    json!({ "error": error.text, "at_micros": error.at_wall_micros })
}

#[cfg(test)]
pub(crate) fn example() -> PipelineStatus {
    use windrow_kafka::pipeline::{Guarantee, State};
    let error = LastError { text: "no\n\u{1b}".to_owned(), at_wall_micros: 1_700_000_000_123_456 };
    let partition = PartitionStatus {
        topic: "events".into(),
        partition: 3,
        state: State::Running,
        committed_offset: Some(7),
        stored_offset: Some(9),
        high_watermark: None,
        lag_messages: 1,
        oldest_unstored_seconds: 0.25,
        latency: Some(Quantiles { p50_seconds: 0.5, p95_seconds: 0.9, p99_seconds: 1.0 }),
        kafka_seconds: 0.1,
        gathering_seconds: 0.2,
        storing_seconds: 0.3,
        messages: 9,
        rows: 18,
        bytes: 900,
        batches: 2,
        dead_letters: 1,
        skipped: 0,
        tombstones: 1,
        truncated_offsets: 0,
        last_error: Some(error.clone()),
        last_token: "events:3:7-9".to_owned(),
    };
    PipelineStatus {
        pipeline: "clicks".to_owned(),
        group: "windrow".to_owned(),
        database: "default".to_owned(),
        table: "events".to_owned(),
        format: "JSONEachRow".to_owned(),
        guarantee: Guarantee::ExactlyOnce,
        state: State::Running,
        max_latency_seconds: 5.0,
        rebalances: 1,
        replays: 0,
        last_error: None,
        last_token: "events:3:7-9".to_owned(),
        partitions: vec![partition],
    }
}
