//! Tests that the comparison with ClickHouse (tests/duckdb) can't do: values that ClickHouse lacks, batches
//! that are joined, and results that differ from what was announced.

use std::sync::Arc;

use arrow_array::builder::{Int32Builder, ListBuilder};
use arrow_array::{ArrayRef, DictionaryArray, Int64Array, RecordBatch, StringArray, StructArray, UInt8Array};
use arrow_schema::{DataType, Field, Schema};
use windrow_clickhouse::ErrorCode;
use windrow_duckdb::results::{Columns, Encoder, Format, OutputSettings, ResultError, Statistics};

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
}

fn encode(format: &str, batches: &[RecordBatch]) -> Vec<u8> {
    let format = Format::from_name(format).unwrap();
    let mut encoder = Encoder::new(format, batches[0].schema(), Some(&batches[0]), OutputSettings::default()).unwrap();
    let mut out = Vec::new();
    encoder.begin(&mut out);
    for batch in batches {
        encoder.batch(batch, &mut out).unwrap();
    }
    encoder.finish(&Statistics::default(), &mut out).unwrap();
    out
}

fn text(format: &str, batch: RecordBatch) -> String {
    String::from_utf8(encode(format, &[batch])).unwrap()
}

fn lists() -> RecordBatch {
    let mut lists = ListBuilder::new(Int32Builder::new());
    lists.append_value([Some(1), None]);
    lists.append_null();
    lists.append_value([]);
    batch(vec![("l", Arc::new(lists.finish()))])
}

#[test]
fn a_list_that_is_null_is_null_in_text_and_empty_in_binary() {
    assert_eq!(text("TSV", lists()), "[1,NULL]\n\\N\n[]\n");
    assert_eq!(text("JSONEachRow", lists()), "{\"l\":[1,null]}\n{\"l\":null}\n{\"l\":[]}\n");
    assert_eq!(encode("RowBinary", &[lists()]), [2, 0, 1, 0, 0, 0, 1, 0, 0]);
    let native = encode("Native", &[lists()]);
    let offsets = [2u64, 2, 2].iter().flat_map(|offset| offset.to_le_bytes()).collect::<Vec<u8>>();
    let behind_type = native.len() - offsets.len() - 2 - 8;
    assert_eq!(native[behind_type..behind_type + offsets.len()], offsets);
}

#[test]
fn slices_are_written_as_what_they_show() {
    let whole = lists();
    assert_eq!(text("CSV", whole.slice(1, 2)), "\\N\n\"[]\"\n");
    let native = encode("Native", &[whole.slice(0, 1)]);
    assert_eq!(native[1], 1, "one row");
    assert_eq!(encode("Native", &[whole.slice(0, 1), whole.slice(1, 2)]), encode("Native", &[whole]));
}

#[test]
fn small_batches_are_joined_to_blocks() {
    let small: Vec<RecordBatch> = (0..100i64)
        .map(|at| batch(vec![("n", Arc::new(Int64Array::from_iter_values(at * 2048..(at + 1) * 2048)))]))
        .collect();
    let native = encode("Native", &small);
    // A block's head: one column, 65536 rows, its name and type.
    let head = b"\x01\x80\x80\x04\x01n\x0fNullable(Int64)";
    assert_eq!(native.windows(head.len()).filter(|window| window == head).count(), 3);
    let mut encoder = Encoder::new(Format::Native, small[0].schema(), None, OutputSettings::default()).unwrap();
    let mut out = Vec::new();
    encoder.batch(&small[0], &mut out).unwrap();
    assert!(out.is_empty(), "and wait until there are enough");
    assert_eq!(encoder.rows(), 2048);
}

#[test]
fn an_enum_has_its_names_from_the_first_batch() {
    let names = Arc::new(StringArray::from(vec!["a", "b"]));
    let keys = UInt8Array::from(vec![Some(1), None, Some(0)]);
    let batch = batch(vec![("e", Arc::new(DictionaryArray::new(keys, names)))]);
    let columns = Columns::of(&batch.schema(), Some(&batch)).unwrap();
    assert_eq!(columns.types()[0].to_string(), "Nullable(Enum8('a' = 1, 'b' = 2))");
    assert_eq!(Columns::of(&batch.schema(), None).unwrap().types()[0].to_string(), "Nullable(String)");
    assert_eq!(text("JSONEachRow", batch.clone()), "{\"e\":\"b\"}\n{\"e\":null}\n{\"e\":\"a\"}\n");
    assert_eq!(encode("RowBinary", &[batch]), [0, 2, 1, 0, 1]);
}

#[test]
fn a_struct_that_is_null_has_nulls_for_fields() {
    let field = Arc::new(Field::new("a", DataType::Int64, true));
    let values: ArrayRef = Arc::new(Int64Array::from(vec![Some(5), Some(6)]));
    let array = StructArray::new(vec![field].into(), vec![values], Some(vec![true, false].into()));
    let batch = batch(vec![("s", Arc::new(array))]);
    assert_eq!(text("TSV", batch.clone()), "(5)\n\\N\n");
    assert_eq!(text("CSV", batch.clone()), "5\n\\N\n");
    let five = 5i64.to_le_bytes();
    assert_eq!(encode("RowBinary", std::slice::from_ref(&batch)), [&[0][..], &five, &[1]].concat());
    let native = encode("Native", &[batch]);
    assert_eq!(native[native.len() - 18..], [&[0, 1][..], &five, &[0; 8]].concat());
}

#[test]
fn what_is_not_as_announced_is_an_error() {
    let numbers = batch(vec![("a", Arc::new(Int64Array::from(vec![1])))]);
    let texts = batch(vec![("a", Arc::new(StringArray::from(vec!["x"])))]);
    let wide = batch(vec![("a", Arc::new(Int64Array::from(vec![1]))), ("b", Arc::new(Int64Array::from(vec![1])))]);
    for format in ["TSV", "JSON", "RowBinary", "Values"] {
        let format = Format::from_name(format).unwrap();
        for other in [&texts, &wide] {
            let mut encoder =
                Encoder::new(format, numbers.schema(), Some(&numbers), OutputSettings::default()).unwrap();
            assert!(matches!(encoder.batch(other, &mut Vec::new()), Err(ResultError::Data(_))));
        }
    }
}

#[test]
fn types_without_a_name_in_clickhouse_are_refused_with_the_columns() {
    let opaque = |name: &str| {
        let metadata = [
            ("ARROW:extension:name".to_owned(), "arrow.opaque".to_owned()),
            ("ARROW:extension:metadata".to_owned(), format!("{{\"type_name\":\"{name}\",\"vendor_name\":\"DuckDB\"}}")),
        ];
        Field::new("odd", DataType::Binary, true).with_metadata(metadata)
    };
    let schema = |field: Field| Schema::new(vec![Field::new("fine", DataType::Int64, true), field]);
    let error = Columns::of(&schema(opaque("bignum")), None).unwrap_err();
    assert_eq!(error.code(), ErrorCode::NOT_IMPLEMENTED);
    assert!(error.to_string().contains("Column odd") && error.to_string().contains("BIGNUM"));
    assert!(Columns::of(&schema(opaque("bit")), None).is_ok());
    let mut deep = DataType::Int64;
    for _ in 0..100 {
        deep = DataType::List(Arc::new(Field::new("item", deep, true)));
    }
    assert!(Columns::of(&schema(Field::new("odd", deep, true)), None).is_err());
}
