//! OTLP's messages as tables: the names of their fields in JSON, and the types of their values. Both readers
//! use them: the one that checks Protobuf, and the one that makes Protobuf of JSON.
//!
//! Fields that no table is filled from are listed only where they have a type that JSON needs to know. Others
//! are unknown fields, and are skipped like these.

use crate::kind::Signal;

pub(crate) struct Message {
    pub(crate) fields: &'static [FieldSpec],
    /// The position of each field in `fields` by its number, and `NONE` for numbers without a field.
    by_number: [u8; NUMBERS],
    /// Says whether a value inside the message is one level deeper than the message itself.
    pub(crate) is_nesting: bool,
    /// Says whether the message is a row, or has rows in it. If it can't be read, its neighbours are not lost.
    pub(crate) holds_rows: bool,
}

pub(crate) struct FieldSpec {
    pub(crate) number: u32,
    pub(crate) name: &'static str,
    pub(crate) carries: Carries,
}

#[derive(Clone, Copy)]
pub(crate) enum Carries {
    Text,
    /// Bytes, in JSON as base64.
    Bytes,
    /// An id of no bytes or of exactly so many, in JSON as hexadecimal digits.
    Id(usize),
    Bool,
    Uint32,
    Uint64,
    Int32,
    Int64,
    Sint32,
    Enum(&'static [&'static str]),
    Fixed32,
    Fixed64,
    Sfixed64,
    Double,
    Fixed64s,
    Doubles,
    Uint64s,
    Message(&'static Message),
    Messages(&'static Message),
}

const NUMBERS: usize = 17;
const NONE: u8 = u8::MAX;

impl Message {
    const fn new(fields: &'static [FieldSpec]) -> Message {
        let mut by_number = [NONE; NUMBERS];
        let mut at = 0;
        while at < fields.len() {
            by_number[fields[at].number as usize] = at as u8;
            at += 1;
        }
        Message { fields, by_number, is_nesting: false, holds_rows: false }
    }

    const fn rows(fields: &'static [FieldSpec]) -> Message {
        Message { holds_rows: true, ..Message::new(fields) }
    }

    const fn nesting(fields: &'static [FieldSpec]) -> Message {
        Message { is_nesting: true, ..Message::new(fields) }
    }

    #[inline]
    pub(crate) fn field(&self, number: u32) -> Option<&'static FieldSpec> {
        let at = *self.by_number.get(number as usize)?;
        self.fields.get(usize::from(at))
    }

    /// Finds a field by its name in JSON, or by its name in the schema, which the collector reads as well.
    pub(crate) fn field_named(&self, name: &str) -> Option<&'static FieldSpec> {
        self.fields.iter().find(|field| is_name_of(field.name, name))
    }
}

/// Says whether `given` is the name `camel` in lowerCamelCase or in snake_case.
fn is_name_of(camel: &str, given: &str) -> bool {
    let snake = camel.chars().flat_map(|letter| {
        let underscore = letter.is_ascii_uppercase().then_some('_');
        underscore.into_iter().chain([letter.to_ascii_lowercase()])
    });
    camel == given || snake.eq(given.chars())
}

const fn field(number: u32, name: &'static str, carries: Carries) -> FieldSpec {
    FieldSpec { number, name, carries }
}

use Carries::*;

/// Returns the message of a request.
pub(crate) fn request(signal: Signal) -> &'static Message {
    match signal {
        Signal::Logs => &LOGS_REQUEST,
        Signal::Traces => &TRACES_REQUEST,
        Signal::Metrics => &METRICS_REQUEST,
    }
}

static LOGS_REQUEST: Message = Message::new(&[field(1, "resourceLogs", Messages(&RESOURCE_LOGS))]);
static TRACES_REQUEST: Message = Message::new(&[field(1, "resourceSpans", Messages(&RESOURCE_SPANS))]);
static METRICS_REQUEST: Message = Message::new(&[field(1, "resourceMetrics", Messages(&RESOURCE_METRICS))]);

pub(crate) static RESOURCE_LOGS: Message = Message::rows(&[
    field(1, "resource", Message(&RESOURCE)),
    field(2, "scopeLogs", Messages(&SCOPE_LOGS)),
    field(3, "schemaUrl", Text),
]);
pub(crate) static RESOURCE_SPANS: Message = Message::rows(&[
    field(1, "resource", Message(&RESOURCE)),
    field(2, "scopeSpans", Messages(&SCOPE_SPANS)),
    field(3, "schemaUrl", Text),
]);
pub(crate) static RESOURCE_METRICS: Message = Message::rows(&[
    field(1, "resource", Message(&RESOURCE)),
    field(2, "scopeMetrics", Messages(&SCOPE_METRICS)),
    field(3, "schemaUrl", Text),
]);

