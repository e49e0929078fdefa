//! The ways in and out of a database: queries, tables, transactions.

use std::sync::Arc;

use crate::support::{database, session, TestDatabase};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use windrow_clickhouse::ErrorCode;
use windrow_duckdb::{DuckDb, Session, TableRef};

async fn all(database: &DuckDb, sql: &str) -> Vec<RecordBatch> {
    let mut stream = database.query(sql, &session()).await.unwrap();
    let mut batches = Vec::new();
    while let Some(batch) = stream.next().await {
        batches.push(batch.unwrap());
    }
    batches
}

fn numbers(name: &str, values: Vec<i64>) -> RecordBatch {
    let schema = Schema::new(vec![Field::new(name, DataType::Int64, true)]);
    RecordBatch::try_new(Arc::new(schema), vec![Arc::new(Int64Array::from(values))]).unwrap()
}

async fn count(database: &DuckDb, sql: &str) -> i64 {
    all(database, sql).await[0].column(0).as_primitive::<Int64Type>().value(0)
}

#[tokio::test]
async fn rows_are_seen_after_the_commit_and_not_before() {
    let TestDatabase { database, .. } = database();
    all(&database, "CREATE TABLE t (a BIGINT, b VARCHAR DEFAULT 'x')").await;
    let mut transaction = database.begin().await.unwrap();
    let table = TableRef::new("main", "t");
    let rows = transaction.ingest(&table, Some(&["a".to_owned()]), vec![numbers("z", vec![1, 2, 3])]).await.unwrap();
    assert_eq!(rows, 3);
    assert_eq!(count(&database, "SELECT count(*) FROM t").await, 0, "readers don't wait for writers");
    transaction.commit().await.unwrap();
    assert_eq!(count(&database, "SELECT count(*) FROM t WHERE b = 'x'").await, 3);
    database.close().await;
    assert!(database.query("SELECT 1", &session()).await.is_err());
}

#[tokio::test]
async fn a_transaction_that_is_dropped_or_fails_leaves_nothing() {
    let TestDatabase { database, .. } = database();
    all(&database, "CREATE TABLE t (a BIGINT CHECK (a < 100))").await;
    let table = TableRef::new("main", "t");
    let mut dropped = database.begin().await.unwrap();
    dropped.ingest(&table, None, vec![numbers("a", vec![1])]).await.unwrap();
    drop(dropped);
    let mut failing = database.begin().await.unwrap();
    let error = failing.ingest(&table, None, vec![numbers("a", vec![1]), numbers("a", vec![100])]).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::VIOLATED_CONSTRAINT, "{error}");
    assert!(failing.execute("SELECT 1").await.is_err());
    failing.rollback().await;
    assert_eq!(count(&database, "SELECT count(*) FROM t").await, 0);
}

#[tokio::test]
async fn tables_are_told() {
    let TestDatabase { database, .. } = database();
    all(&database, "CREATE TABLE Things (A INTEGER NOT NULL, b VARCHAR DEFAULT 'x', c INTEGER AS (A + 1))").await;
    let info = database.table(&TableRef::new("MAIN", "things")).await.unwrap().unwrap();
    assert_eq!(info.name, TableRef::new("main", "Things"));
    let told = |column: usize| {
        let column = &info.columns[column];
        (column.name.as_str(), column.nullable, column.has_default, column.generated)
    };
    assert_eq!(told(0), ("A", false, false, false));
    assert_eq!(told(1), ("b", true, true, false));
    assert_eq!(told(2), ("c", true, true, true));
    assert_eq!(database.table(&TableRef::new("main", "none")).await.unwrap(), None);
}

#[tokio::test]
async fn a_reader_changes_nothing() {
    let TestDatabase { database, .. } = database();
    all(&database, "CREATE TABLE t (a BIGINT)").await;
    let reader = Session { readonly: true, ..session() };
    for sql in [
        "INSERT INTO t VALUES (1)",
        "WITH a AS (SELECT 1) INSERT INTO t FROM a",
        "EXPLAIN ANALYZE INSERT INTO t VALUES (1)",
    ] {
        assert!(database.query(sql, &reader).await.is_err(), "{sql}");
    }
    assert!(database.query("SELECT 1", &reader).await.is_ok());
    assert_eq!(count(&database, "SELECT count(*) FROM t").await, 0);
}
