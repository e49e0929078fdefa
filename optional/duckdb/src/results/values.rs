//! A column of one batch, read by its shape: from here on the names of Arrow's types are not needed.

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef};
use arrow_array::{
    BinaryArray, BinaryViewArray, BooleanArray, FixedSizeBinaryArray, LargeBinaryArray, LargeStringArray,
    PrimitiveArray, StringArray, StringViewArray,
};
use arrow_buffer::{NullBuffer, ScalarBuffer};
use arrow_schema::{DataType as Arrow, TimeUnit};

use crate::results::shape::{Kind, Rendered, Shape};

pub(crate) struct Column {
    nulls: Option<NullBuffer>,
    pub(crate) values: Values,
    pub(crate) nullable: bool,
}

pub(crate) enum Values {
    Nothing,
    Bool(BooleanArray),
    Int8(PrimitiveArray<Int8Type>),
    Int16(PrimitiveArray<Int16Type>),
    Int32(PrimitiveArray<Int32Type>),
    Int64(PrimitiveArray<Int64Type>),
    UInt8(PrimitiveArray<UInt8Type>),
    UInt16(PrimitiveArray<UInt16Type>),
    UInt32(PrimitiveArray<UInt32Type>),
    UInt64(PrimitiveArray<UInt64Type>),
    /// Numbers of 16 bytes each, little-endian.
    Int128(FixedSizeBinaryArray),
    UInt128(FixedSizeBinaryArray),
    Float32(PrimitiveArray<Float32Type>),
    Float64(PrimitiveArray<Float64Type>),
    Decimal {
        array: PrimitiveArray<Decimal128Type>,
        precision: u8,
        scale: u8,
    },
    String(Strings),
    FixedString(FixedSizeBinaryArray),
    Date(PrimitiveArray<Date32Type>),
    Time {
        ticks: ScalarBuffer<i64>,
        precision: u8,
    },
    Moment {
        ticks: ScalarBuffer<i64>,
        precision: u8,
    },
    /// Values of 16 bytes each, in the order in which they are written.
    Uuid(FixedSizeBinaryArray),
    Enum {
        numbers: Vec<u16>,
        names: Vec<String>,
    },
    Interval(PrimitiveArray<IntervalMonthDayNanoType>),
    TimeWithZone(FixedSizeBinaryArray),
    Bits(Strings),
    Array {
        offsets: Offsets,
        element: Box<Column>,
    },
    Map {
        offsets: Offsets,
        key: Box<Column>,
        value: Box<Column>,
    },
    Tuple {
        names: Option<Vec<String>>,
        elements: Vec<Column>,
    },
}

pub(crate) enum Strings {
    Utf8(StringArray),
    LargeUtf8(LargeStringArray),
    Utf8View(StringViewArray),
    Binary(BinaryArray),
    LargeBinary(LargeBinaryArray),
    BinaryView(BinaryViewArray),
}

pub(crate) enum Offsets {
    Small(ScalarBuffer<i32>),
    Large(ScalarBuffer<i64>),
    Fixed(usize),
}

impl Strings {
    pub(crate) fn bytes(&self, row: usize) -> &[u8] {
        match self {
            Strings::Utf8(array) => array.value(row).as_bytes(),
            Strings::LargeUtf8(array) => array.value(row).as_bytes(),
            Strings::Utf8View(array) => array.value(row).as_bytes(),
            Strings::Binary(array) => array.value(row),
            Strings::LargeBinary(array) => array.value(row),
            Strings::BinaryView(array) => array.value(row),
        }
    }