pub(crate) static SCOPE_LOGS: Message = Message::rows(&[
    field(1, "scope", Message(&SCOPE)),
    field(2, "logRecords", Messages(&LOG_RECORD)),
    field(3, "schemaUrl", Text),
]);
pub(crate) static SCOPE_SPANS: Message = Message::rows(&[
    field(1, "scope", Message(&SCOPE)),
    field(2, "spans", Messages(&SPAN)),
    field(3, "schemaUrl", Text),
]);
pub(crate) static SCOPE_METRICS: Message = Message::rows(&[
    field(1, "scope", Message(&SCOPE)),
    field(2, "metrics", Messages(&METRIC)),
    field(3, "schemaUrl", Text),
]);

pub(crate) static RESOURCE: Message = Message::new(&[field(1, "attributes", Messages(&KEY_VALUE))]);
pub(crate) static SCOPE: Message = Message::new(&[
    field(1, "name", Text),
    field(2, "version", Text),
    field(3, "attributes", Messages(&KEY_VALUE)),
    field(4, "droppedAttributesCount", Uint32),
]);

pub(crate) static KEY_VALUE: Message = Message::new(&[field(1, "key", Text), field(2, "value", Message(&ANY_VALUE))]);
pub(crate) static ANY_VALUE: Message = Message::new(&[
    field(1, "stringValue", Text),
    field(2, "boolValue", Bool),
    field(3, "intValue", Int64),
    field(4, "doubleValue", Double),
    field(5, "arrayValue", Message(&LIST)),
    field(6, "kvlistValue", Message(&MAP)),
    field(7, "bytesValue", Bytes),
    field(8, "stringValueStrindex", Int32),
]);
static LIST: Message = Message::nesting(&[field(1, "values", Messages(&ANY_VALUE))]);
static MAP: Message = Message::nesting(&[field(1, "values", Messages(&KEY_VALUE))]);

pub(crate) static LOG_RECORD: Message = Message::rows(&[
    field(1, "timeUnixNano", Fixed64),
    field(2, "severityNumber", Enum(SEVERITIES)),
    field(3, "severityText", Text),
    field(5, "body", Message(&ANY_VALUE)),
    field(6, "attributes", Messages(&KEY_VALUE)),
    field(7, "droppedAttributesCount", Uint32),
    field(8, "flags", Fixed32),
    field(9, "traceId", Id(16)),
    field(10, "spanId", Id(8)),
    field(11, "observedTimeUnixNano", Fixed64),
    field(12, "eventName", Text),
]);

pub(crate) static SPAN: Message = Message::rows(&[
    field(1, "traceId", Id(16)),
    field(2, "spanId", Id(8)),
    field(3, "traceState", Text),
    field(4, "parentSpanId", Id(8)),
    field(5, "name", Text),
    field(6, "kind", Enum(SPAN_KINDS)),
    field(7, "startTimeUnixNano", Fixed64),
    field(8, "endTimeUnixNano", Fixed64),
    field(9, "attributes", Messages(&KEY_VALUE)),
    field(10, "droppedAttributesCount", Uint32),
    field(11, "events", Messages(&EVENT)),
    field(12, "droppedEventsCount", Uint32),
    field(13, "links", Messages(&LINK)),
    field(14, "droppedLinksCount", Uint32),
    field(15, "status", Message(&STATUS)),
    field(16, "flags", Fixed32),
]);
static EVENT: Message = Message::new(&[
    field(1, "timeUnixNano", Fixed64),
    field(2, "name", Text),
    field(3, "attributes", Messages(&KEY_VALUE)),
    field(4, "droppedAttributesCount", Uint32),
]);
static LINK: Message = Message::new(&[
    field(1, "traceId", Id(16)),
    field(2, "spanId", Id(8)),
    field(3, "traceState", Text),
    field(4, "attributes", Messages(&KEY_VALUE)),
    field(5, "droppedAttributesCount", Uint32),
    field(6, "flags", Fixed32),
]);
static STATUS: Message = Message::new(&[field(2, "message", Text), field(3, "code", Enum(STATUS_CODES))]);

pub(crate) static METRIC: Message = Message::rows(&[
    field(1, "name", Text),
    field(2, "description", Text),
    field(3, "unit", Text),
    field(5, "gauge", Message(&GAUGE)),
    field(7, "sum", Message(&SUM)),
    field(9, "histogram", Message(&HISTOGRAM)),
    field(10, "exponentialHistogram", Message(&EXPONENTIAL_HISTOGRAM)),
    field(11, "summary", Message(&SUMMARY)),
    field(12, "metadata", Messages(&KEY_VALUE)),
]);
static GAUGE: Message = Message::rows(&[field(1, "dataPoints", Messages(&NUMBER_POINT))]);
static SUM: Message = Message::rows(&[
    field(1, "dataPoints", Messages(&NUMBER_POINT)),
    field(2, "aggregationTemporality", Enum(TEMPORALITIES)),
    field(3, "isMonotonic", Bool),
]);
static HISTOGRAM: Message = Message::rows(&[
    field(1, "dataPoints", Messages(&HISTOGRAM_POINT)),
    field(2, "aggregationTemporality", Enum(TEMPORALITIES)),
]);
static EXPONENTIAL_HISTOGRAM: Message = Message::rows(&[
    field(1, "dataPoints", Messages(&EXPONENTIAL_POINT)),
    field(2, "aggregationTemporality", Enum(TEMPORALITIES)),
]);
static SUMMARY: Message = Message::rows(&[field(1, "dataPoints", Messages(&SUMMARY_POINT))]);

