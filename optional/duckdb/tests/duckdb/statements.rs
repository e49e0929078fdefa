//! Tests of the statements that a user may run, and of what DuckDB itself would have done with the others.

use std::sync::Arc;

use crate::number::number;
use crate::support::{database, folder, options, session, TestDatabase};
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use windrow_clickhouse::{ErrorCode, Exception};
use windrow_duckdb::{DuckDb, DuckDbOptions, Port, Session, TableRef};

async fn refused(database: &DuckDb, sql: &str, session: &Session) -> ErrorCode {
    database.query(sql, session).await.err().unwrap_or_else(|| panic!("{sql} was run")).code
}

fn reader() -> Session {
    Session { readonly: true, ..session() }
}

#[tokio::test]
async fn nothing_that_a_query_leaves_behind_reaches_another() {
    let TestDatabase { database, .. } = database();
    number(&database, "CREATE TABLE t (a BIGINT)").await;
    for sql in ["BEGIN", "SET search_path = 'windrow'", "CREATE TEMP TABLE mine (a BIGINT)", "PREPARE p AS SELECT 1"] {
        assert_eq!(refused(&database, sql, &session()).await, ErrorCode::NOT_IMPLEMENTED, "{sql}");
        // Nor where the gateway itself says so.
        drop(database.own_query(sql).await.unwrap());
    }
    assert_eq!(number(&database, "SELECT count(*) FROM t").await, 0);
    number(&database, "INSERT INTO t VALUES (1)").await;
    assert_eq!(number(&database, "SELECT count(*) FROM t").await, 1);
    assert_eq!(refused(&database, "FROM mine", &session()).await, ErrorCode::UNKNOWN_TABLE);
    assert_eq!(refused(&database, "FROM read_csv('/etc/passwd')", &session()).await, ErrorCode::ACCESS_DENIED);
}

#[tokio::test]
async fn nobody_changes_the_server() {
    let TestDatabase { database, .. } = database();
    for sql in [
        "SET GLOBAL enable_external_access = true",
        "EXPLAIN ANALYZE SET GLOBAL threads = 1",
        "SELECT * FROM force_checkpoint()",
        "ATTACH ':memory:' AS other",
        "COPY (SELECT 1) TO 'x.csv'",
    ] {
        assert_eq!(refused(&database, sql, &session()).await, ErrorCode::ACCESS_DENIED, "{sql}");
    }
    // The list is not all that stands between: DuckDB's settings are locked.
    for sql in
        ["SET GLOBAL threads = 1", "RESET GLOBAL memory_limit", "PRAGMA threads = 1", "SET TimeZone = 'Asia/Tokyo'"]
    {
        let error = database.own_query(sql).await.err().unwrap();
        assert!(error.line.contains("locked"), "{sql}: {error}");
    }
    number(&database, "CHECKPOINT").await;
}

#[tokio::test]
async fn a_second_statement_is_never_run() {
    let TestDatabase { database, .. } = database();
    number(&database, "CREATE TABLE t (a BIGINT)").await;
    // DuckDB itself runs the second of each of these.
    for sql in
        ["SELECT 1::BIGINT; DROP TABLE t", "SELECT E'a'\n'\\''; DROP TABLE t --'", "SELECT 1e$$; DROP TABLE t; --$$"]
    {
        for session in [session(), reader()] {
            assert!(
                matches!(refused(&database, sql, &session).await, ErrorCode::SYNTAX_ERROR | ErrorCode::READONLY),
                "{sql}"
            );
        }
        let mut transaction = database.begin().await.unwrap();
        assert!(transaction.execute_for(&session(), sql).await.is_err());
        transaction.rollback().await;
    }
    assert_eq!(number(&database, "SELECT count(*) FROM t").await, 0);
    let mut transaction = database.begin().await.unwrap();
    for sql in ["BEGIN", "COMMIT", "INSERT INTO t VALUES (1); COMMIT", "SET GLOBAL threads = 1"] {
        assert!(transaction.execute_for(&session(), sql).await.is_err(), "{sql}");
    }
    assert_eq!(transaction.execute_for(&session(), "INSERT INTO t VALUES (1)").await.unwrap(), 1);
    transaction.rollback().await;
    assert_eq!(number(&database, "SELECT count(*) FROM t").await, 0);
}

