//! The field that a type becomes, as ClickHouse 26.7 gives it in its own Arrow formats.

use std::sync::Arc;

use arrow_schema::{DataType as ArrowType, Field, Fields, Metadata, Schema, TimeUnit, UnionFields, UnionMode};
use windrow_columns::{DataType, IntervalUnit, TupleType};

use super::{ArrowError, ArrowOptions};
use crate::column::Header;

/// Makes the schema of the chosen columns.
///
/// # Errors
/// Fails where a column's type can't become Arrow.
pub fn arrow_schema(header: &Header, options: &ArrowOptions) -> Result<Schema, ArrowError> {
    let field = |column: usize| field_of(&header.names[column], &header.types[column], options);
    Ok(Schema::new(options.columns_of(header).into_iter().map(field).collect::<Result<Fields, _>>()?))
}

fn field_of(name: &str, of: &DataType, options: &ArrowOptions) -> Result<Field, ArrowError> {
    let is_nullable = match of.plain() {
        DataType::LowCardinality(of) => matches!(of.as_ref(), DataType::Nullable(_)),
        of => matches!(of, DataType::Nullable(_)),
    };
    // A name may have a zero byte, at which the text would end in C.
    let field = Field::new(name.replace('\0', "\u{2400}"), type_of(of, options)?, is_nullable);
    let metadata: &[(&str, &str)] = match value_type(of, options) {
        DataType::Uuid => &[
            ("PARQUET:logical_type", "UUID"),
            ("ARROW:extension:name", "arrow.uuid"),
            ("ARROW:extension:metadata", ""),
        ],
        DataType::Dynamic | DataType::Json { .. } => {
            &[("ARROW:extension:name", "arrow.json"), ("ARROW:extension:metadata", "")]
        }
        _ => &[],
    };
    Ok(field.with_metadata(metadata.iter().copied().collect::<Metadata>()))
}

/// Returns the type of the values that stand in the array itself.
fn value_type<'a>(of: &'a DataType, options: &ArrowOptions) -> &'a DataType {
    match of.plain() {
        DataType::Nullable(of) => value_type(of, options),
        DataType::LowCardinality(of) if !options.low_cardinality_as_dictionary => value_type(of, options),
        plain => plain,
    }
}

fn type_of(of: &DataType, options: &ArrowOptions) -> Result<ArrowType, ArrowError> {
    let field = |name: &str, of: &DataType| Ok(Arc::new(field_of(name, of, options)?));
    Ok(match of {
        DataType::Nullable(of) => type_of(of, options)?,
        DataType::LowCardinality(of) if options.low_cardinality_as_dictionary => {
            ArrowType::Dictionary(Box::new(ArrowType::Int32), Box::new(type_of(of, options)?))
        }
        DataType::LowCardinality(of) => type_of(of, options)?,
        DataType::Array(of) => ArrowType::List(field("item", of)?),
        DataType::Map(key, value) => {
            let entries = ArrowType::Struct(Fields::from(vec![field("key", key)?, field("value", value)?]));
            ArrowType::Map(Arc::new(Field::new("entries", entries, false)), false)
        }
        DataType::Tuple(TupleType { names, elements }) => {
            let named = |index: usize| match names {
                Some(names) => names[index].clone(),
                None => (index + 1).to_string(),
            };
            let elements = elements.iter().enumerate().map(|(index, element)| field(&named(index), element));
            ArrowType::Struct(elements.collect::<Result<_, _>>()?)
        }
        DataType::Variant(alternatives) => variant(alternatives, options)?,
        DataType::Dynamic | DataType::Json { .. } => ArrowType::Utf8,
        DataType::QBit { .. } => return Err(refused_qbit(of)),
        DataType::Nothing => ArrowType::Null,
        DataType::Custom(custom) => type_of(&custom.inner, options)?,
        scalar => scalar_type(scalar, options),
    })
}

