//! Converts blocks of the gatherer into Arrow's record batches: each type in the plainest form that Arrow has
//! for its values. Their form in a table is decided by `fit`.

mod scalar;

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BinaryArray, ListArray, MapArray, RecordBatch, RecordBatchOptions, StructArray};
use arrow_buffer::{BooleanBuffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{Field, Fields, Schema};
use windrow_columns::{Block, ColumnView, DataType, Layout, Strings};

use crate::fit::{CannotStore, CannotStoreValue};

/// Converts a block, with the names and types of its columns.
///
/// # Errors
/// Fails where a column is missing or too large, or a value has no form in Arrow.
pub fn record_batch(block: &Block, names: &[String], types: &[DataType]) -> Result<RecordBatch, CannotStore> {
    let (mut fields, mut arrays) = (Vec::with_capacity(types.len()), Vec::with_capacity(types.len()));
    for (at, (name, data_type)) in names.iter().zip(types).enumerate() {
        let column = block.column(at).ok_or_else(|| CannotStore::missing(name))?;
        let array = array(column, data_type).map_err(|misfit| misfit.of_column(name))?;
        fields.push(Field::new(name, array.data_type().clone(), true));
        arrays.push(array);
    }
    let rows = RecordBatchOptions::new().with_row_count(Some(block.rows()));
    let batch = RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &rows);
    batch.map_err(|error| CannotStore::other(&error.to_string()))
}

fn array(column: ColumnView, data_type: &DataType) -> Result<ArrayRef, CannotStoreValue> {
    match (column.layout(), data_type) {
        (_, DataType::LowCardinality(inner)) => array(column, inner),
        (_, DataType::Custom(custom)) => array(column, &custom.inner),
        (Layout::Nullable { nulls, inner }, DataType::Nullable(of)) => with_nulls(&array(inner, of)?, nulls),
        (Layout::Strings(strings), _) => binary(strings),
        (Layout::Fixed { width, data }, _) => scalar::array(width, data, data_type),
        (Layout::Array { offsets, inner }, DataType::Array(of)) => {
            let values = array(inner, of)?;
            let field = Field::new("item", values.data_type().clone(), true);
            made(ListArray::try_new(Arc::new(field), offsets_of(offsets)?, values, None))
        }
        (Layout::Array { offsets, inner }, DataType::Map(key, value)) => map(offsets, inner, key, value),
        (Layout::Tuple(elements), DataType::Tuple(tuple)) => {
            let arrays: Vec<_> = elements
                .iter()
                .zip(&tuple.elements)
                .map(|(column, of)| array(*column, of))
                .collect::<Result<_, _>>()?;
            let names = tuple.names.clone().unwrap_or_else(|| (1..=arrays.len()).map(|n| n.to_string()).collect());
            made(StructArray::try_new(fields(&names, &arrays, true), arrays, None))
        }
        _ => Err(CannotStoreValue::other(&format!(
            "values of ClickHouse's {} don't go into DuckDB",
            data_type.native_name()
        ))),
    }
}

fn map(offsets: &[u64], inner: ColumnView, key: &DataType, value: &DataType) -> Result<ArrayRef, CannotStoreValue> {
    let Layout::Tuple(pair) = inner.layout() else { return Err(CannotStoreValue::other("a map of another layout")) };
    let [keys, values] = pair[..] else { return Err(CannotStoreValue::other("a map of another layout")) };
    let arrays = vec![array(keys, key)?, array(values, value)?];
    let of_key = Field::new("key", arrays[0].data_type().clone(), false);
    let of_value = Field::new("value", arrays[1].data_type().clone(), true);
    let fields = Fields::from(vec![of_key, of_value]);
    let entries =
        StructArray::try_new(fields, arrays, None).map_err(|error| CannotStoreValue::other(&error.to_string()))?;
    let field = Field::new("entries", entries.data_type().clone(), false);
    made(MapArray::try_new(Arc::new(field), offsets_of(offsets)?, entries, None, false))
}

fn fields(names: &[String], arrays: &[ArrayRef], nullable: bool) -> Fields {
    let pairs = names.iter().zip(arrays);
    pairs.map(|(name, array)| Field::new(name, array.data_type().clone(), nullable)).collect()
}

fn made<A: Array + 'static>(array: Result<A, arrow_schema::ArrowError>) -> Result<ArrayRef, CannotStoreValue> {
    array.map(|array| Arc::new(array) as ArrayRef).map_err(|error| CannotStoreValue::other(&error.to_string()))
}

/// Marks the rows that are NULL. `nulls` has a byte for every row, 1 for NULL.
fn with_nulls(array: &ArrayRef, nulls: &[u8]) -> Result<ArrayRef, CannotStoreValue> {
    if nulls.iter().all(|&null| null == 0) {
        return Ok(array.clone());
    }
    let valid = BooleanBuffer::collect_bool(nulls.len(), |row| nulls[row] == 0);
    let data = array.to_data().into_builder().nulls(Some(NullBuffer::new(valid))).build();
    data.map(arrow_array::make_array).map_err(|error| CannotStoreValue::other(&error.to_string()))
}

fn offsets_of(ends: &[u64]) -> Result<OffsetBuffer<i32>, CannotStoreValue> {
    let end = |&end: &u64| i32::try_from(end).map_err(|_| too_large());
    let offsets: Vec<i32> = std::iter::once(Ok(0)).chain(ends.iter().map(end)).collect::<Result<_, _>>()?;
    Ok(OffsetBuffer::new(ScalarBuffer::from(offsets)))
}

fn too_large() -> CannotStoreValue {
    CannotStoreValue::other("the values of one batch are more than 2 GiB")
}

/// Converts strings to bytes. They are checked for UTF-8 later, where they have to be.
fn binary(strings: Strings) -> Result<ArrayRef, CannotStoreValue> {
    let mut data = Vec::with_capacity(strings.bytes().saturating_sub(strings.rows()));
    let mut offsets = Vec::with_capacity(strings.rows() + 1);
    offsets.push(0);
    for value in strings {
        data.extend_from_slice(value);
        offsets.push(i32::try_from(data.len()).map_err(|_| too_large())?);
    }
    made(BinaryArray::try_new(OffsetBuffer::new(ScalarBuffer::from(offsets)), data.into(), None))
}
