//! From a question to its answer's last byte.

use std::future::Future;
use std::ops::Range;
use std::time::Instant;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::RecordBatch;
use windrow_adbc::SqlDatabase;
use windrow_clickhouse::{ErrorCode, Exception};
use windrow_duckdb::results::{Encoder, Format, ResultError, Statistics};
use windrow_engine::QueryId;
use windrow_http::{Connection, Method};
use windrow_sql::Kind;

use super::about;
use super::ask::{Question, Who};
use super::head::{random_tag, Counted, Framing, Head};
use super::install::system_view;
use super::sending::{ClientGone, Sending, Squeeze, BUFFER_BYTES, MAX_BUFFER_BYTES};
use super::source::Source;
use super::spool::{Spool, Whole};
use super::text::NoText;
use crate::admission::BackendFacts;
use crate::data::answer::{after, After};
use crate::data::body::Read;
use crate::data::exchange::Exchange;
use crate::error::Refusal;
use crate::insert::query_id;
use crate::statement::RowRemoval;
use crate::users::Access;

/// What is whole is sent in pieces of this size.
const PIECE_BYTES: u64 = 256 * 1024;

/// Why there is no answer, or not the rest of it.
pub(super) enum Failure {
    Refused(Refusal),
    /// The client is not there any more.
    Gone,
}

impl From<ClientGone> for Failure {
    fn from(_: ClientGone) -> Failure {
        Failure::Gone
    }
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

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        Failure::Refused(Refusal::statement(
            ErrorCode::NOT_ENOUGH_SPACE,
            format!("The result cannot be kept in a temporary file: {error}"),
        ))
    }
}

/// One run of a question.
pub(super) struct Run<'a> {
    pub(super) database: &'a SqlDatabase,
    pub(super) question: &'a Question,
    pub(super) query_id: QueryId,
    pub(super) started: Instant,
    pub(super) tag: String,
    pub(super) facts: &'a BackendFacts,
    gone: Option<&'a RowRemoval>,
}

/// What is known of a statement before it is taken apart.
pub(in crate::data) struct Asking<'a> {
    pub(in crate::data) access: Access,
    /// Of which tables it takes rows away, if it is done.
    pub(in crate::data) gone: Option<&'a RowRemoval>,
}

impl Exchange<'_> {
    /// Answers whatever is not gathered. `read` is what has been read of the body.
    pub(in crate::data) async fn answer_by_sql(
        &self,
        database: &SqlDatabase,
        Asking { access, gone }: Asking<'_>,
        connection: &mut Connection,
        out: &mut Vec<u8>,
        read: Read,
    ) -> After {
        if let Some(after) = self.answer_plainly(connection, out).await {
            return after;
        }
        let text = match self.whole_text(connection, read).await {
            Ok(text) => text,
            Err(NoText::Refused(refusal)) => return self.refuse(connection, out, &refusal).await,
            Err(NoText::Broken) => return After::Close,
        };
        let user = self.credentials().map_or("default", |credentials| credentials.user.as_str());
        let who = Who { user, readonly: access.readonly };
        let system_table = |table: &str| system_view(database, table).or_else(|| self.own_table(table, database, &who));
        let question = match Question::of(&self.request, &text, database, &who, &system_table) {
            Ok(question) => question,
            Err(refusal) => return self.refuse(connection, out, &refusal).await,
        };
        drop(text);
        let facts = self.state.admission.facts.get();
        let run = Run {
            database,
            question: &question,
            query_id: query_id(self.request.query_id()),
            started: Instant::now(),
            tag: random_tag(),
            facts: &facts,
            gone,
        };
        let outcome = run.answer(self, connection).await;
        // One that is out of time may just have been done.
        let is_refused =
            matches!(&outcome, Err(Failure::Refused(refusal)) if refusal.code != ErrorCode::TIMEOUT_EXCEEDED);
        if !is_refused {
            // What an answer that streams has taken away until its end; or nobody knows whether it did.
            self.state.forget_rows(gone).await;
        }
        match outcome {
            Ok(after) => after,
            Err(Failure::Refused(refusal)) => self.refuse(connection, out, &refusal).await,
            Err(Failure::Gone) => After::Close,
        }
    }
}

