//! Tests of every type of the table in `docs/duckdb.md`: a value is read from a payload, stored and read
//! back. A value that can't be stored exactly is refused with the column's name.

use std::sync::Arc;

use crate::support::{database, session, TestDatabase};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::*;
use arrow_schema::{Field, Schema};
use windrow_clickhouse::{ErrorCode, Exception};
use windrow_columns::{read_json_each_row, ColumnSpec, DataType, DefaultKind, ReadPlan, ReadSettings};
use windrow_duckdb::{record_batch, DuckDb, TableRef};

/// DuckDB's type, a payload's value, and the text that DuckDB shows for it.
const VALUES: [(&str, &str, &str); 55] = [
    ("BOOLEAN", "true", "true"),
    ("TINYINT", "-128", "-128"),
    ("SMALLINT", "-32768", "-32768"),
    ("INTEGER", "-2147483648", "-2147483648"),
    ("BIGINT", "-9223372036854775808", "-9223372036854775808"),
    ("HUGEINT", "\"-170141183460469231731687303715884105728\"", "-170141183460469231731687303715884105728"),
    ("HUGEINT", "\"170141183460469231731687303715884105727\"", "170141183460469231731687303715884105727"),
    ("UTINYINT", "255", "255"),
    ("USMALLINT", "65535", "65535"),
    ("UINTEGER", "4294967295", "4294967295"),
    ("UBIGINT", "18446744073709551615", "18446744073709551615"),
    ("UHUGEINT", "\"340282366920938463463374607431768211455\"", "340282366920938463463374607431768211455"),
    ("FLOAT", "0.1", "0.1"),
    ("DOUBLE", "-1e300", "-1e+300"),
    ("DOUBLE", "\"nan\"", "nan"),
    ("DECIMAL(4,1)", "\"-999.9\"", "-999.9"),
    ("DECIMAL(9,2)", "\"9999999.99\"", "9999999.99"),
    ("DECIMAL(18,3)", "\"-999999999999999.999\"", "-999999999999999.999"),
    ("DECIMAL(38,10)", "\"9999999999999999999999999999.9999999999\"", "9999999999999999999999999999.9999999999"),
    ("VARCHAR", "\"a\\u0000é𝄞\"", "a\u{0}é𝄞"),
    ("VARCHAR", "\"\"", ""),
    ("BLOB", "\"ab\\u0001\"", "ab\\x01"),
    ("JSON", "\"{\\\"a\\\": [1, null]}\"", "{\"a\": [1, null]}"),
    ("UUID", "\"01234567-89ab-cdef-0123-456789abcdef\"", "01234567-89ab-cdef-0123-456789abcdef"),
    ("UUID", "\"ffffffff-ffff-ffff-ffff-ffffffffffff\"", "ffffffff-ffff-ffff-ffff-ffffffffffff"),
    ("DATE", "\"1900-01-01\"", "1900-01-01"),
    ("DATE", "\"2299-12-31\"", "2299-12-31"),
    ("TIME", "\"23:59:59.999999\"", "23:59:59.999999"),
    ("TIME_NS", "\"23:59:59.123456789\"", "23:59:59.123456789"),
    ("TIMESTAMP", "\"2024-02-29 12:34:56.123456\"", "2024-02-29 12:34:56.123456"),
    ("TIMESTAMP", "\"1900-01-01 00:00:00.000001\"", "1900-01-01 00:00:00.000001"),
    ("TIMESTAMP_S", "\"2024-02-29 12:34:56\"", "2024-02-29 12:34:56"),
    ("TIMESTAMP_MS", "\"2024-02-29 12:34:56.123\"", "2024-02-29 12:34:56.123"),
    ("TIMESTAMP_NS", "\"2024-02-29 12:34:56.123456789\"", "2024-02-29 12:34:56.123456789"),
    ("TIMESTAMP WITH TIME ZONE", "\"2024-02-29 12:34:56.123456\"", "2024-02-29 12:34:56.123456+00"),
    ("ENUM('a', 'b')", "\"b\"", "b"),
    ("ENUM('a', 'b')", "1", "a"),
    ("INTEGER[]", "[1, null, 3]", "[1, NULL, 3]"),
    ("INTEGER[]", "[]", "[]"),
    ("INTEGER[2]", "[1, null]", "[1, NULL]"),
    ("VARCHAR[][]", "[[\"x\"], [], [null, \"y\"]]", "[[x], [], [NULL, y]]"),
    ("STRUCT(a INTEGER, b VARCHAR)", "{\"a\": 1, \"b\": null}", "{'a': 1, 'b': NULL}"),
    ("STRUCT(a INTEGER, b VARCHAR)[]", "[{\"a\": 1, \"b\": \"x\"}]", "[{'a': 1, 'b': x}]"),
    ("MAP(VARCHAR, INTEGER)", "{\"k\": 1, \"l\": null}", "{k=1, l=NULL}"),
    (
        "MAP(INTEGER, UUID[])",
        "{\"7\": [\"01234567-89ab-cdef-0123-456789abcdef\"]}",
        "{7=[01234567-89ab-cdef-0123-456789abcdef]}",
    ),
    (
        "STRUCT(h HUGEINT, e ENUM('x', 'y'), d DECIMAL(4,1))",
        "{\"h\": \"5\", \"e\": \"y\", \"d\": \"1.5\"}",
        "{'h': 5, 'e': y, 'd': 1.5}",
    ),
    ("INTERVAL", "\"1 year 2 days 03:04:05.000006\"", "1 year 2 days 03:04:05.000006"),
    ("TIME WITH TIME ZONE", "\"12:34:56.000001+05:30\"", "12:34:56.000001+05:30"),
    ("BIT", "\"10101\"", "10101"),
    (
        "BIGNUM",
        "\"123456789012345678901234567890123456789012345678901\"",
        "123456789012345678901234567890123456789012345678901",
    ),
    ("BOOLEAN", "null", "NULL"),
    ("HUGEINT", "null", "NULL"),
    ("UUID", "null", "NULL"),
    ("ENUM('a', 'b')", "null", "NULL"),
    ("INTERVAL", "null", "NULL"),
];

