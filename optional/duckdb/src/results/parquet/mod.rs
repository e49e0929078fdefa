//! Parquet, written by Arrow's library row group by row group, in the types that DuckDB's own COPY writes.

mod column;

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{Schema, SchemaRef};
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::{SchemaDescriptor, Type};

use crate::results::error::ResultError;
use column::Column;

/// The most rows in a row group, as in DuckDB.
const ROW_GROUP_ROWS: usize = 122_880;
/// The most bytes of a row group. It is in memory until it is whole, so a group of wide rows has fewer of them.
const ROW_GROUP_BYTES: usize = 32 << 20;
/// The most bytes of a dictionary; a larger one is given up. A column of mostly different values gains
/// nothing from it.
const DICTIONARY_BYTES: usize = 256 << 10;

pub(crate) struct ParquetWriter {
    writer: ArrowWriter<Vec<u8>>,
    columns: Vec<Column>,
    /// The schema of the batches that come; `to` is that of the batches the library gets.
    from: SchemaRef,
    to: SchemaRef,
}

impl ParquetWriter {
    pub(crate) fn new(schema: &SchemaRef) -> Result<ParquetWriter, ResultError> {
        let named = schema.fields().iter().zip(names(schema));
        let columns = named.map(|(field, name)| Column::of(field, &name)).collect::<Result<Vec<_>, _>>()?;
        let to = Arc::new(Schema::new(columns.iter().map(|column| column.field.clone()).collect::<Vec<_>>()));
        let nodes = columns.iter().map(|column| column.node.clone()).collect();
        let root = Type::group_type_builder("duckdb_schema").with_fields(nodes).build().map_err(failed)?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
            .set_dictionary_page_size_limit(DICTIONARY_BYTES)
            // Those of pages would be kept for the whole file.
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_offset_index_disabled(true)
            .build();
        let options = ArrowWriterOptions::new()
            .with_properties(properties)
            .with_parquet_schema(SchemaDescriptor::new(Arc::new(root)))
            .with_skip_arrow_metadata(true);
        let writer = ArrowWriter::try_new_with_options(Vec::new(), to.clone(), options).map_err(failed)?;
        Ok(ParquetWriter { writer, columns, from: schema.clone(), to })
    }

    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<(), ResultError> {
        if batch.num_columns() != self.columns.len() {
            return Err(ResultError::Data(format!("a batch has {} columns", batch.num_columns())));
        }
        let arrays =
            self.columns.iter().zip(self.from.fields()).zip(batch.columns()).map(|((column, field), array)| {
                if array.data_type() != field.data_type() {
                    return Err(ResultError::Data(format!("column {} came as {}", field.name(), array.data_type())));
                }
                column.take(array)
            });
        let arrays = arrays.collect::<Result<Vec<ArrayRef>, _>>()?;
        let batch =
            RecordBatch::try_new(self.to.clone(), arrays).map_err(|error| ResultError::Data(error.to_string()))?;
        self.writer.write(&batch).map_err(failed)?;
        match self.writer.memory_size() >= ROW_GROUP_BYTES {
            true => self.writer.flush().map_err(failed),
            false => Ok(()),
        }
    }

    pub(crate) fn finish(&mut self) -> Result<(), ResultError> {
        self.writer.finish().map(drop).map_err(failed)
    }

    pub(crate) fn written(&mut self) -> &mut Vec<u8> {
        self.writer.inner_mut()
    }
}

/// Returns names that all differ, as readers need them: of columns with one name the second is `name_1`, as
/// in DuckDB's own files.
fn names(schema: &Schema) -> Vec<String> {
    let mut taken = HashSet::new();
    let name = |own: &String| {
        let (mut name, mut number) = (own.clone(), 0);
        while !taken.insert(name.to_lowercase()) {
            number += 1;
            name = format!("{own}_{number}");
        }
        name
    };
    schema.fields().iter().map(|field| field.name()).map(name).collect()
}

