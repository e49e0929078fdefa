//! One request: is it gathered, answered here, or forwarded?

use std::sync::Arc;

use bytes::Bytes;
use windrow_client::{push_param, Credentials, Exception};
use windrow_compression::Encoding;
use windrow_gatherer::TableName;
use windrow_http::{BodyFraming, Connection, Method, RequestHead};
use windrow_statement::{
    classify, classify_prefix, own_table_references, without_system_prefix, InsertStatement, OtherStatement,
    OwnTableUse, Statement,
};

use super::answer::{self, After, Summary};
use super::body::{Read, ReadError};
use super::claim::{claim_for_forwarded, claim_for_insert, NotClaimed};
use super::forward::{relay, ForwardError, Forwarded, ForwardedBody};
use super::gather::{
    log_unreadable, make_ready, query_id, random_query_id, read as read_prepared, store, Candidate, Gathered,
    NotGathered, Origin,
};
use super::known_heads::Latest;
use super::own_tables::{self, Visible};
use super::request::{caller, Caller, Request};
use super::serve::State;
use super::sessions::SessionKey;
use super::text::Text;
use crate::error::Refusal;
use crate::insert::{role, Prepared, Role};

/// A statement other than an INSERT fits into this; ClickHouse's own limit (`max_query_size`) is the same.
const MAX_STATEMENT_BYTES: usize = 256 * 1024;

struct Exchange<'a> {
    state: &'a Arc<State>,
    request: Request<'a>,
    caller: Caller,
    origin: Origin,
}

/// What is to be done with a request.
enum Plan {
    Gather { statement: InsertStatement, text: Text },
    Flush(Vec<windrow_statement::TableName>),
    Forward { reason: &'static str, statement: Option<OtherStatement>, text: Option<Text> },
    Refuse(Refusal),
}

/// Serves one request, whose head has been read.
pub(crate) async fn exchange(
    state: &Arc<State>,
    connection: &mut Connection,
    head: &RequestHead,
    origin: Origin,
    latest: &mut Latest,
    out: &mut Vec<u8>,
) -> After {
    let mut read = Read::nothing();
    if let Some(prepared) = state.known_heads.get(head, latest, &state.prepared, origin.arrived) {
        match repeat(state, connection, head, prepared, origin, &mut read, out).await {
            Repeated::Answered(after) => return after,
            Repeated::Differs => {}
        }
    }
    let request = Request::new(head);
    let caller = caller(request.identity(), state.options.default_user.as_ref());
    let exchange = Exchange { state, request, caller, origin };
    let plan = match exchange.plan(connection, &mut read).await {
        Ok(plan) => plan,
        Err(ReadError::NoRoom) => Plan::Refuse(Refusal::too_busy(
            "Windrow holds as many request bodies as it may. Nothing was stored; try again later".into(),
        )),
        // The client did not send what it announced; there is nobody to answer.
        Err(ReadError::Body) => return After::Close,
    };
    match plan {
        Plan::Refuse(refusal) => exchange.refuse(connection, out, &refusal).await,
        Plan::Flush(tables) => exchange.flush(connection, out, tables, read).await,
        Plan::Forward { reason, statement, text } => {
            exchange.forward(connection, out, reason, statement.as_ref(), text, read).await
        }
        Plan::Gather { statement, text } => exchange.gather(connection, out, statement, text, read).await,
    }
}

enum Repeated {
    Answered(After),
    /// Something about the body needs the long way; what has been read of it is kept.
    Differs,
}

/// An insert whose head was seen before: only its body has to be looked at.
async fn repeat(
    state: &Arc<State>,
    connection: &mut Connection,
    head: &RequestHead,
    prepared: Arc<Prepared>,
    origin: Origin,
    read: &mut Read,
    out: &mut Vec<u8>,
) -> Repeated {
    let Ok((mut body, _)) = connection.body().await else { return Repeated::Answered(After::Close) };
    match state.body_room.read(&mut body, MAX_STATEMENT_BYTES).await {
        Ok(bytes) => *read = bytes,
        Err(ReadError::Body) => return Repeated::Answered(After::Close),
        Err(ReadError::NoRoom) => return Repeated::Differs,
    }
    if !read.whole {
        return Repeated::Differs;
    }
    let Ok(ready) = read_prepared(state, prepared, &read.bytes, random_query_id()) else { return Repeated::Differs };
    // While the insert waits, its bytes are not needed any more.
    *read = Read::nothing();
    let facts = state.admission.facts.get();
    let after = match store(state, ready, origin).await {
        Gathered::Done { query_id, summary } => answer::success(out, head, connection, &facts, &query_id, summary),
        Gathered::Refused(refusal) => {
            state.metrics.error(refusal.code);
            answer::refusal(out, &Request::new(head), connection, &facts, &refusal)
        }
    };
    Repeated::Answered(send(connection, out, after).await)
}

impl Exchange<'_> {
    fn credentials(&self) -> Option<&Credentials> {
        match &self.caller {
            Caller::Itself(credentials) | Caller::Default(credentials) => Some(credentials),
            Caller::WrongPassword | Caller::Unclear => None,
        }
    }

