//! Converts Arrow's arrays to columns of a payload.

use std::borrow::Cow;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrowPrimitiveType, GenericByteArray, OffsetSizeTrait};
use arrow_buffer::{ArrowNativeType, OffsetBuffer};
use arrow_schema::{DataType, Field, TimeUnit};
use windrow_columns::NotParsedReason;

use super::schema::{extension, is_huge};
use crate::budget::Budget;
use crate::column::{Column, Field as StructField, Strings, Values};

type Read<T> = Result<T, NotParsedReason>;

/// Converts one array. Memory for parts that grow is granted first.
pub(super) fn column<'a>(array: &'a dyn Array, field: &Field, budget: &mut Budget) -> Read<Column<'a>> {
    let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0);
    let nulls = nulls.map(|nulls| nulls.iter().map(|is_valid| u8::from(!is_valid)).collect());
    match array.data_type() {
        DataType::Dictionary(..) => looked_up(array, nulls, budget),
        _ => Ok(Column { rows: array.len(), nulls, values: values(array, field, budget)? }),
    }
}

fn values<'a>(array: &'a dyn Array, field: &Field, budget: &mut Budget) -> Read<Values<'a>> {
    use DataType::*;
    let int = |width, signed, data| Values::Int { width, signed, data };
    let timestamp = |power, data| Values::Timestamp { power, data };
    let decimal = |scale: i8, width, data| Values::Decimal { scale: i32::from(scale), width, data };
    Ok(match array.data_type() {
        Boolean => Values::Bool(array.as_boolean().values().iter().map(u8::from).collect()),
        Int8 if extension(field) == Some("arrow.bool8") => {
            Values::Bool(array.as_primitive::<Int8Type>().values().iter().map(|&of| u8::from(of != 0)).collect())
        }
        Int8 => int(1, true, bytes::<Int8Type>(array)),
        Int16 => int(2, true, bytes::<Int16Type>(array)),
        Int32 => int(4, true, bytes::<Int32Type>(array)),
        Int64 => int(8, true, bytes::<Int64Type>(array)),
        UInt8 => int(1, false, bytes::<UInt8Type>(array)),
        UInt16 => int(2, false, bytes::<UInt16Type>(array)),
        UInt32 => int(4, false, bytes::<UInt32Type>(array)),
        UInt64 => int(8, false, bytes::<UInt64Type>(array)),
        Float32 => Values::Float { width: 4, data: bytes::<Float32Type>(array) },
        Float64 => Values::Float { width: 8, data: bytes::<Float64Type>(array) },
        Date32 => Values::Date(bytes::<Date32Type>(array)),
        Timestamp(TimeUnit::Second, _) => timestamp(0, bytes::<TimestampSecondType>(array)),
        Timestamp(TimeUnit::Millisecond, _) => timestamp(3, bytes::<TimestampMillisecondType>(array)),
        Timestamp(TimeUnit::Microsecond, _) => timestamp(6, bytes::<TimestampMicrosecondType>(array)),
        Timestamp(TimeUnit::Nanosecond, _) => timestamp(9, bytes::<TimestampNanosecondType>(array)),
        Time64(TimeUnit::Microsecond) => Values::TimeOfDay { power: 6, data: bytes::<Time64MicrosecondType>(array) },
        Time64(TimeUnit::Nanosecond) => Values::TimeOfDay { power: 9, data: bytes::<Time64NanosecondType>(array) },
        Decimal32(_, scale) => decimal(*scale, 4, bytes::<Decimal32Type>(array)),
        Decimal64(_, scale) => decimal(*scale, 8, bytes::<Decimal64Type>(array)),
        Decimal128(_, scale) => decimal(*scale, 16, bytes::<Decimal128Type>(array)),
        Decimal256(_, scale) => decimal(*scale, 32, bytes::<Decimal256Type>(array)),
        FixedSizeBinary(width) => {
            let data = Cow::Borrowed(array.as_fixed_size_binary().value_data());
            match (extension(field), is_huge(field)) {
                (Some("arrow.opaque"), Some(signed)) => Values::Int { width: 16, signed, data },
                (Some(_), _) => Values::Uuid(data),
                (None, _) => Values::FixedBytes { width: *width as usize, data },
            }
        }
        Binary => Values::Strings(strings(array.as_binary::<i32>(), budget)?),
        LargeBinary => Values::Strings(strings(array.as_binary::<i64>(), budget)?),
        Utf8 => Values::Strings(strings(array.as_string::<i32>(), budget)?),
        LargeUtf8 => Values::Strings(strings(array.as_string::<i64>(), budget)?),
        BinaryView => Values::Strings(views(array.as_binary_view().iter(), budget)?),
        Utf8View => {
            let texts = array.as_string_view().iter().map(|text| text.map(str::as_bytes));
            Values::Strings(views(texts, budget)?)
        }
        List(inner) => {
            let list = array.as_list::<i32>();
            nested(list.offsets(), list.values(), inner, budget)?
        }
        LargeList(inner) => {
            let list = array.as_list::<i64>();
            nested(list.offsets(), list.values(), inner, budget)?
        }
        FixedSizeList(inner, count) => {
            budget.take_values(array.len(), 8)?;
            let ends = (1..=array.len() as u64).map(|row| row * *count as u64).collect();
            let inner = column(array.as_fixed_size_list().values(), inner, budget)?;
            Values::List { ends, inner: Box::new(inner) }
        }
        Map(..) => map(array, budget)?,
        Struct(fields) => {
            let columns = array.as_struct().columns().iter().zip(fields);
            let columns = columns.map(|(array, field)| {
                Ok(StructField { name: field.name().clone(), column: column(array, field, budget)? })
            });
            Values::Struct(columns.collect::<Read<_>>()?)
        }
        _ => return Err(NotParsedReason::Value),
    })
}