fn failed(error: ParquetError) -> ResultError {
    ResultError::Data(error.to_string())
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;
    use arrow_array::{FixedSizeBinaryArray, Int64Array, IntervalMonthDayNanoArray, StringArray, StructArray};
    use arrow_buffer::{IntervalMonthDayNano, NullBuffer};
    use arrow_schema::{DataType, Field};
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    use parquet::file::reader::ChunkReader;

    use super::*;

    fn batch(name: &str, array: ArrayRef) -> RecordBatch {
        RecordBatch::try_from_iter_with_nullable([(name, array, true)]).unwrap()
    }

    fn written(batches: &[RecordBatch]) -> Result<Vec<u8>, ResultError> {
        let mut writer = ParquetWriter::new(&batches[0].schema())?;
        let mut out = Vec::new();
        for batch in batches {
            writer.write(batch)?;
            out.append(writer.written());
        }
        writer.finish()?;
        out.append(writer.written());
        Ok(out)
    }

    fn read(bytes: impl ChunkReader + 'static) -> (Vec<i64>, Vec<RecordBatch>) {
        let reader = ParquetRecordBatchReaderBuilder::try_new(bytes).unwrap();
        let groups = reader.metadata().row_groups().iter().map(|group| group.num_rows()).collect();
        (groups, reader.with_batch_size(1 << 20).build().unwrap().map(Result::unwrap).collect())
    }

    #[test]
    fn row_groups_have_as_many_rows_as_duckdbs_or_less_where_rows_are_wide() {
        let numbers = |from: i64| batch("n", Arc::new(Int64Array::from_iter_values(from..from + 100_000)));
        let (groups, rows) = read(bytes::Bytes::from(written(&[numbers(0), numbers(100_000)]).unwrap()));
        assert_eq!(groups, [122_880, 77_120]);
        assert!(rows[0].column(0).as_primitive::<Int64Type>().values().iter().copied().eq(0..200_000));
        let mut random = fastrand::Rng::with_seed(1);
        let mut wide = || {
            let text = || -> String { std::iter::repeat_with(|| random.alphanumeric()).take(1 << 20).collect() };
            batch("t", Arc::new(StringArray::from_iter_values(std::iter::repeat_with(text).take(4))))
        };
        let batches: Vec<RecordBatch> = (0..11).map(|_| wide()).collect();
        let (groups, rows) = read(bytes::Bytes::from(written(&batches).unwrap()));
        assert!(groups.len() == 2 && groups.iter().sum::<i64>() == 44, "{groups:?}");
        assert_eq!(rows.iter().map(RecordBatch::num_rows).sum::<usize>(), 44);
        let (groups, _) = read(bytes::Bytes::from(written(&[numbers(0).slice(0, 0)]).unwrap()));
        assert!(groups.is_empty());
    }

    #[test]
    fn intervals_are_those_that_parquet_has() {
        let interval = |months, days, nanos| IntervalMonthDayNano::new(months, days, nanos);
        let column = |value| batch("i", Arc::new(IntervalMonthDayNanoArray::from(vec![Some(value), None])));
        let (_, rows) = read(bytes::Bytes::from(written(&[column(interval(14, 3, 1_500_000_000))]).unwrap()));
        assert_eq!((rows[0].num_rows(), rows[0].column(0).null_count()), (2, 1));
        for odd in [interval(-1, 0, 0), interval(0, -1, 0), interval(0, 0, -1), interval(0, 0, i64::MAX)] {
            let error = written(&[column(odd)]).unwrap_err().to_string();
            assert!(error.contains("CAST(i AS VARCHAR)"), "{error}");
        }
        // What lies in a tuple that is NULL is not looked at.
        let inner: ArrayRef = Arc::new(IntervalMonthDayNanoArray::from(vec![interval(-1, 0, 0)]));
        let fields = vec![Field::new("i", inner.data_type().clone(), true)].into();
        let tuple = StructArray::new(fields, vec![inner], Some(NullBuffer::from(vec![false])));
        written(&[batch("t", Arc::new(tuple))]).unwrap();
    }

    #[test]
    fn what_parquet_has_no_type_for_is_refused_by_name() {
        let opaque = |kind: &str, width| {
            let metadata = [
                ("ARROW:extension:name".to_owned(), "arrow.opaque".to_owned()),
                ("ARROW:extension:metadata".to_owned(), format!("{{\"type_name\":\"{kind}\"}}")),
            ];
            let field = Field::new("odd", DataType::FixedSizeBinary(width), true).with_metadata(metadata);
            let array = FixedSizeBinaryArray::try_from_iter([vec![1; width as usize]].into_iter()).unwrap();
            RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![Arc::new(array)]).unwrap()
        };
        assert!(matches!(written(&[opaque("other", 16)]), Err(ResultError::Type { .. })));
        let (_, rows) = read(bytes::Bytes::from(written(&[opaque("hugeint", 16)]).unwrap()));
        assert_eq!(*rows[0].column(0).data_type(), DataType::Float64);
    }

    #[test]
    fn no_two_columns_have_one_name() {
        let fields: Vec<Field> =
            ["a", "b", "A", "a_1", "a"].iter().map(|name| Field::new(*name, DataType::Int8, true)).collect();
        assert_eq!(names(&Schema::new(fields)), ["a", "b", "A_1", "a_1_1", "a_2"]);
    }

    #[test]
    fn a_batch_of_another_type_is_an_error() {
        let mut writer = ParquetWriter::new(&batch("n", Arc::new(Int64Array::from(vec![1]))).schema()).unwrap();
        assert!(matches!(writer.write(&batch("n", Arc::new(StringArray::from(vec!["1"])))), Err(ResultError::Data(_))));
    }
}
