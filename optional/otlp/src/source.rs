//! The sources that a column can be filled with. Each has the name of the exporter's column for it.

use crate::kind::Kind;

/// The level of a message in a request that a field stands in. Values that many rows share are written once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    Resource,
    Scope,
    Metric,
    Row,
}

/// The kind of values that a field has. It decides which columns can store them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A text, an id, or the value of an attribute as a text.
    Text,
    Time,
    Integer,
    Float,
    Attributes,
    /// The keys of attributes.
    Keys,
    Times,
    Texts,
    Integers,
    Floats,
    ListsOfAttributes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    ResourceAttributes,
    ResourceAttributesKeys,
    ResourceSchemaUrl,
    ServiceName,
    ScopeName,
    ScopeVersion,
    ScopeAttributes,
    ScopeAttributesKeys,
    ScopeSchemaUrl,
    ScopeDroppedAttrCount,
    MetricName,
    MetricDescription,
    MetricUnit,
    AggregationTemporality,
    IsMonotonic,
    /// Time of a log record, a span, or a point of a metric.
    Timestamp,
    ObservedTimestamp,
    StartTime,
    EndTime,
    TraceId,
    SpanId,
    ParentSpanId,
    TraceState,
    Name,
    SpanKind,
    Duration,
    StatusCode,
    StatusMessage,
    Flags,
    SeverityText,
    SeverityNumber,
    Body,
    EventName,
    Attributes,
    AttributesKeys,
    EventTimes,
    EventNames,
    EventAttributes,
    LinkTraceIds,
    LinkSpanIds,
    LinkTraceStates,
    LinkAttributes,
    Value,
    Count,
    Sum,
    Min,
    Max,
    BucketCounts,
    ExplicitBounds,
    Scale,
    ZeroCount,
    PositiveOffset,
    PositiveBucketCounts,
    NegativeOffset,
    NegativeBucketCounts,
    Quantiles,
    QuantileValues,
    ExemplarAttributes,
    ExemplarTimes,
    ExemplarValues,
    ExemplarSpanIds,
    ExemplarTraceIds,
}

/// A field, or one of its attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) field: Field,
    /// The key of the attribute, where the field has attributes and one of them is meant.
    pub(crate) attribute: Option<String>,
}

impl Source {
    /// Parses `Body`, or `LogAttributes['key']`.
    pub(crate) fn parse(kind: Kind, text: &str) -> Option<Source> {
        let Some((name, key)) = text.split_once('[') else {
            return Some(Source { field: field_named(kind, text)?, attribute: None });
        };
        let field = field_named(kind, name.trim_end()).filter(|field| field.shape() == Shape::Attributes)?;
        let key = key.trim().strip_suffix(']')?.trim().strip_prefix('\'')?.strip_suffix('\'')?;
        Some(Source { field, attribute: Some(unescaped(key)) })
    }

    pub(crate) fn shape(&self) -> Shape {
        match self.attribute {
            Some(_) => Shape::Text,
            None => self.field.shape(),
        }
    }
}

/// Reads the text between single quotes in SQL.
fn unescaped(text: &str) -> String {
    let mut letters = text.chars();
    let mut out = String::new();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => out.extend(letters.next()),
            '\'' => out.extend(letters.next().or(Some('\''))),
            other => out.push(other),
        }
    }
    out
}

impl Field {
    pub(crate) fn level(self) -> Level {
        use Field::*;
        match self {
            ResourceAttributes | ResourceAttributesKeys | ResourceSchemaUrl | ServiceName => Level::Resource,
            ScopeName
            | ScopeVersion
            | ScopeAttributes
            | ScopeAttributesKeys
            | ScopeSchemaUrl
            | ScopeDroppedAttrCount => Level::Scope,
            MetricName | MetricDescription | MetricUnit | AggregationTemporality | IsMonotonic => Level::Metric,
            _ => Level::Row,
        }
    }

    /// Returns a field that stands for all lists which have the same length in every row. Any other field
    /// stands for itself.
    pub(crate) fn list(self) -> Field {
        use Field::*;
        match self {
            EventTimes | EventNames | EventAttributes => EventTimes,
            LinkTraceIds | LinkSpanIds | LinkTraceStates | LinkAttributes => LinkTraceIds,
            Quantiles | QuantileValues => Quantiles,
            ExemplarAttributes | ExemplarTimes | ExemplarValues | ExemplarSpanIds | ExemplarTraceIds => ExemplarTimes,
            other => other,
        }
    }