async fn run(database: &DuckDb, sql: &str) -> Vec<RecordBatch> {
    let mut stream = database.query(sql, &session()).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    let mut batches = Vec::new();
    while let Some(batch) = stream.next().await {
        batches.push(batch.unwrap_or_else(|error| panic!("{sql}: {error}")));
    }
    batches
}

async fn text(database: &DuckDb, sql: &str) -> String {
    let batches = run(database, sql).await;
    let column = batches.first().unwrap_or_else(|| panic!("{sql}: no rows")).column(0).clone();
    column.as_string::<i32>().value(0).to_owned()
}

async fn number(database: &DuckDb, sql: &str) -> i64 {
    run(database, sql).await[0].column(0).as_primitive::<Int64Type>().value(0)
}

/// Reads a payload of one column with the column's type, and stores it.
async fn insert(database: &DuckDb, table: &str, data_type: &DataType, value: &str) -> Result<(), Exception> {
    let spec = ColumnSpec { name: "c".into(), data_type: data_type.clone(), default_kind: DefaultKind::None };
    let mut settings = ReadSettings::default();
    settings.set_server_timezone("UTC");
    let plan = ReadPlan::new(vec![spec], settings);
    let payload = format!("{{\"c\":{value}}}\n");
    let read = read_json_each_row(payload.as_bytes(), &plan);
    let block = read
        .map_err(|error| Exception::new(ErrorCode::CANNOT_PARSE_INPUT_ASSERTION_FAILED, &format!("{error:?}"), ""))?
        .block;
    let batch = record_batch(&block, &["c".to_owned()], std::slice::from_ref(data_type));
    store(database, table, vec![batch.map_err(|not_held| not_held.exception(""))?]).await
}

async fn store(database: &DuckDb, table: &str, batches: Vec<RecordBatch>) -> Result<(), Exception> {
    let mut transaction = database.begin().await?;
    match transaction.ingest(&TableRef::new("main", table), None, batches).await {
        Ok(_) => transaction.commit().await.map_err(|error| error.exception().clone()),
        Err(exception) => {
            transaction.rollback().await;
            Err(exception)
        }
    }
}

/// Stores a value of the table above and reads it back. The error says what came back if it is another.
async fn round_trip(database: &DuckDb, at: usize) -> Result<(), String> {
    let (duck, value, shown) = VALUES[at];
    let (table, copy) = (format!("t{at}"), format!("copy{at}"));
    run(database, &format!("CREATE TABLE {table} (c {duck})")).await;
    run(database, &format!("CREATE TABLE {copy} (c {duck})")).await;
    let info = database.table(&TableRef::new("main", &table)).await.unwrap().unwrap();
    let data_type = info.columns[0].data_type.clone()?;
    insert(database, &table, &data_type, value).await.map_err(|error| error.line)?;
    let read = text(database, &format!("SELECT coalesce(c::VARCHAR, 'NULL') FROM {table}")).await;
    if read != shown {
        return Err(format!("is {read}"));
    }
    // As Arrow gives them, they go in as well. What only texts can say comes as bytes of DuckDB's own.
    if ["TIME WITH TIME ZONE", "BIT", "BIGNUM"].contains(&duck) {
        return Ok(());
    }
    let rows = run(database, &format!("SELECT c FROM {table}")).await;
    store(database, &copy, rows).await.map_err(|error| error.line)?;
    let differing = format!("SELECT count(*) FROM (FROM {table} EXCEPT ALL FROM {copy})");
    match number(database, &differing).await {
        0 => Ok(()),
        _ => Err("its copy differs".to_owned()),
    }
}

