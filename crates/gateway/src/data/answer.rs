use std::fmt::Write;

use windrow_compression::{compress_clickhouse, ClickHouseMethod};
use windrow_gatherer::QueryId;
use windrow_http::{Connection, Method, RequestHead, ResponseBuilder};
use windrow_sink::BatchId;

use super::request::Request;
use crate::admission::BackendFacts;
use crate::error::Refusal;

const NOTHING: &str = "X-ClickHouse-Summary: {\"read_rows\":\"0\",\"read_bytes\":\"0\",\"written_rows\":\"0\",\"written_bytes\":\"0\",\
    \"total_rows_to_read\":\"0\",\"result_rows\":\"0\",\"result_bytes\":\"0\",\"elapsed_ns\":\"0\",\"memory_usage\":\"0\"}\r\n";

/// What an insert's answer says of it.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Summary {
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    pub(crate) elapsed_ns: u64,
}

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

/// Whether and how the connection goes on after an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum After {
    KeepAlive,
    Close,
}

pub(crate) fn after(head: &RequestHead, connection: &Connection) -> After {
    // A client that had to be told to go on is answered on a connection that ends, as ClickHouse does it.
    match head.keep_alive() && !head.expects_continue() && connection.requests_left() > 0 {
        true => After::KeepAlive,
        false => After::Close,
    }
}

fn start<'a>(
    out: &'a mut Vec<u8>,
    status: u16,
    summary: &Summary,
    after: After,
    facts: &BackendFacts,
    query_id: Option<&QueryId>,
) -> ResponseBuilder<'a> {
    let response = ResponseBuilder::new(out, status);
    let response = match summary.is_nothing() {
        true => response.prepared(NOTHING.as_bytes()),
        false => response.field("X-ClickHouse-Summary", &summary.json()),
    };
    let response = response
        .date()
        .field("Connection", if after == After::KeepAlive { "Keep-Alive" } else { "Close" })
        .prepared(facts.fixed_fields());
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

fn finish<'a>(response: ResponseBuilder<'a>, after: After, connection: &Connection) -> ResponseBuilder<'a> {
    // Five random bits per letter, mapped to the alphabet: not evenly, but that is not asked of a tag.
    let random = fastrand::u128(..);
    let tag: [u8; 16] = std::array::from_fn(|at| b'a' + ((((random >> (5 * at)) as u32 & 31) * 26) >> 5) as u8);
    let response = response.prepared(b"X-ClickHouse-Exception-Tag: ").prepared(&tag).prepared(b"\r\n");
    match after {
        After::Close => response,
        After::KeepAlive => {
            let (seconds, left) = (connection.limits().keep_alive_timeout.as_secs(), connection.requests_left());
            response.numbers("Keep-Alive", "timeout=", seconds, ", max=", u64::from(left))
        }
    }
}

/// Chunked, as ClickHouse frames its answers, for those who understand that.
fn end(response: ResponseBuilder<'_>, head: &RequestHead, body: &[u8]) {
    match (head.method(), head.version_minor()) {
        (Method::Head, _) => response.end(),
        (_, 0) => response.body(body),
        _ => response.chunked_body(body),
    }
}

/// The answer to a statement that was executed and returns nothing.
pub(crate) fn success(
    out: &mut Vec<u8>,
    head: &RequestHead,
    connection: &Connection,
    facts: &BackendFacts,
    query_id: &QueryId,
    summary: Summary,
) -> After {
    let after = after(head, connection);
    end(finish(start(out, 200, &summary, after, facts, Some(query_id)), after, connection), head, b"");
    after
}

/// An error as ClickHouse would answer it.
pub(crate) fn refusal(
    out: &mut Vec<u8>,
    request: &Request<'_>,
    connection: &Connection,
    facts: &BackendFacts,
    refusal: &Refusal,
) -> After {
    // What is left of the body is not worth reading.
    let after = if connection.body_is_done() { after(request.head, connection) } else { After::Close };
    let given = request.query_id().map(|id| QueryId::Given(id.into()));
    let mut response = start(out, refusal.status, &Summary::default(), after, facts, given.as_ref());
    response = response.number("X-ClickHouse-Exception-Code", refusal.code as u64);
    if let Some(seconds) = refusal.retry_after_seconds {
        response = response.number("Retry-After", u64::from(seconds));
    }
    let mut body = refusal.line(facts.version_suffix()).into_bytes();
    body.push(b'\n');
    if request.flag("compress") {
        body = compress_clickhouse(ClickHouseMethod::Lz4, &body);
    }
    end(finish(response, after, connection), request.head, &body);
    after
}

/// For requests that can't be read as HTTP: no ClickHouse form fits, so plain words.
pub(crate) fn unreadable(out: &mut Vec<u8>, status: u16, text: &str) {
    let response = ResponseBuilder::new(out, status)
        .date()
        .field("Connection", "Close")
        .field("Content-Type", "text/plain; charset=UTF-8");
    response.body(format!("{text}\n").as_bytes());
}