    pub(crate) fn shape(self) -> Shape {
        use Field::*;
        match self {
            ResourceAttributes | ScopeAttributes | Attributes => Shape::Attributes,
            ResourceAttributesKeys | ScopeAttributesKeys | AttributesKeys => Shape::Keys,
            Timestamp | ObservedTimestamp | StartTime | EndTime => Shape::Time,
            ScopeDroppedAttrCount
            | AggregationTemporality
            | IsMonotonic
            | Duration
            | Flags
            | SeverityNumber
            | Count
            | Scale
            | ZeroCount
            | PositiveOffset
            | NegativeOffset => Shape::Integer,
            Value | Sum | Min | Max => Shape::Float,
            EventTimes | ExemplarTimes => Shape::Times,
            EventNames | LinkTraceIds | LinkSpanIds | LinkTraceStates | ExemplarSpanIds | ExemplarTraceIds => {
                Shape::Texts
            }
            EventAttributes | LinkAttributes | ExemplarAttributes => Shape::ListsOfAttributes,
            BucketCounts | PositiveBucketCounts | NegativeBucketCounts => Shape::Integers,
            ExplicitBounds | Quantiles | QuantileValues | ExemplarValues => Shape::Floats,
            ResourceSchemaUrl | ServiceName | ScopeName | ScopeVersion | ScopeSchemaUrl | MetricName
            | MetricDescription | MetricUnit | TraceId | SpanId | ParentSpanId | TraceState | Name | SpanKind
            | StatusCode | StatusMessage | SeverityText | Body | EventName => Shape::Text,
        }
    }
}

