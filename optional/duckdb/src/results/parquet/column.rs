//! The type that a column of DuckDB gets in Parquet: the one that DuckDB's own COPY gives it.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Int8Type, IntervalMonthDayNanoType, Time64MicrosecondType, TimestampMicrosecondType, TimestampSecondType,
};
use arrow_array::{
    Array, ArrayRef, BooleanArray, FixedSizeBinaryArray, FixedSizeListArray, Float64Array, LargeListArray, ListArray,
    MapArray, PrimitiveArray, StringArray, StructArray,
};
use arrow_buffer::{Buffer, IntervalMonthDayNano, NullBuffer};
use arrow_schema::{ArrowError, DataType as Arrow, Field, FieldRef, Fields, Schema, TimeUnit};
use parquet::arrow::ArrowSchemaConverter;
use parquet::basic::{ConvertedType, LogicalType, Repetition, Type as Physical};
use parquet::errors::ParquetError;
use parquet::schema::types::{Type, TypePtr};

use crate::results::error::ResultError;
use crate::results::shape::{Kind, Rendered, Shape};
use crate::results::text::rendered_text;
use crate::results::values;

const MICROS_A_DAY: i64 = 86_400_000_000;
const MICROS_A_SECOND: i64 = 1_000_000;
const NANOS_A_MILLISECOND: i64 = 1_000_000;
const INTERVAL_BYTES: i32 = 12;

pub(super) struct Column {
    /// The field as Arrow's library gets it.
    pub(super) field: FieldRef,
    /// The type as it stands in the file.
    pub(super) node: TypePtr,
    change: Change,
}

/// The change of a column's values for Parquet.
enum Change {
    Nothing,
    Bool,
    Hugeint,
    Uhugeint,
    /// A time of day, converted to UTC.
    TimeWithZone,
    Bits,
    /// Seconds, which Parquet has no unit for.
    Seconds,
    Interval,
    List(Box<Column>),
    Map {
        key: Box<Column>,
        value: Box<Column>,
    },
    Struct(Vec<Column>),
}

impl Column {
    pub(super) fn of(field: &Field, name: &str) -> Result<Column, ResultError> {
        let refused = |data_type| ResultError::Type { column: field.name().clone(), data_type };
        let shape = Shape::of(field, None).map_err(refused)?;
        named(name, field, &shape, true).map_err(|error| ResultError::Data(error.to_string()))
    }

    pub(super) fn take(&self, array: &ArrayRef) -> Result<ArrayRef, ResultError> {
        let negative = || {
            let name = self.field.name();
            format!(
                "column {name} has an INTERVAL that is negative or too long for Parquet: use CAST({name} AS VARCHAR)"
            )
        };
        let taken = taken(self, array, None);
        taken.map_err(|error| ResultError::Data(error.map_or_else(negative, |error| error.to_string())))
    }
}

