//! The store ClickHouse: its HTTP interface, with results and rows as Arrow streams. Everything runs as the caller.

use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_ipc::writer::StreamWriter;
use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};
use windrow_clickhouse::{Answer, Call, Client, ErrorCode, Exception, Purpose};

use super::{answer, Rows, Source};
use crate::error;
use crate::login::Caller;
use crate::sql::Dialect;

/// Time for which ClickHouse may be silent: a query may compute for long before its first row.
pub(super) const SILENCE: Duration = Duration::from_secs(3600);
/// The most batches that wait for the client; more wait in ClickHouse.
const BATCHES_AHEAD: usize = 2;

pub(super) async fn query(client: &Client, caller: &Caller, sql: &str) -> Result<Rows, Exception> {
    let text = [Bytes::copy_from_slice(sql.as_bytes())];
    let begun =
        client.begin(&call(caller, &text).param("default_format", "ArrowStream")).await.map_err(error::of_call)?;
    if begun.head.field_str("x-clickhouse-format").is_some_and(|format| format != "ArrowStream") {
        return Err(error::own(ErrorCode::BAD_ARGUMENTS, "Leave out FORMAT: rows go through Flight SQL as Arrow."));
    }
    let (opened, schema) = oneshot::channel();
    let (batches, source) = mpsc::channel(BATCHES_AHEAD);
    tokio::spawn(answer::read(begun, opened, batches));
    match schema.await {
        Ok(schema) => match schema? {
            Some(schema) => Ok(Rows { schema, source: Source::ClickHouse(source) }),
            None => Ok(Rows::none()),
        },
        Err(_) => Err(error::own(ErrorCode::STD_EXCEPTION, "the answer's reader has ended")),
    }
}

/// Makes the call of a statement. The statement is the body, since one in the URL could not be long.
fn call<'a>(caller: &'a Caller, body: &'a [Bytes]) -> Call<'a> {
    let call = Call::new(&caller.credentials, "").body(body).purpose(Purpose::Statement).timeout(SILENCE);
    match &caller.database {
        Some(database) => call.param("database", database),
        None => call,
    }
}

pub(super) async fn update(client: &Client, caller: &Caller, sql: &str) -> Result<Option<u64>, Exception> {
    let text = [Bytes::copy_from_slice(sql.as_bytes())];
    let answer = client.call(call(caller, &text).param("default_format", "Null")).await.map_err(error::of_call)?;
    Ok(written(&answer))
}

/// Runs one INSERT. ClickHouse reads an Arrow stream's batches into blocks of `max_insert_block_size` rows,
/// each of which is stored as a whole.
pub(super) async fn insert(
    client: &Client,
    caller: &Caller,
    database: Option<&str>,
    table: &str,
    batches: Vec<RecordBatch>,
) -> Result<u64, Exception> {
    let Some(first) = batches.first() else { return Ok(0) };
    let dialect = Dialect::ClickHouse;
    let columns: Vec<_> = first.schema().fields().iter().map(|field| dialect.name(field.name())).collect();
    let table = dialect.table(database, table);
    let statement = format!("INSERT INTO {table} ({}) FORMAT ArrowStream\n", columns.join(", "));
    let body = [Bytes::from(statement), encoded(&batches)?];
    // Rows that are bound are an insert of their own, and who sends them hears what became of them.
    let answer = client.call(call(caller, &body).param("async_insert", "0")).await.map_err(error::of_call)?;
    Ok(written(&answer).unwrap_or_else(|| batches.iter().map(|batch| batch.num_rows() as u64).sum()))
}

fn encoded(batches: &[RecordBatch]) -> Result<Bytes, Exception> {
    let failed = |error: arrow_schema::ArrowError| error::own(ErrorCode::BAD_ARGUMENTS, &error.to_string());
    let Some(first) = batches.first() else { return Ok(Bytes::new()) };
    let mut writer = StreamWriter::try_new(Vec::new(), &first.schema()).map_err(failed)?;
    for batch in batches {
        writer.write(batch).map_err(failed)?;
    }
    writer.into_inner().map(Bytes::from).map_err(failed)
}

/// Returns the written rows from `X-ClickHouse-Summary`: `{"read_rows":"1",...,"written_rows":"1",...}`.
fn written(answer: &Answer) -> Option<u64> {
    let summary = answer.head.field_str("x-clickhouse-summary")?;
    let (_, rest) = summary.split_once("\"written_rows\":\"")?;
    rest.split('"').next()?.parse().ok()
}
