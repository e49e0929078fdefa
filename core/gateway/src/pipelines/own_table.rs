//! The table `system.windrow_kafka`. It has a row for each partition that a pipeline of this gateway reads,
//! and one for a pipeline without any.

use serde_json::{json, Value};
use windrow_kafka::pipeline::{LastError, PartitionStatus, PipelineStatus, Quantiles};

use crate::data::own_tables::{ColumnList, Visible};

pub(crate) const NAME: &str = "windrow_kafka";

pub(crate) const COLUMNS: ColumnList = &[
    ("pipeline", "LowCardinality(String)"),
    ("group", "LowCardinality(String)"),
    ("topic", "LowCardinality(String)"),
    ("partition", "Nullable(Int32)"),
    ("database", "LowCardinality(String)"),
    ("table", "LowCardinality(String)"),
    ("format", "LowCardinality(String)"),
    ("guarantee", "LowCardinality(String)"),
    ("state", "LowCardinality(String)"),
    ("committed_offset", "Nullable(Int64)"),
    ("stored_offset", "Nullable(Int64)"),
    ("high_watermark", "Nullable(Int64)"),
    ("lag_messages", "UInt64"),
    ("oldest_unstored_seconds", "Float64"),
    ("latency_p50_seconds", "Nullable(Float64)"),
    ("latency_p95_seconds", "Nullable(Float64)"),
    ("latency_p99_seconds", "Nullable(Float64)"),
    ("kafka_seconds", "Float64"),
    ("gathering_seconds", "Float64"),
    ("storing_seconds", "Float64"),
    ("messages", "UInt64"),
    ("rows", "UInt64"),
    ("bytes", "UInt64"),
    ("batches", "UInt64"),
    ("dead_letters", "UInt64"),
    ("skipped", "UInt64"),
    ("tombstones", "UInt64"),
    ("truncated_offsets", "UInt64"),
    ("rebalances", "UInt64"),
    ("replays", "UInt64"),
    ("last_error", "String"),
    ("last_error_time", "Nullable(DateTime64(6))"),
    ("last_token", "String"),
    ("max_latency_seconds", "Float64"),
];

/// Returns the table's rows. The text of an error may name values of rows, so only users who see everybody's
/// rows see it.
pub(crate) fn rows(pipelines: &[PipelineStatus], visible: &Visible<'_>) -> Vec<Value> {
    let sees_errors = matches!(visible, Visible::Everybodys);
    let of_pipeline = |pipeline: &PipelineStatus| {
        let whole = || row(pipeline, None, sees_errors);
        let rows: Vec<Value> =
            pipeline.partitions.iter().map(|partition| row(pipeline, Some(partition), sees_errors)).collect();
        if rows.is_empty() {
            vec![whole()]
        } else {
            rows
        }
    };
    pipelines.iter().flat_map(of_pipeline).collect()
}

fn row(pipeline: &PipelineStatus, partition: Option<&PartitionStatus>, sees_errors: bool) -> Value {
    let count = |of: fn(&PartitionStatus) -> u64| partition.map_or(0, of);
    let seconds = |of: fn(&PartitionStatus) -> f64| partition.map_or(0.0, of);
    let latency = |of: fn(Quantiles) -> f64| partition.and_then(|partition| partition.latency).map(of);
    let of_partition = partition.and_then(|partition| partition.last_error.as_ref());
    let last_error: Option<&LastError> = of_partition.or(pipeline.last_error.as_ref());
    json!({
        "pipeline": pipeline.pipeline,
        "group": pipeline.group,
        "topic": partition.map_or("", |partition| &*partition.topic),
        "partition": partition.map(|partition| partition.partition),
        "database": pipeline.database,
        "table": pipeline.table,
        "format": pipeline.format,
        "guarantee": pipeline.guarantee.as_str(),
        "state": partition.map_or(pipeline.state, |partition| partition.state).as_str(),
        "committed_offset": partition.and_then(|partition| partition.committed_offset),
        "stored_offset": partition.and_then(|partition| partition.stored_offset),
        "high_watermark": partition.and_then(|partition| partition.high_watermark),
        "lag_messages": count(|partition| partition.lag_messages),
        "oldest_unstored_seconds": seconds(|partition| partition.oldest_unstored_seconds),
        "latency_p50_seconds": latency(|latency| latency.p50_seconds),
        "latency_p95_seconds": latency(|latency| latency.p95_seconds),
        "latency_p99_seconds": latency(|latency| latency.p99_seconds),
        "kafka_seconds": seconds(|partition| partition.kafka_seconds),
        "gathering_seconds": seconds(|partition| partition.gathering_seconds),
        "storing_seconds": seconds(|partition| partition.storing_seconds),
        "messages": count(|partition| partition.messages),
        "rows": count(|partition| partition.rows),
        "bytes": count(|partition| partition.bytes),
        "batches": count(|partition| partition.batches),
        "dead_letters": count(|partition| partition.dead_letters),
        "skipped": count(|partition| partition.skipped),
        "tombstones": count(|partition| partition.tombstones),
        "truncated_offsets": count(|partition| partition.truncated_offsets),
        "rebalances": pipeline.rebalances,
        "replays": pipeline.replays,
        "last_error": last_error.filter(|_| sees_errors).map_or("", |error| &error.text),
        "last_error_time": last_error.map(|error| error.at_wall_micros),
        "last_token": partition.map_or(&pipeline.last_token, |partition| &partition.last_token),
        "max_latency_seconds": pipeline.max_latency_seconds,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipelines::example;

    #[test]
    fn every_column_has_a_value() {
        let without_partitions = PipelineStatus { partitions: Vec::new(), ..example() };
        let rows = rows(&[example(), without_partitions], &Visible::Everybodys);
        assert_eq!(rows.len(), 2);
        for row in &rows {
            let given: Vec<&String> = row.as_object().into_iter().flat_map(|fields| fields.keys()).collect();
            assert_eq!(given.len(), COLUMNS.len());
            assert!(COLUMNS.iter().all(|(name, _)| row.get(name).is_some()));
        }
        assert_eq!((&rows[0]["topic"], &rows[0]["partition"]), (&json!("events"), &json!(3)));
        assert_eq!((&rows[1]["topic"], &rows[1]["partition"]), (&json!(""), &Value::Null));
    }

    #[test]
    fn errors_are_for_those_who_see_everything() {
        assert_eq!(rows(&[example()], &Visible::Everybodys)[0]["last_error"], "no\n\u{1b}");
        let seen = rows(&[example()], &Visible::Only("joe"));
        assert_eq!((&seen[0]["last_error"], &seen[0]["rows"]), (&json!(""), &json!(18)));
    }
}