#[tokio::test]
async fn what_windrow_keeps_is_changed_by_nobody_else() {
    let TestDatabase { database, .. } = database();
    drop(database.own_query("INSERT INTO windrow.batches (id) VALUES (uuid())").await.unwrap());
    let named = "SELECT count(*) FROM duckdb_databases() WHERE database_name = 'test'";
    assert_eq!(number(&database, named).await, 1, "so it is called in one of the statements");
    for sql in [
        "DELETE FROM windrow.batches",
        "DELETE FROM \"WINDROW\" . \"Batches\"",
        "DELETE FROM windrow\u{3000}.batches",
        "TRUNCATE test.windrow.batches",
        "UPDATE windrow.batches SET stored_at = now()",
        "DROP SCHEMA windrow CASCADE",
        "ALTER TABLE windrow.batches RENAME TO other",
        "CREATE TABLE t (a UUID REFERENCES windrow.batches (id))",
        "CREATE OR REPLACE MACRO windrow_functions.version() AS 1",
    ] {
        assert_eq!(refused(&database, sql, &session()).await, ErrorCode::ACCESS_DENIED, "{sql}");
    }
    // Without its schema, nobody means it.
    for sql in ["DELETE FROM batches", "DROP TABLE batches", "INSERT INTO batches (id) VALUES (uuid())"] {
        assert_eq!(refused(&database, sql, &session()).await, ErrorCode::UNKNOWN_TABLE, "{sql}");
    }
    for schema in ["windrow", "Windrow", "windrow_functions"] {
        let there = Session { schema: schema.to_owned(), ..session() };
        assert_eq!(refused(&database, "DELETE FROM batches", &there).await, ErrorCode::ACCESS_DENIED);
        let mut transaction = database.begin().await.unwrap();
        assert!(transaction.execute_for(&there, "DELETE FROM batches").await.is_err());
        let ids: ArrayRef = Arc::new(StringArray::from(vec!["4c3c2a6e-5b1f-4b7c-8a51-0d6b0d3a6f11"]));
        let rows = RecordBatch::try_from_iter([("id", ids)]).unwrap();
        let table = TableRef::new(schema, "batches");
        let error = transaction.ingest(&table, Some(&["id".to_owned()]), vec![rows]).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::ACCESS_DENIED, "{error}");
        transaction.rollback().await;
    }
    assert_eq!(number(&database, "SELECT count(*) FROM windrow.batches").await, 1);
    number(&database, "CREATE TABLE batches (windrow INTEGER)").await;
    number(&database, "DROP TABLE batches").await;
}

#[tokio::test]
async fn no_statement_reads_a_file() {
    let folder = folder();
    let path = folder.0.join("a.db");
    let opened =
        DuckDbOptions { path: Some(path.clone()), temporary_folder: Some(folder.0.clone()), ..options(&folder) };
    let database = DuckDb::open(opened).unwrap();
    std::fs::write(folder.0.join("x.csv"), "a\n1\n").unwrap();
    for file in [folder.0.join("x.csv"), path] {
        for function in ["read_blob", "read_text", "READ_CSV", "\"read_csv_auto\"", "glob", "system.main.read_parquet"]
        {
            let sql = format!("SELECT * FROM {function} /**/ ('{}')", file.display());
            assert_eq!(refused(&database, &sql, &session()).await, ErrorCode::ACCESS_DENIED, "{sql}");
            let mut transaction = database.begin().await.unwrap();
            assert!(transaction.execute_for(&session(), &sql).await.is_err(), "{sql}");
            transaction.rollback().await;
        }
    }
    let named = DuckDbOptions { path: Some(folder.0.join("a.Parquet")), ..options(&folder) };
    let error = DuckDb::open(named).err().expect("such a name is refused").to_string();
    assert!(error.contains("Name it .db or .duckdb"), "{error}");
}

/// Returns the first error of a query.
async fn failure(database: &DuckDb, sql: &str) -> Exception {
    let mut stream = match database.query(sql, &reader()).await {
        Ok(stream) => stream,
        Err(exception) => return exception,
    };
    while let Some(batch) = stream.next().await {
        if let Err(exception) = batch {
            return exception;
        }
    }
    panic!("{sql} did not fail");
}

#[tokio::test]
async fn a_query_that_fails_in_one_of_its_threads_tells_why() {
    let folder = folder();
    let database = DuckDb::open(DuckDbOptions { threads: Some(6), ..options(&folder) }).unwrap();
    let sql = "SELECT CASE WHEN range >= 400000 THEN CAST('x' || range AS BIGINT) ELSE range END FROM range(500000)";
    for _ in 0..150 {
        // DuckDB's own answer is "Interrupted" once in thirty times.
        let exception = failure(&database, sql).await;
        assert_eq!(exception.code, ErrorCode::CANNOT_PARSE_TEXT, "{exception}");
    }
}

#[tokio::test]
async fn places_are_waited_for_and_shared() {
    let folder = folder();
    let options = options(&folder);
    let max_wait = std::time::Duration::from_millis(100);
    let database = DuckDb::open(DuckDbOptions { max_result_connections: 4, max_wait, ..options }).unwrap();
    let endless = "SELECT * FROM range(1000000000000)";
    let of = |user: &str, port: Port| Session { user: user.to_owned(), port, ..session() };
    let mut held = Vec::new();
    for _ in 0..2 {
        held.push(database.query(endless, &of("ann", Port::Flight)).await.unwrap());
    }
    assert_eq!(
        refused(&database, endless, &of("bob", Port::Flight)).await,
        ErrorCode::TOO_MANY_SIMULTANEOUS_QUERIES,
        "half of them"
    );
    held.push(database.query(endless, &of("ann", Port::Http)).await.unwrap());
    assert_eq!(
        refused(&database, endless, &of("ann", Port::Http)).await,
        ErrorCode::TOO_MANY_SIMULTANEOUS_QUERIES,
        "one is left to others"
    );
    held.push(database.query(endless, &of("bob", Port::Http)).await.unwrap());
    let error = database.query(endless, &of("bob", Port::Http)).await.err().unwrap();
    assert!(error.line.contains("Too many simultaneous queries"), "{error}");
    // Those that look tables up and store are not concerned.
    assert!(database.table(&TableRef::new("main", "none")).await.unwrap().is_none());
    database.begin().await.unwrap().rollback().await;
    drop(held);
    let patient = DuckDb::clone(&database);
    let mut last = Err(());
    while last.is_err() {
        // A query that was dropped gives its place back when it has ended.
        last = patient.query("SELECT 1", &of("ann", Port::Flight)).await.map(|_| ()).map_err(|error| {
            assert_eq!(error.code, ErrorCode::TOO_MANY_SIMULTANEOUS_QUERIES, "{error}");
        });
    }
}