    /// Reads as much of the body as it takes to know what the request is.
    async fn plan(&self, connection: &mut Connection, read: &mut Read) -> Result<Plan, ReadError> {
        let untouched = |reason| Ok(Plan::Forward { reason, statement: None, text: None });
        if let Caller::WrongPassword = self.caller {
            return Ok(Plan::Refuse(wrong_password()));
        }
        let without_body = self.request.head.framing() == BodyFraming::None;
        if without_body && self.request.query().is_empty() {
            return untouched("not_a_query");
        }
        if self.request.path != "/" || self.request.is_multipart() {
            return Ok(self.by_its_url("not_a_query"));
        }
        if !self.request.is_post() {
            let statement = other(classify(self.request.query()));
            let text = without_body.then(|| self.text(&Bytes::new(), true));
            let reason = if without_body { "read" } else { "unclear" };
            return Ok(Plan::Forward { reason, statement: statement.filter(|_| without_body), text });
        }
        let encoding = match self.encoding() {
            Ok(encoding) => encoding,
            Err(()) => return Ok(self.by_its_url("encoding")),
        };
        let (mut body, _) = connection.body().await.map_err(|_| ReadError::Body)?;
        let room = &self.state.body_room;
        if !read.has_begun() {
            *read = room.read(&mut body, MAX_STATEMENT_BYTES).await?;
        }
        let gathered_limit = self.state.options.settings.http.max_body_bytes_gathered;
        // What is compressed shows itself only as a whole.
        let wants_more = !read.whole && (encoding.is_some() || self.begins_insert(&read.bytes));
        if wants_more {
            *read = room.read_on(&mut body, std::mem::replace(read, Read::nothing()), gathered_limit).await?;
        }
        let decoded = match encoding {
            None => read.bytes.clone(),
            Some(_) if !read.whole => return untouched("too_large"),
            Some(encoding) => match self.decompress(encoding, &read.bytes) {
                Ok(decoded) => decoded,
                Err(()) => return Ok(self.by_its_url("encoding")),
            },
        };
        let text = self.text(&decoded, read.whole);
        Ok(match text.classify() {
            Statement::Insert(_) if !text.whole => Plan::Forward { reason: "too_large", statement: None, text: None },
            Statement::Insert(statement) => Plan::Gather { statement, text },
            Statement::SystemFlushAsyncInsertQueue { tables } => Plan::Flush(tables),
            Statement::Other(statement) => {
                let reason = if statement.insert_form.is_some() { "insert_form" } else { "other_statement" };
                Plan::Forward { reason, statement: Some(statement), text: Some(text) }
            }
            Statement::Incomplete => Plan::Forward { reason: "unclear", statement: None, text: None },
        })
    }

