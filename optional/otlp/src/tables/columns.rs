//! The columns of the exporter's tables.

use super::identifier;
use super::MetricTime;
use crate::kind::Kind;

#[derive(Clone, Copy)]
pub(super) struct ColumnDef {
    pub(super) name: &'static str,
    type_text: &'static str,
    /// The attribute of the resource that the column is computed from.
    copies: Option<&'static str>,
    codec: &'static str,
}

const ZSTD: &str = "ZSTD(1)";
const DELTA: &str = "Delta, ZSTD(1)";
const NONE: &str = "";

const LOW: &str = "LowCardinality(String)";
const MAP: &str = "Map(LowCardinality(String), String)";
const KEYS: &str = "Array(LowCardinality(String))";

impl ColumnDef {
    pub(super) fn text(&self) -> String {
        let mut text = format!("{} {}", identifier(self.name), self.type_text);
        if let Some(attribute) = self.copies {
            text.push_str(&format!(" MATERIALIZED ResourceAttributes['{attribute}']"));
        }
        if !self.codec.is_empty() {
            text.push_str(&format!(" CODEC({})", self.codec));
        }
        text
    }
}

const fn column(name: &'static str, type_text: &'static str, codec: &'static str) -> ColumnDef {
    ColumnDef { name, type_text, copies: None, codec }
}

const fn zstd(name: &'static str, type_text: &'static str) -> ColumnDef {
    column(name, type_text, ZSTD)
}

/// Makes a column that is computed from an attribute of the resource, and is never inserted.
const fn copy(name: &'static str, attribute: &'static str) -> ColumnDef {
    ColumnDef { name, type_text: LOW, copies: Some(attribute), codec: ZSTD }
}

const LOG_HEAD: [ColumnDef; 9] = [
    column("Timestamp", "DateTime64(9)", "Delta(8), ZSTD(1)"),
    zstd("TraceId", "String"),
    zstd("SpanId", "String"),
    column("TraceFlags", "UInt8", NONE),
    zstd("SeverityText", LOW),
    column("SeverityNumber", "UInt8", NONE),
    zstd("ServiceName", LOW),
    zstd("Body", "String"),
    zstd("ResourceSchemaUrl", LOW),
];

const LOG_SCOPE: [ColumnDef; 3] = [zstd("ScopeSchemaUrl", LOW), zstd("ScopeName", "String"), zstd("ScopeVersion", LOW)];

const EVENT_NAME: ColumnDef = zstd("EventName", "String");

const LOG_COPIES: [ColumnDef; 8] = [
    copy("__otel_materialized_k8s.cluster.name", "k8s.cluster.name"),
    copy("__otel_materialized_k8s.container.name", "k8s.container.name"),
    copy("__otel_materialized_k8s.deployment.name", "k8s.deployment.name"),
    copy("__otel_materialized_k8s.namespace.name", "k8s.namespace.name"),
    copy("__otel_materialized_k8s.node.name", "k8s.node.name"),
    copy("__otel_materialized_k8s.pod.name", "k8s.pod.name"),
    copy("__otel_materialized_k8s.pod.uid", "k8s.pod.uid"),
    copy("__otel_materialized_deployment.environment.name", "deployment.environment.name"),
];

pub(super) fn logs() -> Vec<ColumnDef> {
    let attributes = [zstd("ScopeAttributes", MAP), zstd("LogAttributes", MAP), EVENT_NAME];
    [&LOG_HEAD[..], &[zstd("ResourceAttributes", MAP)], &LOG_SCOPE, &attributes, &LOG_COPIES].concat()
}

pub(super) fn json_logs() -> Vec<ColumnDef> {
    let resource = [zstd("ResourceAttributes", "JSON"), zstd("ResourceAttributesKeys", KEYS)];
    let attributes = [
        zstd("ScopeAttributes", "JSON"),
        zstd("ScopeAttributesKeys", KEYS),
        zstd("LogAttributes", "JSON"),
        zstd("LogAttributesKeys", KEYS),
        EVENT_NAME,
    ];
    [&LOG_HEAD[..], &resource, &LOG_SCOPE, &attributes].concat()
}

const SPAN_HEAD: [ColumnDef; 8] = [
    column("Timestamp", "DateTime64(9)", DELTA),
    zstd("TraceId", "String"),
    zstd("SpanId", "String"),
    zstd("ParentSpanId", "String"),
    zstd("TraceState", "String"),
    zstd("SpanName", LOW),
    zstd("SpanKind", LOW),
    zstd("ServiceName", LOW),
];

const SPAN_SCOPE: [ColumnDef; 2] = [zstd("ScopeName", "String"), zstd("ScopeVersion", "String")];

const SPAN_OUTCOME: [ColumnDef; 3] =
    [zstd("Duration", "UInt64"), zstd("StatusCode", LOW), zstd("StatusMessage", "String")];

