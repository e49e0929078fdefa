//! What statements, transactions and appends cost: `cargo run --release -p windrow-duckdb --example ingest_speed`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow_schema::{Field, Schema};
use windrow_duckdb::{DuckDb, DuckDbOptions, Port, Session, TableRef};

const ROWS: i64 = 1_000_000;

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let fields: Vec<_> = columns.iter().map(|(name, of)| Field::new(*name, of.data_type().clone(), true)).collect();
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).expect("columns of one length")
}

fn numbers(rows: i64) -> RecordBatch {
    batch(vec![("a", Arc::new(Int64Array::from_iter_values(0..rows)))])
}

fn mixed(rows: i64) -> RecordBatch {
    batch(vec![
        ("a", Arc::new(Int64Array::from_iter_values(0..rows))),
        ("b", Arc::new(Float64Array::from_iter_values((0..rows).map(|n| n as f64 / 3.0)))),
        ("c", Arc::new(StringArray::from_iter_values((0..rows).map(|n| format!("user-{}", n % 1000))))),
        ("d", Arc::new(TimestampMicrosecondArray::from_iter_values((0..rows).map(|n| n * 1_000_000)))),
        ("e", Arc::new(Int64Array::from_iter_values((0..rows).map(|n| n % 7)))),
    ])
}

async fn run(database: &DuckDb, sql: &str) -> u64 {
    let session = Session { schema: "main".to_owned(), readonly: false, user: "default".to_owned(), port: Port::Http };
    let mut stream = database.query(sql, &session).await.expect("the statement is right");
    let mut rows = 0;
    while let Some(batch) = stream.next().await {
        rows += batch.expect("the statement is right").num_rows() as u64;
    }
    rows
}

async fn append(database: &DuckDb, what: &str, table: &str, columns: Option<&[String]>, batches: Vec<RecordBatch>) {
    let table = TableRef::new("main", table);
    let began = Instant::now();
    let mut transaction = database.begin().await.expect("a transaction begins");
    let begun = began.elapsed();
    transaction.ingest(&table, columns, batches).await.expect("the rows fit");
    let ingested = began.elapsed();
    transaction.commit().await.expect("the commit succeeds");
    println!("{what}: begin {begun:?}, ingest {:?}, commit {:?}", ingested - begun, began.elapsed() - ingested);
}

async fn measure(database: &DuckDb) {
    run(database, "CREATE TABLE n (a BIGINT)").await;
    run(database, "CREATE TABLE m (a BIGINT, b DOUBLE, c VARCHAR, d TIMESTAMP, e BIGINT, f BIGINT DEFAULT 5)").await;
    run(database, "CREATE TABLE f (a BIGINT, b DOUBLE, c VARCHAR, d TIMESTAMP, e BIGINT)").await;
    let named: Vec<String> = ["a", "b", "c", "d", "e"].map(str::to_owned).into();
    for _ in 0..3 {
        append(database, "1,000,000 BIGINT", "n", None, vec![numbers(ROWS)]).await;
        append(database, "the same in 8 batches", "n", None, (0..8).map(|_| numbers(ROWS / 8)).collect()).await;
        append(database, "the same in 1,000 batches", "n", None, (0..1000).map(|_| numbers(ROWS / 1000)).collect())
            .await;
        append(database, "1,000,000 of five columns", "f", None, vec![mixed(ROWS)]).await;
        append(database, "the same, one default", "m", Some(&named), vec![mixed(ROWS)]).await;
        append(database, "100 rows of five columns", "f", None, vec![mixed(100)]).await;
        append(database, "the same, one default", "m", Some(&named), vec![mixed(100)]).await;
    }
    let began = Instant::now();
    for _ in 0..200 {
        run(database, "SELECT 1").await;
    }
    println!("a query of one row: {:?}", began.elapsed() / 200);
    let began = Instant::now();
    for _ in 0..200 {
        database.table(&TableRef::new("main", "f")).await.expect("tables are told");
    }
    println!("looking a table up: {:?}", began.elapsed() / 200);
    let mut transaction = database.begin().await.expect("a transaction begins");
    let began = Instant::now();
    for _ in 0..200 {
        transaction.execute("SELECT 1").await.expect("the statement is right");
    }
    println!("a statement of a transaction: {:?}", began.elapsed() / 200);
    transaction.rollback().await;
    let began = Instant::now();
    let rows = run(database, "SELECT * FROM range(200000000)").await;
    println!("{rows} rows read: {:?}, {}", began.elapsed(), memory());
}

fn memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default().to_owned()
}

fn main() {
    let folder = std::env::temp_dir().join(format!("windrow-ingest-speed-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for the database");
    let library = std::env::var_os("WINDROW_DUCKDB_LIBRARY").map(PathBuf::from);
    let options = DuckDbOptions { path: Some(folder.join("speed.db")), library, ..DuckDbOptions::default() };
    let database = DuckDb::open(options).expect("the database opens");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(async {
        measure(&database).await;
        database.close().await;
    });
    let _ = std::fs::remove_dir_all(folder);
}
