//! Statements for a backend without a native port that can be had: they are sent over HTTP, and their results
//! come as blocks of the client's own revision, which become its packets. A statement that reads tables which
//! only the gateway has is sent in the same way, with these tables.
//!
//! The client then misses: progress, logs, totals and extremes, tables that go along with a statement, and
//! results of types whose values have ends that can't be found (some states of aggregate functions).

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use windrow_clickhouse::native::{
    server, write_string, write_varint, BlockEnd, BlockReader, Fault, Query, STAGE_COMPLETE,
};
use windrow_clickhouse::{Begun, Call, CallError, Client, Credentials, ErrorCode, Exception, Purpose};
use windrow_compression::{compress_clickhouse, ClickHouseMethod};
use windrow_sql::{tokens, Dialect, InsertStatement, TableName, TokenKind};

use super::insert::SentInsert;
use super::rows::{ExternalTables, ReceivedRows};
use super::session::{Closed, Session};
use super::wire::{Stopped, Wire};
use crate::admission::{TableKey, TableSchema};
use crate::backend::Backend;
use crate::cluster::{patience, GatewayId, OtherGateway, FIELD};
use crate::data::own_tables;
use crate::error::Refusal;
use crate::insert::{Receiver, StatementOptions, Summary};
use crate::statement::{Changes, Passage, StatementContext};

/// Time that a statement may run without a word from the backend. The client's own patience is shorter, or endless.
const SILENCE: Duration = Duration::from_secs(24 * 3600);
/// Limit of the bytes of a sparse column.
const MAX_COLUMN_BYTES: usize = 1 << 30;
/// Mark that stands in front of an error behind rows.
const MARK: &[u8] = b"\r\n__exception__";
const NO_TABLES: &str =
    "Tables that go along with a statement, and the parts of statements that servers ask each other \
     for, need the backend's native port (see `backend_native.address`), and can't go with Windrow's own tables";

/// The server that a statement is posted to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Through {
    Backend,
    /// The gateway that owns an insert.
    Gateway(GatewayId),
}

/// A statement that is sent over HTTP, but for its text.
#[derive(Clone, Copy)]
pub(crate) struct Posted<'p> {
    pub(crate) context: &'p StatementContext<'p>,
    pub(crate) query: &'p Query,
    /// Settings that Windrow adds.
    pub(crate) additions: &'p [(&'static str, &'static str)],
    pub(crate) through: Through,
    /// The purpose that decides the replica, outside of a session.
    pub(crate) purpose: Purpose,
    /// Says whether the statement may read tables that the gateway has and the backend doesn't.
    pub(crate) reads_own_tables: bool,
}

impl<'p> Posted<'p> {
    /// Makes a statement for the backend, with nothing added.
    pub(super) fn new(context: &'p StatementContext<'p>, query: &'p Query) -> Posted<'p> {
        let (through, purpose) = (Through::Backend, Purpose::Statement);
        Posted { context, query, additions: &[], through, purpose, reads_own_tables: false }
    }
}

/// The reason why there is no whole answer.
pub(crate) enum Failure {
    Refused(Refusal),
    Cancelled,
    Closed,
}

impl From<Stopped> for Failure {
    fn from(stopped: Stopped) -> Failure {
        match stopped {
            Stopped::Cancelled => Failure::Cancelled,
            Stopped::Gone => Failure::Closed,
        }
    }
}

pub(crate) async fn wait_for<T>(
    wire: &mut Wire,
    has_to_be_known: bool,
    work: impl Future<Output = T>,
) -> Result<T, Stopped> {
    match has_to_be_known {
        true => Ok(wire.until_done(work).await),
        false => wire.unless_stopped(work).await,
    }
}

impl Session<'_> {
    /// Says whether the backend is spoken to over HTTP alone.
    pub(super) fn is_over_http(&self) -> bool {
        self.client.is_over_http || !self.state.backend.takes_requests()
    }

    fn http(&self, through: Through) -> Result<Arc<Client>, Refusal> {
        let client = match through {
            Through::Gateway(owner) => self.owner(owner).map(|gateway| gateway.client().clone()),
            Through::Backend => self.state.backend.clickhouse().map(|clickhouse| clickhouse.relay.clone()),
        };
        client.ok_or_else(|| Refusal::unreachable("there is none that is spoken to over HTTP"))
    }