    /// A request whose body is not looked into. What it may change shows in its URL, if the statement stands there.
    fn by_its_url(&self, reason: &'static str) -> Plan {
        match classify_prefix(&self.text(&Bytes::new(), false).head) {
            Statement::Insert(_) => Plan::Forward { reason, statement: None, text: None },
            Statement::Other(statement) => Plan::Forward { reason, statement: Some(statement), text: None },
            Statement::SystemFlushAsyncInsertQueue { .. } | Statement::Incomplete => {
                Plan::Forward { reason: "unclear", statement: None, text: None }
            }
        }
    }

    fn begins_insert(&self, body: &Bytes) -> bool {
        matches!(self.text(body, false).classify(), Statement::Insert(_))
    }

    /// How the body is compressed; an error for ways that aren't understood here.
    fn encoding(&self) -> Result<Option<Encoding>, ()> {
        let declared = self.request.head.field_str("content-encoding").filter(|name| !name.is_empty());
        match (declared, self.request.flag("decompress")) {
            (None, false) => Ok(None),
            (None, true) => Ok(Some(Encoding::ClickHouse)),
            (Some(name), false) => Encoding::from_content_encoding(name).map(Some).ok_or(()),
            (Some(_), true) => Err(()),
        }
    }

    fn decompress(&self, encoding: Encoding, bytes: &Bytes) -> Result<Bytes, ()> {
        const LARGE_BYTES: usize = 64 * 1024;
        if bytes.is_empty() {
            return Ok(Bytes::new());
        }
        let limit = self.state.options.settings.http.max_decompressed_bytes;
        let decompress = || windrow_compression::decompress(encoding, bytes, limit).map(Bytes::from).map_err(|_| ());
        match bytes.len() > LARGE_BYTES {
            true => tokio::task::block_in_place(decompress),
            false => decompress(),
        }
    }

    fn text(&self, body: &Bytes, whole: bool) -> Text {
        Text::new(self.request.query(), body, whole)
    }

    async fn gather(
        &self,
        connection: &mut Connection,
        out: &mut Vec<u8>,
        statement: InsertStatement,
        text: Text,
        read: Read,
    ) -> After {
        let Some(credentials) = self.credentials() else {
            return self.forward(connection, out, "credentials", None, None, read).await;
        };
        let candidate = Candidate {
            request: &self.request,
            credentials,
            head: &text.statement(statement.head_end),
            payload: &text.data(statement.data_start),
            payload_is_body: statement.data_start == text.head.len()
                && self.request.head.field("content-encoding").is_none(),
            statement,
        };
        let ready = match make_ready(self.state, candidate).await {
            Ok(ready) => ready,
            Err(reason) => return self.not_gathered(connection, out, reason, read).await,
        };
        let claim = match claim_for_insert(self.state, &self.request, credentials).await {
            Ok(claim) => claim,
            Err(NotClaimed::Forward) => {
                return self.forward(connection, out, "query_id", None, None, read).await;
            }
            Err(NotClaimed::Refused(refusal)) => return self.refuse(connection, out, &refusal).await,
        };
        // While the insert waits, its bytes are not needed any more.
        drop((text, read));
        let gathered = store(self.state, ready, self.origin).await;
        // Who has its answer may use its id again.
        drop(claim);
        match gathered {
            Gathered::Done { query_id, summary } => {
                let facts = self.state.admission.facts.get();
                let after = answer::success(out, self.request.head, connection, &facts, &query_id, summary);
                send(connection, out, after).await
            }
            Gathered::Refused(refusal) => self.refuse(connection, out, &refusal).await,
        }
    }

