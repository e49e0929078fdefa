//! The form in which values are written into a column, by its type.

use windrow_columns::DataType;

use crate::source::Shape;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Target {
    Text,
    /// An integer of so many bytes. Numbers that don't fit lose their upper bits, as in the exporter.
    Integer(usize),
    Float32,
    Float64,
    Seconds,
    /// A time as a count of units, of which a second has so many.
    Ticks {
        per_second: i64,
    },
    Map,
    /// Attributes as the text of a JSON object.
    Json,
    List(Box<Target>),
}

/// The target of a type, and the type that a block names: ClickHouse converts that to the column's own.
pub(crate) struct Choice {
    pub(crate) target: Target,
    pub(crate) sent: DataType,
}

/// Returns the form in which a column of this type stores such values, if it can.
pub(crate) fn choose(shape: Shape, type_text: &str) -> Option<Choice> {
    // ClickHouse's JSON is no type that can be inserted by its values; it is sent as text.
    if shape == Shape::Attributes && is_json(type_text) {
        return Some(Choice { target: Target::Json, sent: DataType::String });
    }
    if shape == Shape::ListsOfAttributes && array_of(type_text).is_some_and(is_json) {
        let sent = DataType::Array(Box::new(DataType::String));
        return Some(Choice { target: Target::List(Box::new(Target::Json)), sent });
    }
    let data_type = DataType::parse(type_text).ok()?;
    let target = target(shape, &data_type)?;
    Some(Choice { target, sent: sent(&data_type) })
}

/// Returns the types that a column should have instead, as text for the user.
pub(crate) fn advice(shape: Shape) -> &'static str {
    match shape {
        Shape::Text => "String or LowCardinality(String)",
        Shape::Time => "DateTime, DateTime64 or UInt64",
        Shape::Integer => "an integer",
        Shape::Float => "Float64",
        Shape::Attributes => "Map(LowCardinality(String), String), JSON or String",
        Shape::Keys | Shape::Texts => "Array(LowCardinality(String))",
        Shape::Times => "Array(DateTime64(9))",
        Shape::Integers => "Array(UInt64)",
        Shape::Floats => "Array(Float64)",
        Shape::ListsOfAttributes => "Array(Map(LowCardinality(String), String))",
    }
}

/// Returns a type that holds all values of a shape.
pub(crate) fn natural(shape: Shape) -> &'static str {
    match shape {
        Shape::Text => "String",
        Shape::Time => "DateTime64(9)",
        Shape::Integer => "Int64",
        Shape::Float => "Float64",
        Shape::Attributes => "Map(String, String)",
        Shape::Keys | Shape::Texts => "Array(String)",
        Shape::Times => "Array(DateTime64(9))",
        Shape::Integers => "Array(UInt64)",
        Shape::Floats => "Array(Float64)",
        Shape::ListsOfAttributes => "Array(Map(String, String))",
    }
}

fn is_json(type_text: &str) -> bool {
    type_text == "JSON" || type_text.starts_with("JSON(")
}

fn array_of(type_text: &str) -> Option<&str> {
    type_text.strip_prefix("Array(")?.strip_suffix(')')
}

fn target(shape: Shape, data_type: &DataType) -> Option<Target> {
    use DataType::*;
    let element = |shape, data_type: &DataType| match data_type {
        Array(inner) => Some(Target::List(Box::new(target(shape, inner)?))),
        _ => None,
    };
    match (shape, data_type) {
        (Shape::Text, text) if is_text(text) => Some(Target::Text),
        (Shape::Time, DateTime { .. }) => Some(Target::Seconds),
        (Shape::Time, DateTime64 { precision, .. }) if *precision <= 9 => {
            Some(Target::Ticks { per_second: 10_i64.pow(u32::from(*precision)) })
        }
        (Shape::Time, UInt64 | Int64) => Some(Target::Ticks { per_second: NANOSECONDS }),
        (Shape::Integer, UInt8 | Int8 | UInt16 | Int16 | UInt32 | Int32 | UInt64 | Int64 | Bool) => {
            data_type.fixed_width().map(Target::Integer)
        }
        (Shape::Float, Float64) => Some(Target::Float64),
        (Shape::Float, Float32) => Some(Target::Float32),
        (Shape::Attributes, Map(key, value)) if is_text(key) && is_text(value) => Some(Target::Map),
        (Shape::Attributes, text) if is_text(text) => Some(Target::Json),
        (Shape::Keys | Shape::Texts, _) => element(Shape::Text, data_type),
        (Shape::Times, _) => element(Shape::Time, data_type),
        (Shape::Integers, _) => element(Shape::Integer, data_type),
        (Shape::Floats, _) => element(Shape::Float, data_type),
        (Shape::ListsOfAttributes, _) => element(Shape::Attributes, data_type),
        // None of the values is NULL.
        (_, Nullable(inner)) => target(shape, inner),
        _ => None,
    }
}

pub(crate) const NANOSECONDS: i64 = 1_000_000_000;

/// Returns the type that a block names. Texts are sent as plain Strings, whatever is around them.
fn sent(data_type: &DataType) -> DataType {
    match data_type {
        text if is_text(text) => DataType::String,
        DataType::Nullable(inner) => sent(inner),
        DataType::Array(inner) => DataType::Array(Box::new(sent(inner))),
        DataType::Map(key, value) => DataType::Map(Box::new(sent(key)), Box::new(sent(value))),
        other => other.clone(),
    }
}

fn is_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::String => true,
        DataType::LowCardinality(inner) | DataType::Nullable(inner) => is_text(inner),
        _ => false,
    }
}