static NUMBER_POINT: Message = Message::rows(&[
    field(2, "startTimeUnixNano", Fixed64),
    field(3, "timeUnixNano", Fixed64),
    field(4, "asDouble", Double),
    field(5, "exemplars", Messages(&EXEMPLAR)),
    field(6, "asInt", Sfixed64),
    field(7, "attributes", Messages(&KEY_VALUE)),
    field(8, "flags", Uint32),
]);
static HISTOGRAM_POINT: Message = Message::rows(&[
    field(2, "startTimeUnixNano", Fixed64),
    field(3, "timeUnixNano", Fixed64),
    field(4, "count", Fixed64),
    field(5, "sum", Double),
    field(6, "bucketCounts", Fixed64s),
    field(7, "explicitBounds", Doubles),
    field(8, "exemplars", Messages(&EXEMPLAR)),
    field(9, "attributes", Messages(&KEY_VALUE)),
    field(10, "flags", Uint32),
    field(11, "min", Double),
    field(12, "max", Double),
]);
static EXPONENTIAL_POINT: Message = Message::rows(&[
    field(1, "attributes", Messages(&KEY_VALUE)),
    field(2, "startTimeUnixNano", Fixed64),
    field(3, "timeUnixNano", Fixed64),
    field(4, "count", Fixed64),
    field(5, "sum", Double),
    field(6, "scale", Sint32),
    field(7, "zeroCount", Fixed64),
    field(8, "positive", Message(&BUCKETS)),
    field(9, "negative", Message(&BUCKETS)),
    field(10, "flags", Uint32),
    field(11, "exemplars", Messages(&EXEMPLAR)),
    field(12, "min", Double),
    field(13, "max", Double),
    field(14, "zeroThreshold", Double),
]);
static BUCKETS: Message = Message::new(&[field(1, "offset", Sint32), field(2, "bucketCounts", Uint64s)]);
static SUMMARY_POINT: Message = Message::rows(&[
    field(2, "startTimeUnixNano", Fixed64),
    field(3, "timeUnixNano", Fixed64),
    field(4, "count", Fixed64),
    field(5, "sum", Double),
    field(6, "quantileValues", Messages(&QUANTILE)),
    field(7, "attributes", Messages(&KEY_VALUE)),
    field(8, "flags", Uint32),
]);
static QUANTILE: Message = Message::new(&[field(1, "quantile", Double), field(2, "value", Double)]);
static EXEMPLAR: Message = Message::new(&[
    field(2, "timeUnixNano", Fixed64),
    field(3, "asDouble", Double),
    field(4, "spanId", Id(8)),
    field(5, "traceId", Id(16)),
    field(6, "asInt", Sfixed64),
    field(7, "filteredAttributes", Messages(&KEY_VALUE)),
]);

const SPAN_KINDS: &[&str] = &[
    "SPAN_KIND_UNSPECIFIED",
    "SPAN_KIND_INTERNAL",
    "SPAN_KIND_SERVER",
    "SPAN_KIND_CLIENT",
    "SPAN_KIND_PRODUCER",
    "SPAN_KIND_CONSUMER",
];
const STATUS_CODES: &[&str] = &["STATUS_CODE_UNSET", "STATUS_CODE_OK", "STATUS_CODE_ERROR"];
const TEMPORALITIES: &[&str] =
    &["AGGREGATION_TEMPORALITY_UNSPECIFIED", "AGGREGATION_TEMPORALITY_DELTA", "AGGREGATION_TEMPORALITY_CUMULATIVE"];
const SEVERITIES: &[&str] = &[
    "SEVERITY_NUMBER_UNSPECIFIED",
    "SEVERITY_NUMBER_TRACE",
    "SEVERITY_NUMBER_TRACE2",
    "SEVERITY_NUMBER_TRACE3",
    "SEVERITY_NUMBER_TRACE4",
    "SEVERITY_NUMBER_DEBUG",
    "SEVERITY_NUMBER_DEBUG2",
    "SEVERITY_NUMBER_DEBUG3",
    "SEVERITY_NUMBER_DEBUG4",
    "SEVERITY_NUMBER_INFO",
    "SEVERITY_NUMBER_INFO2",
    "SEVERITY_NUMBER_INFO3",
    "SEVERITY_NUMBER_INFO4",
    "SEVERITY_NUMBER_WARN",
    "SEVERITY_NUMBER_WARN2",
    "SEVERITY_NUMBER_WARN3",
    "SEVERITY_NUMBER_WARN4",
    "SEVERITY_NUMBER_ERROR",
    "SEVERITY_NUMBER_ERROR2",
    "SEVERITY_NUMBER_ERROR3",
    "SEVERITY_NUMBER_ERROR4",
    "SEVERITY_NUMBER_FATAL",
    "SEVERITY_NUMBER_FATAL2",
    "SEVERITY_NUMBER_FATAL3",
    "SEVERITY_NUMBER_FATAL4",
];
