//! The database behind the service, with the same functions for each kind.

mod answer;
mod clickhouse;
mod duckdb;
mod metadata;
mod tail;
mod usual;

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Field, Schema, SchemaRef};
use tokio::sync::mpsc;
use windrow_clickhouse::{Client, Exception};
use windrow_duckdb::{DuckDb, RecordStream};

use crate::login::Caller;
pub(crate) use metadata::TableFilter;
use windrow_sql::{Dialect, TableName};

#[derive(Clone)]
pub enum Store {
    DuckDb(DuckDb),
    /// A ClickHouse. It should have a pool of its own: slow readers of results hold its connections.
    ClickHouse(Arc<Client>),
}

/// The rows of a statement, as they come.
pub(crate) struct Rows {
    pub(crate) schema: SchemaRef,
    source: Source,
}

enum Source {
    DuckDb(RecordStream),
    ClickHouse(mpsc::Receiver<Result<RecordBatch, Exception>>),
    Ready(std::vec::IntoIter<RecordBatch>),
}

impl Rows {
    pub(crate) fn none() -> Rows {
        Rows { schema: Arc::new(Schema::empty()), source: Source::Ready(Vec::new().into_iter()) }
    }

    pub(crate) fn ready(batch: RecordBatch) -> Rows {
        Rows { schema: batch.schema(), source: Source::Ready(vec![batch].into_iter()) }
    }

    pub(crate) async fn next(&mut self) -> Option<Result<RecordBatch, Exception>> {
        match &mut self.source {
            Source::DuckDb(stream) => {
                let batch = stream.next().await?;
                Some(batch.and_then(|batch| usual::usual_batch(&batch, &self.schema)))
            }
            Source::ClickHouse(batches) => batches.recv().await,
            Source::Ready(batches) => batches.next().map(Ok),
        }
    }

    /// Returns all batches of a small result.
    pub(crate) async fn all(mut self) -> Result<Vec<RecordBatch>, Exception> {
        let mut batches = Vec::new();
        while let Some(batch) = self.next().await {
            batches.push(batch?);
        }
        Ok(batches)
    }
}

impl Store {
    pub(crate) fn dialect(&self) -> Dialect {
        match self {
            Store::DuckDb(_) => Dialect::DuckDb,
            Store::ClickHouse(_) => Dialect::ClickHouse,
        }
    }

    /// Runs one statement of any kind.
    pub(crate) async fn query(&self, caller: &Caller, sql: &str) -> Result<Rows, Exception> {
        match self {
            Store::DuckDb(duckdb) => duckdb::query(duckdb, caller, sql).await,
            Store::ClickHouse(client) => clickhouse::query(client, caller, sql).await,
        }
    }

    /// Runs one statement whose rows are not read. Returns how many rows it wrote, where that is known.
    pub(crate) async fn update(&self, caller: &Caller, sql: &str) -> Result<Option<u64>, Exception> {
        match self {
            Store::DuckDb(duckdb) => duckdb::update(duckdb, caller, sql).await,
            Store::ClickHouse(client) => clickhouse::update(client, caller, sql).await,
        }
    }

    /// Runs several statements. In DuckDB all of them take effect or none; ClickHouse can't do that. Returns
    /// how many rows they wrote.
    pub(crate) async fn update_all(&self, caller: &Caller, statements: &[String]) -> Result<Option<u64>, Exception> {
        match self {
            Store::DuckDb(duckdb) => duckdb::update_all(duckdb, caller, statements).await.map(Some),
            Store::ClickHouse(client) => {
                let mut rows = Some(0);
                for statement in statements {
                    let written = clickhouse::update(client, caller, statement).await?;
                    rows = rows.zip(written).map(|(rows, written)| rows + written);
                }
                Ok(rows)
            }
        }
    }

    /// Returns the columns that a SELECT of the table gives, or `None` where there is no such table.
    pub(crate) async fn fields(&self, caller: &Caller, target: &TableName) -> Result<Option<Vec<Field>>, Exception> {
        let name = self.dialect().table(self.database_of(caller, target).as_deref(), &target.table);
        match self.query(caller, &format!("SELECT * FROM {name} LIMIT 0")).await {
            Ok(rows) => Ok(Some(rows.schema.fields().iter().map(|field| field.as_ref().clone()).collect())),
            Err(exception) if exception.code.says_no_such_table() => Ok(None),
            Err(exception) => Err(exception),
        }
    }

    /// Stores rows in one go: all of them or none. The columns are those of the batches.
    pub(crate) async fn insert(
        &self,
        caller: &Caller,
        target: &TableName,
        batches: Vec<RecordBatch>,
    ) -> Result<u64, Exception> {
        let database = self.database_of(caller, target);
        match self {
            Store::DuckDb(duckdb) => duckdb::insert(duckdb, caller, database.as_deref(), &target.table, batches).await,
            Store::ClickHouse(client) => {
                clickhouse::insert(client, caller, database.as_deref(), &target.table, batches).await
            }
        }
    }

    /// Returns the database of a table, by the name that everyone uses for it.
    pub(crate) async fn current_database(&self, caller: &Caller, target: &TableName) -> Result<String, Exception> {
        match self.database_of(caller, target) {
            Some(database) => Ok(database),
            None => self.one_text(caller, "SELECT currentDatabase()").await,
        }
    }

    /// Returns the database of a table: the one in the statement, or else the one that the caller chose. In
    /// DuckDB `default` is `main`.
    pub(crate) fn database_of(&self, caller: &Caller, target: &TableName) -> Option<String> {
        let named = target.database.as_ref().or(caller.database.as_ref()).filter(|name| !name.is_empty());
        match self {
            Store::ClickHouse(_) => named.cloned(),
            Store::DuckDb(_) => Some(windrow_duckdb::schema_of(named.map_or("main", String::as_str)).to_owned()),
        }
    }
}