    async fn not_gathered(
        &self,
        connection: &mut Connection,
        out: &mut Vec<u8>,
        why: NotGathered,
        read: Read,
    ) -> After {
        match why {
            NotGathered::Refused(refusal) => self.refuse(connection, out, &refusal).await,
            NotGathered::Forward(reason) => self.forward(connection, out, reason, None, None, read).await,
            NotGathered::NotRead { reason, prepared, query_id } => {
                let _claim = match claim_for_forwarded(self.state, &self.request, self.credentials()).await {
                    Ok(claim) => claim,
                    Err(refusal) => return self.refuse(connection, out, &refusal).await,
                };
                self.state.metrics.forwarded(reason);
                let payload_bytes = read.bytes.len() as u64;
                let mut forwarded = self.untouched(read.bytes.clone());
                if self.request.query_id().is_none() {
                    // The log is to name the id that the client is told.
                    forwarded.with.push(("X-ClickHouse-Query-Id", query_id.to_string()));
                }
                let (after, exception) = self.relay(connection, out, forwarded).await;
                if let Some(exception) = exception {
                    log_unreadable(self.state, &prepared, query_id, payload_bytes, exception);
                }
                after
            }
        }
    }

    async fn refuse(&self, connection: &mut Connection, out: &mut Vec<u8>, refusal: &Refusal) -> After {
        self.state.metrics.error(refusal.code);
        let facts = self.state.admission.facts.get();
        let after = answer::refusal(out, &self.request, connection, &facts, refusal);
        send(connection, out, after).await
    }

    /// `SYSTEM FLUSH ASYNC INSERT QUEUE`. A backend with a queue of its own is told as well.
    async fn flush(
        &self,
        connection: &mut Connection,
        out: &mut Vec<u8>,
        tables: Vec<windrow_statement::TableName>,
        read: Read,
    ) -> After {
        let Some(credentials) = self.credentials() else {
            return self.forward(connection, out, "credentials", None, None, read).await;
        };
        let privilege = "SYSTEM FLUSH ASYNC INSERT QUEUE ON *.*";
        if !self.state.admission.is_granted(credentials, privilege).await.unwrap_or(false) {
            return self.forward(connection, out, "refused", None, None, read).await;
        }
        let database = self.current_database(credentials).await;
        let names: Vec<TableName> = tables
            .into_iter()
            .map(|name| TableName { database: name.database.unwrap_or_else(|| database.clone()), table: name.table })
            .collect();
        self.state.gatherer.flush((!names.is_empty()).then_some(names.as_slice())).await;
        if self.state.options.default_user.is_none() {
            return self.forward(connection, out, "other_statement", None, None, read).await;
        }
        let facts = self.state.admission.facts.get();
        let id = query_id(&self.request);
        let after = answer::success(out, self.request.head, connection, &facts, &id, Summary::default());
        send(connection, out, after).await
    }

    async fn current_database(&self, credentials: &Credentials) -> String {
        let key = self.request.user_key(credentials);
        self.state.admission.user(key).await.map_or_else(|_| "default".to_owned(), |user| user.database.clone())
    }

    async fn forward(
        &self,
        connection: &mut Connection,
        out: &mut Vec<u8>,
        reason: &'static str,
        statement: Option<&OtherStatement>,
        text: Option<Text>,
        read: Read,
    ) -> After {
        let _claim = match claim_for_forwarded(self.state, &self.request, self.credentials()).await {
            Ok(claim) => claim,
            // No query begins there, so an id is nobody's.
            Err(_) if reason == "not_a_query" => None,
            Err(refusal) => return self.refuse(connection, out, &refusal).await,
        };
        self.state.metrics.forwarded(reason);
        let changes = Changes::of(statement, reason);
        let newly_marked = if changes.session { self.mark_session() } else { None };
        if changes.learnt {
            self.state.forget_what_was_learnt();
        }
        let forwarded = match text {
            Some(text) if text.whole => self.with_own_tables(text).await,
            _ => None,
        };
        let forwarded = forwarded.unwrap_or_else(|| self.untouched(read.bytes.clone()));
        let (after, exception) = self.relay(connection, out, forwarded).await;
        if let (Some(session), Some(true)) =
            (newly_marked, exception.map(|exception| is_about_identity(exception.code)))
        {
            self.state.sessions.unmark(session);
        }
        if changes.learnt {
            // Between the two, somebody may have been told the old state.
            self.state.forget_what_was_learnt();
        }
        after
    }

