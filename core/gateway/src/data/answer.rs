use std::fmt::Write;

use windrow_compression::{compress, compress_clickhouse, AnswerEncoding, ClickHouseMethod};
use windrow_engine::{sink::BatchId, QueryId};
use windrow_http::{Connection, Method, RequestHead, ResponseBuilder};

use super::request::Request;
use crate::admission::BackendFacts;
use crate::error::Refusal;
use crate::insert::{AnswerForm, Summary};

const NOTHING: &str = "X-ClickHouse-Summary: {\"read_rows\":\"0\",\"read_bytes\":\"0\",\"written_rows\":\"0\",\"written_bytes\":\"0\",\
    \"total_rows_to_read\":\"0\",\"result_rows\":\"0\",\"result_bytes\":\"0\",\"elapsed_ns\":\"0\",\"memory_usage\":\"0\"}\r\n";

impl Summary {
    fn is_nothing(&self) -> bool {
        self.rows == 0 && self.elapsed_ns == 0
    }

    fn json(&self) -> String {
        let Summary { rows, bytes, elapsed_ns } = self;
        let mut json = String::with_capacity(256);
        // Writing to a String never fails.
        let _ = write!(
            json,
            "{{\"read_rows\":\"{rows}\",\"read_bytes\":\"{bytes}\",\"written_rows\":\"{rows}\",\"written_bytes\":\"{bytes}\",\
             \"total_rows_to_read\":\"0\",\"result_rows\":\"{rows}\",\"result_bytes\":\"{bytes}\",\
             \"elapsed_ns\":\"{elapsed_ns}\",\"memory_usage\":\"0\"}}"
        );
        json
    }
}

/// The state of a connection after an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    KeepAlive,
    Close,
}

pub fn after(head: &RequestHead, connection: &Connection) -> After {
    // A client that had to be told to go on is answered on a connection that ends, as ClickHouse does it.
    match head.keep_alive() && !head.expects_continue() && connection.requests_left() > 0 {
        true => After::KeepAlive,
        false => After::Close,
    }
}

/// Facts that an answer depends on besides its contents.
pub(crate) struct Answering<'a> {
    pub(crate) head: &'a RequestHead,
    pub(crate) connection: &'a Connection,
    pub(crate) facts: &'a BackendFacts,
    pub(crate) form: AnswerForm,
    /// Says whether the status line has gone out already, with fields of progress behind it.
    pub(crate) head_begun: bool,
}

impl Answering<'_> {
    fn after(&self) -> After {
        // What is left of the body is not worth reading.
        if self.connection.body_is_done() {
            after(self.head, self.connection)
        } else {
            After::Close
        }
    }

    /// Writes the answer to a statement that was executed and returns nothing.
    pub(crate) fn success(&self, out: &mut Vec<u8>, query_id: &QueryId, summary: Summary) -> After {
        let after = self.after();
        let response = self.start(out, 200, &summary, after);
        let response = with_query_id(response, Some(query_id), self.facts);
        end(self.finish(response, after), self.head, b"");
        after
    }

    /// Writes an error as ClickHouse would answer it.
    pub(crate) fn refusal(
        &self,
        out: &mut Vec<u8>,
        request: &Request<'_>,
        query_id: Option<&QueryId>,
        refusal: &Refusal,
    ) -> After {
        let usually = self.after();
        let after = if refusal.ends_connection() { After::Close } else { usually };
        let mut response = self.start(out, refusal.status, &Summary::default(), after);
        let version = if request.param("session_id").is_some() { "" } else { self.facts.version_suffix() };
        let mut body = refusal.line(version).into_bytes();
        body.push(b'\n');
        if refusal.before_query {
            response = response.number("X-ClickHouse-Exception-Code", refusal.code.number() as u64);
        } else {
            response = with_query_id(response, query_id, self.facts);
            response = response.number("X-ClickHouse-Exception-Code", refusal.code.number() as u64);
            if request.flag("compress") {
                body = compress_clickhouse(ClickHouseMethod::Lz4, &body);
            } else if let Some(encoding) = self.encoding() {
                response = response.field("Content-Encoding", encoding.name());
                body = compress(encoding, &body);
            }
        }
        if let Some(seconds) = refusal.retry_after_seconds {
            response = response.number("Retry-After", u64::from(seconds));
        }
        // ClickHouse says how long it would keep a connection that it closes.
        end(self.finish(response, usually), self.head, &body);
        after
    }

    fn encoding(&self) -> Option<AnswerEncoding> {
        let accepted = self.head.field_str("accept-encoding").filter(|_| self.form.compresses);
        accepted.and_then(AnswerEncoding::from_accept_encoding)
    }

    fn start<'o>(&self, out: &'o mut Vec<u8>, status: u16, summary: &Summary, after: After) -> ResponseBuilder<'o> {
        let response = match self.head_begun {
            false => ResponseBuilder::new(out, status),
            true => ResponseBuilder::resumed(out),
        };
        let response = match summary.is_nothing() {
            true => response.prepared(NOTHING.as_bytes()),
            false => response.field("X-ClickHouse-Summary", &summary.json()),
        };
        let response = response
            .date()
            .field("Connection", if after == After::KeepAlive { "Keep-Alive" } else { "Close" })
            .prepared(self.facts.fixed_fields());
        match self.form.any_origin && self.head.field("origin").is_some_and(|origin| !origin.is_empty()) {
            true => response.field("Access-Control-Allow-Origin", "*"),
            false => response,
        }
    }

    fn finish<'o>(&self, response: ResponseBuilder<'o>, after: After) -> ResponseBuilder<'o> {
        // Five random bits per letter, mapped to the alphabet: not evenly, but that is not asked of a tag.
        let random = fastrand::u128(..);
        let tag: [u8; 16] = std::array::from_fn(|at| b'a' + ((((random >> (5 * at)) as u32 & 31) * 26) >> 5) as u8);
        let response = response.prepared(b"X-ClickHouse-Exception-Tag: ").prepared(&tag).prepared(b"\r\n");
        match after {
            After::Close => response,
            After::KeepAlive => {
                let (seconds, left) =
                    (self.connection.limits().keep_alive_timeout.as_secs(), self.connection.requests_left());
                response.numbers("Keep-Alive", "timeout=", seconds, ", max=", u64::from(left))
            }
        }
    }
}

fn with_query_id<'o>(
    response: ResponseBuilder<'o>,
    query_id: Option<&QueryId>,
    facts: &BackendFacts,
) -> ResponseBuilder<'o> {
    match query_id {
        Some(QueryId::Random(id)) => response
            .prepared(b"X-ClickHouse-Query-Id: ")
            .prepared(&BatchId(*id).text())
            .prepared(b"\r\n")
            .prepared(facts.timezone_field()),
        Some(QueryId::Given(id)) => response.field("X-ClickHouse-Query-Id", id).prepared(facts.timezone_field()),
        None => response,
    }
}

/// Writes the body, chunked, as ClickHouse frames its answers, for clients that understand that.
fn end(response: ResponseBuilder<'_>, head: &RequestHead, body: &[u8]) {
    match (head.method(), head.version_minor()) {
        (Method::Head, _) => response.end(),
        (_, 0) => response.body(body),
        _ => response.chunked_body(body),
    }
}

/// Answers a request that can't be read as HTTP. No form of ClickHouse's fits, so the answer is plain text.
pub fn unreadable(out: &mut Vec<u8>, status: u16, text: &str) {
    let response = ResponseBuilder::new(out, status)
        .date()
        .field("Connection", "Close")
        .field("Content-Type", "text/plain; charset=UTF-8");
    response.body(format!("{text}\n").as_bytes());
}
