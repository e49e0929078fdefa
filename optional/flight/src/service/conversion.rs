//! Converts parameters to rows for a table's columns.
//!
//! Clients bind values of their language: an integer of 64 bits, whatever the column is. ClickHouse would cut
//! such a number to the column's size without an error, so it is checked here. Values that are not numbers
//! are left to the database.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_cast::{cast_with_options, CastOptions};
use arrow_schema::{DataType, Field, Schema};
use windrow_clickhouse::{ErrorCode, Exception};

use crate::error;
use crate::sql::Dialect;

/// A column that rows are for, with its field where that is known.
#[derive(Debug, Clone)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) field: Option<Field>,
}

pub(super) fn for_columns(
    dialect: Dialect,
    columns: &[Column],
    parameters: &RecordBatch,
) -> Result<RecordBatch, Exception> {
    if columns.len() != parameters.num_columns() {
        let text =
            format!("{} columns are named, and {} parameters are bound", columns.len(), parameters.num_columns());
        return Err(error::own(ErrorCode::BAD_ARGUMENTS, &text));
    }
    let mut fields = Vec::with_capacity(columns.len());
    let mut arrays = Vec::with_capacity(columns.len());
    for (column, values) in columns.iter().zip(parameters.columns()) {
        let converted = converted(dialect, column, values)?;
        fields.push(Field::new(&column.name, converted.data_type().clone(), true));
        arrays.push(converted);
    }
    let rows = arrow_array::RecordBatchOptions::new().with_row_count(Some(parameters.num_rows()));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &rows)
        .map_err(|error| error::own(ErrorCode::BAD_ARGUMENTS, &error.to_string()))
}

fn converted(dialect: Dialect, column: &Column, values: &ArrayRef) -> Result<ArrayRef, Exception> {
    let Some(field) = &column.field else { return Ok(values.clone()) };
    let wanted = field.data_type();
    if values.data_type() == &DataType::Null {
        return Ok(arrow_array::new_null_array(wanted, values.len()));
    }
    let both_numbers = wanted.is_numeric() && values.data_type().is_numeric();
    // DuckDB checks for itself.
    if dialect == Dialect::DuckDb || !both_numbers || wanted == values.data_type() {
        return Ok(values.clone());
    }
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let doesnt_fit = |why: String| {
        let (name, given) = (&column.name, values.data_type());
        error::own(
            ErrorCode::VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE,
            &format!("column {name}: a value of Arrow's type {given} doesn't fit into {wanted}: {why}"),
        )
    };
    let cast = cast_with_options(values, wanted, &options).map_err(|error| doesnt_fit(error.to_string()))?;
    if wanted.is_integer() {
        let back =
            cast_with_options(&cast, values.data_type(), &options).map_err(|error| doesnt_fit(error.to_string()))?;
        if back.as_ref() != values.as_ref() {
            return Err(doesnt_fit("it would be another value".to_owned()));
        }
    }
    Ok(cast)
}

#[cfg(test)]
mod tests {
    use arrow_array::{Float64Array, Int64Array, StringArray};

    use super::*;

    fn convert(wanted: DataType, values: ArrayRef) -> Result<DataType, ErrorCode> {
        let columns = [Column { name: "n".into(), field: Some(Field::new("n", wanted, true)) }];
        let parameters = RecordBatch::try_from_iter([("0", values)]).unwrap();
        let converted = for_columns(Dialect::ClickHouse, &columns, &parameters);
        converted.map(|batch| batch.column(0).data_type().clone()).map_err(|error| error.code)
    }

    #[test]
    fn numbers_become_the_columns_if_they_fit() {
        let integers = |values: Vec<Option<i64>>| Arc::new(Int64Array::from(values)) as ArrayRef;
        let floats = |values: Vec<f64>| Arc::new(Float64Array::from(values)) as ArrayRef;
        assert_eq!(convert(DataType::UInt8, integers(vec![Some(255), None])), Ok(DataType::UInt8));
        assert_eq!(
            convert(DataType::UInt8, integers(vec![Some(256)])),
            Err(ErrorCode::VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE)
        );
        assert_eq!(
            convert(DataType::UInt64, integers(vec![Some(-1)])),
            Err(ErrorCode::VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE)
        );
        assert_eq!(convert(DataType::Int32, floats(vec![2.0])), Ok(DataType::Int32));
        assert_eq!(convert(DataType::Int32, floats(vec![2.5])), Err(ErrorCode::VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE));
        assert_eq!(convert(DataType::Float32, floats(vec![0.1])), Ok(DataType::Float32));
        assert_eq!(convert(DataType::Decimal128(9, 2), integers(vec![Some(7)])), Ok(DataType::Decimal128(9, 2)));
        assert_eq!(convert(DataType::Int8, Arc::new(StringArray::from(vec!["x"]))), Ok(DataType::Utf8));
    }
}
