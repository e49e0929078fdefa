//! A statement while the database runs it, whatever protocol it came by: its rows as they come, or how many it has changed.

use std::future::Future;
use std::time::Instant;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::RecordBatch;
use futures::future::BoxFuture;
use windrow_adbc::SqlDatabase;
use windrow_clickhouse::{ErrorCode, Exception};
use windrow_duckdb::results::{Encoder, Format, ResultError, Statistics};
use windrow_duckdb::statement::Kind;
use windrow_gateway::sql_backend::{Refusal, SqlRun};

use super::about;
use super::ask::Question;
use super::source::Source;

/// The reason why there is no answer, or not the rest of it.
pub(crate) enum Failure {
    Refused(Refusal),
    /// The client is not there any more.
    Gone,
}

impl From<Exception> for Failure {
    fn from(exception: Exception) -> Failure {
        Failure::Refused(Refusal::exception(exception))
    }
}

impl From<ResultError> for Failure {
    fn from(error: ResultError) -> Failure {
        Failure::Refused(Refusal::statement(error.code(), error.to_string()))
    }
}

/// The client of a statement.
pub(crate) trait Client {
    /// Ends when the client has gone.
    async fn has_gone(&mut self);
}

/// A client that its protocol watches by itself.
pub(crate) struct UnwatchedClient;

impl Client for UnwatchedClient {
    async fn has_gone(&mut self) {
        std::future::pending().await
    }
}

/// One run of a question.
pub(crate) struct Run<'a> {
    database: &'a SqlDatabase,
    pub(super) question: Question,
    pub(super) started: Instant,
}

/// A result that is being read.
pub(crate) struct Rows {
    source: Source,
    encoder: Encoder,
    first: Option<RecordBatch>,
    pub(crate) count: u64,
    is_over: bool,
}

