//! The indexes of the exporter's tables: a name, and the definition after it.

use super::TableOptions;
use crate::kind::Kind;

type Index = (&'static str, &'static str);

pub(super) fn indexes(kind: Kind, options: &TableOptions) -> &'static [Index] {
    match kind {
        Kind::Logs if options.json => JSON_LOGS,
        Kind::Logs if options.has_text_indexes() => LOGS_BY_TEXT,
        Kind::Logs => LOGS,
        Kind::Traces if options.json => JSON_TRACES,
        Kind::Traces => TRACES,
        _ => METRICS,
    }
}

pub(super) const TRACE_TIMES_INDEXES: &[Index] = &[("idx_trace_id", "TraceId TYPE bloom_filter(0.01) GRANULARITY 1")];

const LOGS_BY_TEXT: &[Index] = &[
    ("idx_trace_id", "TraceId TYPE text(tokenizer = 'array')"),
    ("idx_res_attr_key", "mapKeys(ResourceAttributes) TYPE text(tokenizer = 'array')"),
    ("idx_res_attr_value", "mapValues(ResourceAttributes) TYPE text(tokenizer = 'array')"),
    ("idx_scope_attr_key", "mapKeys(ScopeAttributes) TYPE text(tokenizer = 'array')"),
    ("idx_scope_attr_value", "mapValues(ScopeAttributes) TYPE text(tokenizer = 'array')"),
    ("idx_log_attr_key", "mapKeys(LogAttributes) TYPE text(tokenizer = 'array')"),
    ("idx_log_attr_value", "mapValues(LogAttributes) TYPE text(tokenizer = 'array')"),
    ("idx_lower_body", "lower(Body) TYPE text(tokenizer = 'splitByNonAlpha')"),
];

const LOGS: &[Index] = &[
    ("idx_trace_id", "TraceId TYPE bloom_filter(0.001) GRANULARITY 1"),
    ("idx_res_attr_key", "mapKeys(ResourceAttributes) TYPE bloom_filter(0.01) GRANULARITY 1"),
    ("idx_res_attr_value", "mapValues(ResourceAttributes) TYPE bloom_filter(0.01) GRANULARITY 1"),
    ("idx_scope_attr_key", "mapKeys(ScopeAttributes) TYPE bloom_filter(0.01) GRANULARITY 1"),
    ("idx_scope_attr_value", "mapValues(ScopeAttributes) TYPE bloom_filter(0.01) GRANULARITY 1"),
    ("idx_log_attr_key", "mapKeys(LogAttributes) TYPE bloom_filter(0.01) GRANULARITY 1"),
    ("idx_log_attr_value", "mapValues(LogAttributes) TYPE bloom_filter(0.01) GRANULARITY 1"),
    ("idx_lower_body", "lower(Body) TYPE tokenbf_v1(32768, 3, 0) GRANULARITY 8"),
];

const JSON_LOGS: &[Index] = &[
    ("idx_res_attr_keys", "ResourceAttributesKeys TYPE bloom_filter(0.01) GRANULARITY 1"),
    ("idx_scope_attr_keys", "ScopeAttributesKeys TYPE bloom_filter(0.01) GRANULARITY 1"),
    ("idx_log_attr_keys", "LogAttributesKeys TYPE bloom_filter(0.01) GRANULARITY 1"),
    ("idx_body", "Body TYPE tokenbf_v1(32768, 3, 0) GRANULARITY 8"),
];

const TRACES: &[Index] = &[
    ("idx_trace_id", "TraceId TYPE bloom_filter(0.001) GRANULARITY 1"),
    ("idx_res_attr_key", "mapKeys(ResourceAttributes) TYPE bloom_filter(0.01) GRANULARITY 1"),
    ("idx_res_attr_value", "mapValues(ResourceAttributes) TYPE bloom_filter(0.01) GRANULARITY 1"),
    ("idx_span_attr_key", "mapKeys(SpanAttributes) TYPE bloom_filter(0.01) GRANULARITY 1"),
    ("idx_span_attr_value", "mapValues(SpanAttributes) TYPE bloom_filter(0.01) GRANULARITY 1"),
    ("idx_duration", "Duration TYPE minmax GRANULARITY 1"),
];

const JSON_TRACES: &[Index] = &[
    ("idx_res_attr_keys", "ResourceAttributesKeys TYPE bloom_filter(0.01) GRANULARITY 1"),
    ("idx_span_attr_keys", "SpanAttributesKeys TYPE bloom_filter(0.01) GRANULARITY 1"),
    ("idx_duration", "Duration TYPE minmax GRANULARITY 1"),
];

const METRICS: &[Index] = &[
    ("idx_res_attr_key", "mapKeys(ResourceAttributes) TYPE bloom_filter(0.01) GRANULARITY 1"),
    ("idx_res_attr_value", "mapValues(ResourceAttributes) TYPE bloom_filter(0.01) GRANULARITY 1"),
    ("idx_scope_attr_key", "mapKeys(ScopeAttributes) TYPE bloom_filter(0.01) GRANULARITY 1"),
    ("idx_scope_attr_value", "mapValues(ScopeAttributes) TYPE bloom_filter(0.01) GRANULARITY 1"),
    ("idx_attr_key", "mapKeys(Attributes) TYPE bloom_filter(0.01) GRANULARITY 1"),
    ("idx_attr_value", "mapValues(Attributes) TYPE bloom_filter(0.01) GRANULARITY 1"),
    ("idx_time_minmax", "TimeUnix TYPE minmax GRANULARITY 1"),
];
