//! Statements for a backend whose native port can't be had: they go over HTTP, and their results come as blocks of the client's own
//! revision, which become its packets. DuckDB is asked through the gateway's own HTTP port.
//!
//! What is missing then: progress, logs, totals and extremes, tables that go along with a statement, and results of types whose
//! values' end can't be found (JSON, Dynamic, AggregateFunction, QBit).

use std::sync::Arc;
use std::time::Duration;

use windrow_clickhouse::{Begun, Call, CallError, Client, Exception};
use windrow_compression::{compress_clickhouse, ClickHouseMethod};
use windrow_native::{server, write_string, write_varint, BlockEnd, BlockReader, Fault, Query};
use windrow_sql::TableName;

use super::session::{params, Closed, Session};
use super::wire::read_more;
use crate::admission::TableSchema;
use crate::backend::Backend;
use crate::error::Refusal;
use crate::insert::{role, Param, Role};
use crate::statement::Changes;

/// How long a statement may run without a word. The client's own patience is shorter, or endless.
const SILENCE: Duration = Duration::from_secs(24 * 3600);
/// Of a column that is sparse.
const MAX_COLUMN_BYTES: usize = 1 << 30;
const NOT_IMPLEMENTED: i32 = 48;
/// Stands in front of an error behind rows.
const MARK: &[u8] = b"\r\n__exception__";
const NO_TABLES: &str =
    "Tables that go along with a statement need the backend's native port: see `backend_native.address`";

/// Why there is no whole answer.
enum Failure {
    Refused(Refusal),
    Closed,
}

impl From<Closed> for Failure {
    fn from(_: Closed) -> Failure {
        Failure::Closed
    }
}

