//! The head of an answer whose body comes bit by bit.

use windrow_compression::AnswerEncoding;
use windrow_engine::{sink::BatchId, QueryId};
use windrow_gateway::sql_backend::{After, BackendFacts};
use windrow_http::{Connection, RequestHead, ResponseBuilder};

/// Counts of an answer at the time when its head is sent.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counted {
    pub(super) read_rows: u64,
    pub(super) read_bytes: u64,
    pub(super) written_rows: u64,
    pub(super) result_rows: u64,
    pub(super) result_bytes: u64,
    pub(super) elapsed_ns: u64,
}

impl Counted {
    fn json(&self) -> String {
        let Counted { read_rows, read_bytes, written_rows, result_rows, result_bytes, elapsed_ns } = self;
        format!(
            "{{\"read_rows\":\"{read_rows}\",\"read_bytes\":\"{read_bytes}\",\"written_rows\":\"{written_rows}\",\
             \"written_bytes\":\"0\",\"total_rows_to_read\":\"{read_rows}\",\"result_rows\":\"{result_rows}\",\
             \"result_bytes\":\"{result_bytes}\",\"elapsed_ns\":\"{elapsed_ns}\",\"memory_usage\":\"0\"}}"
        )
    }
}

/// The way that a client finds a body's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    Chunked,
    /// The body ends with the connection, for clients of HTTP/1.0.
    UntilClose,
    Length(u64),
}

pub(super) struct Head<'a> {
    pub(super) request: &'a RequestHead,
    pub(super) facts: &'a BackendFacts,
    pub(super) query_id: &'a QueryId,
    pub(super) after: After,
    pub(super) tag: &'a str,
    pub(super) content_type: &'a str,
    /// The format's name, or `None` for a statement that has no rows.
    pub(super) format_name: Option<&'a str>,
    pub(super) encoding: Option<AnswerEncoding>,
    pub(super) any_origin: bool,
    pub(super) framing: Framing,
    /// Fields that only some answers have.
    pub(super) more: Vec<(&'static str, String)>,
    pub(super) status: u16,
}

impl Head<'_> {
    pub(super) fn write(&self, out: &mut Vec<u8>, counted: &Counted, connection: &Connection) {
        let keeps = self.after == After::KeepAlive;
        // The first of the fixed fields is the content's type, which is another one here.
        let fixed = self.facts.fixed_fields();
        let behind_first = fixed.iter().position(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let mut response = ResponseBuilder::new(out, self.status)
            .field("X-ClickHouse-Summary", &counted.json())
            .date()
            .field("Connection", if keeps { "Keep-Alive" } else { "Close" })
            .field("Content-Type", self.content_type)
            .prepared(&fixed[behind_first..]);
        response = match self.query_id {
            QueryId::Random(id) => {
                response.field("X-ClickHouse-Query-Id", std::str::from_utf8(&BatchId(*id).text()).unwrap_or(""))
            }
            QueryId::Given(id) => response.field("X-ClickHouse-Query-Id", id),
        };
        if let Some(name) = self.format_name {
            response = response.field("X-ClickHouse-Format", name);
        }
        response = response.prepared(self.facts.timezone_field()).field("X-ClickHouse-Exception-Tag", self.tag);
        if let Some(encoding) = self.encoding {
            response = response.field("Content-Encoding", encoding.name());
        }
        if self.any_origin && self.request.field("origin").is_some_and(|origin| !origin.is_empty()) {
            response = response.field("Access-Control-Allow-Origin", "*");
        }
        for (name, value) in &self.more {
            response = response.field(name, value);
        }
        if keeps {
            let (seconds, left) = (connection.limits().keep_alive_timeout.as_secs(), connection.requests_left());
            response = response.numbers("Keep-Alive", "timeout=", seconds, ", max=", u64::from(left));
        }
        match self.framing {
            Framing::Chunked => response.field("Transfer-Encoding", "chunked").end(),
            Framing::UntilClose => response.end(),
            Framing::Length(length) => response.number("Content-Length", length).end(),
        }
    }
}

/// 16 letters that no result holds by chance.
pub(super) fn random_tag() -> String {
    (0..16).map(|_| fastrand::lowercase()).collect()
}