    /// Marks the request's session before the statement runs, so that no insert behind it is taken too early.
    fn mark_session(&self) -> Option<SessionKey> {
        let session_id = self.request.param_str("session_id").filter(|id| !id.is_empty())?;
        let key = self.state.sessions.key(&self.credentials()?.user, session_id);
        self.state.sessions.mark_changed(key).then_some(key)
    }

    /// Sends the request on and its answer back; returns also what the backend refused it with.
    async fn relay(
        &self,
        connection: &mut Connection,
        out: &mut Vec<u8>,
        forwarded: Forwarded<'_>,
    ) -> (After, Option<Exception>) {
        let after = answer::after(self.request.head, connection);
        let authority = self.state.relay.endpoint().authority();
        let write_idle = connection.limits().write_idle_timeout;
        let fields = connection_fields(after, connection);
        let result = match self.state.relay.connection().await {
            Err(error) => Err(ForwardError::NotSent(error)),
            Ok(lease) => match connection.body().await {
                Err(_) => Err(ForwardError::Broken),
                Ok((body, client)) => relay(lease, &authority, forwarded, body, client, &fields, write_idle).await,
            },
        };
        match result {
            Ok(relayed) => (if relayed.keep_alive { after } else { After::Close }, relayed.exception),
            Err(ForwardError::Broken) => (After::Close, None),
            Err(ForwardError::NotSent(error)) => {
                (self.refuse(connection, out, &Refusal::unreachable(&error.to_string())).await, None)
            }
            Err(ForwardError::NoAnswer(cause)) => {
                self.refuse(connection, out, &Refusal::backend_lost(&cause)).await;
                (After::Close, None)
            }
        }
    }

