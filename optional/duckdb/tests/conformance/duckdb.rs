//! DuckDB as the store.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use windrow_clickhouse::Credentials;
use windrow_duckdb::{DuckDb, DuckDbOptions, DuckDbSink, Port, Session};

use crate::suite::{Kind, Store};

pub struct InDuckDb {
    pub database: DuckDb,
    sink: Arc<DuckDbSink>,
    closed: DuckDb,
}

pub fn open(path: Option<PathBuf>) -> DuckDb {
    let library = std::env::var_os("WINDROW_DUCKDB_LIBRARY").map(PathBuf::from);
    DuckDb::open(DuckDbOptions { path, library, ..DuckDbOptions::default() }).expect("the database opens")
}

impl InDuckDb {
    pub async fn new(path: &Path) -> InDuckDb {
        let database = open(Some(path.to_owned()));
        let closed = open(None);
        closed.close().await;
        InDuckDb { sink: Arc::new(DuckDbSink::new(database.clone())), database, closed }
    }

    pub async fn numbers(&self, sql: &str) -> Vec<(i64, i64)> {
        let session = Session { schema: "main".into(), readonly: false, user: "default".into(), port: Port::Http };
        let mut stream = self.database.query(sql, &session).await.expect(sql);
        let mut numbers = Vec::new();
        while let Some(batch) = stream.next().await {
            let batch = batch.expect(sql);
            let column = |at: usize| batch.columns().get(at).and_then(|column| column.as_primitive_opt::<Int64Type>());
            let (Some(first), Some(second)) = (column(0), column(1)) else { continue };
            numbers.extend(first.values().iter().copied().zip(second.values().iter().copied()));
        }
        numbers
    }
}

impl Store for InDuckDb {
    type Sink = DuckDbSink;

    fn name(&self) -> &'static str {
        "DuckDB"
    }

    fn sink(&self) -> Arc<DuckDbSink> {
        self.sink.clone()
    }

    fn away(&self) -> DuckDbSink {
        DuckDbSink::new(self.closed.clone())
    }

    fn credentials(&self) -> Credentials {
        Credentials { user: "default".into(), password: String::new() }
    }

    async fn create(&self, table: &str, kind: Kind) {
        let columns = match kind {
            Kind::Plain => "a BIGINT",
            Kind::Guarded => "a BIGINT CHECK (a < 1000)",
            Kind::Defaults => "a BIGINT, b VARCHAR DEFAULT 'x'",
        };
        self.numbers(&format!("CREATE TABLE {table} ({columns})")).await;
    }

    async fn values(&self, table: &str) -> BTreeMap<i64, u64> {
        let counted = self.numbers(&format!("SELECT a, count(*) FROM {table} GROUP BY a")).await;
        counted.into_iter().map(|(value, count)| (value, count as u64)).collect()
    }

    async fn defaults(&self, table: &str) -> u64 {
        self.numbers(&format!("SELECT count(*), 0::BIGINT FROM {table} WHERE b = 'x'")).await[0].0 as u64
    }
}