    pub(crate) fn of(array: &ArrayRef) -> Option<Strings> {
        Some(match array.data_type() {
            Arrow::Utf8 => Strings::Utf8(array.as_string().clone()),
            Arrow::LargeUtf8 => Strings::LargeUtf8(array.as_string().clone()),
            Arrow::Utf8View => Strings::Utf8View(array.as_string_view().clone()),
            Arrow::Binary => Strings::Binary(array.as_binary().clone()),
            Arrow::LargeBinary => Strings::LargeBinary(array.as_binary().clone()),
            Arrow::BinaryView => Strings::BinaryView(array.as_binary_view().clone()),
            Arrow::Dictionary(_, values) if matches!(**values, Arrow::Utf8) => {
                Strings::Utf8(arrow_cast::cast(array, &Arrow::Utf8).ok()?.as_string().clone())
            }
            _ => return None,
        })
    }
}

impl Offsets {
    /// Returns where the elements of a row lie.
    pub(crate) fn range(&self, row: usize) -> std::ops::Range<usize> {
        match self {
            // Offsets are checked by Arrow to be in order and within the values.
            Offsets::Small(offsets) => offsets[row] as usize..offsets[row + 1] as usize,
            Offsets::Large(offsets) => offsets[row] as usize..offsets[row + 1] as usize,
            Offsets::Fixed(size) => row * size..(row + 1) * size,
        }
    }
}

impl Column {
    /// Reads an array. Returns `None` where it is of another type than the shape was made for.
    pub(crate) fn of(array: &ArrayRef, shape: &Shape) -> Option<Column> {
        Column::within(array, shape, None)
    }

    /// Reads an array inside a tuple. Values in a tuple that is NULL are NULL, whatever they say of
    /// themselves: `outer` has the NULLs of the tuple.
    fn within(array: &ArrayRef, shape: &Shape, outer: Option<&NullBuffer>) -> Option<Column> {
        let nulls = NullBuffer::union(array.logical_nulls().as_ref(), outer);
        let values = values(array, &shape.kind, nulls.as_ref())?;
        Some(Column { nulls, values, nullable: shape.nullable })
    }

    pub(crate) fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) || matches!(self.values, Values::Nothing)
    }
}

fn values(array: &ArrayRef, kind: &Kind, nulls: Option<&NullBuffer>) -> Option<Values> {
    Some(match kind {
        Kind::Nothing => Values::Nothing,
        Kind::Bool => Values::Bool(match array.data_type() {
            Arrow::Int8 => {
                let bytes = array.as_primitive_opt::<Int8Type>()?;
                BooleanArray::new(bytes.values().iter().map(|byte| *byte != 0).collect(), bytes.nulls().cloned())
            }
            _ => array.as_boolean_opt()?.clone(),
        }),
        Kind::Int8 => Values::Int8(array.as_primitive_opt()?.clone()),
        Kind::Int16 => Values::Int16(array.as_primitive_opt()?.clone()),
        Kind::Int32 => Values::Int32(array.as_primitive_opt()?.clone()),
        Kind::Int64 => Values::Int64(array.as_primitive_opt()?.clone()),
        Kind::UInt8 => Values::UInt8(array.as_primitive_opt()?.clone()),
        Kind::UInt16 => Values::UInt16(array.as_primitive_opt()?.clone()),
        Kind::UInt32 => Values::UInt32(array.as_primitive_opt()?.clone()),
        Kind::UInt64 => Values::UInt64(array.as_primitive_opt()?.clone()),
        Kind::Int128 => Values::Int128(wide(array, 16)?),
        Kind::UInt128 => Values::UInt128(wide(array, 16)?),
        Kind::Float32 => Values::Float32(array.as_primitive_opt()?.clone()),
        Kind::Float64 => Values::Float64(array.as_primitive_opt()?.clone()),
        Kind::Decimal { precision, scale } => {
            Values::Decimal { array: array.as_primitive_opt()?.clone(), precision: *precision, scale: *scale }
        }
        Kind::String => Values::String(Strings::of(array)?),
        Kind::FixedString(width) => Values::FixedString(wide(array, *width)?),
        Kind::Date => Values::Date(array.as_primitive_opt()?.clone()),
        Kind::Time { precision } => Values::Time { ticks: ticks_of_day(array)?, precision: *precision },
        Kind::Moment { precision, .. } => Values::Moment { ticks: ticks(array)?, precision: *precision },
        Kind::Uuid => Values::Uuid(wide(array, 16)?),
        Kind::Enum(names) => Values::Enum { numbers: enum_numbers(array, names)?, names: names.clone() },
        Kind::Rendered(Rendered::Interval) => Values::Interval(array.as_primitive_opt()?.clone()),
        Kind::Rendered(Rendered::TimeWithZone) => Values::TimeWithZone(wide(array, 8)?),
        Kind::Rendered(Rendered::Bits) => Values::Bits(Strings::of(array)?),
        Kind::Array(element) => list(array, element)?,
        Kind::Map(key, value) => {
            let map = array.as_map_opt()?;
            Values::Map {
                offsets: Offsets::Small(map.offsets().inner().clone()),
                key: Box::new(Column::of(map.keys(), key)?),
                value: Box::new(Column::of(map.values(), value)?),
            }
        }
        Kind::Tuple { names, elements } => {
            let columns = array.as_struct_opt()?.columns();
            if columns.len() != elements.len() {
                return None;
            }
            let elements = columns.iter().zip(elements).map(|(array, shape)| Column::within(array, shape, nulls));
            Values::Tuple { names: names.clone(), elements: elements.collect::<Option<_>>()? }
        }
    })
}

