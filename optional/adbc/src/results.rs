//! Results as drivers give them, with plain types in place of those that an encoder of ClickHouse's formats
//! does not know.
//!
//! PostgreSQL's driver gives types that Arrow lacks under a name of its own: a NUMERIC as a text, any other
//! as the bytes of PostgreSQL's binary protocol. Texts stay texts, or become decimals where the result says
//! how many digits they have. Bytes keep their name; the encoder refuses it and names the column.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_cast::cast;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};

const EXTENSION: &str = "ARROW:extension:name";

/// The schema that a result has with plain types.
pub(crate) struct Plain {
    schema: SchemaRef,
}

impl Plain {
    pub(crate) fn of(given: &Schema) -> Plain {
        let fields: Vec<Field> = given.fields().iter().map(|field| plain(field)).collect();
        Plain { schema: Arc::new(Schema::new(fields)) }
    }

    pub(crate) fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    pub(crate) fn batch(&self, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let pairs = batch.columns().iter().zip(self.schema.fields());
        let arrays = pairs.map(|(array, field)| column(array, field)).collect::<Result<Vec<_>, _>>()?;
        let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(self.schema.clone(), arrays, &rows)
    }
}

fn plain(field: &Field) -> Field {
    let named = |data_type| Field::new(field.name(), data_type, field.is_nullable());
    let extension = field.metadata().get(EXTENSION).map(String::as_str);
    match (extension, field.data_type()) {
        (Some("arrow.opaque"), DataType::Utf8) => named(digits(field).unwrap_or(DataType::Utf8)),
        (None, data_type) => named(data_type.clone()),
        (Some(_), _) => field.clone(),
    }
}

/// Returns the type of a NUMERIC that says how many digits it has: PostgreSQL keeps precision and scale in
/// one number.
fn digits(field: &Field) -> Option<DataType> {
    let modifier: i32 = field.metadata().get("POSTGRESQL:typmod")?.parse().ok()?;
    let digits = u32::try_from(modifier.checked_sub(4)?).ok()?;
    let (precision, scale) = (u8::try_from(digits >> 16).ok()?, i8::try_from(digits & 0x7ff).ok()?);
    (precision <= 38 && scale.unsigned_abs() <= precision).then_some(DataType::Decimal128(precision, scale))
}

fn column(array: &ArrayRef, field: &Field) -> Result<ArrayRef, ArrowError> {
    match (array.data_type(), field.data_type()) {
        (given, wanted) if given == wanted => Ok(array.clone()),
        (DataType::Utf8, DataType::Decimal128(..)) => decimals(array, field),
        (_, wanted) => cast(array, wanted),
    }
}

/// Converts to decimals. A NUMERIC may be NaN even where it has a number of digits.
fn decimals(array: &ArrayRef, field: &Field) -> Result<ArrayRef, ArrowError> {
    let made = cast(array, field.data_type())?;
    match made.null_count() == array.null_count() {
        true => Ok(made),
        false => Err(ArrowError::CastError(format!("Column `{}` has a value that is no number", field.name()))),
    }
}

/// Returns all rows of a small result as texts. Drivers use several of Arrow's types for the same value.
pub(crate) fn texts(batches: &[RecordBatch]) -> Result<Vec<Vec<Option<String>>>, ArrowError> {
    let mut rows = Vec::new();
    for batch in batches {
        let columns = batch.columns().iter().map(|column| cast(column, &DataType::Utf8));
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        let text = |column: &ArrayRef, row: usize| {
            let texts = column.as_string::<i32>();
            texts.is_valid(row).then(|| texts.value(row).to_owned())
        };
        rows.extend((0..batch.num_rows()).map(|row| columns.iter().map(|column| text(column, row)).collect()));
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{Int64Array, LargeStringArray, StringArray, StringViewArray};

    #[test]
    fn texts_of_every_type_are_read() {
        let columns: [(&str, ArrayRef); 4] = [
            ("a", Arc::new(StringArray::from(vec![Some("1"), None]))),
            ("b", Arc::new(LargeStringArray::from(vec![Some("1"), None]))),
            ("c", Arc::new(StringViewArray::from(vec![Some("1"), None]))),
            ("d", Arc::new(Int64Array::from(vec![Some(1), None]))),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let expected = vec![vec![Some("1".to_owned()); 4], vec![None; 4]];
        assert_eq!(texts(&[batch]).unwrap(), expected);
    }
}