fn scalar_type(scalar: &DataType, options: &ArrowOptions) -> ArrowType {
    use DataType::*;
    match scalar {
        UInt8 => ArrowType::UInt8,
        UInt16 => ArrowType::UInt16,
        UInt32 | DateTime { .. } | Ipv4 => ArrowType::UInt32,
        UInt64 => ArrowType::UInt64,
        Int8 | Enum8(_) => ArrowType::Int8,
        Int16 | Enum16(_) => ArrowType::Int16,
        Int32 => ArrowType::Int32,
        Int64 => ArrowType::Int64,
        Float32 => ArrowType::Float32,
        Float64 => ArrowType::Float64,
        Bool => ArrowType::Boolean,
        String if options.string_as_string => ArrowType::Utf8,
        String | BFloat16 => ArrowType::Binary,
        Date | Date32 => ArrowType::Date32,
        Time => ArrowType::Time32(TimeUnit::Second),
        Time64 { precision: precision @ ..=3 } => ArrowType::Time32(unit_of(*precision)),
        Time64 { precision } => ArrowType::Time64(unit_of(*precision)),
        Interval(IntervalUnit::Nanosecond) => ArrowType::Duration(TimeUnit::Nanosecond),
        Interval(IntervalUnit::Microsecond) => ArrowType::Duration(TimeUnit::Microsecond),
        Interval(IntervalUnit::Millisecond) => ArrowType::Duration(TimeUnit::Millisecond),
        Interval(IntervalUnit::Second) => ArrowType::Duration(TimeUnit::Second),
        Interval(_) => ArrowType::Int64,
        UInt128 | Int128 | Uuid | Ipv6 => ArrowType::FixedSizeBinary(16),
        UInt256 | Int256 => ArrowType::FixedSizeBinary(32),
        FixedString(width) => ArrowType::FixedSizeBinary(*width as i32),
        Decimal { precision: precision @ ..=38, scale } => ArrowType::Decimal128(*precision, *scale as i8),
        Decimal { precision, scale } => ArrowType::Decimal256(*precision, *scale as i8),
        DateTime64 { precision, timezone } => {
            let timezone = timezone.as_deref().unwrap_or(&options.timezone);
            ArrowType::Timestamp(unit_of(*precision), Some(Arc::from(timezone)))
        }
        // Types with types inside are never scalars.
        Nullable(_) | LowCardinality(_) | Array(_) | Map(..) | Tuple(_) | Variant(_) | Custom(_) => ArrowType::Null,
        Dynamic | Json { .. } | QBit { .. } | Nothing | AggregateFunction(_) => ArrowType::Null,
    }
}

/// Returns Arrow's unit for a number of digits behind the seconds. Arrow counts in seconds, or in thousandth
/// parts of the unit before: the next finer unit is taken.
fn unit_of(precision: u8) -> TimeUnit {
    match precision {
        0 => TimeUnit::Second,
        1..=3 => TimeUnit::Millisecond,
        4..=6 => TimeUnit::Microsecond,
        _ => TimeUnit::Nanosecond,
    }
}

/// Returns a union, with NULL as the last of its members.
fn variant(alternatives: &[DataType], options: &ArrowOptions) -> Result<ArrowType, ArrowError> {
    if alternatives.len() >= MAX_UNION_MEMBERS {
        return Err(ArrowError::NotSupported(format!("Arrow has no union of {} types", alternatives.len() + 1)));
    }
    // ClickHouse leaves dictionaries folded here.
    let options = ArrowOptions { low_cardinality_as_dictionary: true, ..options.clone() };
    let members = alternatives.iter().map(|alternative| field_of(&family_of(alternative), alternative, &options));
    let mut members: Vec<_> = members.collect::<Result<_, _>>()?;
    members.push(Field::new("NULL", ArrowType::Null, false));
    let members = UnionFields::try_new(0..members.len() as i8, members);
    let members = members.map_err(|error| ArrowError::NotSupported(error.to_string()))?;
    Ok(ArrowType::Union(members, UnionMode::Dense))
}

/// The largest number of members: their numbers are signed bytes.
const MAX_UNION_MEMBERS: usize = 127;

/// Returns the type's name without the part in brackets.
fn family_of(of: &DataType) -> String {
    match of.plain() {
        DataType::Bool => "UInt8".to_string(),
        DataType::Interval(_) => "Interval".to_string(),
        DataType::Json { .. } => "Object".to_string(),
        plain => plain.family().to_string(),
    }
}

fn refused_qbit(of: &DataType) -> ArrowError {
    let DataType::QBit { dimension, array } = of else { return ArrowError::NotSupported(of.to_string()) };
    let bits = match array.as_ref() {
        DataType::Array(element) => element.fixed_width().unwrap_or(0) * 8,
        _ => 0,
    };
    let planes = vec![format!("FixedString({})", dimension.div_ceil(8)); bits].join(", ");
    ArrowError::NotSupported(format!("Method getDataAt is not supported for Tuple({planes})"))
}
