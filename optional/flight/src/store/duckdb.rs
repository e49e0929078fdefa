//! The store DuckDB, with connections and transactions of its own, through the crate for DuckDB.

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::RecordBatch;
use windrow_clickhouse::{ErrorCode, Exception};
use windrow_duckdb::{CommitError, DuckDb, Port, Session, TableRef, Transaction};

use super::usual::usual_schema;
use super::{Rows, Source};
use crate::error;
use crate::login::Caller;

pub(super) async fn query(duckdb: &DuckDb, caller: &Caller, sql: &str) -> Result<Rows, Exception> {
    let stream = duckdb.query(sql, &session(caller)).await?;
    Ok(Rows { schema: usual_schema(&stream.schema()), source: Source::DuckDb(stream) })
}

/// Runs a statement that writes. DuckDB answers it with one number, `Count`.
pub(super) async fn update(duckdb: &DuckDb, caller: &Caller, sql: &str) -> Result<Option<u64>, Exception> {
    let rows = query(duckdb, caller, sql).await?;
    let counts = matches!(&rows.schema.fields()[..], [field] if field.name() == "Count");
    let mut written = None;
    let mut rows = rows;
    while let Some(batch) = rows.next().await {
        let batch = batch?;
        if let (true, 1, Some(count)) = (counts, batch.num_rows(), batch.columns().first()) {
            let count = count.as_primitive_opt::<Int64Type>().map(|counts| counts.value(0));
            written = count.and_then(|count| u64::try_from(count).ok());
        }
    }
    Ok(written)
}

pub(super) async fn update_all(duckdb: &DuckDb, caller: &Caller, statements: &[String]) -> Result<u64, Exception> {
    let mut transaction = begin(duckdb, caller).await?;
    let (session, mut rows) = (session(caller), 0u64);
    for statement in statements {
        rows = rows.saturating_add(transaction.execute_for(&session, statement).await?);
    }
    commit(transaction).await?;
    Ok(rows)
}

pub(super) async fn insert(
    duckdb: &DuckDb,
    caller: &Caller,
    schema: Option<&str>,
    table: &str,
    batches: Vec<RecordBatch>,
) -> Result<u64, Exception> {
    let Some(first) = batches.first() else { return Ok(0) };
    let columns: Vec<_> = first.schema().fields().iter().map(|field| field.name().clone()).collect();
    let mut transaction = begin(duckdb, caller).await?;
    let table = TableRef { schema: schema.unwrap_or("main").to_owned(), table: table.to_owned() };
    let rows = transaction.ingest(&table, Some(&columns), batches).await?;
    commit(transaction).await?;
    Ok(rows)
}

async fn begin(duckdb: &DuckDb, caller: &Caller) -> Result<Transaction, Exception> {
    match caller.readonly {
        true => Err(error::own(ErrorCode::READONLY, "The user may only read.")),
        false => duckdb.begin().await,
    }
}

async fn commit(transaction: Transaction) -> Result<(), Exception> {
    transaction.commit().await.map_err(|error| match error {
        CommitError::Refused(exception) | CommitError::Unknown(exception) => exception,
    })
}

fn session(caller: &Caller) -> Session {
    let named = caller.database.as_deref().filter(|name| !name.is_empty());
    let schema = windrow_duckdb::schema_of(named.unwrap_or("main"));
    let user = caller.credentials.user.clone();
    Session { schema: schema.to_owned(), readonly: caller.readonly, user, port: Port::Flight }
}
