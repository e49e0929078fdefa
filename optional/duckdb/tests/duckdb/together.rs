//! Tests with many tasks at once, queries that nobody waits for any more, and databases that can't be opened.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

use crate::number::number;
use crate::support::{database, folder, options, session, TestDatabase};
use arrow_array::{Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use windrow_duckdb::{DuckDb, DuckDbOptions, TableRef};

fn numbers(values: impl IntoIterator<Item = i64>) -> RecordBatch {
    let schema = Schema::new(vec![Field::new("a", DataType::Int64, true)]);
    RecordBatch::try_new(Arc::new(schema), vec![Arc::new(Int64Array::from_iter_values(values))]).unwrap()
}

const MINUTE: Duration = Duration::from_secs(60);
const WRITERS: i64 = 8;
const TRANSACTIONS: i64 = 20;
const ROWS: i64 = 100;

async fn write(database: DuckDb, writer: i64) {
    let table = TableRef::new("main", "t");
    for transaction in 0..TRANSACTIONS {
        let first = (writer * TRANSACTIONS + transaction) * ROWS;
        let mut open = database.begin().await.unwrap();
        open.ingest(&table, None, vec![numbers(first..first + ROWS / 2)]).await.unwrap();
        open.ingest(&table, None, vec![numbers(first + ROWS / 2..first + ROWS)]).await.unwrap();
        open.commit().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_and_readers_of_one_table_see_whole_transactions() {
    let TestDatabase { database, .. } = database();
    number(&database, "CREATE TABLE t (a BIGINT)").await;
    // Held open all the while: nobody waits for it.
    let mut held = database.begin().await.unwrap();
    held.ingest(&TableRef::new("main", "t"), None, vec![numbers([-1])]).await.unwrap();
    let writers: Vec<_> = (0..WRITERS).map(|writer| tokio::spawn(write(database.clone(), writer))).collect();
    while !writers.iter().all(|writer| writer.is_finished()) {
        assert_eq!(number(&database, "SELECT count(*) % 100 FROM t").await, 0);
    }
    for writer in writers {
        writer.await.unwrap();
    }
    assert_eq!(number(&database, "SELECT count(DISTINCT a) FROM t").await, WRITERS * TRANSACTIONS * ROWS);
    held.commit().await.unwrap();
    assert_eq!(number(&database, "SELECT count(*) FROM t WHERE a = -1").await, 1);
}

#[tokio::test]
async fn a_query_that_nobody_waits_for_is_stopped() {
    let folder = folder();
    let database =
        DuckDb::open(DuckDbOptions { max_result_connections: 1, max_wait: MINUTE, ..options(&folder) }).unwrap();
    for _ in 0..5 {
        // While its result comes, of which one piece was taken.
        let mut stream = database.query("SELECT * FROM range(1000000000000000)", &session()).await.unwrap();
        stream.next().await.unwrap().unwrap();
        drop(stream);
        assert_eq!(number(&database, "SELECT 1::BIGINT").await, 1);
        // Before its result comes.
        let endless = "SELECT count(*) FROM range(1000000000) a, range(1000000000) b";
        let session = session();
        let asked = database.query(endless, &session);
        assert!(tokio::time::timeout(Duration::from_millis(20), asked).await.is_err());
        assert_eq!(number(&database, "SELECT 1::BIGINT").await, 1);
    }
}

#[tokio::test]
async fn a_table_that_was_changed_is_looked_at_again() {
    let TestDatabase { database, .. } = database();
    let table = TableRef::new("main", "t");
    number(&database, "CREATE TABLE t (a BIGINT)").await;
    let columns = |info: Option<windrow_duckdb::TableInfo>| info.map(|info| info.columns.len());
    for expected in 1..5 {
        assert_eq!(columns(database.table(&table).await.unwrap()), Some(expected));
        number(&database, &format!("ALTER TABLE t ADD COLUMN c{expected} INTEGER DEFAULT {expected}")).await;
    }
    // A transaction that began before a change knows the table as it was then.
    let mut before = database.begin().await.unwrap();
    before.execute("SELECT count(*) FROM t").await.unwrap();
    number(&database, "ALTER TABLE t ALTER a TYPE VARCHAR").await;
    let appended = before.ingest(&table, Some(&["a".to_owned()]), vec![numbers([1])]).await;
    let committed = match appended {
        Ok(_) => before.commit().await.is_ok(),
        Err(_) => false,
    };
    assert!(!committed, "the table was altered in between");
    number(&database, "DROP TABLE t").await;
    assert_eq!(columns(database.table(&table).await.unwrap()), None);
}

#[tokio::test]
async fn its_files_are_its_owners_alone() {
    let folder = folder();
    let database = DuckDb::open(options(&folder)).unwrap();
    number(&database, "CREATE TABLE t (a BIGINT)").await;
    let mut files = 0;
    for entry in std::fs::read_dir(&folder.0).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o077, 0, "{:?}", entry.path());
        files += 1;
    }
    assert_eq!(files, 2, "the database and its log");
    database.close().await;
    let again = DuckDb::open(options(&folder)).unwrap();
    assert_eq!(number(&again, "SELECT count(*) FROM t").await, 0);
}

#[test]
fn what_can_not_be_opened_says_what_to_do() {
    let folder = folder();
    let message =
        |options: DuckDbOptions| DuckDb::open(options).err().map(|error| error.to_string()).unwrap_or_default();
    let missing = DuckDbOptions { library: Some(folder.0.join("libduckdb.so")), ..options(&folder) };
    assert!(message(missing).contains("duckdb.library"));
    let nowhere = DuckDbOptions { path: Some(folder.0.join("none/a.db")), ..options(&folder) };
    assert!(message(nowhere).contains("folder has to be there"));
    std::fs::write(folder.0.join("test.db"), "no database at all".repeat(1000)).unwrap();
    assert!(message(options(&folder)).contains("not a valid DuckDB database file"));
    let other_library = DuckDbOptions { library: Some("/proc/self/exe".into()), ..options(&folder) };
    assert!(message(other_library).contains("can't be loaded"));
}