    /// The request as it came, but for whom it is from on the embedded ClickHouse, and for settings that only we know.
    fn untouched(&self, start: Bytes) -> Forwarded<'_> {
        let head = self.request.head;
        let (without, with) = self.credential_fields();
        Forwarded {
            head,
            method: head.method().clone(),
            target: self.target(|_| true),
            without,
            with,
            body: ForwardedBody::Clients { start },
            cancel_on_close: self.cancels_on_close(),
        }
    }

    fn cancels_on_close(&self) -> bool {
        self.request.flag("cancel_http_readonly_queries_on_client_close")
    }

    /// The target with those parameters that `keep` names.
    fn target(&self, keep: impl Fn(&str) -> bool) -> String {
        let replaced = matches!(self.caller, Caller::Default(_));
        let ours = |name: &str| role(name) == Role::Windrow || (replaced && matches!(name, "user" | "password"));
        if self.request.params.iter().all(|param| keep(param.name()) && !ours(param.name())) {
            return self.request.head.target().to_owned();
        }
        let mut target = String::with_capacity(self.request.head.target().len());
        target.push_str(self.request.path);
        let mut separator = '?';
        for param in &self.request.params {
            let name = param.name();
            if !ours(name) && keep(name) {
                target.push(separator);
                target.push_str(param.raw);
                separator = '&';
            }
        }
        target
    }

    fn credential_fields(&self) -> (&'static [&'static str], Vec<(&'static str, String)>) {
        let Caller::Default(credentials) = &self.caller else { return (&[], Vec::new()) };
        let with =
            vec![("X-ClickHouse-User", credentials.user.clone()), ("X-ClickHouse-Key", credentials.password.clone())];
        (&["authorization", "x-clickhouse-user", "x-clickhouse-key"], with)
    }

    /// A statement that reads our system tables, with the tables beside it; `None` if it doesn't, or may not.
    async fn with_own_tables(&self, text: Text) -> Option<Forwarded<'_>> {
        if !matches!(self.request.head.method(), Method::Get | Method::Post) {
            return None;
        }
        let (bytes, database) = (text.joined(), self.request.database().unwrap_or(""));
        let own = own_table_references(&bytes, database, &own_tables::NAMES);
        let credentials = self.credentials()?;
        if own.references.is_empty() || own.usage != OwnTableUse::Reads {
            return None;
        }
        let admission = &self.state.admission;
        let sees_all = admission.is_granted(credentials, "SHOW USERS ON *.*").await.ok()?;
        let visible = if sees_all { Visible::Everybodys } else { Visible::Only(&credentials.user) };
        let hostname = admission.facts.get().display_name().to_owned();
        let mut names: Vec<&str> = own.references.iter().map(|reference| reference.table.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let mut tables = Vec::new();
        for name in names {
            if !admission.is_granted(credentials, &format!("SELECT ON system.{name}")).await.ok()? {
                return None;
            }
            tables.extend(own_tables::external_table(name, &self.state.gatherer, &visible, &hostname));
        }
        let form = own_tables::form(&without_system_prefix(&bytes, &own), &tables);
        let mut target = self.target(|name| !matches!(name, "query" | "decompress"));
        own_tables::describe(&mut target, &tables);
        if !self.request.is_post() && self.request.param("readonly").is_none() {
            // What came by GET may not write, and a form can only be posted.
            push_param(&mut target, "readonly", "2");
        }
        let (_, mut with) = self.credential_fields();
        with.push(("Content-Type", form.content_type));
        Some(Forwarded {
            head: self.request.head,
            method: Method::Post,
            target,
            without: match self.caller {
                Caller::Default(_) => {
                    &["authorization", "x-clickhouse-user", "x-clickhouse-key", "content-type", "content-encoding"]
                }
                _ => &["content-type", "content-encoding"],
            },
            with,
            body: ForwardedBody::Replaced(form.body.into()),
            cancel_on_close: self.cancels_on_close(),
        })
    }
}

fn other(statement: Statement) -> Option<OtherStatement> {
    match statement {
        Statement::Other(statement) => Some(statement),
        _ => None,
    }
}

/// What a forwarded statement may change, as far as gathering is concerned.
struct Changes {
    session: bool,
    learnt: bool,
}

impl Changes {
    fn of(statement: Option<&OtherStatement>, reason: &str) -> Changes {
        match statement {
            Some(statement) => Changes {
                session: statement.changes_session(),
                learnt: statement.is_ddl() || statement.changes_access(),
            },
            // Not looked into: it could be anything. An insert that came here changes neither.
            None => {
                let could_be_anything = reason == "unclear";
                Changes { session: could_be_anything, learnt: could_be_anything }
            }
        }
    }
}

fn wrong_password() -> Refusal {
    let text = "default: Authentication failed: password is incorrect, or there is no user with such name.";
    Refusal::authentication(text)
}

fn connection_fields(after: After, connection: &Connection) -> Vec<u8> {
    match after {
        After::Close => b"Connection: Close\r\n".to_vec(),
        After::KeepAlive => {
            let (seconds, left) = (connection.limits().keep_alive_timeout.as_secs(), connection.requests_left());
            format!("Connection: Keep-Alive\r\nKeep-Alive: timeout={seconds}, max={left}\r\n").into_bytes()
        }
    }
}

/// The statement was refused for who sent it, so it changed nothing.
fn is_about_identity(code: i32) -> bool {
    matches!(code, 192 | 193 | 194 | 516)
}

async fn send(connection: &mut Connection, out: &[u8], after: After) -> After {
    match connection.send(out).await {
        Ok(()) => after,
        Err(_) => After::Close,
    }
}
