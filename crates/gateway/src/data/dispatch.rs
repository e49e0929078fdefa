//! One request: is it gathered, answered here, or forwarded?

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::OnceCell;
use windrow_client::{CallError, Credentials, Exception};
use windrow_compression::{DecompressError, Encoding};
use windrow_engine::{QueryId, TableName};
use windrow_http::{BodyFraming, Connection, RequestHead};
use windrow_statement::{classify, classify_prefix, InsertOutline, InsertStatement, OtherStatement, Statement};

use super::answer::{After, Answering, Summary};
use super::appends::is_of_appends;
use super::body::{Read, ReadError};
use super::claim::{claim_for_forwarded, claim_for_insert, NotClaimed};
use super::duckdb::is_for_anyone;
use super::forwarding::{Cause, Changes};
use super::gather::{
    log_unreadable, make_ready, query_id, random_query_id, read as read_prepared, store, Candidate, NotGathered, Origin,
};
use super::known_heads::Latest;
use super::progress::Progress;
use super::request::{caller, caller_among, Caller, Request};
use super::serve::State;
use super::strangers::{Peer, Sender, Strange};
use super::text::Text;
use crate::admission::{Moment, UNKNOWN_USER};
use crate::backend::Backend;
use crate::error::Refusal;
use crate::insert::{role, unreadable, AnswerForm, Prepared, Role};

/// A statement other than an INSERT fits into this; ClickHouse's own limit (`max_query_size`) is the same.
const MAX_STATEMENT_BYTES: usize = 256 * 1024;

pub(super) struct Exchange<'a> {
    pub(super) state: &'a Arc<State>,
    pub(super) request: Request<'a>,
    pub(super) caller: Caller,
    pub(super) peer: &'a Peer,
    pub(super) sender: OnceCell<Sender>,
    origin: Origin,
}

/// What is to be done with a request.
pub(super) enum Plan {
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
    (origin, peer): (Origin, &Peer),
    latest: &mut Latest,
    out: &mut Vec<u8>,
) -> After {
    let mut read = Read::nothing();
    let mut has_room = true;
    if let Some(prepared) = state.known_heads.get(head, latest, &state.admission, Moment::of(origin.arrived)) {
        peer.permit.is_of_user();
        match repeat(state, connection, head, prepared, origin, &mut read, out).await {
            Repeated::Answered(after) => return after,
            Repeated::Differs => {}
            Repeated::NoRoom => has_room = false,
        }
    }
    let request = Request::new(head);
    let caller = match state.backend.duckdb() {
        None => caller(request.identity(), state.options.default_user.as_ref()),
        Some(backend) => caller_among(request.identity(), &backend.users),
    };
    let exchange = Exchange { state, request, caller, peer, sender: OnceCell::new(), origin };
    if state.backend.duckdb().is_some() && exchange.credentials().is_some() {
        // The gateway has looked at the password itself.
        peer.permit.is_of_user();
    }
    if let Some(backend) = state.backend.duckdb().filter(|_| is_for_anyone(&exchange.request)) {
        return exchange.answer_anyone(backend, connection, out).await;
    }
    if is_of_appends(exchange.request.path) {
        return exchange.append(connection, out).await;
    }
    let plan = match has_room {
        true => exchange.plan(connection, &mut read).await,
        false => Err(ReadError::NoRoom),
    };
    let plan = match plan {
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
            let insert = exchange.outline(text.as_ref());
            let cause = Cause { reason, statement: statement.as_ref(), text, insert };
            exchange.forward(connection, out, cause, read).await
        }
        Plan::Gather { statement, text } => exchange.gather(connection, out, statement, text, read).await,
    }
}

/// An insert that is not gathered, before it is decided what becomes of it.
struct Pending {
    stripping: Option<Text>,
    insert: Option<InsertOutline>,
    text: Text,
    /// Where the insert's data begins in the text.
    data_start: usize,
    read: Read,
}