fn wide(array: &ArrayRef, width: usize) -> Option<FixedSizeBinaryArray> {
    let array = array.as_fixed_size_binary_opt()?;
    (array.value_size() == width).then(|| array.clone())
}

fn list(array: &ArrayRef, element: &Shape) -> Option<Values> {
    let (offsets, values) = match array.data_type() {
        Arrow::List(_) => {
            let list = array.as_list_opt::<i32>()?;
            (Offsets::Small(list.offsets().inner().clone()), list.values())
        }
        Arrow::LargeList(_) => {
            let list = array.as_list_opt::<i64>()?;
            (Offsets::Large(list.offsets().inner().clone()), list.values())
        }
        _ => {
            let list = array.as_fixed_size_list_opt()?;
            (Offsets::Fixed(usize::try_from(list.value_length()).ok()?), list.values())
        }
    };
    Some(Values::Array { offsets, element: Box::new(Column::of(values, element)?) })
}

fn ticks(array: &ArrayRef) -> Option<ScalarBuffer<i64>> {
    let Arrow::Timestamp(unit, _) = array.data_type() else { return None };
    Some(match unit {
        TimeUnit::Second => array.as_primitive_opt::<TimestampSecondType>()?.values().clone(),
        TimeUnit::Millisecond => array.as_primitive_opt::<TimestampMillisecondType>()?.values().clone(),
        TimeUnit::Microsecond => array.as_primitive_opt::<TimestampMicrosecondType>()?.values().clone(),
        TimeUnit::Nanosecond => array.as_primitive_opt::<TimestampNanosecondType>()?.values().clone(),
    })
}

fn ticks_of_day(array: &ArrayRef) -> Option<ScalarBuffer<i64>> {
    match array.data_type() {
        Arrow::Time64(TimeUnit::Nanosecond) => Some(array.as_primitive_opt::<Time64NanosecondType>()?.values().clone()),
        _ => Some(array.as_primitive_opt::<Time64MicrosecondType>()?.values().clone()),
    }
}

/// Returns the number of each row's name, and 0 for NULL. Returns `None` where the array has other names.
fn enum_numbers(array: &ArrayRef, names: &[String]) -> Option<Vec<u16>> {
    let dictionary = array.as_any_dictionary_opt()?;
    let theirs = dictionary.values().as_string_opt::<i32>()?;
    if theirs.len() != names.len() || !theirs.iter().flatten().eq(names.iter().map(String::as_str)) {
        return None;
    }
    // Keys of NULLs may be anything.
    let last = names.len().saturating_sub(1);
    Some(dictionary.normalized_keys().into_iter().map(|key| key.min(last) as u16).collect())
}