fn named(name: &str, field: &Field, shape: &Shape, nullable: bool) -> Result<Column, ParquetError> {
    let of = |data_type: &Arrow| Field::new(name, data_type.clone(), nullable);
    let repetition = if nullable { Repetition::OPTIONAL } else { Repetition::REQUIRED };
    let primitive = |physical| Type::primitive_type_builder(name, physical).with_repetition(repetition);
    let group = |data_type: Arrow, logical: Option<LogicalType>, nodes: Vec<TypePtr>, change| {
        let node = Type::group_type_builder(name).with_repetition(repetition).with_logical_type(logical);
        let node = Arc::new(node.with_fields(nodes).build()?);
        Ok(Column { field: Arc::new(of(&data_type)), node, change })
    };
    let data_type = field.data_type();
    match (&shape.kind, data_type) {
        (Kind::Bool, Arrow::Int8) => plain(of(&Arrow::Boolean), Change::Bool),
        (Kind::Int128, _) => plain(of(&Arrow::Float64), Change::Hugeint),
        (Kind::UInt128, _) => plain(of(&Arrow::Float64), Change::Uhugeint),
        (Kind::Rendered(Rendered::Bits), _) => plain(of(&Arrow::Utf8), Change::Bits),
        (Kind::Rendered(Rendered::TimeWithZone), _) => {
            let utc = [("adjusted_to_utc".to_owned(), String::new())];
            plain(of(&Arrow::Time64(TimeUnit::Microsecond)).with_metadata(utc), Change::TimeWithZone)
        }
        (Kind::Moment { precision: 0, timezone }, _) => {
            let zone = timezone.as_deref().map(Arc::from);
            plain(of(&Arrow::Timestamp(TimeUnit::Microsecond, zone)), Change::Seconds)
        }
        (Kind::Rendered(Rendered::Interval), _) => {
            let node = primitive(Physical::FIXED_LEN_BYTE_ARRAY).with_length(INTERVAL_BYTES);
            let node = Arc::new(node.with_converted_type(ConvertedType::INTERVAL).build()?);
            let field = Arc::new(of(&Arrow::FixedSizeBinary(INTERVAL_BYTES)));
            Ok(Column { field, node, change: Change::Interval })
        }
        (Kind::Uuid, _) => {
            let node = primitive(Physical::FIXED_LEN_BYTE_ARRAY).with_length(16);
            let node = Arc::new(node.with_logical_type(Some(LogicalType::Uuid)).build()?);
            Ok(Column { field: Arc::new(of(data_type)), node, change: Change::Nothing })
        }
        (Kind::String, _) if is_json(field) => {
            let node = primitive(Physical::BYTE_ARRAY).with_logical_type(Some(LogicalType::Json)).build()?;
            Ok(Column { field: Arc::new(of(data_type)), node: Arc::new(node), change: Change::Nothing })
        }
        (Kind::Array(shape), Arrow::List(element) | Arrow::LargeList(element) | Arrow::FixedSizeList(element, _)) => {
            let element = Box::new(named("element", element, shape, true)?);
            let list = Type::group_type_builder("list").with_repetition(Repetition::REPEATED);
            let list = Arc::new(list.with_fields(vec![element.node.clone()]).build()?);
            let data_type = match data_type {
                Arrow::LargeList(_) => Arrow::LargeList(element.field.clone()),
                Arrow::FixedSizeList(_, length) => Arrow::FixedSizeList(element.field.clone(), *length),
                _ => Arrow::List(element.field.clone()),
            };
            group(data_type, Some(LogicalType::List), vec![list], Change::List(element))
        }
        (Kind::Map(key_shape, value_shape), Arrow::Map(entries, _)) => {
            let pair = fields(entries.data_type());
            let key = Box::new(named("key", &pair[0], key_shape, false)?);
            let value = Box::new(named("value", &pair[1], value_shape, true)?);
            let node = Type::group_type_builder("key_value").with_repetition(Repetition::REPEATED);
            let node = Arc::new(node.with_fields(vec![key.node.clone(), value.node.clone()]).build()?);
            let pair = Arrow::Struct(vec![key.field.clone(), value.field.clone()].into());
            let data_type = Arrow::Map(Arc::new(Field::new("key_value", pair, false)), false);
            group(data_type, Some(LogicalType::Map), vec![node], Change::Map { key, value })
        }
        (Kind::Tuple { elements, .. }, Arrow::Struct(fields)) => {
            let column = |(field, shape): (&FieldRef, &Shape)| named(field.name(), field, shape, true);
            let columns = fields.iter().zip(elements).map(column).collect::<Result<Vec<_>, _>>()?;
            let data_type = Arrow::Struct(columns.iter().map(|column| column.field.clone()).collect());
            let nodes = columns.iter().map(|column| column.node.clone()).collect();
            group(data_type, None, nodes, Change::Struct(columns))
        }
        _ => plain(of(data_type), Change::Nothing),
    }
}

/// Makes a column for which Arrow's library knows the type in the file.
fn plain(field: Field, change: Change) -> Result<Column, ParquetError> {
    let field = Arc::new(field);
    let schema = ArrowSchemaConverter::new().convert(&Schema::new(vec![field.clone()]))?;
    Ok(Column { field, node: schema.root_schema().get_fields()[0].clone(), change })
}

fn fields(data_type: &Arrow) -> Fields {
    match data_type {
        Arrow::Struct(fields) => fields.clone(),
        _ => Fields::empty(),
    }
}

fn is_json(field: &Field) -> bool {
    field.metadata().get("ARROW:extension:name").is_some_and(|name| name == "arrow.json")
}