    fn call<'c>(&self, posted: Posted<'_>, credentials: &'c Credentials, body: &'c [&'c [u8]]) -> Call<'c> {
        let Posted { context, query, additions, through, purpose, reads_own_tables: _ } = posted;
        let mut call = Call::new(credentials, "").body(body).timeout(SILENCE);
        // Windrow's own settings are for a Windrow.
        let takes = if through == Through::Backend { Receiver::ClickHouses } else { Receiver::Own };
        if let Through::Gateway(owner) = through {
            call = call
                .field(FIELD, &self.owner(owner).map_or(String::new(), |gateway| gateway.hop_value(self.back_after)));
        }
        call = context.options.add_to(call, takes);
        for (name, value) in additions {
            call = call.param(name, value);
        }
        let in_session = self.is_changed && takes == Receiver::ClickHouses;
        let database = &self.client.hello.database;
        // A session keeps the database that it began with, or that USE has named.
        if !(database.is_empty() || in_session && self.http_session_is_at.is_some()) {
            call = call.param("database", database);
        }
        if !query.id.is_empty() {
            call = call.param("query_id", &query.id);
        }
        let quota_key = self.quota_key(query);
        if !quota_key.is_empty() {
            call = call.param("quota_key", quota_key);
        }
        if in_session {
            call = call.param("session_id", &self.http_session).param("session_timeout", "3600");
            if self.http_session_is_at.is_some() {
                call = call.param("session_check", "1");
            }
        }
        if let Some(trace) = &query.trace {
            call = call.field("traceparent", &trace.traceparent(trace.flags)).field("tracestate", &trace.state);
        }
        let purpose = match (in_session, self.http_session_is_at) {
            (true, Some(replica)) => Purpose::InSession(replica),
            (true, None) => Purpose::InOrder,
            (false, _) => purpose,
        };
        let revision = self.client.revision.to_string();
        call.purpose(purpose).param("client_protocol_version", &revision).param("default_format", "Native")
    }

    fn owner(&self, owner: GatewayId) -> Option<&Arc<OtherGateway>> {
        self.state.cluster.as_ref().map(|cluster| cluster.gateway(owner))
    }

    /// Sends a statement whose answer is only whether it was executed.
    pub(super) async fn post(&mut self, posted: Posted<'_>, body: &[&[u8]]) -> Result<(), Refusal> {
        let state = self.state;
        if let (Backend::Sql(backend), Through::Backend) = (&state.backend, posted.through) {
            let ran = self.run_on_sql(&**backend, posted, &body.concat(), &Changes::default(), true).await;
            return ran.map_err(|failure| match failure {
                Failure::Refused(refusal) => refusal,
                Failure::Cancelled | Failure::Closed => Refusal::backend_lost("its client has gone"),
            });
        }
        let (client, credentials) = (self.http(posted.through)?, self.client.credentials.clone());
        let call = self.call(posted, &credentials, body);
        match posted.through {
            Through::Gateway(owner) => {
                let Some(gateway) = self.owner(owner).cloned() else {
                    return Err(Refusal::unreachable("it has no owner"));
                };
                let patience = patience(state, &posted.context.options);
                self.wire.until_done(gateway.post(state, patience, call)).await
            }
            Through::Backend => self.wire.until_done(client.call(call)).await.map(drop).map_err(Refusal::call),
        }
    }

    /// Returns a table as this session sees it.
    pub(super) async fn described_over_http(&self, query: &Query, table: &TableName) -> Option<TableSchema> {
        let database = table.database.iter().map(|database| windrow_sql::backquote(database) + ".");
        let name = database.collect::<String>() + &windrow_sql::backquote(&table.table);
        let statement = format!("DESCRIBE TABLE {name} FORMAT JSONCompactEachRow");
        let nameless = Query { id: String::new(), ..query.clone() };
        let body = [statement.as_bytes()];
        let context = StatementContext { options: StatementOptions::default(), ..self.context(&nameless) };
        let posted = Posted { purpose: Purpose::Question, ..Posted::new(&context, &nameless) };
        let answer =
            self.http(posted.through).ok()?.call(self.call(posted, &self.client.credentials, &body)).await.ok()?;
        Some(TableSchema::described(answer.text()))
    }

    /// Returns the packets that tell the client which columns it must send, for an insert that is not admitted.
    pub(super) async fn header_of_table(&self, sent: &SentInsert<'_>) -> Option<Vec<u8>> {
        let statement = sent.statement;
        let table = statement.table.resolve(|parameter| sent.context.options.query_parameter(parameter))?;
        let context = sent.context;
        let schema = match self.is_changed {
            // It may be a table of this session alone.
            true => Arc::new(self.described_over_http(sent.query, &table).await?),
            false => {
                let database = match &table.database {
                    Some(database) => database.clone(),
                    None => context.current_database().await,
                };
                let key = TableKey { database, table: table.table.clone() };
                self.state.admission.table(&key, &context.user_key).await.ok()?
            }
        };
        let targets = schema.target_columns(&table.table, statement.columns.as_deref(), &statement.except).ok()?;
        let columns: Vec<_> = targets.iter().map(|target| (target.name.as_str(), target.type_name.as_str())).collect();
        Some(self.header_with(sent, &schema.description(), &columns))
    }

    /// Sends an insert over HTTP, and tells the client its outcome.
    pub(super) async fn insert_over_http(
        &mut self,
        sent: &SentInsert<'_>,
        come: ReceivedRows,
        (additions, purpose): (&[(&'static str, &'static str)], Purpose),
        passage: Passage,
    ) -> Result<(), Closed> {
        let through = match passage {
            Passage::Elsewhere(owner) => Through::Gateway(owner),
            _ => Through::Backend,
        };
        let end = come.end.unwrap_or(sent.length);
        let statement = match sent.is_text {
            true => self.wire.input[sent.query.text.clone()].to_vec(),
            false => with_native_format(&self.wire.input[sent.query.text.clone()], sent.statement),
        };
        self.wire.consume(end);
        let pieces: [&[u8]; 3] = [&statement, b"\n", &come.payload];
        let pieces = if sent.is_text { &pieces[..1] } else { &pieces[..] };
        let posted = Posted { additions, through, purpose, ..Posted::new(sent.context, sent.query) };
        let stored = self.post(posted, pieces).await;
        // Before the client is told, who may have gone.
        self.state.conclude(passage, stored.is_ok()).await;
        match stored {
            Ok(()) => self.tell_success(sent.query, &Summary::default(), false).await,
            Err(refusal) => self.refuse(sent.query.is_compressed, &refusal).await,
        }
    }

    /// Takes a statement out of the input that has no tables beside it. Returns `None` if its client has been
    /// told why that can't be, or has cancelled the statement.
    async fn statement_alone(&mut self, query: &Query, length: usize) -> Result<Option<Vec<u8>>, Closed> {
        let refusal = || Refusal::statement(ErrorCode::NOT_IMPLEMENTED, NO_TABLES.to_owned());
        let (end, has_tables) = match self.tables_beside(query, length).await? {
            ExternalTables::Whole { end, has_tables } => (end, has_tables || query.stage != STAGE_COMPLETE),
            ExternalTables::Cancelled => return Ok(None),
            ExternalTables::Unreadable => {
                self.refuse(query.is_compressed, &refusal()).await?;
                return Err(Closed);
            }
        };
        let text = self.wire.input[query.text.clone()].to_vec();
        self.wire.consume(end);
        if has_tables {
            self.refuse(query.is_compressed, &refusal()).await?;
            return Ok(None);
        }
        Ok(Some(text))
    }

    /// Sends an insert without data of its own to its owner.
    pub(super) async fn statement_to_owner(&mut self, posted: Posted<'_>, length: usize) -> Result<(), Closed> {
        let query = posted.query;
        let Some(text) = self.statement_alone(query, length).await? else { return Ok(()) };
        match self.post(posted, &[&text]).await {
            Ok(()) => self.tell_success(query, &Summary::default(), false).await,
            Err(refusal) => self.refuse(query.is_compressed, &refusal).await,
        }
    }

    /// Runs a statement that is no insert, and passes its result on. Returns whether it was executed.
    pub(super) async fn forward_over_http(
        &mut self,
        posted: Posted<'_>,
        length: usize,
        changes: &Changes,
        passage: Passage,
    ) -> Result<bool, Closed> {
        let query = posted.query;
        // Over HTTP a write goes on when the one who asked has gone: what came of it has to be known all the same.
        let has_to_be_known = changes.any() || changes.session || matches!(passage, Passage::Claimed(_));
        let Some(text) = self.statement_alone(query, length).await? else { return Ok(false) };
        let text = without_format(&text);
        let state = self.state;
        let ran = match &state.backend {
            Backend::ClickHouse(_) => self.run_over_http(posted, text, changes, has_to_be_known).await,
            Backend::Sql(backend) => self.run_on_sql(&**backend, posted, text, changes, has_to_be_known).await,
        };
        // Before the client is told, who may have gone.
        self.state.conclude(passage, ran.is_ok()).await;
        match ran {
            Ok(()) => self.answer(query.is_compressed, |answer| answer.end_of_stream()).await.map(|()| true),
            Err(Failure::Refused(refusal)) => self.refuse(query.is_compressed, &refusal).await.map(|()| false),
            Err(Failure::Cancelled) => {
                self.answer(query.is_compressed, |answer| answer.end_of_stream()).await.map(|()| false)
            }
            Err(Failure::Closed) => Err(Closed),
        }
    }

    async fn run_over_http(
        &mut self,
        posted: Posted<'_>,
        text: &[u8],
        changes: &Changes,
        has_to_be_known: bool,
    ) -> Result<(), Failure> {
        let (client, query) = (self.http(posted.through).map_err(Failure::Refused)?, posted.query);
        let credentials = self.client.credentials.clone();
        let with_tables = match posted.reads_own_tables {
            true => own_tables::beside(self.state, text, &self.client.hello.database, &credentials).await,
            false => None,
        };
        let body = [with_tables.as_ref().map_or(text, |with| &with.form.body)];
        let mut call = self.call(posted, &credentials, &body);
        if let Some(with) = &with_tables {
            call = with.params().fold(call, |call, (name, value)| call.param(&name, value));
            call = call.field("Content-Type", &with.form.content_type);
        }
        let begun = wait_for(&mut self.wire, has_to_be_known, client.begin(&call)).await;
        if let Err(_) | Ok(Err(CallError::Unknown(_))) = &begun {
            // It may have been done.
            self.state.have_changed(changes).await;
        }
        let begun = begun?.map_err(|error| Failure::Refused(Refusal::call(error)))?;
        let Begun { mut lease, head } = begun;
        if self.is_changed && posted.through == Through::Backend {
            self.http_session_is_at = Some(lease.replica());
        }
        self.state.have_changed(changes).await;
        let is_native = head.field_str("x-clickhouse-format").is_none_or(|format| format == "Native");
        let mut blocks = Blocks::new(self.client.revision, query.is_compressed);
        {
            let mut body = lease.connection().body(&head);
            loop {
                let next = wait_for(&mut self.wire, has_to_be_known, body.next(SILENCE)).await?;
                let next = next.map_err(|error| {
                    // An error behind rows is written without an end.
                    let lost = || Refusal::backend_lost(&error.to_string());
                    Failure::Refused(blocks.exception().unwrap_or_else(lost))
                })?;
                let Some(bytes) = next else { break };
                if !is_native {
                    let text = "A result in another format than Native needs the backend's native port";
                    return Err(Failure::Refused(Refusal::statement(ErrorCode::NOT_IMPLEMENTED, text.to_owned())));
                }
                blocks.take(&bytes).map_err(Failure::Refused)?;
                if !blocks.out.is_empty() {
                    self.wire.send(&blocks.out).await.map_err(|_| Failure::Closed)?;
                    blocks.out.clear();
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
        Ok(())
    }
}

/// Returns the statement with FORMAT Native in place of anything behind its table, columns and settings.
fn with_native_format(text: &[u8], statement: &InsertStatement) -> Vec<u8> {
    let start = String::from_utf8_lossy(&text[..statement.data_start.min(text.len())]);
    let start = start.trim_end_matches(|char: char| char.is_whitespace() || char == ';');
    let upper = start.to_ascii_uppercase();
    let kept = match upper.strip_suffix("VALUES") {
        Some(kept) => kept.len(),
        None => upper.rfind("FORMAT").unwrap_or(upper.len()),
    };
    format!("{} FORMAT Native", &start[..kept]).into_bytes()
}

/// Returns a client's statement without a FORMAT at its end: native clients write their results in it themselves.
fn without_format(text: &[u8]) -> &[u8] {
    let Ok(statement) = std::str::from_utf8(text) else { return text };
    let tokens = tokens(Dialect::ClickHouse, statement);
    let behind = tokens.iter().rposition(|token| token.bytes(text) != b";").map_or(0, |last| last + 1);
    match &tokens[..behind] {
        [.., before, format, name]
            if format.is_keyword(text, "FORMAT") && name.kind == TokenKind::Word && before.bytes(text) != b"." =>
        {
            &text[..format.start]
        }
        _ => text,
    }
}

/// Blocks one after the other, which become packets.
pub(crate) struct Blocks {
    reader: BlockReader,
    is_compressed: bool,
    /// Bytes that have come and are not read yet.
    input: Vec<u8>,
    /// The block that is coming in.
    block: Vec<u8>,
    scratch: Vec<u8>,
    inside: bool,
    /// Packets for the client.
    pub(crate) out: Vec<u8>,
}

impl Blocks {
    pub(crate) fn new(revision: u64, is_compressed: bool) -> Blocks {
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

    pub(crate) fn take(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
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

    /// Returns the error that came behind rows, if there is one.
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
    Refusal::statement(ErrorCode::NOT_IMPLEMENTED, text)
}