enum Repeated {
    Answered(After),
    /// Something about the body needs the long way; what has been read of it is kept.
    Differs,
    /// There is no room for the body, of which a part has been read.
    NoRoom,
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
        Err(ReadError::NoRoom) => return Repeated::NoRoom,
    }
    if !read.whole {
        return Repeated::Differs;
    }
    let Ok(ready) = read_prepared(state, prepared, &read.bytes, random_query_id(), None) else {
        return Repeated::Differs;
    };
    if ready.is_doubtful() {
        return Repeated::Differs;
    }
    // While the insert waits, its bytes are not needed any more.
    *read = Read::nothing();
    let facts = state.admission.facts.get();
    let form = ready.form();
    let mut progress = Progress::new(connection, form.progress_interval, origin.arrived);
    let gathered = store(state, ready, origin, &mut progress).await;
    let head_begun = progress.head_begun();
    let answering = Answering { head, connection, facts: &facts, form, head_begun };
    let after = match gathered.outcome {
        Ok(summary) => answering.success(out, &gathered.query_id, summary),
        Err(refusal) => {
            state.metrics.error(refusal.code);
            answering.refusal(out, &Request::new(head), Some(&gathered.query_id), &refusal)
        }
    };
    Repeated::Answered(send(connection, out, after).await)
}