impl Session<'_> {
    /// Whether the backend is spoken to over HTTP alone.
    pub(super) fn is_over_http(&self) -> bool {
        match &self.state.backend {
            Backend::ClickHouse(_) => self.client.is_over_http,
            Backend::DuckDb(_) => true,
        }
    }

    fn http(&self) -> Result<Arc<Client>, Refusal> {
        let client = match &self.state.backend {
            Backend::ClickHouse(clickhouse) => Some(clickhouse.relay.clone()),
            Backend::DuckDb(_) => self.state.own_http.get().cloned(),
        };
        client.ok_or_else(|| Refusal::unreachable("the gateway is still starting"))
    }

    fn call<'c>(
        &'c self,
        query: &Query,
        params: &[Param<'_>],
        additions: &[(&'static str, &'static str)],
        body: &'c [&'c [u8]],
    ) -> Call<'c> {
        let mut call = Call::new(&self.client.credentials, "").body(body).timeout(SILENCE);
        let takes_own = !self.state.backend.takes_requests();
        for param in params.iter().filter(|param| takes_own || role(param.name()) != Role::Windrow) {
            call = call.param(param.name(), param.text().unwrap_or_default());
        }
        for (name, value) in additions {
            call = call.param(name, value);
        }
        let in_session = self.is_changed && !takes_own;
        let database = &self.client.hello.database;
        // A session keeps the database that it began with, or that USE has named.
        if !(database.is_empty() || in_session && self.has_http_session) {
            call = call.param("database", database);
        }
        if !query.id.is_empty() {
            call = call.param("query_id", &query.id);
        }
        if in_session {
            call = call.param("session_id", &self.http_session).param("session_timeout", "3600");
            if self.has_http_session {
                call = call.param("session_check", "1");
            }
        }
        let revision = self.client.revision.to_string();
        call.param("client_protocol_version", &revision).param("default_format", "Native")
    }

    /// Sends a statement whose answer is only whether it was done.
    pub(super) async fn post(
        &mut self,
        query: &Query,
        params: &[Param<'_>],
        additions: &[(&'static str, &'static str)],
        body: &[&[u8]],
    ) -> Result<(), Refusal> {
        let client = self.http()?;
        client.call(self.call(query, params, additions, body)).await.map(drop).map_err(refusal)
    }

    /// A table as this session sees it.
    pub(super) async fn described_over_http(&self, query: &Query, table: &TableName) -> Option<TableSchema> {
        let database = table.database.iter().map(|database| windrow_sql::backquote(database) + ".");
        let name = database.collect::<String>() + &windrow_sql::backquote(&table.table);
        let statement = format!("DESCRIBE TABLE {name} FORMAT JSONCompactEachRow");
        let nameless = Query { id: String::new(), ..query.clone() };
        let body = [statement.as_bytes()];
        let answer = self.http().ok()?.call(self.call(&nameless, &[], &[], &body)).await.ok()?;
        Some(TableSchema::described(answer.text()))
    }

    /// Runs a statement that is no insert, and passes its result on.
    pub(super) async fn forward_over_http(
        &mut self,
        query: &Query,
        length: usize,
        changes: &Changes,
    ) -> Result<bool, Closed> {
        let Some((end, has_tables)) = self.tables_beside(query, length).await? else {
            self.refuse(query.is_compressed, &Refusal::statement(NOT_IMPLEMENTED, NO_TABLES.to_owned())).await?;
            return Err(Closed);
        };
        let text = self.wire.input[query.text.clone()].to_vec();
        self.wire.consume(end);
        if has_tables {
            self.refuse(query.is_compressed, &Refusal::statement(NOT_IMPLEMENTED, NO_TABLES.to_owned())).await?;
            return Ok(false);
        }
        match self.run_over_http(query, &text, changes).await {
            Ok(()) => Ok(true),
            Err(Failure::Refused(refusal)) => self.refuse(query.is_compressed, &refusal).await.map(|()| false),
            Err(Failure::Closed) => Err(Closed),
        }
    }

    async fn run_over_http(&mut self, query: &Query, text: &[u8], changes: &Changes) -> Result<(), Failure> {
        let client = self.http().map_err(Failure::Refused)?;
        let params = params(query);
        let body = [text];
        let begun = {
            let call = self.call(query, &params, &[], &body);
            let begun = client.begin(&call).await;
            if let Err(CallError::Unknown(_)) = &begun {
                // It may have been done.
                self.state.have_changed(changes).await;
            }
            begun.map_err(|error| Failure::Refused(refusal(error)))?
        };
        let Begun { mut lease, head } = begun;
        self.has_http_session |= self.is_changed;
        if self.state.backend.takes_requests() {
            self.state.have_changed(changes).await;
        }
        let is_native = head.field_str("x-clickhouse-format").is_none_or(|format| format == "Native");
        let mut blocks = Blocks::new(self.client.revision, query.is_compressed);
        {
            let mut body = lease.connection().body(&head);
            loop {
                let next = tokio::select! {
                    next = body.next(SILENCE) => next,
                    // A client that cancels or leaves is not answered to the end.
                    () = gone(&mut self.wire) => return Err(Failure::Closed),
                };
                let next = next.map_err(|error| {
                    // An error behind rows is written without an end.
                    let lost = || Refusal::backend_lost(&error.to_string());
                    Failure::Refused(blocks.exception().unwrap_or_else(lost))
                })?;
                let Some(bytes) = next else { break };
                if !is_native {
                    let text = "A result in another format than Native needs the backend's native port";
                    return Err(Failure::Refused(Refusal::statement(NOT_IMPLEMENTED, text.to_owned())));
                }
                {
                    blocks.take(&bytes).map_err(Failure::Refused)?;
                    if !blocks.out.is_empty() {
                        self.wire.send(&blocks.out).await.map_err(|_| Failure::Closed)?;
                        blocks.out.clear();
                    }
                }
            }
        }
        if let Some(refusal) = blocks.exception() {
            return Err(Failure::Refused(refusal));
        }
        if !blocks.is_at_end() {
            return Err(Failure::Refused(Refusal::backend_lost("its answer ends in the middle of a block")));
        }
        lease.give_back(&head);
        self.answer(query.is_compressed, |answer| answer.end_of_stream()).await?;
        Ok(())
    }
}