fn bytes<T: ArrowPrimitiveType>(array: &dyn Array) -> Cow<'_, [u8]> {
    Cow::Borrowed(array.as_primitive::<T>().values().inner().as_slice())
}

fn strings<'a, T: ByteArrayType>(array: &'a GenericByteArray<T>, budget: &mut Budget) -> Read<Strings<'a>> {
    budget.take_values(array.len(), 8)?;
    let offsets = array.value_offsets();
    let (first, last) = ends_of(offsets);
    let ends = offsets[1..].iter().map(|end| end.as_usize() - first).collect();
    Ok(Strings { ends, data: Cow::Borrowed(&array.value_data()[first..last]) })
}

/// Returns the first and the last of some offsets; there is at least one.
fn ends_of<O: OffsetSizeTrait>(offsets: &[O]) -> (usize, usize) {
    (offsets[0].as_usize(), offsets[offsets.len() - 1].as_usize())
}

fn views<'a>(values: impl ExactSizeIterator<Item = Option<&'a [u8]>>, budget: &mut Budget) -> Read<Strings<'a>> {
    let (mut ends, mut data) = (Vec::with_capacity(values.len()), Vec::new());
    for value in values.map(Option::unwrap_or_default) {
        budget.take(value.len())?;
        data.extend_from_slice(value);
        ends.push(data.len());
    }
    Ok(Strings { ends, data: data.into() })
}

/// Returns where each row's elements end; the first row's begin at 0.
fn list_ends<O: OffsetSizeTrait>(offsets: &OffsetBuffer<O>, budget: &mut Budget) -> Read<Vec<u64>> {
    budget.take_values(offsets.len(), 8)?;
    let first = offsets[0].as_usize();
    Ok(offsets[1..].iter().map(|end| (end.as_usize() - first) as u64).collect())
}

fn nested<'a, O: OffsetSizeTrait>(
    offsets: &OffsetBuffer<O>,
    elements: &'a dyn Array,
    field: &Field,
    budget: &mut Budget,
) -> Read<Values<'a>> {
    let ends = list_ends(offsets, budget)?;
    let (first, last) = ends_of(offsets);
    // Elements that no row has are rare in what comes over a wire.
    if first != 0 || last != elements.len() {
        return Err(NotParsedReason::Value);
    }
    Ok(Values::List { ends, inner: Box::new(column(elements, field, budget)?) })
}

fn map<'a>(array: &'a dyn Array, budget: &mut Budget) -> Read<Values<'a>> {
    let map = array.as_map();
    let ends = list_ends(map.offsets(), budget)?;
    let (first, last) = ends_of(map.offsets());
    let entries = map.entries();
    if first != 0 || last != entries.len() || entries.null_count() > 0 {
        return Err(NotParsedReason::Value);
    }
    let DataType::Struct(fields) = entries.data_type() else { return Err(NotParsedReason::Value) };
    let key = Box::new(column(map.keys(), &fields[0], budget)?);
    Ok(Values::Map { ends, key, value: Box::new(column(map.values(), &fields[1], budget)?) })
}

fn looked_up<'a>(array: &'a dyn Array, nulls: Option<Vec<u8>>, budget: &mut Budget) -> Read<Column<'a>> {
    let dictionary = array.as_any_dictionary();
    let values = dictionary.values();
    let plain = Field::new("", values.data_type().clone(), true);
    let known = column(values, &plain, budget)?;
    budget.take_values(array.len(), 4)?;
    let indices = match known.rows {
        0 => vec![0; array.len()],
        // Keys of NULL rows are put within the values, the others are there already.
        _ => dictionary.normalized_keys().into_iter().map(|key| key as u32).collect(),
    };
    known.at(&indices, nulls, budget)
}
