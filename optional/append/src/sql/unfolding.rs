//! The memory that arrays take once every row has its own copy of its value: a few bytes can stand for any
//! number of copies.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowDictionaryKeyType, Int16Type, Int32Type, Int64Type, Int8Type, RunEndIndexType, UInt16Type, UInt32Type,
    UInt64Type, UInt8Type,
};
use arrow_array::{Array, ArrowPrimitiveType, GenericListViewArray, OffsetSizeTrait, RecordBatch, RunArray};
use arrow_buffer::ArrowNativeType;
use arrow_schema::DataType;

use crate::size::array_bytes;

/// Returns the bytes of a batch without dictionaries, runs and views; `u64::MAX` for types that can't be told.
pub(super) fn unfolded_bytes(batch: &RecordBatch) -> u64 {
    batch.columns().iter().fold(0, |sum: u64, column| sum.saturating_add(of_array(column)))
}

fn of_array(array: &dyn Array) -> u64 {
    match array.data_type() {
        DataType::Dictionary(keys, _) => of_dictionary(array, keys),
        DataType::RunEndEncoded(ends, _) => match ends.data_type() {
            DataType::Int16 => of_runs::<Int16Type>(array),
            DataType::Int32 => of_runs::<Int32Type>(array),
            DataType::Int64 => of_runs::<Int64Type>(array),
            _ => u64::MAX,
        },
        DataType::ListView(_) => of_list_view::<i32>(array),
        DataType::LargeListView(_) => of_list_view::<i64>(array),
        DataType::Union(..) => u64::MAX,
        DataType::Struct(_) => {
            array.as_struct().columns().iter().fold(0, |sum: u64, of| sum.saturating_add(of_array(of)))
        }
        DataType::List(_) => of_list::<i32>(array),
        DataType::LargeList(_) => of_list::<i64>(array),
        DataType::FixedSizeList(..) => of_array(array.as_fixed_size_list().values()),
        DataType::Map(..) => {
            array.as_map().entries().columns().iter().fold(0, |sum: u64, of| sum.saturating_add(of_array(of)))
        }
        // A column of NULLs becomes one of the table's type.
        DataType::Null => (array.len() as u64).saturating_mul(16),
        _ => array_bytes(array),
    }
}

/// Returns the bytes of a list. A slice of a list still has all values; those that it shows count.
fn of_list<O: OffsetSizeTrait>(array: &dyn Array) -> u64 {
    let list = array.as_list::<O>();
    let shown = list.value_offsets().first().zip(list.value_offsets().last());
    let (first, last) = shown.map_or((0, 0), |(first, last)| (first.as_usize(), last.as_usize()));
    of_array(&list.values().slice(first, last.saturating_sub(first)))
}

fn of_dictionary(array: &dyn Array, keys: &DataType) -> u64 {
    match keys {
        DataType::Int8 => by_keys::<Int8Type>(array),
        DataType::Int16 => by_keys::<Int16Type>(array),
        DataType::Int32 => by_keys::<Int32Type>(array),
        DataType::Int64 => by_keys::<Int64Type>(array),
        DataType::UInt8 => by_keys::<UInt8Type>(array),
        DataType::UInt16 => by_keys::<UInt16Type>(array),
        DataType::UInt32 => by_keys::<UInt32Type>(array),
        DataType::UInt64 => by_keys::<UInt64Type>(array),
        _ => u64::MAX,
    }
}

fn by_keys<K: ArrowPrimitiveType + ArrowDictionaryKeyType>(array: &dyn Array) -> u64 {
    let dictionary = array.as_dictionary::<K>();
    let values = dictionary.values();
    let size_of = sizes(values.as_ref());
    let keys = dictionary.keys();
    let key = |at: usize| keys.is_valid(at).then(|| keys.value(at).as_usize()).filter(|&key| key < values.len());
    (0..keys.len()).filter_map(key).fold(0, |sum: u64, key| sum.saturating_add(size_of(key)))
}

fn of_runs<R: RunEndIndexType>(array: &dyn Array) -> u64 {
    let Some(runs) = array.as_any().downcast_ref::<RunArray<R>>() else { return u64::MAX };
    let ends = runs.run_ends();
    let (first, last) = (ends.offset(), ends.offset() + ends.len());
    let size_of = sizes(runs.values().as_ref());
    let mut start = first;
    ends.values().iter().enumerate().fold(0, |sum: u64, (at, end)| {
        let end = end.as_usize().clamp(start, last);
        let rows = (end - start) as u64;
        start = end;
        sum.saturating_add(if rows == 0 { 0 } else { rows.saturating_mul(size_of(at)) })
    })
}

/// Returns the bytes of a list view. Rows may show the same values, each of which then has them for itself.
fn of_list_view<O: OffsetSizeTrait>(array: &dyn Array) -> u64 {
    let Some(lists) = array.as_any().downcast_ref::<GenericListViewArray<O>>() else { return u64::MAX };
    let values = lists.values();
    let size_of = sizes(values.as_ref());
    let mut before = Vec::with_capacity(values.len() + 1);
    before.push(0u64);
    for at in 0..values.len() {
        before.push(before[at].saturating_add(size_of(at)));
    }
    lists.offsets().iter().zip(lists.sizes()).fold(0, |sum: u64, (offset, size)| {
        let first = offset.as_usize().min(values.len());
        let last = first.saturating_add(size.as_usize()).min(values.len());
        sum.saturating_add(before[last] - before[first]).saturating_add(8)
    })
}

/// Returns the sizes of the values, each as if it stood alone.
fn sizes(values: &dyn Array) -> Box<dyn Fn(usize) -> u64 + '_> {
    let of_text = |length: u64| length + 8;
    match values.data_type() {
        DataType::Utf8 => Box::new(move |at| of_text(values.as_string::<i32>().value_length(at).unsigned_abs().into())),
        DataType::Binary => {
            Box::new(move |at| of_text(values.as_binary::<i32>().value_length(at).unsigned_abs().into()))
        }
        DataType::LargeUtf8 => Box::new(move |at| of_text(values.as_string::<i64>().value_length(at).unsigned_abs())),
        DataType::LargeBinary => Box::new(move |at| of_text(values.as_binary::<i64>().value_length(at).unsigned_abs())),
        DataType::Utf8View => Box::new(move |at| of_text(values.as_string_view().value(at).len() as u64)),
        DataType::BinaryView => Box::new(move |at| of_text(values.as_binary_view().value(at).len() as u64)),
        DataType::Boolean => Box::new(|_| 1),
        other => match other.primitive_width() {
            Some(width) => Box::new(move |_| width as u64),
            None => {
                let each: Vec<u64> = (0..values.len()).map(|at| of_array(&values.slice(at, 1))).collect();
                Box::new(move |at| each[at])
            }
        },
    }
}