impl Exchange<'_> {
    pub(super) fn credentials(&self) -> Option<&Credentials> {
        match &self.caller {
            Caller::Itself(credentials) | Caller::Default(credentials) => Some(credentials),
            Caller::WrongPassword { .. } | Caller::Unclear => None,
        }
    }

    /// Reads as much of the body as it takes to know what the request is.
    async fn plan(&self, connection: &mut Connection, read: &mut Read) -> Result<Plan, ReadError> {
        let untouched = |reason| Ok(Plan::Forward { reason, statement: None, text: None });
        if let Caller::WrongPassword { user } = &self.caller {
            return Ok(Plan::Refuse(Refusal::wrong_password(user)));
        }
        let without_body = matches!(self.request.head.framing(), BodyFraming::None | BodyFraming::Length(0));
        if without_body && self.request.query().is_empty() {
            return untouched("not_a_query");
        }
        if self.request.path != "/" || self.request.is_multipart() {
            let strangers = if without_body { None } else { self.plan_for_stranger("not_a_query").await };
            return Ok(strangers.unwrap_or_else(|| self.by_its_url("not_a_query")));
        }
        if !self.request.is_post() {
            let strangers = if without_body { None } else { self.plan_for_stranger("unclear").await };
            if let Some(plan) = strangers {
                return Ok(plan);
            }
            let statement = other(classify(self.request.query()));
            let text = without_body.then(|| self.text(&Bytes::new(), true));
            let reason = if without_body { "read" } else { "unclear" };
            return Ok(Plan::Forward { reason, statement: statement.filter(|_| without_body), text });
        }
        let encoding = match self.encoding() {
            Ok(encoding) => encoding,
            Err(()) => {
                let strangers = self.plan_for_stranger("encoding").await;
                return Ok(strangers.unwrap_or_else(|| self.by_its_url("encoding")));
            }
        };
        let (mut body, _) = connection.body().await.map_err(|_| ReadError::Body)?;
        let room = &self.state.body_room;
        if !read.has_begun() {
            *read = self.peer.permit.wait_for(room.begin(&mut body)).await.ok_or(ReadError::Body)??;
            let is_all = read.whole && (encoding.is_none() || read.bytes.is_empty());
            if !is_all {
                if let Some(plan) = self.plan_for_stranger("credentials").await {
                    return Ok(plan);
                }
            }
            *read = room.read_on(&mut body, std::mem::replace(read, Read::nothing()), MAX_STATEMENT_BYTES).await?;
        }
        let gathered_limit = self.max_gathered_bytes();
        // What is compressed shows itself only as a whole.
        let wants_more = !read.whole && (encoding.is_some() || self.begins_insert(&read.bytes));
        if wants_more {
            *read = room.read_on(&mut body, std::mem::replace(read, Read::nothing()), gathered_limit).await?;
        }
        let decoded = match encoding {
            None => read.bytes.clone(),
            Some(_) if !read.whole => return untouched("too_large"),
            Some(encoding) => match self.decompress(encoding, read).await? {
                Ok(decoded) => decoded,
                Err(_) => return Ok(self.by_its_url("encoding")),
            },
        };
        let text = self.text(&decoded, read.whole);
        Ok(match text.classify() {
            Statement::Insert(_) if !text.whole => {
                Plan::Forward { reason: "too_large", statement: None, text: Some(text) }
            }
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
    pub(super) fn by_its_url(&self, reason: &'static str) -> Plan {
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

    pub(super) fn is_compressed(&self) -> bool {
        !matches!(self.encoding(), Ok(None))
    }

    async fn decompress(
        &self,
        encoding: Encoding,
        read: &mut Read,
    ) -> Result<Result<Bytes, DecompressError>, ReadError> {
        const LARGE_BYTES: usize = 64 * 1024;
        if read.bytes.is_empty() {
            return Ok(Ok(Bytes::new()));
        }
        let limit = self.max_decompressed_bytes();
        let unpack = |bytes: &Bytes, max_bytes| {
            let decompress = || windrow_compression::decompress(encoding, bytes, max_bytes).map(Bytes::from);
            match bytes.len() > LARGE_BYTES {
                true => tokio::task::block_in_place(decompress),
                false => decompress(),
            }
        };
        self.state.body_room.unpack(read, limit, unpack).await
    }

    /// The longest body of an insert that is read. A ClickHouse takes longer ones; DuckDB gets none past the gateway.
    fn max_gathered_bytes(&self) -> usize {
        match self.state.backend {
            Backend::ClickHouse(_) => self.state.options.settings.get().http.max_body_bytes_gathered,
            Backend::DuckDb(_) => usize::try_from(self.state.max_table_bytes()).unwrap_or(usize::MAX),
        }
    }

    fn max_decompressed_bytes(&self) -> usize {
        match self.state.backend {
            Backend::ClickHouse(_) => self.state.options.settings.get().http.max_decompressed_bytes,
            Backend::DuckDb(_) => self.max_gathered_bytes(),
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
        // For the backend, should it come to that.
        let own_settings = statement.settings.iter().any(|(name, _)| role(name) == Role::Windrow);
        let stripping = own_settings.then(|| text.clone());
        let Some(credentials) = self.credentials() else {
            let insert = self.outline(Some(&text));
            let cause = Cause { text: stripping, insert, ..Cause::plain("credentials") };
            return self.forward(connection, out, cause, read).await;
        };
        let Some(table) = statement.table.resolve(|parameter| self.request.query_parameter(parameter)) else {
            let insert = self.outline(Some(&text));
            return self
                .forward(connection, out, Cause { text: Some(text), insert, ..Cause::plain("insert_form") }, read)
                .await;
        };
        let data_start = statement.data_start;
        let candidate = Candidate {
            request: &self.request,
            credentials,
            table,
            payload: &text.data(statement.data_start),
            payload_is_body: statement.data_start == text.head.len()
                && self.request.head.field("content-encoding").is_none(),
            statement,
        };
        if let Some(strange) = self.plan_for_strange_insert().await {
            let insert = self.outline(Some(&text));
            let pending = Pending { stripping, insert, text, data_start, read };
            let reason = match strange {
                Strange::Nobody => NotGathered::Forward(UNKNOWN_USER),
                Strange::Refused(refusal) => NotGathered::Refused(refusal),
            };
            return self.not_gathered(connection, out, reason, pending).await;
        }
        let ready = match make_ready(self.state, candidate).await {
            Ok(ready) => ready,
            Err(reason) => {
                let insert = self.outline(Some(&text));
                let pending = Pending { stripping, insert, text, data_start, read };
                return self.not_gathered(connection, out, reason, pending).await;
            }
        };
        self.peer.permit.is_of_user();
        let claim = match claim_for_insert(self.state, &self.request, credentials).await {
            Ok(claim) => claim,
            Err(NotClaimed::Forward) => {
                let insert = self.outline(Some(&text));
                let cause = Cause { text: stripping, insert, ..Cause::plain("query_id") };
                return self.forward(connection, out, cause, read).await;
            }
            Err(NotClaimed::Refused(refusal)) => return self.refuse(connection, out, &refusal).await,
        };
        // While the insert waits, its bytes are not needed any more.
        drop((text, stripping, read));
        let form = ready.form();
        let mut progress = Progress::new(connection, form.progress_interval, self.origin.arrived);
        let gathered = store(self.state, ready, self.origin, &mut progress).await;
        let head_begun = progress.head_begun();
        // Who has its answer may use its id again.
        drop(claim);
        let facts = self.state.admission.facts.get();
        let answering = Answering { head: self.request.head, connection, facts: &facts, form, head_begun };
        let after = match gathered.outcome {
            Ok(summary) => answering.success(out, &gathered.query_id, summary),
            Err(refusal) => {
                self.state.metrics.error(refusal.code);
                answering.refusal(out, &self.request, Some(&gathered.query_id), &refusal)
            }
        };
        send(connection, out, after).await
    }

    async fn not_gathered(
        &self,
        connection: &mut Connection,
        out: &mut Vec<u8>,
        why: NotGathered,
        pending: Pending,
    ) -> After {
        let relay = match &self.state.backend {
            Backend::ClickHouse(clickhouse) => &clickhouse.relay,
            Backend::DuckDb(_) => return self.not_gathered_for_duckdb(connection, out, why, pending).await,
        };
        let Pending { stripping, insert, read, .. } = pending;
        match why {
            NotGathered::Refused(refusal) => self.refuse(connection, out, &refusal).await,
            NotGathered::Forward(reason) => {
                let cause = Cause { text: stripping, insert, ..Cause::plain(reason) };
                self.forward(connection, out, cause, read).await
            }
            NotGathered::NotRead { unread, prepared, query_id } => {
                let _claim = match claim_for_forwarded(self.state, &self.request, self.credentials()).await {
                    Ok(claim) => claim,
                    Err(refusal) => return self.refuse(connection, out, &refusal).await,
                };
                self.state.metrics.forwarded(unread.reason);
                let payload_bytes = unread.payload_bytes;
                let stripped = stripping.and_then(|text| self.stripped(&text, &read.bytes));
                let mut forwarded = stripped.unwrap_or_else(|| self.untouched(read.bytes.clone()));
                if self.request.query_id().is_none() {
                    // The log is to name the id that the client is told.
                    forwarded.with.push(("X-ClickHouse-Query-Id", query_id.to_string()));
                }
                let (after, exception) =
                    self.relay_once(relay, connection, out, forwarded, insert, &Changes::default()).await;
                if let Some(exception) = exception {
                    log_unreadable(self.state, &prepared, query_id, payload_bytes, exception);
                }
                after
            }
        }
    }

    /// Nobody else takes what is not gathered, but for SQL that looked like plain values.
    async fn not_gathered_for_duckdb(
        &self,
        connection: &mut Connection,
        out: &mut Vec<u8>,
        why: NotGathered,
        pending: Pending,
    ) -> After {
        let (unread, prepared, query_id) = match why {
            NotGathered::Refused(refusal) => return self.refuse(connection, out, &refusal).await,
            NotGathered::Forward(reason) => return self.refuse_insert(connection, out, reason).await,
            NotGathered::NotRead { unread, prepared, query_id } => (unread, prepared, query_id),
        };
        if prepared.kind.format.eq_ignore_ascii_case("Values") {
            return self.forward(connection, out, Cause::plain(unread.reason), pending.read).await;
        }
        let payload = pending.text.data(pending.data_start);
        let refusal = unreadable(&prepared.kind.format, unread, &payload);
        let line = refusal.line(self.state.admission.facts.get().version_suffix());
        let exception = Exception { code: refusal.code, line, before_writing: true };
        log_unreadable(self.state, &prepared, query_id, payload.len() as u64, exception);
        self.refuse(connection, out, &refusal).await
    }

    pub(super) async fn refuse(&self, connection: &mut Connection, out: &mut Vec<u8>, refusal: &Refusal) -> After {
        self.state.metrics.error(refusal.code);
        let facts = self.state.admission.facts.get();
        let form = self.form();
        let answering = Answering { head: self.request.head, connection, facts: &facts, form, head_begun: false };
        let given = self.request.query_id().map(|id| QueryId::Given(id.into()));
        let after = answering.refusal(out, &self.request, given.as_ref(), refusal);
        send(connection, out, after).await
    }

    /// The form of an answer that is given before an insert is admitted, or to something else.
    pub(super) fn form(&self) -> AnswerForm {
        let user = self.credentials().and_then(|known| self.state.admission.known_user(&self.request.user_key(known)));
        AnswerForm::new(|name| self.request.param_str(name).or_else(|| user.as_ref()?.setting(name)))
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
            return self.forward(connection, out, Cause::plain("credentials"), read).await;
        };
        if let Sender::Nobody = self.sender().await {
            return self.forward(connection, out, Cause::plain(UNKNOWN_USER), read).await;
        }
        let privilege = "SYSTEM FLUSH ASYNC INSERT QUEUE ON *.*";
        let is_granted = match self.state.admission.is_granted(credentials, privilege).await {
            Ok(is_granted) => is_granted,
            // Forwarded, it might succeed by now, and nothing of what is gathered here would have been flushed.
            Err(CallError::Exception(exception)) if exception.is_passing() => {
                return self.refuse(connection, out, &Refusal::exception(exception)).await
            }
            Err(CallError::Exception(_)) => false,
            Err(error) => return self.refuse(connection, out, &Refusal::unreachable(&error.to_string())).await,
        };
        if !is_granted {
            if self.state.backend.duckdb().is_some() {
                return self.refuse(connection, out, &Refusal::readonly(&credentials.user)).await;
            }
            return self.forward(connection, out, Cause::plain("refused"), read).await;
        }
        let database = self.current_database(credentials).await;
        let names: Vec<TableName> = tables
            .into_iter()
            .map(|name| TableName { database: name.database.unwrap_or_else(|| database.clone()), table: name.table })
            .collect();
        self.state.gatherer.flush((!names.is_empty()).then_some(names.as_slice())).await;
        if self.state.options.default_user.is_none() && self.state.backend.duckdb().is_none() {
            return self.forward(connection, out, Cause::plain("other_statement"), read).await;
        }
        let facts = self.state.admission.facts.get();
        let id = query_id(&self.request);
        let form = self.form();
        let answering = Answering { head: self.request.head, connection, facts: &facts, form, head_begun: false };
        let after = answering.success(out, &id, Summary::default());
        send(connection, out, after).await
    }

    pub(super) async fn current_database(&self, credentials: &Credentials) -> String {
        let key = self.request.user_key(credentials);
        self.state.admission.user(key).await.map_or_else(|_| "default".to_owned(), |user| user.database.clone())
    }
}

fn other(statement: Statement) -> Option<OtherStatement> {
    match statement {
        Statement::Other(statement) => Some(statement),
        _ => None,
    }
}

pub(super) async fn send(connection: &mut Connection, out: &[u8], after: After) -> After {
    match connection.send(out).await {
        Ok(()) => after,
        Err(_) => After::Close,
    }
}