type Named = (&'static str, Field);

/// Fields of every table. The exporter's table of traces lacks columns for some of them; a column of such a
/// name is filled all the same.
const OF_ALL: &[Named] = &[
    ("ResourceAttributes", Field::ResourceAttributes),
    ("ResourceAttributesKeys", Field::ResourceAttributesKeys),
    ("ResourceSchemaUrl", Field::ResourceSchemaUrl),
    ("ServiceName", Field::ServiceName),
    ("ScopeName", Field::ScopeName),
    ("ScopeVersion", Field::ScopeVersion),
    ("ScopeAttributes", Field::ScopeAttributes),
    ("ScopeAttributesKeys", Field::ScopeAttributesKeys),
    ("ScopeSchemaUrl", Field::ScopeSchemaUrl),
    ("ScopeDroppedAttrCount", Field::ScopeDroppedAttrCount),
];

const OF_LOGS: &[Named] = &[
    ("Timestamp", Field::Timestamp),
    ("ObservedTimestamp", Field::ObservedTimestamp),
    ("TraceId", Field::TraceId),
    ("SpanId", Field::SpanId),
    ("TraceFlags", Field::Flags),
    ("SeverityText", Field::SeverityText),
    ("SeverityNumber", Field::SeverityNumber),
    ("Body", Field::Body),
    ("LogAttributes", Field::Attributes),
    ("LogAttributesKeys", Field::AttributesKeys),
    ("EventName", Field::EventName),
];

const OF_TRACES: &[Named] = &[
    ("Timestamp", Field::Timestamp),
    ("EndTimestamp", Field::EndTime),
    ("TraceId", Field::TraceId),
    ("SpanId", Field::SpanId),
    ("ParentSpanId", Field::ParentSpanId),
    ("TraceState", Field::TraceState),
    ("SpanName", Field::Name),
    ("SpanKind", Field::SpanKind),
    ("SpanAttributes", Field::Attributes),
    ("SpanAttributesKeys", Field::AttributesKeys),
    ("Duration", Field::Duration),
    ("StatusCode", Field::StatusCode),
    ("StatusMessage", Field::StatusMessage),
    ("Events.Timestamp", Field::EventTimes),
    ("Events.Name", Field::EventNames),
    ("Events.Attributes", Field::EventAttributes),
    ("Links.TraceId", Field::LinkTraceIds),
    ("Links.SpanId", Field::LinkSpanIds),
    ("Links.TraceState", Field::LinkTraceStates),
    ("Links.Attributes", Field::LinkAttributes),
];

const OF_METRICS: &[Named] = &[
    ("MetricName", Field::MetricName),
    ("MetricDescription", Field::MetricDescription),
    ("MetricUnit", Field::MetricUnit),
    ("Attributes", Field::Attributes),
    ("StartTimeUnix", Field::StartTime),
    ("TimeUnix", Field::Timestamp),
    ("Flags", Field::Flags),
];

const EXEMPLARS: &[Named] = &[
    ("Exemplars.FilteredAttributes", Field::ExemplarAttributes),
    ("Exemplars.TimeUnix", Field::ExemplarTimes),
    ("Exemplars.Value", Field::ExemplarValues),
    ("Exemplars.SpanId", Field::ExemplarSpanIds),
    ("Exemplars.TraceId", Field::ExemplarTraceIds),
];

const OF_GAUGES: &[Named] = &[("Value", Field::Value)];

const OF_SUMS: &[Named] = &[
    ("Value", Field::Value),
    ("AggregationTemporality", Field::AggregationTemporality),
    ("IsMonotonic", Field::IsMonotonic),
];

const OF_SUMMARIES: &[Named] = &[
    ("Count", Field::Count),
    ("Sum", Field::Sum),
    ("ValueAtQuantiles.Quantile", Field::Quantiles),
    ("ValueAtQuantiles.Value", Field::QuantileValues),
];

const OF_BOTH_HISTOGRAMS: &[Named] = &[
    ("Count", Field::Count),
    ("Sum", Field::Sum),
    ("Min", Field::Min),
    ("Max", Field::Max),
    ("AggregationTemporality", Field::AggregationTemporality),
];

const OF_HISTOGRAMS: &[Named] = &[("BucketCounts", Field::BucketCounts), ("ExplicitBounds", Field::ExplicitBounds)];

const OF_EXPONENTIAL_HISTOGRAMS: &[Named] = &[
    ("Scale", Field::Scale),
    ("ZeroCount", Field::ZeroCount),
    ("PositiveOffset", Field::PositiveOffset),
    ("PositiveBucketCounts", Field::PositiveBucketCounts),
    ("NegativeOffset", Field::NegativeOffset),
    ("NegativeBucketCounts", Field::NegativeBucketCounts),
];

fn fields_of(kind: Kind) -> impl Iterator<Item = Named> {
    let tables: &[&[Named]] = match kind {
        Kind::Logs => &[OF_ALL, OF_LOGS],
        Kind::Traces => &[OF_ALL, OF_TRACES],
        Kind::Gauge => &[OF_ALL, OF_METRICS, EXEMPLARS, OF_GAUGES],
        Kind::Sum => &[OF_ALL, OF_METRICS, EXEMPLARS, OF_SUMS],
        Kind::Summary => &[OF_ALL, OF_METRICS, OF_SUMMARIES],
        Kind::Histogram => &[OF_ALL, OF_METRICS, EXEMPLARS, OF_BOTH_HISTOGRAMS, OF_HISTOGRAMS],
        Kind::ExponentialHistogram => &[OF_ALL, OF_METRICS, EXEMPLARS, OF_BOTH_HISTOGRAMS, OF_EXPONENTIAL_HISTOGRAMS],
    };
    tables.iter().flat_map(|table| table.iter().copied())
}

fn field_named(kind: Kind, name: &str) -> Option<Field> {
    fields_of(kind).find(|(known, _)| *known == name).map(|(_, field)| field)
}

/// Returns the fields that fill a column of the exporter's table: one, or the parts of a Nested.
pub(crate) fn fields_in(kind: Kind, column: &'static str) -> impl Iterator<Item = &'static str> {
    fields_of(kind)
        .map(|(name, _)| name)
        .filter(move |name| *name == column || name.split_once('.').is_some_and(|(before, _)| before == column))
}

/// Says whether `name` is the name before the dot of some fields, which means a column that is not divided
/// into its parts.
pub(crate) fn is_structure(kind: Kind, name: &str) -> bool {
    fields_of(kind).any(|(known, _)| known.split_once('.').is_some_and(|(before, _)| before == name))
}
