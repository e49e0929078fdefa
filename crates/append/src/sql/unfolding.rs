//! How much arrays take once every row has its own copy of its value: a few bytes can stand for any number of copies.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowDictionaryKeyType, Int16Type, Int32Type, Int64Type, Int8Type, UInt16Type, UInt32Type, UInt64Type, UInt8Type,
};
use arrow_array::{Array, ArrowPrimitiveType, OffsetSizeTrait, RecordBatch};
use arrow_buffer::ArrowNativeType;
use arrow_schema::DataType;

use crate::size::array_bytes;

/// The bytes of a batch without dictionaries, runs and views; `u64::MAX` for what can't be told.
pub(super) fn unfolded_bytes(batch: &RecordBatch) -> u64 {
    batch.columns().iter().fold(0, |sum: u64, column| sum.saturating_add(of_array(column)))
}

fn of_array(array: &dyn Array) -> u64 {
    match array.data_type() {
        DataType::Dictionary(keys, _) => of_dictionary(array, keys),
        // Runs are as long as they say; nothing bounds them, and nobody appends them.
        DataType::RunEndEncoded(..) => u64::MAX,
        DataType::ListView(_) | DataType::LargeListView(_) | DataType::Union(..) => u64::MAX,
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

/// A slice of a list still has all values; those that it shows count.
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
    let length_of: Box<dyn Fn(usize) -> u64> = match values.data_type() {
        DataType::Utf8 => Box::new(|at| u64::from(values.as_string::<i32>().value_length(at).unsigned_abs())),
        DataType::Binary => Box::new(|at| u64::from(values.as_binary::<i32>().value_length(at).unsigned_abs())),
        DataType::LargeUtf8 => Box::new(|at| values.as_string::<i64>().value_length(at).unsigned_abs()),
        DataType::LargeBinary => Box::new(|at| values.as_binary::<i64>().value_length(at).unsigned_abs()),
        other => {
            let Some(width) = other.primitive_width() else {
                // Any of them may be as long as all together.
                return of_array(values).saturating_mul(array.len() as u64);
            };
            return (array.len() as u64).saturating_mul(width as u64);
        }
    };
    let keys = dictionary.keys();
    let key = |at: usize| keys.is_valid(at).then(|| keys.value(at).as_usize()).filter(|&key| key < values.len());
    (0..keys.len()).filter_map(key).fold(0, |sum: u64, key| sum.saturating_add(length_of(key) + 8))
}