pub(super) fn traces() -> Vec<ColumnDef> {
    let lists = [
        zstd("Events", "Nested(Timestamp DateTime64(9), Name LowCardinality(String), Attributes Map(LowCardinality(String), String))"),
        zstd("Links", "Nested(TraceId String, SpanId String, TraceState String, Attributes Map(LowCardinality(String), String))"),
    ];
    let resource = [zstd("ResourceAttributes", MAP)];
    [&SPAN_HEAD[..], &resource, &SPAN_SCOPE, &[zstd("SpanAttributes", MAP)], &SPAN_OUTCOME, &lists].concat()
}

pub(super) fn json_traces() -> Vec<ColumnDef> {
    let resource = [zstd("ResourceAttributes", "JSON"), zstd("ResourceAttributesKeys", KEYS)];
    let attributes = [zstd("SpanAttributes", "JSON"), zstd("SpanAttributesKeys", KEYS)];
    let lists = [
        zstd("Events", "Nested(Timestamp DateTime64(9), Name LowCardinality(String), Attributes JSON)"),
        zstd("Links", "Nested(TraceId String, SpanId String, TraceState String, Attributes JSON)"),
    ];
    [&SPAN_HEAD[..], &resource, &SPAN_SCOPE, &attributes, &SPAN_OUTCOME, &lists].concat()
}

/// The columns with the beginning and the end of a trace.
pub(super) const TRACE_TIMES: [ColumnDef; 3] =
    [zstd("TraceId", "String"), column("Start", "DateTime", DELTA), column("End", "DateTime", DELTA)];

const METRIC_HEAD: [ColumnDef; 12] = [
    zstd("ResourceAttributes", MAP),
    zstd("ResourceSchemaUrl", "String"),
    zstd("ScopeName", "String"),
    zstd("ScopeVersion", "String"),
    zstd("ScopeAttributes", MAP),
    zstd("ScopeDroppedAttrCount", "UInt32"),
    zstd("ScopeSchemaUrl", "String"),
    zstd("ServiceName", LOW),
    zstd("MetricName", LOW),
    zstd("MetricDescription", "String"),
    zstd("MetricUnit", "String"),
    zstd("Attributes", MAP),
];

const FLAGS: ColumnDef = zstd("Flags", "UInt32");
const VALUE: ColumnDef = zstd("Value", "Float64");
const COUNT: ColumnDef = column("Count", "UInt64", DELTA);
const SUM: ColumnDef = zstd("Sum", "Float64");
const TEMPORALITY: ColumnDef = zstd("AggregationTemporality", "Int32");
const MIN_AND_MAX: [ColumnDef; 2] = [zstd("Min", "Float64"), zstd("Max", "Float64")];

const BUCKETS: [ColumnDef; 2] = [zstd("BucketCounts", "Array(UInt64)"), zstd("ExplicitBounds", "Array(Float64)")];

const EXPONENTIAL_BUCKETS: [ColumnDef; 6] = [
    zstd("Scale", "Int32"),
    zstd("ZeroCount", "UInt64"),
    zstd("PositiveOffset", "Int32"),
    zstd("PositiveBucketCounts", "Array(UInt64)"),
    zstd("NegativeOffset", "Int32"),
    zstd("NegativeBucketCounts", "Array(UInt64)"),
];

pub(super) fn metrics(kind: Kind, time: MetricTime) -> Vec<ColumnDef> {
    let time_type = match time {
        MetricTime::DateTime => "DateTime",
        MetricTime::DateTime64 => "DateTime64(9)",
    };
    let times = [column("StartTimeUnix", time_type, DELTA), column("TimeUnix", time_type, DELTA)];
    let exemplars = [exemplars(time)];
    let histogram = [FLAGS, MIN_AND_MAX[0], MIN_AND_MAX[1], TEMPORALITY];
    let own: &[&[ColumnDef]] = match kind {
        Kind::Gauge => &[&[VALUE, FLAGS], &exemplars],
        Kind::Sum => &[&[VALUE, FLAGS], &exemplars, &[TEMPORALITY, column("IsMonotonic", "Boolean", DELTA)]],
        Kind::Summary => &[&[COUNT, SUM, zstd("ValueAtQuantiles", "Nested(Quantile Float64, Value Float64)"), FLAGS]],
        Kind::Histogram => &[&[COUNT, SUM], &BUCKETS, &exemplars, &histogram],
        _ => &[&[COUNT, SUM], &EXPONENTIAL_BUCKETS, &exemplars, &histogram],
    };
    [&METRIC_HEAD[..], &times, &own.concat()].concat()
}

fn exemplars(time: MetricTime) -> ColumnDef {
    let type_text = match time {
        MetricTime::DateTime => "Nested(FilteredAttributes Map(LowCardinality(String), String), TimeUnix DateTime, Value Float64, SpanId String, TraceId String)",
        MetricTime::DateTime64 => "Nested(FilteredAttributes Map(LowCardinality(String), String), TimeUnix DateTime64(9), Value Float64, SpanId String, TraceId String)",
    };
    zstd("Exemplars", type_text)
}
