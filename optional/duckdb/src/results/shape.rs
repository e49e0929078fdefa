//! The ClickHouse type of a result's column: the one table from Arrow's types, as DuckDB uses them.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType as Arrow, Field, TimeUnit};
use windrow_columns::{DataType, TupleType};

use crate::types::{of_enum, MAX_ENUM16};

/// The deepest nesting of types; a query with deeper types is refused.
const MAX_DEPTH: usize = 64;

/// The kind of a column's values, and whether NULL is one of them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Shape {
    pub(crate) kind: Kind,
    pub(crate) nullable: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    Nothing,
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    Int128,
    UInt128,
    Float32,
    Float64,
    Decimal {
        precision: u8,
        scale: u8,
    },
    String,
    FixedString(usize),
    Date,
    Time {
        precision: u8,
    },
    Moment {
        precision: u8,
        timezone: Option<String>,
    },
    Uuid,
    /// An Enum with these names; a value is a position in the list.
    Enum(Vec<String>),
    /// A type of DuckDB that ClickHouse lacks, as the text that DuckDB writes for it.
    Rendered(Rendered),
    Array(Box<Shape>),
    Tuple {
        names: Option<Vec<String>>,
        elements: Vec<Shape>,
    },
    Map(Box<Shape>, Box<Shape>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rendered {
    Interval,
    TimeWithZone,
    Bits,
}

impl Shape {
    /// Returns the shape of a column. `values` may tell what the field can't. The error is the name of the type.
    pub(crate) fn of(field: &Field, values: Option<&ArrayRef>) -> Result<Shape, String> {
        shape(field, values, 0)
    }

    pub(crate) fn data_type(&self) -> DataType {
        let plain = match &self.kind {
            // ClickHouse writes Nothing as a Nullable always; the library of types has no name for it.
            Kind::Nothing | Kind::String | Kind::Rendered(_) => DataType::String,
            Kind::Bool => DataType::Bool,
            Kind::Int8 => DataType::Int8,
            Kind::Int16 => DataType::Int16,
            Kind::Int32 => DataType::Int32,
            Kind::Int64 => DataType::Int64,
            Kind::UInt8 => DataType::UInt8,
            Kind::UInt16 => DataType::UInt16,
            Kind::UInt32 => DataType::UInt32,
            Kind::UInt64 => DataType::UInt64,
            Kind::Int128 => DataType::Int128,
            Kind::UInt128 => DataType::UInt128,
            Kind::Float32 => DataType::Float32,
            Kind::Float64 => DataType::Float64,
            Kind::Decimal { precision, scale } => DataType::Decimal { precision: *precision, scale: *scale },
            Kind::FixedString(width) => DataType::FixedString(*width),
            Kind::Date => DataType::Date32,
            Kind::Time { precision } => DataType::Time64 { precision: *precision },
            Kind::Moment { precision, timezone } => {
                DataType::DateTime64 { precision: *precision, timezone: timezone.clone() }
            }
            Kind::Uuid => DataType::Uuid,
            Kind::Enum(names) => of_enum(names),
            Kind::Array(element) => return DataType::Array(Box::new(element.data_type())),
            Kind::Map(key, value) => return DataType::Map(Box::new(key.data_type()), Box::new(value.data_type())),
            Kind::Tuple { names, elements } => {
                let elements = elements.iter().map(Shape::data_type).collect();
                return DataType::Tuple(TupleType { names: names.clone(), elements });
            }
        };
        match self.nullable {
            true => DataType::Nullable(Box::new(plain)),
            false => plain,
        }
    }
}

fn shape(field: &Field, values: Option<&ArrayRef>, depth: usize) -> Result<Shape, String> {
    if depth > MAX_DEPTH {
        return Err(format!("nested more than {MAX_DEPTH} levels deep"));
    }
    let kind = match extension(field) {
        Some(name) => extended(field, name)?,
        None => plain(field, values, depth)?,
    };
    // ClickHouse has no Nullable(Array(...)), nor of maps and tuples: theirs are empty.
    let holds_others = matches!(kind, Kind::Array(_) | Kind::Map(..) | Kind::Tuple { .. });
    Ok(Shape { nullable: field.is_nullable() && !holds_others, kind })
}

fn extension(field: &Field) -> Option<&str> {
    field.metadata().get("ARROW:extension:name").map(String::as_str)
}

fn extended(field: &Field, name: &str) -> Result<Kind, String> {
    let metadata = field.metadata().get("ARROW:extension:metadata").map_or("", String::as_str);
    Ok(match (name, field.data_type()) {
        ("arrow.bool8", Arrow::Int8) => Kind::Bool,
        ("arrow.uuid", Arrow::FixedSizeBinary(16)) => Kind::Uuid,
        ("arrow.json", _) => Kind::String,
        ("arrow.opaque", storage) => match (opaque_type(metadata), storage) {
            ("hugeint", Arrow::FixedSizeBinary(16)) => Kind::Int128,
            ("uhugeint", Arrow::FixedSizeBinary(16)) => Kind::UInt128,
            ("time_tz", Arrow::FixedSizeBinary(8)) => Kind::Rendered(Rendered::TimeWithZone),
            ("bit", Arrow::Binary | Arrow::LargeBinary | Arrow::BinaryView) => Kind::Rendered(Rendered::Bits),
            (name, _) => return Err(name.to_ascii_uppercase()),
        },
        (name, _) => return Err(name.to_owned()),
    })
}

/// Returns `type_name` from the JSON in the extension's metadata.
fn opaque_type(metadata: &str) -> &str {
    let value = metadata.split("\"type_name\"").nth(1).and_then(|rest| rest.split('"').nth(1));
    value.unwrap_or("unknown")
}

fn plain(field: &Field, values: Option<&ArrayRef>, depth: usize) -> Result<Kind, String> {
    let nested = |field: &Field, values: Option<&ArrayRef>| shape(field, values, depth + 1).map(Box::new);
    Ok(match field.data_type() {
        Arrow::Null => Kind::Nothing,
        Arrow::Boolean => Kind::Bool,
        Arrow::Int8 => Kind::Int8,
        Arrow::Int16 => Kind::Int16,
        Arrow::Int32 => Kind::Int32,
        Arrow::Int64 => Kind::Int64,
        Arrow::UInt8 => Kind::UInt8,
        Arrow::UInt16 => Kind::UInt16,
        Arrow::UInt32 => Kind::UInt32,
        Arrow::UInt64 => Kind::UInt64,
        Arrow::Float32 => Kind::Float32,
        Arrow::Float64 => Kind::Float64,
        Arrow::Decimal128(precision, scale) if *scale >= 0 => {
            Kind::Decimal { precision: *precision, scale: scale.unsigned_abs() }
        }
        Arrow::Utf8 | Arrow::LargeUtf8 | Arrow::Utf8View => Kind::String,
        Arrow::Binary | Arrow::LargeBinary | Arrow::BinaryView => Kind::String,
        Arrow::FixedSizeBinary(width) => Kind::FixedString(usize::try_from(*width).unwrap_or(0)),
        Arrow::Date32 => Kind::Date,
        Arrow::Time64(unit) => Kind::Time { precision: precision(unit) },
        Arrow::Timestamp(unit, zone) => {
            Kind::Moment { precision: precision(unit), timezone: zone.as_ref().map(|zone| zone.to_string()) }
        }
        Arrow::Interval(arrow_schema::IntervalUnit::MonthDayNano) => Kind::Rendered(Rendered::Interval),
        Arrow::Dictionary(_, _) => dictionary(values),
        Arrow::List(element) => Kind::Array(nested(element, values.map(|array| array.as_list::<i32>().values()))?),
        Arrow::LargeList(element) => Kind::Array(nested(element, values.map(|array| array.as_list::<i64>().values()))?),
        Arrow::FixedSizeList(element, _) => {
            Kind::Array(nested(element, values.map(|array| array.as_fixed_size_list().values()))?)
        }
        Arrow::Map(entries, _) => {
            let Arrow::Struct(pair) = entries.data_type() else { return Err("MAP without entries".to_owned()) };
            let [key, value] = &pair[..] else { return Err("MAP without keys and values".to_owned()) };
            let map = values.map(|array| array.as_map());
            let mut key = nested(key, map.map(|map| map.keys()))?;
            key.nullable = false;
            Kind::Map(key, nested(value, map.map(|map| map.values()))?)
        }
        Arrow::Struct(fields) => {
            let children = values.map(|array| array.as_struct().columns());
            let element = |(at, field): (usize, &std::sync::Arc<Field>)| {
                shape(field, children.and_then(|children| children.get(at)), depth + 1)
            };
            let elements = fields.iter().enumerate().map(element).collect::<Result<Vec<_>, _>>()?;
            let named = fields.iter().all(|field| !field.name().is_empty());
            Kind::Tuple { names: named.then(|| fields.iter().map(|field| field.name().clone()).collect()), elements }
        }
        other => return Err(other.to_string().to_ascii_uppercase()),
    })
}

fn precision(unit: &TimeUnit) -> u8 {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond => 6,
        TimeUnit::Nanosecond => 9,
    }
}

/// Returns the kind of a dictionary. Every batch has all names of an ENUM; without a batch, the column is a
/// String, and nobody sees the difference.
fn dictionary(values: Option<&ArrayRef>) -> Kind {
    let Some(dictionary) = values.and_then(|array| array.as_any_dictionary_opt()) else { return Kind::String };
    match dictionary.values().as_string_opt::<i32>() {
        Some(names) if names.len() <= MAX_ENUM16 && names.null_count() == 0 && !names.is_empty() => {
            Kind::Enum(names.iter().flatten().map(str::to_owned).collect())
        }
        _ => Kind::String,
    }
}
