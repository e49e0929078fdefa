use std::fmt::Write;
use std::time::SystemTime;

use windrow_compression::{compress_clickhouse, ClickHouseMethod};
use windrow_gatherer::QueryId;
use windrow_http::{http_date, Connection, RequestHead, ResponseBuilder};

use super::request::Request;
use crate::admission::BackendFacts;
use crate::error::Refusal;

/// The fields that a browser's scripts may read, as ClickHouse lists them.
const EXPOSED: &str = "X-ClickHouse-Query-Id,X-ClickHouse-Summary,X-ClickHouse-Server-Display-Name,X-ClickHouse-Format,\
    X-ClickHouse-Timezone,X-ClickHouse-Exception-Code,X-ClickHouse-Exception-Tag";

/// What an insert's answer says of it.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Summary {
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    pub(crate) elapsed_ns: u64,
}

impl Summary {
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
    query_id: Option<&str>,
) -> ResponseBuilder<'a> {
    let response = ResponseBuilder::new(out, status)
        .field("X-ClickHouse-Summary", &summary.json())
        .field("Date", &http_date(SystemTime::now()))
        .field("Connection", if after == After::KeepAlive { "Keep-Alive" } else { "Close" })
        .field("Content-Type", "text/plain; charset=UTF-8")
        .field("Access-Control-Expose-Headers", EXPOSED)
        .field("X-ClickHouse-Server-Display-Name", &facts.display_name);
    match query_id {
        Some(id) => response.field("X-ClickHouse-Query-Id", id).field("X-ClickHouse-Timezone", &facts.timezone),
        None => response,
    }
}

fn finish<'a>(response: ResponseBuilder<'a>, after: After, connection: &Connection) -> ResponseBuilder<'a> {
    let mut tag = [0u8; 16];
    tag.fill_with(|| fastrand::u8(b'a'..=b'z'));
    let response = response.field_bytes("X-ClickHouse-Exception-Tag", &tag);
    match after {
        After::Close => response,
        After::KeepAlive => {
            let seconds = connection.limits().keep_alive_timeout.as_secs();
            response.field("Keep-Alive", &format!("timeout={seconds}, max={}", connection.requests_left()))
        }
    }
}

/// The answer to a statement that was executed and returns nothing.
pub(crate) fn success(
    out: &mut Vec<u8>,
    request: &Request<'_>,
    connection: &Connection,
    facts: &BackendFacts,
    query_id: &QueryId,
    summary: Summary,
) -> After {
    let after = after(request.head, connection);
    let id = query_id.to_string();
    finish(start(out, 200, &summary, after, facts, Some(&id)), after, connection).chunked_body(b"");
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
    let after = after(request.head, connection);
    let mut response = start(out, refusal.status, &Summary::default(), after, facts, request.query_id());
    response = response.number("X-ClickHouse-Exception-Code", refusal.code as u64);
    if let Some(seconds) = refusal.retry_after_seconds {
        response = response.number("Retry-After", u64::from(seconds));
    }
    if refusal.status == 401 {
        response = response.field("WWW-Authenticate", "Basic realm=\"ClickHouse server HTTP API\"");
    }
    let mut body = refusal.line(&facts.version_suffix).into_bytes();
    body.push(b'\n');
    if request.flag("compress") {
        body = compress_clickhouse(ClickHouseMethod::Lz4, &body);
    }
    finish(response, after, connection).chunked_body(&body);
    after
}

/// For requests that can't be read as HTTP: no ClickHouse form fits, so plain words.
pub(crate) fn unreadable(out: &mut Vec<u8>, status: u16, text: &str) {
    let response = ResponseBuilder::new(out, status)
        .field("Date", &http_date(SystemTime::now()))
        .field("Connection", "Close")
        .field("Content-Type", "text/plain; charset=UTF-8");
    response.body(format!("{text}\n").as_bytes());
}