#[tokio::test]
async fn values_of_every_type_come_back() {
    let TestDatabase { database, .. } = database();
    let mut wrong = Vec::new();
    for (at, (duck, value, _)) in VALUES.iter().enumerate() {
        if let Err(why) = round_trip(&database, at).await {
            wrong.push(format!("{duck} {value}: {why}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn the_table_in_the_documentation_is_right_and_complete() {
    let TestDatabase { database, .. } = database();
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/duckdb.md")).unwrap();
    let mut documented = Vec::new();
    for line in page.lines().skip_while(|line| !line.starts_with("| `BOOLEAN` |")) {
        let Some(row) = line.strip_prefix("| `") else { break };
        let mut cells = row.split('`');
        let (duck, read_as) = (cells.next().unwrap(), cells.nth(1).unwrap());
        run(&database, &format!("CREATE OR REPLACE TABLE t (c {duck} NOT NULL)")).await;
        let info = database.table(&TableRef::new("main", "t")).await.unwrap().unwrap();
        assert_eq!(info.columns[0].data_type.clone().unwrap().to_string(), read_as, "{duck}");
        documented.push(duck);
    }
    for (duck, ..) in VALUES.iter().filter(|(_, value, _)| *value != "null") {
        let family = |text: &str| text.split(['(', '[']).next().unwrap().to_owned();
        assert!(documented.iter().any(|known| family(known) == family(duck)), "{duck}");
    }
    assert_eq!(documented.len(), 35);
    run(&database, "CREATE TABLE u (c UNION(a INTEGER, b VARCHAR))").await;
    let info = database.table(&TableRef::new("main", "u")).await.unwrap().unwrap();
    assert!(info.columns[0].data_type.clone().unwrap_err().contains("UNION"));
}

fn column(array: impl Array + 'static) -> RecordBatch {
    let field = Field::new("c", array.data_type().clone(), true);
    RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![Arc::new(array)]).unwrap()
}

fn in_utc(array: TimestampMicrosecondArray) -> TimestampMicrosecondArray {
    array.with_timezone("Europe/Berlin")
}

#[tokio::test]
async fn what_is_not_held_exactly_is_refused_with_its_column_and_row() {
    let TestDatabase { database, .. } = database();
    let cases: Vec<(&str, RecordBatch)> = vec![
        ("BIGINT", column(UInt64Array::from(vec![1, 1 << 63]))),
        ("TINYINT", column(Int64Array::from(vec![1, 128]))),
        ("UTINYINT", column(Int64Array::from(vec![1, -1]))),
        ("UHUGEINT", column(Int64Array::from(vec![1, -1]))),
        ("FLOAT", column(Float64Array::from(vec![1.0, 0.1]))),
        ("DOUBLE", column(Int64Array::from(vec![1, (1 << 53) + 1]))),
        ("DECIMAL(4,1)", column(Int64Array::from(vec![1, 1000]))),
        ("DECIMAL(4,1)", column(Decimal128Array::from(vec![10, 15]).with_precision_and_scale(6, 2).unwrap())),
        ("DECIMAL(4,1)", column(Decimal128Array::from(vec![10, 99_999]).with_precision_and_scale(4, 1).unwrap())),
        ("VARCHAR", column(BinaryArray::from_vec(vec![b"x".as_slice(), b"\xff".as_slice()]))),
        ("JSON", column(StringArray::from(vec!["1", "not json"]))),
        ("ENUM('a', 'b')", column(StringArray::from(vec!["a", "c"]))),
        ("DATE", column(Date64Array::from(vec![0, 1]))),
        ("TIME", column(Time64NanosecondArray::from(vec![1000, 1]))),
        ("TIME", column(Time64MicrosecondArray::from(vec![0, -1]))),
        ("TIME", column(Time64MicrosecondArray::from(vec![0, 86_400_000_001]))),
        ("TIMESTAMP", column(TimestampNanosecondArray::from(vec![1000, 1]))),
        ("TIMESTAMP", column(TimestampMicrosecondArray::from(vec![0, i64::MIN]))),
        ("TIMESTAMP", column(TimestampSecondArray::from(vec![0, i64::MAX / 1000]))),
        ("TIMESTAMP_NS", column(TimestampSecondArray::from(vec![0, 1 << 40]))),
        ("TIMESTAMP_S", column(TimestampMillisecondArray::from(vec![1000, 1]))),
        (
            "INTEGER[2]",
            column(ListArray::from_iter_primitive::<arrow_array::types::Int32Type, _, _>([
                Some(vec![Some(1), Some(2)]),
                Some(vec![Some(1)]),
            ])),
        ),
        (
            "TINYINT[]",
            column(ListArray::from_iter_primitive::<arrow_array::types::Int32Type, _, _>([
                Some(vec![Some(1), Some(2)]),
                Some(vec![None, Some(500)]),
            ])),
        ),
    ];
    for (duck, batch) in cases {
        run(&database, &format!("CREATE OR REPLACE TABLE t (c {duck})")).await;
        let shown = format!("{duck} {:?}", batch.column(0));
        let error = store(&database, "t", vec![batch.clone()]).await.expect_err(&shown);
        assert!(error.line.contains("Column `c`: ") && error.comes_of_values(), "{shown}: {error}");
        assert_eq!(error.row(), Some(2), "{shown}: {error}");
        assert_eq!(number(&database, "SELECT count(*) FROM t").await, 0, "{shown}");
        // The first row is fine by itself.
        store(&database, "t", vec![batch.slice(0, 1)]).await.unwrap_or_else(|error| panic!("{shown}: {error}"));
    }
}

#[tokio::test]
async fn types_that_do_not_go_into_each_other_are_refused_before_any_row() {
    let TestDatabase { database, .. } = database();
    let cases: Vec<(&str, RecordBatch)> = vec![
        ("BIGINT", column(Float64Array::from(Vec::<f64>::new()))),
        ("BIGINT", column(StringArray::from(Vec::<&str>::new()))),
        ("VARCHAR", column(Int64Array::from(Vec::<i64>::new()))),
        ("DATE", column(TimestampSecondArray::from(Vec::<i64>::new()))),
        ("BOOLEAN", column(Int8Array::from(Vec::<i8>::new()))),
        ("STRUCT(a INTEGER)", column(Int64Array::from(Vec::<i64>::new()))),
        ("UNION(a INTEGER, b VARCHAR)", column(Int64Array::from(Vec::<i64>::new()))),
    ];
    for (duck, batch) in cases {
        run(&database, &format!("CREATE OR REPLACE TABLE t (c {duck})")).await;
        let info = database.table(&TableRef::new("main", "t")).await.unwrap().unwrap();
        let not_held = info.fitting(batch.schema_ref(), None).expect_err(duck);
        assert_eq!((not_held.column.as_deref(), not_held.row), (Some("c"), None), "{duck}: {not_held}");
    }
}

#[tokio::test]
async fn other_layouts_of_the_same_values_go_in() {
    let TestDatabase { database, .. } = database();
    let dictionary: DictionaryArray<arrow_array::types::Int32Type> = vec!["x", "y", "x"].into_iter().collect();
    let cases: Vec<(&str, RecordBatch, &str)> = vec![
        ("VARCHAR", column(dictionary), "[x, y, x]"),
        ("VARCHAR", column(LargeStringArray::from(vec!["x"])), "[x]"),
        (
            "VARCHAR",
            column(StringViewArray::from(vec!["a long text that is no inline view"])),
            "[a long text that is no inline view]",
        ),
        ("BLOB", column(FixedSizeBinaryArray::try_from_iter([b"ab"].iter()).unwrap()), "[ab]"),
        ("HUGEINT", column(Int16Array::from(vec![Some(-5), None])), "[-5, NULL]"),
        ("DOUBLE", column(Int64Array::from(vec![-(1 << 53)])), "[-9007199254740992.0]"),
        ("DECIMAL(10,2)", column(Int64Array::from(vec![-7])), "[-7.00]"),
        ("TIMESTAMP", column(Date32Array::from(vec![1])), "['1970-01-02 00:00:00']"),
        ("TIMESTAMP", column(in_utc(TimestampMicrosecondArray::from(vec![1]))), "['1970-01-01 00:00:00.000001']"),
        ("TIMESTAMP WITH TIME ZONE", column(TimestampSecondArray::from(vec![1])), "['1970-01-01 00:00:01+00']"),
        ("TIME", column(Time32SecondArray::from(vec![86_400])), "['24:00:00']"),
        ("INTERVAL", column(DurationMillisecondArray::from(vec![1_500])), "['00:00:01.5']"),
        (
            "UUID",
            column(StringArray::from(vec!["01234567-89ab-cdef-0123-456789abcdef"])),
            "[01234567-89ab-cdef-0123-456789abcdef]",
        ),
        ("BIGINT", column(NullArray::new(2)), "[NULL, NULL]"),
        ("ENUM('a', 'b')", column(StringArray::from(vec![Some("b"), None])), "[b, NULL]"),
    ];
    for (duck, batch, shown) in cases {
        run(&database, &format!("CREATE OR REPLACE TABLE t (c {duck})")).await;
        store(&database, "t", vec![batch]).await.unwrap_or_else(|error| panic!("{duck}: {error}"));
        assert_eq!(text(&database, "SELECT list(c)::VARCHAR FROM t").await, shown, "{duck}");
    }
}
