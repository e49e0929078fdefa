//! Converts DuckDB's rows to types that every client of Arrow knows.
//!
//! DuckDB uses extension types for BOOLEAN and HUGEINT, so that nothing of them is lost; a client that
//! doesn't know these sees small integers and bytes. Here they become Arrow's boolean and a decimal of 38
//! digits. That is enough for all but the largest HUGEINTs, which are an error rather than another number.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, Decimal128Array, FixedSizeListArray, ListArray, MapArray, RecordBatch, StructArray,
};
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema, SchemaRef};
use windrow_clickhouse::{ErrorCode, Exception};

use crate::error;

const HUGEINT: DataType = DataType::Decimal128(38, 0);
const LARGEST: i128 = 10i128.pow(38);
const NAME: &str = "ARROW:extension:name";
const METADATA: &str = "ARROW:extension:metadata";

/// Returns the schema with the same columns in the usual types.
pub(super) fn usual_schema(schema: &Schema) -> SchemaRef {
    Arc::new(Schema::new(usual_fields(schema.fields())))
}

pub(super) fn usual_batch(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, Exception> {
    if batch.schema_ref().fields() == schema.fields() {
        return Ok(batch.clone());
    }
    let told = batch.schema();
    let columns = batch.columns().iter().zip(told.fields()).zip(schema.fields());
    let columns: Result<Vec<_>, _> = columns.map(|((values, from), to)| converted(values, from, to)).collect();
    let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(schema.clone(), columns?, &options).map_err(failed)
}

fn usual_fields(fields: &Fields) -> Fields {
    fields.iter().map(|field| Arc::new(usual_field(field))).collect()
}

fn usual_field(field: &Field) -> Field {
    let plain = |data_type: DataType| {
        let mut plain = field.clone().with_data_type(data_type);
        plain.metadata_mut().retain(|key, _| key != NAME && key != METADATA);
        plain
    };
    match field.data_type() {
        DataType::Int8 if extension(field) == "arrow.bool8" => plain(DataType::Boolean),
        DataType::FixedSizeBinary(16) if is_huge(field) => plain(HUGEINT),
        DataType::List(item) => field.clone().with_data_type(DataType::List(usual_field(item).into())),
        DataType::FixedSizeList(item, length) => {
            field.clone().with_data_type(DataType::FixedSizeList(usual_field(item).into(), *length))
        }
        DataType::Map(entries, sorted) => {
            field.clone().with_data_type(DataType::Map(usual_field(entries).into(), *sorted))
        }
        DataType::Struct(fields) => field.clone().with_data_type(DataType::Struct(usual_fields(fields))),
        _ => field.clone(),
    }
}

fn extension(field: &Field) -> &str {
    field.metadata().get(NAME).map_or("", String::as_str)
}

/// Says whether a field is a HUGEINT or UHUGEINT.
fn is_huge(field: &Field) -> bool {
    let told = field.metadata().get(METADATA).map_or("", String::as_str);
    extension(field) == "arrow.opaque" && told.contains("hugeint\"")
}

fn is_unsigned(field: &Field) -> bool {
    field.metadata().get(METADATA).is_some_and(|told| told.contains("\"uhugeint\""))
}

fn converted(values: &ArrayRef, from: &Field, to: &Field) -> Result<ArrayRef, Exception> {
    if from.data_type() == to.data_type() {
        return Ok(values.clone());
    }
    Ok(match (from.data_type(), to.data_type()) {
        (DataType::FixedSizeBinary(_), DataType::Decimal128(..)) => Arc::new(decimals(values, from)?),
        (DataType::List(from), DataType::List(to)) => {
            let lists = values.as_list::<i32>();
            let items = converted(lists.values(), from, to)?;
            Arc::new(
                ListArray::try_new(to.clone(), lists.offsets().clone(), items, lists.nulls().cloned())
                    .map_err(failed)?,
            )
        }
        (DataType::FixedSizeList(from, length), DataType::FixedSizeList(to, _)) => {
            let lists = values.as_fixed_size_list();
            let items = converted(lists.values(), from, to)?;
            Arc::new(FixedSizeListArray::try_new(to.clone(), *length, items, lists.nulls().cloned()).map_err(failed)?)
        }
        (DataType::Struct(from), DataType::Struct(to)) => Arc::new(members(values.as_struct(), from, to)?),
        (DataType::Map(from, _), DataType::Map(to, sorted)) => {
            let maps = values.as_map();
            let (DataType::Struct(from), DataType::Struct(inner)) = (from.data_type(), to.data_type()) else {
                return Err(error::own(ErrorCode::STD_EXCEPTION, "a map has entries that are no pairs"));
            };
            let entries = members(maps.entries(), from, inner)?;
            let (offsets, nulls) = (maps.offsets().clone(), maps.nulls().cloned());
            Arc::new(MapArray::try_new(to.clone(), offsets, entries, nulls, *sorted).map_err(failed)?)
        }
        (_, to) => arrow_cast::cast(values, to).map_err(failed)?,
    })
}

fn members(values: &StructArray, from: &Fields, to: &Fields) -> Result<StructArray, Exception> {
    let columns = values.columns().iter().zip(from).zip(to);
    let columns: Result<Vec<_>, _> = columns.map(|((values, from), to)| converted(values, from, to)).collect();
    StructArray::try_new(to.clone(), columns?, values.nulls().cloned()).map_err(failed)
}

fn decimals(values: &ArrayRef, field: &Field) -> Result<Decimal128Array, Exception> {
    let unsigned = is_unsigned(field);
    let number = |bytes: &[u8]| {
        let bytes = <[u8; 16]>::try_from(bytes).ok()?;
        let number = match unsigned {
            true => i128::try_from(u128::from_le_bytes(bytes)).ok()?,
            false => i128::from_le_bytes(bytes),
        };
        (-LARGEST < number && number < LARGEST).then_some(number)
    };
    let too_large = || {
        let text = format!("column {}: a HUGEINT of more than 38 digits: cast the column to VARCHAR", field.name());
        error::own(ErrorCode::DECIMAL_OVERFLOW, &text)
    };
    let numbers = values.as_fixed_size_binary().iter();
    let numbers = numbers.map(|bytes| bytes.map(|bytes| number(bytes).ok_or_else(too_large)).transpose());
    let numbers: Result<Vec<_>, _> = numbers.collect();
    Decimal128Array::from(numbers?).with_precision_and_scale(38, 0).map_err(failed)
}

fn failed(error: ArrowError) -> Exception {
    error::own(ErrorCode::STD_EXCEPTION, &error.to_string())
}

#[cfg(test)]
mod tests {
    use arrow_array::{FixedSizeBinaryArray, Int8Array};

    use super::*;

    fn told(name: &str, data_type: DataType, extension: &str, metadata: &str) -> Field {
        let metadata = [(NAME, extension), (METADATA, metadata)].map(|(key, value)| (key.to_owned(), value.to_owned()));
        Field::new(name, data_type, true).with_metadata(metadata)
    }

    fn huge(values: &[i128]) -> ArrayRef {
        let bytes = values.iter().map(|value| value.to_le_bytes());
        Arc::new(FixedSizeBinaryArray::try_from_iter(bytes).unwrap())
    }

    fn usual(field: Field, values: ArrayRef) -> Result<RecordBatch, ErrorCode> {
        let batch = RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![values]).unwrap();
        usual_batch(&batch, &usual_schema(batch.schema_ref())).map_err(|error| error.code)
    }

    const OPAQUE: &str = "{\"type_name\":\"hugeint\",\"vendor_name\":\"DuckDB\"}";

    #[test]
    fn extensions_become_what_clients_know() {
        let bools: ArrayRef = Arc::new(Int8Array::from(vec![Some(1), Some(0), None]));
        let batch = usual(told("b", DataType::Int8, "arrow.bool8", ""), bools).unwrap();
        assert_eq!(batch.column(0).as_boolean().iter().collect::<Vec<_>>(), [Some(true), Some(false), None]);
        assert!(batch.schema().field(0).metadata().is_empty());
        let field = told("h", DataType::FixedSizeBinary(16), "arrow.opaque", OPAQUE);
        let batch = usual(field.clone(), huge(&[-5, LARGEST - 1])).unwrap();
        assert_eq!(batch.schema().field(0).data_type(), &HUGEINT);
        assert_eq!(usual(field, huge(&[LARGEST])), Err(ErrorCode::DECIMAL_OVERFLOW));
    }

    #[test]
    fn they_are_found_inside_others() {
        let item = Arc::new(told("item", DataType::FixedSizeBinary(16), "arrow.opaque", OPAQUE));
        let lists = ListArray::new(item.clone(), arrow_buffer::OffsetBuffer::from_lengths([2]), huge(&[1, 2]), None);
        let pair = Fields::from(vec![Field::new("l", DataType::List(item), true)]);
        let values: ArrayRef = Arc::new(StructArray::new(pair.clone(), vec![Arc::new(lists)], None));
        let batch = usual(Field::new("s", DataType::Struct(pair), true), values).unwrap();
        let inner = batch.column(0).as_struct().column(0).as_list::<i32>().values().clone();
        assert_eq!(inner.data_type(), &HUGEINT);
    }
}
