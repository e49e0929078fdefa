//! The types that are sent. A slice of a dictionary or of views would carry the values of the whole table
//! with every batch, and not every reader takes dictionaries that differ from batch to batch; so both go as
//! plain values.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_cast::{cast_with_options, CastOptions};
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};

use crate::source::SourceError;

/// The depth that types may be nested to.
const MAX_DEPTH: usize = 64;

/// Returns the schema that batches are encoded with. Of the metadata only the names of Arrow's extension
/// types stay: pandas' metadata alone may be larger than a small batch.
///
/// # Errors
/// Fails where a type is nested too deeply.
pub fn plain_schema(schema: &Schema) -> Result<SchemaRef, SourceError> {
    let fields: Result<Fields, SourceError> = schema.fields().iter().map(|field| plain_field(field, 0)).collect();
    Ok(Arc::new(Schema::new(fields?)))
}

fn plain_field(field: &FieldRef, depth: usize) -> Result<FieldRef, SourceError> {
    if depth > MAX_DEPTH {
        return Err(SourceError::new(format!("column '{}': its type is nested too deeply", field.name())));
    }
    let mut metadata = field.metadata().clone();
    metadata.retain(|key, _| key.starts_with("ARROW:"));
    let data_type = plain_type(field.data_type(), depth)?;
    Ok(Arc::new(Field::new(field.name(), data_type, field.is_nullable()).with_metadata(metadata)))
}

fn plain_type(data_type: &DataType, depth: usize) -> Result<DataType, SourceError> {
    let child = |field: &FieldRef| plain_field(field, depth + 1);
    Ok(match data_type {
        DataType::Dictionary(_, values) => plain_type(values, depth + 1)?,
        DataType::RunEndEncoded(_, values) => plain_type(values.data_type(), depth + 1)?,
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        DataType::List(field) | DataType::ListView(field) => DataType::List(child(field)?),
        DataType::LargeList(field) | DataType::LargeListView(field) => DataType::LargeList(child(field)?),
        DataType::FixedSizeList(field, length) => DataType::FixedSizeList(child(field)?, *length),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(child).collect::<Result<_, _>>()?),
        DataType::Map(entries, sorted) => DataType::Map(child(entries)?, *sorted),
        other => other.clone(),
    })
}

/// Returns the batch in the types of `plain`, which is the [`plain_schema`] of its own.
pub(super) fn plain_batch(batch: &RecordBatch, plain: &SchemaRef) -> Result<RecordBatch, SourceError> {
    let column = |(column, field): (&ArrayRef, &FieldRef)| plain_column(column, field);
    if batch.num_columns() != plain.fields().len() {
        return Err(SourceError::new("a batch has other columns than the first"));
    }
    let columns: Result<Vec<ArrayRef>, _> = batch.columns().iter().zip(plain.fields()).map(column).collect();
    let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(plain.clone(), columns?, &options).map_err(SourceError::new)
}

fn plain_column(column: &ArrayRef, field: &FieldRef) -> Result<ArrayRef, SourceError> {
    if column.data_type() == field.data_type() {
        return Ok(column.clone());
    }
    let options = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(column, field.data_type(), &options)
        .map_err(|error| SourceError::new(format!("column '{}': {error}", field.name())))
}