/// Changes the values of a column. The error is the library's, or `None` for an interval that Parquet can't
/// have. Values in a tuple that is NULL are NULL, whatever they say of themselves: `outer` has the NULLs of
/// the tuple.
fn taken(column: &Column, array: &ArrayRef, outer: Option<&NullBuffer>) -> Result<ArrayRef, Option<ArrowError>> {
    let nulls = || array.nulls().cloned();
    let rows = 0..array.len();
    let bytes = |row: usize| array.as_fixed_size_binary().value(row);
    Ok(match &column.change {
        Change::Nothing => array.clone(),
        Change::Bool => {
            let values = array.as_primitive::<Int8Type>().values();
            Arc::new(BooleanArray::new(values.iter().map(|byte| *byte != 0).collect(), nulls()))
        }
        Change::Hugeint => {
            let number = |row| i128::from_le_bytes(sixteen(bytes(row))) as f64;
            Arc::new(Float64Array::new(rows.map(number).collect(), nulls()))
        }
        Change::Uhugeint => {
            let number = |row| u128::from_le_bytes(sixteen(bytes(row))) as f64;
            Arc::new(Float64Array::new(rows.map(number).collect(), nulls()))
        }
        Change::TimeWithZone => {
            let micros = |row| time_in_utc(bytes(row));
            Arc::new(PrimitiveArray::<Time64MicrosecondType>::new(rows.map(micros).collect(), nulls()))
        }
        Change::Bits => {
            let strings = values::Strings::of(array).expect("the shape of bits is made for binary types only");
            let bits = values::Values::Bits(strings);
            let text =
                |row| array.is_valid(row).then(|| String::from_utf8(rendered_text(&bits, row)).unwrap_or_default());
            Arc::new(rows.map(text).collect::<StringArray>())
        }
        Change::Seconds => {
            // The largest stand for infinity, and stay what they are.
            let micros = |seconds: i64| seconds.saturating_mul(MICROS_A_SECOND).max(-i64::MAX);
            let micros = array.as_primitive::<TimestampSecondType>().unary::<_, TimestampMicrosecondType>(micros);
            Arc::new(micros.with_data_type(column.field.data_type().clone()))
        }
        Change::Interval => {
            let nulls = NullBuffer::union(array.nulls(), outer);
            let mut written = Vec::with_capacity(array.len() * INTERVAL_BYTES as usize);
            for (row, value) in array.as_primitive::<IntervalMonthDayNanoType>().values().iter().enumerate() {
                let is_null = nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
                written.extend(if is_null { [0; 12] } else { interval(value).ok_or(None)? });
            }
            Arc::new(FixedSizeBinaryArray::try_new(INTERVAL_BYTES, Buffer::from_vec(written), nulls).map_err(Some)?)
        }
        Change::List(element) => {
            let field = element.field.clone();
            match array.data_type() {
                Arrow::LargeList(_) => {
                    let list = array.as_list::<i64>();
                    let values = taken(element, list.values(), None)?;
                    Arc::new(LargeListArray::try_new(field, list.offsets().clone(), values, nulls()).map_err(Some)?)
                }
                Arrow::FixedSizeList(_, length) => {
                    let values = taken(element, array.as_fixed_size_list().values(), None)?;
                    Arc::new(FixedSizeListArray::try_new(field, *length, values, nulls()).map_err(Some)?)
                }
                _ => {
                    let list = array.as_list::<i32>();
                    let values = taken(element, list.values(), None)?;
                    Arc::new(ListArray::try_new(field, list.offsets().clone(), values, nulls()).map_err(Some)?)
                }
            }
        }
        Change::Map { key, value } => {
            let map = array.as_map();
            let pair = vec![taken(key, map.keys(), None)?, taken(value, map.values(), None)?];
            let Arrow::Map(entries, sorted) = column.field.data_type() else { return Ok(array.clone()) };
            let pair = StructArray::try_new(fields(entries.data_type()), pair, None).map_err(Some)?;
            let map = MapArray::try_new(entries.clone(), map.offsets().clone(), pair, nulls(), *sorted);
            Arc::new(map.map_err(Some)?)
        }
        Change::Struct(columns) => {
            let nulls = NullBuffer::union(array.nulls(), outer);
            let children = array.as_struct().columns().iter().zip(columns);
            let children = children.map(|(array, column)| taken(column, array, nulls.as_ref()));
            let children = children.collect::<Result<Vec<_>, _>>()?;
            let of = fields(column.field.data_type());
            Arc::new(StructArray::try_new_with_length(of, children, nulls, array.len()).map_err(Some)?)
        }
    })
}

fn sixteen(bytes: &[u8]) -> [u8; 16] {
    bytes.try_into().expect("the shape of such numbers is made for 16 bytes only")
}

/// Converts DuckDB's time of 64 bits to UTC. The bits are the microseconds of the day, and the difference of
/// the zone's offset from the largest offset.
fn time_in_utc(bytes: &[u8]) -> i64 {
    const LARGEST_OFFSET_SECONDS: i64 = 16 * 3600 - 1;
    let bits = bytes.try_into().map_or(0, u64::from_le_bytes);
    let offset_seconds = LARGEST_OFFSET_SECONDS - (bits & 0xFF_FFFF) as i64;
    ((bits >> 24) as i64 - offset_seconds * MICROS_A_SECOND).rem_euclid(MICROS_A_DAY)
}

/// Writes months, days and milliseconds. Returns `None` where one of them is negative.
fn interval(value: &IntervalMonthDayNano) -> Option<[u8; INTERVAL_BYTES as usize]> {
    let mut bytes = [0; INTERVAL_BYTES as usize];
    if value.nanoseconds < 0 {
        return None;
    }
    let parts = [value.months.into(), value.days.into(), value.nanoseconds / NANOS_A_MILLISECOND];
    for (place, part) in bytes.chunks_exact_mut(4).zip(parts) {
        place.copy_from_slice(&u32::try_from(part).ok()?.to_le_bytes());
    }
    Some(bytes)
}