/// Ends when the client has gone, or says something.
async fn gone(wire: &mut super::wire::Wire) {
    if wire.input.is_empty() {
        // What it is, is looked at when the answer is out; who pings meanwhile waits.
        if read_more(&mut wire.read, &mut wire.input, 1).await.is_err() {
            return;
        }
    }
    std::future::pending().await
}

fn refusal(error: CallError) -> Refusal {
    match error {
        CallError::Exception(exception) => Refusal::exception(exception),
        CallError::NotSent(error) => Refusal::unreachable(&error.to_string()),
        CallError::Unknown(cause) => Refusal::backend_lost(&cause),
    }
}

/// Blocks one after the other, which become packets.
struct Blocks {
    reader: BlockReader,
    is_compressed: bool,
    /// Read, and not taken yet.
    input: Vec<u8>,
    /// The block that is coming in.
    block: Vec<u8>,
    scratch: Vec<u8>,
    inside: bool,
    /// Packets.
    out: Vec<u8>,
}

impl Blocks {
    fn new(revision: u64, is_compressed: bool) -> Blocks {
        Blocks {
            reader: BlockReader::new(revision, MAX_COLUMN_BYTES).discarding(),
            is_compressed,
            input: Vec::new(),
            block: Vec::new(),
            scratch: Vec::new(),
            inside: false,
            out: Vec::new(),
        }
    }

    fn is_at_end(&self) -> bool {
        !self.inside && self.input.is_empty()
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        self.input.extend_from_slice(bytes);
        loop {
            if !self.inside {
                if self.input.is_empty() {
                    return Ok(());
                }
                if MARK.starts_with(&self.input) {
                    // Part of a mark, or what begins like one.
                    return Ok(());
                }
                if self.input.starts_with(MARK) {
                    // All of it comes with the end.
                    return Ok(());
                }
                self.reader.begin();
                self.inside = true;
            }
            self.scratch.clear();
            let (taken, end) = match self.reader.read(&self.input, &mut self.scratch) {
                Ok(read) => read,
                Err(fault) => return Err(self.exception().unwrap_or_else(|| unreadable(&fault))),
            };
            self.block.extend_from_slice(&self.input[..taken]);
            self.input.drain(..taken);
            let Some(end) = end else { return Ok(()) };
            self.inside = false;
            self.end_block(end);
        }
    }

    fn end_block(&mut self, end: BlockEnd) {
        // An empty block would be the end.
        if !end.is_last() {
            write_varint(&mut self.out, server::DATA);
            write_string(&mut self.out, "");
            match self.is_compressed {
                true => self.out.extend_from_slice(&compress_clickhouse(ClickHouseMethod::Lz4, &self.block)),
                false => self.out.extend_from_slice(&self.block),
            }
        }
        self.block.clear();
    }

    /// An error that came behind rows.
    fn exception(&self) -> Option<Refusal> {
        let at = self.input.windows(MARK.len()).position(|window| window == MARK)?;
        let rest = &self.input[at..];
        let start = rest.windows(6).position(|window| window == b"Code: ")?;
        let exception = Exception::parse(rest[start..].split(|byte| *byte == b'\r').next()?)?;
        Some(Refusal::exception(exception))
    }
}

fn unreadable(fault: &Fault) -> Refusal {
    let what = match fault {
        Fault::Unsupported(what) | Fault::Malformed(what) | Fault::TooLarge(what) => what,
        Fault::Incomplete { .. } | Fault::Frame(_) => "a block that can't be read",
    };
    let text = format!(
        "The result has {what}. Windrow passes such results on where it reaches the backend's native port: see \
         `backend_native.address`"
    );
    Refusal::statement(NOT_IMPLEMENTED, text)
}
