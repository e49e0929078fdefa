//! An insert over HTTP: a candidate is made of the request, taken through the stages of [`crate::insert`], and answered.

use std::borrow::Borrow;
use std::sync::Arc;
use std::time::Instant;

use windrow_clickhouse::{Credentials, Exception};
use windrow_engine::DataKind;
use windrow_http::{Connection, RequestHead};
use windrow_sql::{InsertOutline, InsertStatement, TableName};

use super::answer::{After, Answering};
use super::body::{Read, ReadError};
use super::classify::MAX_STATEMENT_BYTES;
use super::exchange::{send, Exchange};
use super::forwarding::Cause;
use super::progress::ProgressFields;
use super::request::Request;
use super::strangers::Strange;
use super::text::Text;
use crate::backend::Backend;
use crate::forward_reason::ForwardReason;
use crate::insert::{
    hand_over, log_unreadable, parse, query_id, random_query_id, role, unreadable, Candidate, NotGathered, Origin,
    Parsed, Prepared, Role, Summary,
};
use crate::metrics::GATHERED;
use crate::state::State;
use crate::statement::{outline, Changes, Claim, NotClaimed, LOOKED_THROUGH_BYTES};

/// An insert that is not gathered, before it is decided what becomes of it.
struct Pending {
    stripping: Option<Text>,
    insert: Option<InsertOutline>,
    text: Text,
    /// Where the insert's data begins in the text.
    data_start: usize,
    read: Read,
}

pub(super) enum Repeated {
    Answered(After),
    /// Something about the body needs the long way; what has been read of it is kept.
    Differs,
    /// There is no room for the body, of which a part has been read.
    NoRoom,
}

/// An insert whose head was seen before: only its body has to be looked at.
pub(super) async fn repeat(
    state: &Arc<State>,
    connection: &mut Connection,
    head: &RequestHead,
    prepared: Arc<Prepared>,
    origin: Origin<'_>,
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
    // Only who is traced pays for a look at the clock.
    let traced = origin.trace.map(|trace| (trace, Instant::now()));
    let Ok(parsed) = parse(state, prepared, &read.bytes, random_query_id(), None) else {
        return Repeated::Differs;
    };
    let owner = state.cluster.as_ref().and_then(|cluster| parsed.owner_elsewhere(cluster));
    if parsed.is_doubtful() || owner.is_some() {
        return Repeated::Differs;
    }
    if let Some((trace, received)) = traced {
        trace.mark_at("accept", received);
        trace.mark("parse");
    }
    // While the insert waits, its bytes are not needed any more.
    *read = Read::nothing();
    let answer = AnswerTo { state, head, request: || Request::new(head), origin };
    Repeated::Answered(answer.of(parsed, None, connection, out).await)
}

/// What an insert's answer depends on besides what became of it.
struct AnswerTo<'a, R> {
    state: &'a State,
    head: &'a RequestHead,
    /// Only a refusal needs the request.
    request: R,
    origin: Origin<'a>,
}

impl<'a, R: FnOnce() -> Q, Q: Borrow<Request<'a>>> AnswerTo<'a, R> {
    /// Hands the insert over, waits for its outcome, and tells it.
    async fn of(self, parsed: Parsed, claim: Option<Claim>, connection: &mut Connection, out: &mut Vec<u8>) -> After {
        let (form, query_id) = (parsed.form(), parsed.query_id.clone());
        let mut progress = ProgressFields::new(connection, form.progress_interval, self.origin.arrived);
        let outcome = hand_over(self.state, parsed, self.origin, &mut progress).await;
        let head_begun = progress.head_begun();
        // Who has its answer may use its id again.
        drop(claim);
        let facts = self.state.admission.facts.get();
        let answering = Answering { head: self.head, connection, facts: &facts, form, head_begun };
        let after = match outcome {
            Ok(summary) => answering.success(out, &query_id, summary),
            Err(refusal) => {
                self.state.metrics.refused(&refusal);
                if let Some(trace) = self.origin.trace {
                    refusal.tell(trace);
                }
                answering.refusal(out, (self.request)().borrow(), Some(&query_id), &refusal)
            }
        };
        let after = send(connection, out, after).await;
        self.origin.mark("acknowledge");
        after
    }
}