impl<'a> Run<'a> {
    pub(crate) fn new(database: &'a SqlDatabase, question: Question) -> Run<'a> {
        Run { database, question, started: Instant::now() }
    }

    /// Begins a query. Appends to `body` the bytes before its rows.
    pub(crate) async fn rows(&self, client: &mut impl Client, body: &mut Vec<u8>) -> Result<Rows, Failure> {
        let mut source = self.waiting(client, self.open()).await??;
        let first = self.waiting(client, source.next()).await?.transpose()?;
        let output = self.question.query_settings.output.clone();
        let mut encoder = Encoder::new(self.question.format, source.schema(), first.as_ref(), output)?;
        encoder.begin(body);
        Ok(Rows { source, encoder, first, count: 0, is_over: false })
    }

    async fn open(&self) -> Result<Source, Exception> {
        let Question { asked, session, .. } = &self.question;
        match &asked.about {
            Some(asked_about) => about::answer(self.database, asked_about, session).await,
            None => Ok(Source::Stream(self.database.query(&asked.sql, session).await?)),
        }
    }

    /// Runs a statement whose answer is that it was done. Returns how many rows it has changed.
    pub(crate) async fn change(&self, client: &mut impl Client) -> Result<u64, Failure> {
        let mut source = self.waiting(client, self.open()).await??;
        let mut rows = 0;
        while let Some(batch) = self.waiting(client, source.next()).await?.transpose()? {
            rows += counted_rows(&batch);
        }
        Ok(rows)
    }

    /// Writes the next batch, or the bytes behind the last one. Returns `false` where that was all.
    pub(crate) async fn more(
        &self,
        client: &mut impl Client,
        rows: &mut Rows,
        body: &mut Vec<u8>,
    ) -> Result<bool, Failure> {
        let batch = match rows.first.take() {
            Some(first) => Some(first),
            None if rows.is_over => None,
            None => self.waiting(client, rows.source.next()).await?.transpose()?,
        };
        let Some(batch) = batch else {
            let statistics = Statistics {
                elapsed_seconds: self.started.elapsed().as_secs_f64(),
                rows_read: rows.count,
                bytes_read: body.len() as u64,
            };
            rows.encoder.finish(&statistics, body)?;
            return Ok(false);
        };
        let batch = self.within_limit(rows, batch)?;
        rows.encoder.batch(&batch, body)?;
        Ok(true)
    }

    /// Returns the batch up to `max_result_rows`. More rows are left out or are an error, as the settings
    /// say.
    fn within_limit(&self, rows: &mut Rows, batch: RecordBatch) -> Result<RecordBatch, Failure> {
        let before = rows.count;
        rows.count += batch.num_rows() as u64;
        let Some(max) = self.question.query_settings.max_result_rows.filter(|max| rows.count > *max) else {
            return Ok(batch);
        };
        if !self.question.query_settings.overflow_breaks {
            let text = format!("Limit for result exceeded, max rows: {max}, current rows: {}", rows.count);
            return Err(Failure::Refused(Refusal::statement(ErrorCode::TOO_MANY_ROWS_OR_BYTES, text)));
        }
        (rows.count, rows.is_over) = (max, true);
        Ok(batch.slice(0, usize::try_from(max - before).unwrap_or(0)))
    }

    /// Waits for the database, but no longer than `max_execution_time`. A query of a client that is watched
    /// also ends when the client has gone. Dropping `work` stops the query.
    async fn waiting<T>(&self, client: &mut impl Client, work: impl Future<Output = T>) -> Result<T, Failure> {
        let query_settings = &self.question.query_settings;
        let watches = query_settings.watches_client && self.question.asked.kind == Kind::Reads;
        let late = async {
            match query_settings.max_execution_time {
                Some(limit) => tokio::time::sleep_until((self.started + limit).into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            done = work => Ok(done),
            () = client.has_gone(), if watches => Err(Failure::Gone),
            () = late => {
                let (elapsed_ms, limit) = (self.started.elapsed().as_millis(), query_settings.max_execution_time.unwrap_or_default());
                let text = format!("Timeout exceeded: elapsed {elapsed_ms} ms, maximum: {} ms", limit.as_millis());
                Err(Failure::Refused(Refusal::statement(ErrorCode::TIMEOUT_EXCEEDED, text)))
            }
        }
    }
}

/// A run whose client is watched by the gateway.
pub(crate) struct NativeRun<'a> {
    run: Run<'a>,
    rows: Option<Rows>,
}

impl<'a> NativeRun<'a> {
    pub(crate) fn new(run: Run<'a>) -> NativeRun<'a> {
        NativeRun { run, rows: None }
    }

    async fn step(&mut self, body: &mut Vec<u8>) -> Result<bool, Failure> {
        if !self.has_rows() {
            return self.run.change(&mut UnwatchedClient).await.map(|_| false);
        }
        match &mut self.rows {
            Some(rows) => self.run.more(&mut UnwatchedClient, rows, body).await,
            None => {
                self.rows = Some(self.run.rows(&mut UnwatchedClient, body).await?);
                Ok(true)
            }
        }
    }
}

impl SqlRun for NativeRun<'_> {
    fn only_reads(&self) -> bool {
        self.run.question.asked.kind == Kind::Reads
    }

    fn has_rows(&self) -> bool {
        matches!(self.run.question.asked.kind, Kind::Reads | Kind::Writes { returns: true })
    }

    fn is_native(&self) -> bool {
        self.run.question.format == Format::Native
    }

    fn advance<'a>(&'a mut self, body: &'a mut Vec<u8>) -> BoxFuture<'a, Result<bool, Refusal>> {
        Box::pin(async move {
            self.step(body).await.map_err(|failure| match failure {
                Failure::Refused(refusal) => refusal,
                Failure::Gone => Refusal::statement(ErrorCode::QUERY_WAS_CANCELLED, "The client has gone".to_owned()),
            })
        })
    }
}

/// DuckDB answers a change with the number of rows it concerned, in one column of that name.
fn counted_rows(batch: &RecordBatch) -> u64 {
    let column = batch.column_by_name("Count").and_then(|column| column.as_primitive_opt::<Int64Type>());
    let count = column.filter(|column| column.len() == 1).map_or(0, |column| column.value(0));
    u64::try_from(count).unwrap_or(0)
}
