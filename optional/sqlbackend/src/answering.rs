//! Answers a question over HTTP, from its text to the answer's last byte.

use std::ops::Range;

use windrow_clickhouse::ErrorCode;
use windrow_duckdb::results::Format;
use windrow_duckdb::statement::Kind;
use windrow_engine::QueryId;
use windrow_gateway::sql_backend::{
    after, query_id, After, BackendFacts, Exchange, NoText, Read, Refusal, SqlStatement, StatementTerms,
};
use windrow_http::{Connection, Method};

use super::ask::Question;
use super::head::{random_tag, Counted, Framing, Head};
use super::plain::answer_plainly;
use super::run::{Client, Failure, Rows, Run};
use super::sending::{BodyCompression, ClientGone, Sending, BUFFER_BYTES, MAX_BUFFER_BYTES};
use super::spool::{Spool, SpooledResult};
use super::ServedDatabase;

/// The size of the pieces in which a result is sent that is whole before it is sent.
const PIECE_BYTES: u64 = 256 * 1024;

impl From<ClientGone> for Failure {
    fn from(_: ClientGone) -> Failure {
        Failure::Gone
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

impl Client for Connection {
    async fn has_gone(&mut self) {
        if self.body_is_done() {
            if let Ok((mut body, _)) = self.body().await {
                return body.client_gone().await;
            }
        }
        std::future::pending().await
    }
}

/// The answer to one question.
pub(super) struct Answer<'a> {
    pub(super) backend: &'a ServedDatabase,
    pub(super) run: Run<'a>,
    query_id: QueryId,
    tag: String,
    facts: &'a BackendFacts,
    terms: StatementTerms<'a>,
}

impl ServedDatabase {
    /// Answers whatever is not gathered. `read` is the part of the body that has been read.
    pub(super) async fn answer_request(
        &self,
        exchange: &Exchange<'_>,
        terms: StatementTerms<'_>,
        connection: &mut Connection,
        out: &mut Vec<u8>,
        read: Read,
    ) -> After {
        let request = &exchange.request;
        if let Some(after) = answer_plainly(request, connection, out).await {
            return after;
        }
        let text = match exchange.whole_text(connection, read).await {
            Ok(text) => text,
            Err(NoText::Refused(refusal)) => return exchange.refuse(connection, out, &refusal).await,
            Err(NoText::Broken) => return After::Close,
        };
        let user = exchange.credentials().map_or("default", |credentials| credentials.user.as_str());
        if !request.is_text() {
            let refusal = Refusal::bad_argument("A parameter of the request has no name, or is not UTF-8 text");
            return exchange.refuse(connection, out, &refusal).await;
        }
        let header = request.head.field_str("x-clickhouse-format").filter(|name| !name.is_empty());
        let format = || request.param_str("default_format").filter(|name| !name.is_empty());
        let revision = request.param_str("client_protocol_version").and_then(|revision| revision.parse().ok());
        let question = Question::of(
            &self.database,
            &SqlStatement {
                text: &text,
                user,
                readonly: terms.access.readonly,
                options: &request.options(),
                database: request.database(),
                format: header.or_else(format),
                native_revision: revision.unwrap_or(0),
                by_get: !request.is_post(),
                own_tables: &|table| exchange.own_rows(user, terms.access, table),
            },
        );
        let question = match question {
            Ok(question) => question,
            Err(refusal) => return exchange.refuse(connection, out, &refusal).await,
        };
        drop(text);
        let facts = exchange.facts();
        let answer = Answer {
            backend: self,
            run: Run::new(&self.database, question),
            query_id: query_id(request.query_id()),
            tag: random_tag(),
            facts: &facts,
            terms,
        };
        let outcome = answer.send(exchange, connection).await;
        // A statement that is out of time may just have been done.
        let is_refused =
            matches!(&outcome, Err(Failure::Refused(refusal)) if refusal.code != ErrorCode::TIMEOUT_EXCEEDED);
        if !is_refused {
            // A statement whose answer streams may take rows away until its end. Where it failed, nobody knows
            // whether it did.
            exchange.rows_are_gone(&terms).await;
        }
        match outcome {
            Ok(after) => after,
            Err(Failure::Refused(refusal)) => exchange.refuse(connection, out, &refusal).await,
            Err(Failure::Gone) => After::Close,
        }
    }
}

impl Answer<'_> {
    async fn send(&self, exchange: &Exchange<'_>, connection: &mut Connection) -> Result<After, Failure> {
        let question = &self.run.question;
        match question.asked.kind {
            Kind::Reads if question.format == Format::Parquet => return self.parquet(exchange, connection).await,
            Kind::Reads | Kind::Writes { returns: true } => {}
            Kind::Writes { returns: false } | Kind::NotTaken(_) => return self.change(exchange, connection).await,
        }
        if question.format == Format::Parquet {
            return Err(Failure::Refused(Refusal::statement(
                ErrorCode::NOT_IMPLEMENTED,
                "Only a query can be answered in Parquet".to_owned(),
            )));
        }
        let mut body = Vec::new();
        let mut rows = self.run.rows(connection, &mut body).await?;
        if *exchange.request.head.method() == Method::Head {
            let after = after_of(exchange, connection);
            let mut out = Vec::new();
            self.head(exchange, after, Framing::Chunked).write(&mut out, &self.counted(0, 0), connection);
            connection.send(&out).await.map_err(|_| Failure::Gone)?;
            return Ok(after);
        }
        match question.query_settings.waits_for_end {
            true => self.send_whole(exchange, connection, &mut rows, body).await,
            false => self.stream(exchange, connection, &mut rows, body).await,
        }
    }

