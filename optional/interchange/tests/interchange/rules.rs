//! Tests of the columns that a file fills, and of NULL, with results as ClickHouse gave them.

use windrow_columns::{DefaultKind, NotParsedReason};

use crate::support::{column, payload, plan, plan_of, read};

fn reason(file: &str, columns: &[(&str, &str)], settings: &[(&str, &str)]) -> Result<usize, NotParsedReason> {
    let payload = payload(file);
    let plan = plan(payload.format, columns, settings);
    let parsed = (payload.format.read)(&payload.bytes, &plan);
    parsed.map(|parsed| parsed.block.rows()).map_err(|not_parsed| not_parsed.reason)
}

const STREAM: &str = "clickhouse_lz4.arrows";
const PARQUET: &str = "clickhouse_zstd.parquet";
const AVRO: &str = "clickhouse_null.avro";

#[test]
fn columns_are_found_by_name_and_others_left_out() {
    for file in [STREAM, PARQUET] {
        assert_eq!(reason(file, &[("s", "String"), ("n", "UInt32")], &[]), Ok(20), "{file}");
        assert_eq!(reason(file, &[("n", "UInt32"), ("extra", "String")], &[]), Ok(20), "{file}");
        assert_eq!(reason(file, &[("extra", "String")], &[]), Err(NotParsedReason::UnknownField), "{file}");
        assert_eq!(
            reason(file, &[("n", "UInt32"), ("S", "String")], &[]),
            Err(NotParsedReason::UnknownField),
            "{file}"
        );
        let strict = [("input_format_skip_unknown_fields", "0")];
        assert_eq!(reason(file, &[("n", "UInt32")], &strict), Err(NotParsedReason::UnknownField), "{file}");
    }
    assert_eq!(reason(AVRO, &[("n", "UInt32")], &[]), Ok(20));
    assert_eq!(reason(AVRO, &[("n", "UInt32"), ("extra", "String")], &[]), Err(NotParsedReason::UnknownField));
}

#[test]
fn values_that_a_type_has_not_are_left_to_clickhouse() {
    for file in [STREAM, PARQUET, AVRO] {
        for data_type in ["UInt8", "String", "Date", "Enum8('a' = 1)", "Array(UInt32)"] {
            assert_eq!(reason(file, &[("n", data_type)], &[]), Err(NotParsedReason::Value), "{file}: {data_type}");
        }
        assert_eq!(reason(file, &[("n", "UInt64")], &[]), Ok(20), "{file}");
        assert_eq!(reason(file, &[("s", "FixedString(1)")], &[]), Err(NotParsedReason::Value), "{file}");
        assert_eq!(reason(file, &[("s", "FixedString(9)")], &[]), Ok(20), "{file}");
        assert_eq!(reason(file, &[("s", "LowCardinality(Nullable(String))")], &[]), Ok(20), "{file}");
        assert!(reason(file, &[("p", "Tuple(x Int16, z Array(String))")], &[]).is_err(), "{file}");
    }
}

#[test]
fn null_is_zero_where_it_surely_is() {
    for file in [STREAM, PARQUET, AVRO] {
        assert_eq!(reason(file, &[("i", "Int64")], &[]), Ok(20), "{file}");
        let strict = [("input_format_null_as_default", "0")];
        assert_eq!(reason(file, &[("i", "Int64")], &strict), Err(NotParsedReason::Null), "{file}");
        assert_eq!(reason(file, &[("a", "Array(Int32)")], &[]), Err(NotParsedReason::Null), "{file}");
    }
}

#[test]
fn some_nulls_for_a_default_are_left_to_clickhouse() {
    for file in [STREAM, PARQUET, AVRO] {
        let payload = payload(file);
        let columns = vec![column("n", "UInt32", DefaultKind::None), column("i", "Int64", DefaultKind::Default)];
        let mixed = read(&payload, &plan_of(payload.format, columns, &[])).map_err(|not_parsed| not_parsed.reason);
        assert_eq!(mixed, Err(NotParsedReason::MixedDefaults), "{file}");
    }
    let payload = payload(STREAM);
    let columns = vec![column("n", "UInt32", DefaultKind::None), column("extra", "Int64", DefaultKind::Default)];
    let parsed = (payload.format.read)(&payload.bytes, &plan_of(payload.format, columns, &[])).unwrap();
    assert_eq!((parsed.block.rows(), parsed.present.contains(1)), (20, false));
}