impl Exchange<'_> {
    pub(super) async fn gather(
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
            let cause = Cause { text: stripping, insert, ..Cause::plain(ForwardReason::Credentials) };
            return self.forward(connection, out, cause, read).await;
        };
        let Some(table) = statement.table.resolve(|parameter| self.request.query_parameter(parameter)) else {
            let insert = self.outline(Some(&text));
            return self
                .forward(
                    connection,
                    out,
                    Cause { text: Some(text), insert, ..Cause::plain(ForwardReason::InsertForm) },
                    read,
                )
                .await;
        };
        let data_start = statement.data_start;
        let payload = text.data(data_start);
        let is_body = data_start == text.head.len() && self.request.head.field("content-encoding").is_none();
        let candidate = self.candidate(credentials, &statement, &table, &payload);
        let parsed = match self.parsed(&candidate, is_body).await {
            Ok(parsed) => parsed,
            Err(reason) => {
                let insert = self.outline(Some(&text));
                let pending = Pending { stripping, insert, text, data_start, read };
                return self.not_gathered(connection, out, reason, pending).await;
            }
        };
        self.origin.is_of_user(self.peer);
        let claim = match candidate.query_id {
            Some(_) => self.context().claim_for_insert().await,
            None => Ok(None),
        };
        let claim = match claim {
            Ok(claim) => claim,
            Err(NotClaimed::Forward) => {
                let insert = self.outline(Some(&text));
                let cause = Cause { text: stripping, insert, ..Cause::plain(ForwardReason::QueryId) };
                return self.forward(connection, out, cause, read).await;
            }
            Err(NotClaimed::Refused(refusal)) => return self.refuse(connection, out, &refusal).await,
        };
        // While the insert waits, its bytes are not needed any more.
        drop((payload, text, stripping, read, statement, table));
        self.takes(GATHERED);
        let answer =
            AnswerTo { state: self.state, head: self.request.head, request: || &self.request, origin: self.origin };
        answer.of(parsed, claim, connection, out).await
    }

    /// Answers a repeat, which needs no forwarding.
    pub(super) async fn answer_repeat(&self, connection: &mut Connection, out: &mut Vec<u8>) -> After {
        let facts = self.state.admission.facts.get();
        self.takes(GATHERED);
        let (id, form) = (query_id(self.request.query_id()), self.form());
        let answering = Answering { head: self.request.head, connection, facts: &facts, form, head_begun: false };
        let after = answering.success(out, &id, Summary::default());
        send(connection, out, after).await
    }

    /// Of a text that may be an INSERT. Without one, the URL is looked at alone.
    pub(super) fn outline(&self, text: Option<&Text>) -> Option<InsertOutline> {
        match text {
            Some(text) => outline(&text.start(LOOKED_THROUGH_BYTES)),
            None if !self.request.takes_statements() => None,
            None => outline(self.request.query()),
        }
    }

    fn candidate<'c>(
        &'c self,
        credentials: &'c Credentials,
        statement: &'c InsertStatement,
        table: &'c TableName,
        payload: &'c [u8],
    ) -> Candidate<'c> {
        Candidate {
            credentials,
            statement,
            table,
            payload,
            data_kind: DataKind::Parsed,
            sent_as: &[],
            params: &self.request.params,
            quota_key: self.request.quota_key(),
            database: self.request.database(),
            query_id: self.request.query_id(),
            obstacle: self.obstacle(&credentials.user),
        }
    }

    /// Why the request can't be gathered, if that lies in what is HTTP's.
    fn obstacle(&self, user: &str) -> Option<ForwardReason> {
        let request = &self.request;
        if !request.is_framed_plainly() {
            return Some(ForwardReason::Setting);
        }
        if request.param("session_id").is_some_and(<[u8]>::is_empty) || request.has_two_quota_keys() {
            return Some(ForwardReason::Refused);
        }
        let sessions = &self.state.sessions;
        let session = request.param_str("session_id").map(|id| sessions.key(user, id));
        session.is_some_and(|session| sessions.is_changed(session)).then_some(ForwardReason::Session)
    }

    /// The insert's rows, read by somebody who may insert them.
    async fn parsed(&self, candidate: &Candidate<'_>, payload_is_body: bool) -> Result<Parsed, NotGathered> {
        match self.plan_for_strange_insert().await {
            Some(Strange::Nobody) => return Err(NotGathered::Forward(ForwardReason::UnknownUser)),
            Some(Strange::Refused(refusal)) => return Err(NotGathered::Refused(refusal)),
            None => {}
        }
        let admitted = candidate.admit(self.state).await?;
        self.origin.mark("admit");
        if let Some(owner) = self.owner_by_token(candidate, &admitted.prepared) {
            return Err(NotGathered::Elsewhere(owner));
        }
        // A head with a token is not seen again.
        if payload_is_body && candidate.token().is_none() {
            self.state.known_heads.put(&self.request, &admitted.prepared);
        }
        let parsed = admitted.parse(self.state).await;
        self.origin.mark("parse");
        let parsed = parsed?;
        match self.owner_elsewhere(&parsed) {
            Some(owner) => Err(NotGathered::Elsewhere(owner)),
            None => Ok(parsed),
        }
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
            Backend::Sql(_) => return self.not_gathered_for_sql(connection, out, why, pending).await,
        };
        let Pending { stripping, insert, read, .. } = pending;
        match why {
            NotGathered::Refused(refusal) => self.refuse(connection, out, &refusal).await,
            NotGathered::Elsewhere(owner) => self.hop(connection, out, owner, read.bytes).await,
            NotGathered::Forward(reason) => {
                let cause = Cause { text: stripping, insert, ..Cause::plain(reason) };
                self.forward(connection, out, cause, read).await
            }
            NotGathered::NotRead { unread, prepared, query_id } => {
                let _claim = match self.context().claim_for_forwarded().await {
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
                let forwarded = (forwarded, read.bytes);
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
    async fn not_gathered_for_sql(
        &self,
        connection: &mut Connection,
        out: &mut Vec<u8>,
        why: NotGathered,
        pending: Pending,
    ) -> After {
        let (unread, prepared, query_id) = match why {
            NotGathered::Refused(refusal) => return self.refuse(connection, out, &refusal).await,
            NotGathered::Forward(reason) => return self.refuse_insert(connection, out, reason).await,
            NotGathered::Elsewhere(owner) => return self.hop(connection, out, owner, pending.read.bytes).await,
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
}