impl Run<'_> {
    async fn answer(&self, exchange: &Exchange<'_>, connection: &mut Connection) -> Result<After, Failure> {
        let asked = &self.question.asked;
        match asked.kind {
            Kind::Reads if self.question.format == Format::Parquet => return self.parquet(exchange, connection).await,
            Kind::Reads | Kind::Writes { returns: true } => {}
            Kind::Writes { returns: false } | Kind::NotTaken(_) => return self.change(exchange, connection).await,
        }
        if self.question.format == Format::Parquet {
            return Err(Failure::Refused(Refusal::statement(
                ErrorCode::NOT_IMPLEMENTED,
                "Only a query can be answered in Parquet".to_owned(),
            )));
        }
        let (mut rows, mut encoder) = self.rows(connection).await?;
        if *exchange.request.head.method() == Method::Head {
            let after = after_of(exchange, connection);
            let mut out = Vec::new();
            self.head(exchange, after, Framing::Chunked).write(&mut out, &self.counted(0, 0), connection);
            connection.send(&out).await.map_err(|_| Failure::Gone)?;
            return Ok(after);
        }
        match self.question.wishes.waits_for_end {
            true => self.send_whole(exchange, connection, &mut rows, &mut encoder).await,
            false => self.stream(exchange, connection, &mut rows, &mut encoder).await,
        }
    }

    /// Begins the query, and what writes its rows.
    pub(super) async fn rows(&self, connection: &mut Connection) -> Result<(Rows, Encoder), Failure> {
        let mut source = self.waiting(connection, self.open()).await??;
        let first = self.waiting(connection, source.next()).await?.transpose()?;
        let encoder =
            Encoder::new(self.question.format, source.schema(), first.as_ref(), self.question.wishes.output.clone())?;
        Ok((Rows { source, first, rows: 0, is_over: false }, encoder))
    }

    async fn open(&self) -> Result<Source, Exception> {
        let Question { asked, session, .. } = self.question;
        match &asked.about {
            Some(asked_about) => about::answer(self.database, asked_about, session).await,
            None => Ok(Source::Stream(self.database.query(&asked.sql, session).await?)),
        }
    }

    /// A statement whose answer is that it was done.
    async fn change(&self, exchange: &Exchange<'_>, connection: &mut Connection) -> Result<After, Failure> {
        let mut source = self.waiting(connection, self.open()).await??;
        let mut written_rows = 0;
        while let Some(batch) = self.waiting(connection, source.next()).await?.transpose()? {
            written_rows += counted_rows(&batch);
        }
        // Before the client can know: what it inserts then is new.
        exchange.state.forget_rows(self.gone).await;
        let after = after_of(exchange, connection);
        let counted =
            Counted { written_rows, read_rows: written_rows, result_rows: written_rows, ..self.counted(0, 0) };
        let mut head = self.head(exchange, after, framing(exchange));
        (head.content_type, head.format_name) = ("text/plain; charset=UTF-8", None);
        Sending::new(head, Squeeze::Plain).finish(connection, &[], &counted).await?;
        Ok(after_of(exchange, connection))
    }

    /// Sends rows as they come.
    async fn stream(
        &self,
        exchange: &Exchange<'_>,
        connection: &mut Connection,
        rows: &mut Rows,
        encoder: &mut Encoder,
    ) -> Result<After, Failure> {
        let after = after_of(exchange, connection);
        let mut sending = self.sending(exchange, after)?;
        let hold_back = self.question.wishes.buffer_bytes.clamp(BUFFER_BYTES, MAX_BUFFER_BYTES);
        let (mut body, mut bytes) = (Vec::new(), 0);
        encoder.begin(&mut body);
        loop {
            let limit = if sending.head_sent() { BUFFER_BYTES } else { hold_back };
            let before = body.len();
            let more = self.more(connection, rows, encoder, &mut body).await;
            bytes += (body.len() - before) as u64;
            let failure = match more {
                Ok(true) if body.len() < limit => continue,
                Ok(true) => {
                    sending.send(connection, &mut body, &self.counted(rows.rows, bytes)).await?;
                    continue;
                }
                Ok(false) => {
                    sending.finish(connection, &body, &self.counted(rows.rows, bytes)).await?;
                    return Ok(after);
                }
                Err(failure) => failure,
            };
            return match failure {
                Failure::Refused(refusal) if sending.head_sent() => {
                    exchange.state.metrics.refused(&refusal);
                    let line = refusal.line(self.facts.version_suffix());
                    sending.break_off(connection, &body, &line).await;
                    Ok(After::Close)
                }
                failure => Err(failure),
            };
        }
    }

    /// Sends rows when all of them are there, or an error in their place.
    async fn send_whole(
        &self,
        exchange: &Exchange<'_>,
        connection: &mut Connection,
        rows: &mut Rows,
        encoder: &mut Encoder,
    ) -> Result<After, Failure> {
        let spool = self.spooled(exchange, connection, rows, encoder).await?;
        let whole = spool.end(rows.rows, false).await?;
        let after = after_of(exchange, connection);
        let sending = self.sending(exchange, after)?;
        self.send_part(sending, connection, &whole, 0..whole.length).await?;
        Ok(after)
    }

    pub(super) async fn spooled(
        &self,
        exchange: &Exchange<'_>,
        connection: &mut Connection,
        rows: &mut Rows,
        encoder: &mut Encoder,
    ) -> Result<Spool, Failure> {
        let mut spool = Spool::new(&exchange.state.temporary_files);
        let mut body = Vec::new();
        encoder.begin(&mut body);
        while self.more(connection, rows, encoder, &mut body).await? {
            if body.len() >= BUFFER_BYTES {
                spool.push(&mut body).await?;
            }
        }
        spool.push(&mut body).await?;
        Ok(spool)
    }

    pub(super) async fn send_part(
        &self,
        mut sending: Sending<'_>,
        connection: &mut Connection,
        whole: &Whole,
        part: Range<u64>,
    ) -> Result<(), Failure> {
        let counted = self.counted(whole.rows, part.end - part.start);
        let mut at = part.start;
        while at < part.end {
            let end = part.end.min(at + PIECE_BYTES);
            let mut piece = whole.read(at..end).await?;
            sending.send(connection, &mut piece, &counted).await?;
            at = end;
        }
        sending.finish(connection, &[], &counted).await?;
        Ok(())
    }

    /// Writes the next batch, or what stands behind the last one. False: that was all.
    async fn more(
        &self,
        connection: &mut Connection,
        rows: &mut Rows,
        encoder: &mut Encoder,
        body: &mut Vec<u8>,
    ) -> Result<bool, Failure> {
        let batch = match rows.first.take() {
            Some(first) => Some(first),
            None if rows.is_over => None,
            None => self.waiting(connection, rows.source.next()).await?.transpose()?,
        };
        let Some(batch) = batch else {
            let statistics = Statistics {
                elapsed_seconds: self.started.elapsed().as_secs_f64(),
                rows_read: rows.rows,
                bytes_read: body.len() as u64,
            };
            encoder.finish(&statistics, body)?;
            return Ok(false);
        };
        let batch = self.within_limit(rows, batch)?;
        encoder.batch(&batch, body)?;
        Ok(true)
    }

    /// `max_result_rows`: an error, or the rows up to there.
    fn within_limit(&self, rows: &mut Rows, batch: RecordBatch) -> Result<RecordBatch, Failure> {
        let before = rows.rows;
        rows.rows += batch.num_rows() as u64;
        let Some(max) = self.question.wishes.max_result_rows.filter(|max| rows.rows > *max) else { return Ok(batch) };
        if !self.question.wishes.overflow_breaks {
            let text = format!("Limit for result exceeded, max rows: {max}, current rows: {}", rows.rows);
            return Err(Failure::Refused(Refusal::statement(ErrorCode::TOO_MANY_ROWS_OR_BYTES, text)));
        }
        (rows.rows, rows.is_over) = (max, true);
        Ok(batch.slice(0, usize::try_from(max - before).unwrap_or(0)))
    }

    /// Waits for the database: no longer than `max_execution_time`, and where the client watches its query, no longer than it
    /// does. Dropping what is waited for stops the query.
    pub(super) async fn waiting<T>(
        &self,
        connection: &mut Connection,
        work: impl Future<Output = T>,
    ) -> Result<T, Failure> {
        let wishes = &self.question.wishes;
        let watches = wishes.watches_client && self.question.asked.kind == Kind::Reads;
        let watched = async {
            if watches && connection.body_is_done() {
                if let Ok((mut body, _)) = connection.body().await {
                    return body.client_gone().await;
                }
            }
            std::future::pending().await
        };
        let late = async {
            match wishes.max_execution_time {
                Some(limit) => tokio::time::sleep_until((self.started + limit).into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            done = work => Ok(done),
            () = watched => Err(Failure::Gone),
            () = late => {
                let (elapsed_ms, limit) = (self.started.elapsed().as_millis(), wishes.max_execution_time.unwrap_or_default());
                let text = format!("Timeout exceeded: elapsed {elapsed_ms} ms, maximum: {} ms", limit.as_millis());
                Err(Failure::Refused(Refusal::statement(ErrorCode::TIMEOUT_EXCEEDED, text)))
            }
        }
    }

    fn sending<'h>(&'h self, exchange: &'h Exchange<'_>, after: After) -> Result<Sending<'h>, Failure> {
        let wishes = &self.question.wishes;
        let accepted = exchange.request.head.field_str("accept-encoding").filter(|_| wishes.compresses);
        let (squeeze, encoding) = Squeeze::of(accepted, exchange.request.flag("compress"))?;
        let mut head = self.head(exchange, after, framing(exchange));
        head.encoding = encoding;
        Ok(Sending::new(head, squeeze))
    }

    pub(super) fn head<'h>(&'h self, exchange: &'h Exchange<'_>, after: After, framing: Framing) -> Head<'h> {
        Head {
            request: exchange.request.head,
            facts: self.facts,
            query_id: &self.query_id,
            after,
            tag: &self.tag,
            content_type: self.question.format.content_type(),
            format_name: Some(&self.question.format_name),
            encoding: None,
            any_origin: self.question.wishes.any_origin,
            framing,
            more: Vec::new(),
            status: 200,
        }
    }

    pub(super) fn counted(&self, rows: u64, bytes: u64) -> Counted {
        Counted {
            read_rows: rows,
            read_bytes: bytes,
            written_rows: 0,
            result_rows: rows,
            result_bytes: bytes,
            elapsed_ns: u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX),
        }
    }
}

/// A result that is being read.
pub(super) struct Rows {
    source: Source,
    first: Option<RecordBatch>,
    pub(super) rows: u64,
    is_over: bool,
}

/// DuckDB answers a change with the number of rows it concerned, in one column of that name.
fn counted_rows(batch: &RecordBatch) -> u64 {
    let column = batch.column_by_name("Count").and_then(|column| column.as_primitive_opt::<Int64Type>());
    let count = column.filter(|column| column.len() == 1).map_or(0, |column| column.value(0));
    u64::try_from(count).unwrap_or(0)
}

fn framing(exchange: &Exchange<'_>) -> Framing {
    match exchange.request.head.version_minor() {
        0 => Framing::UntilClose,
        _ => Framing::Chunked,
    }
}

pub(super) fn after_of(exchange: &Exchange<'_>, connection: &Connection) -> After {
    match connection.body_is_done() && exchange.request.head.version_minor() > 0 {
        true => after(exchange.request.head, connection),
        false => After::Close,
    }
}