    /// Runs a statement whose answer is that it was done.
    async fn change(&self, exchange: &Exchange<'_>, connection: &mut Connection) -> Result<After, Failure> {
        let written_rows = self.run.change(connection).await?;
        // This is done before the client can know of the change: the rows that it inserts then are new.
        exchange.rows_are_gone(&self.terms).await;
        let after = after_of(exchange, connection);
        let counted =
            Counted { written_rows, read_rows: written_rows, result_rows: written_rows, ..self.counted(0, 0) };
        let mut head = self.head(exchange, after, framing(exchange));
        (head.content_type, head.format_name) = ("text/plain; charset=UTF-8", None);
        Sending::new(head, BodyCompression::Plain).finish(connection, &[], &counted).await?;
        Ok(after_of(exchange, connection))
    }

    /// Sends rows as they come.
    async fn stream(
        &self,
        exchange: &Exchange<'_>,
        connection: &mut Connection,
        rows: &mut Rows,
        mut body: Vec<u8>,
    ) -> Result<After, Failure> {
        let after = after_of(exchange, connection);
        let mut sending = self.sending(exchange, after)?;
        let hold_back = self.run.question.query_settings.buffer_bytes.clamp(BUFFER_BYTES, MAX_BUFFER_BYTES);
        let mut bytes = 0;
        loop {
            let limit = if sending.head_sent() { BUFFER_BYTES } else { hold_back };
            let before = body.len();
            let more = self.run.more(connection, rows, &mut body).await;
            bytes += (body.len() - before) as u64;
            let failure = match more {
                Ok(true) if body.len() < limit => continue,
                Ok(true) => {
                    sending.send(connection, &mut body, &self.counted(rows.count, bytes)).await?;
                    continue;
                }
                Ok(false) => {
                    sending.finish(connection, &body, &self.counted(rows.count, bytes)).await?;
                    return Ok(after);
                }
                Err(failure) => failure,
            };
            return match failure {
                Failure::Refused(refusal) if sending.head_sent() => {
                    exchange.count_refusal(&refusal);
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
        body: Vec<u8>,
    ) -> Result<After, Failure> {
        let spool = self.spooled(connection, rows, body).await?;
        let whole = spool.end(rows.count, false).await?;
        let after = after_of(exchange, connection);
        let sending = self.sending(exchange, after)?;
        self.send_part(sending, connection, &whole, 0..whole.length).await?;
        Ok(after)
    }

    pub(super) async fn spooled(
        &self,
        connection: &mut Connection,
        rows: &mut Rows,
        mut body: Vec<u8>,
    ) -> Result<Spool, Failure> {
        let mut spool = Spool::new(&self.backend.temporary_files);
        while self.run.more(connection, rows, &mut body).await? {
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
        whole: &SpooledResult,
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

    fn sending<'h>(&'h self, exchange: &'h Exchange<'_>, after: After) -> Result<Sending<'h>, Failure> {
        let query_settings = &self.run.question.query_settings;
        let accepted = exchange.request.head.field_str("accept-encoding").filter(|_| query_settings.compresses);
        let (compression, encoding) = BodyCompression::of(accepted, exchange.request.flag("compress"))?;
        let mut head = self.head(exchange, after, framing(exchange));
        head.encoding = encoding;
        Ok(Sending::new(head, compression))
    }

    pub(super) fn head<'h>(&'h self, exchange: &'h Exchange<'_>, after: After, framing: Framing) -> Head<'h> {
        Head {
            request: exchange.request.head,
            facts: self.facts,
            query_id: &self.query_id,
            after,
            tag: &self.tag,
            content_type: self.run.question.format.content_type(),
            format_name: Some(&self.run.question.format_name),
            encoding: None,
            any_origin: self.run.question.query_settings.any_origin,
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
            elapsed_ns: u64::try_from(self.run.started.elapsed().as_nanos()).unwrap_or(u64::MAX),
        }
    }
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
