//! An insert over HTTP: a candidate is made of the request, taken through the stages of [`crate::insert`], and
//! answered.

use std::borrow::Borrow;
use std::sync::Arc;
use std::time::Instant;

use windrow_clickhouse::Exception;
use windrow_http::{Connection, RequestHead};
use windrow_sql::{InsertOutline, InsertStatement};

use super::answer::{After, Answering};
use super::body::{Read, ReadError};
use super::classify::MAX_STATEMENT_BYTES;
use super::exchange::{send, Exchange};
use super::forwarding::Cause;
use super::progress::ProgressFields;
use super::request::Request;
use super::text::Text;
use crate::backend::ClickHouse;
use crate::forward_reason::ForwardReason;
use crate::ingest::{accept, Accepted, RowSource};
use crate::insert::{
    log_unreadable, not_taken, parse, query_id, random_query_id, role, too_large, unreadable, Candidate, NotGathered,
    Origin, Prepared, Role, RowsForm, SentRows, Summary,
};
use crate::metrics::GATHERED;
use crate::state::State;
use crate::statement::{outline, Changes, LOOKED_THROUGH_BYTES};

/// An insert that is not gathered, before the decision what to do with it.
struct Pending {
    stripping: Option<Text>,
    insert: Option<InsertOutline>,
    text: Text,
    /// The position in the text where the insert's data begins.
    data_start: usize,
    read: Read,
}

pub(super) enum Repeated {
    Answered(After),
    /// The body needs the long way. The part of it that has been read is kept.
    Differs,
    /// The body, of which a part has been read, finds no room.
    NoRoom,
}

/// Takes an insert whose head was seen before: only its body has to be looked at.
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
    Repeated::Answered(answer.of(Accepted::nameless(parsed), connection, out).await)
}

/// Facts that an insert's answer depends on besides the insert's outcome.
struct AnswerTo<'a, R> {
    state: &'a State,
    head: &'a RequestHead,
    /// A function that makes the request, which only a refusal needs.
    request: R,
    origin: Origin<'a>,
}

impl<'a, R: FnOnce() -> Q, Q: Borrow<Request<'a>>> AnswerTo<'a, R> {
    /// Hands the insert over, waits for its outcome, and answers the client.
    async fn of(self, accepted: Accepted, connection: &mut Connection, out: &mut Vec<u8>) -> After {
        let (form, query_id) = (accepted.form(), accepted.parsed.query_id.clone());
        let mut progress = ProgressFields::new(connection, form.progress_interval, self.origin.arrived);
        let outcome = accepted.store(self.state, self.origin, &mut progress).await;
        let head_begun = progress.head_begun();
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

/// Rows in a request's body, or behind its statement.
struct RowsOfRequest<'a> {
    exchange: &'a Exchange<'a>,
    payload: &'a [u8],
    /// Says whether the head is remembered: the next request with the same head needs nothing but its body read.
    is_remembered: bool,
}

impl RowSource for RowsOfRequest<'_> {
    async fn rows(&mut self, prepared: &Arc<Prepared>) -> Result<SentRows<'_>, NotGathered> {
        let Exchange { state, request, origin, peer, .. } = self.exchange;
        origin.is_of_user(peer);
        if self.is_remembered {
            state.known_heads.put(request, prepared);
        }
        Ok(SentRows::Bytes(self.payload))
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
        let context = self.context();
        let Some(table) = statement.table.resolve(|parameter| context.options.query_parameter(parameter)) else {
            let insert = self.outline(Some(&text));
            let cause = Cause { text: Some(text), insert, ..Cause::plain(ForwardReason::InsertForm) };
            return self.forward(connection, out, cause, read).await;
        };
        let data_start = statement.data_start;
        let payload = text.data(data_start);
        let candidate = Candidate {
            sender: &context.user_key,
            statement: &statement,
            table: &table,
            form: RowsForm::Text,
            options: &context.options,
            gathering: None,
            token: context.options.token(&statement),
            query_id: context.query_id,
            obstacle: self.obstacle(&credentials.user),
        };
        let is_body = data_start == text.head.len() && self.request.head.field("content-encoding").is_none();
        // A head with a token is not seen again.
        let is_remembered = is_body && candidate.token.is_none();
        let accepted = match self.plan_for_strange_insert().await {
            Some(why) => Err(why),
            None => {
                let mut source = RowsOfRequest { exchange: self, payload: &payload, is_remembered };
                accept(&context, &candidate, self.origin, &mut source).await
            }
        };
        let accepted = match accepted {
            Ok(accepted) => accepted,
            Err(why) => {
                let insert = self.outline(Some(&text));
                let pending = Pending { stripping, insert, text, data_start, read };
                return self.not_gathered(connection, out, why, pending).await;
            }
        };
        // While the insert waits, its bytes are not needed any more.
        drop((payload, text, stripping, read, table, context, statement));
        self.takes(GATHERED);
        let answer =
            AnswerTo { state: self.state, head: self.request.head, request: || &self.request, origin: self.origin };
        answer.of(accepted, connection, out).await
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

    /// Reads the outline of a text that may be an INSERT. Without a text, only the URL is looked at.
    pub(super) fn outline(&self, text: Option<&Text>) -> Option<InsertOutline> {
        match text {
            Some(text) => outline(&text.start(LOOKED_THROUGH_BYTES)),
            None if !self.request.takes_statements() => None,
            None => outline(self.request.query()),
        }
    }

    /// Returns the reason why the request can't be gathered, if the reason lies in HTTP.
    fn obstacle(&self, user: &str) -> Option<ForwardReason> {
        let request = &self.request;
        if !request.is_text() {
            return Some(ForwardReason::NotText);
        }
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

    async fn not_gathered(
        &self,
        connection: &mut Connection,
        out: &mut Vec<u8>,
        why: NotGathered,
        pending: Pending,
    ) -> After {
        let Some(ClickHouse { relay, .. }) = self.state.backend.clickhouse() else {
            return self.not_gathered_for_sql(connection, out, why, pending).await;
        };
        let Pending { stripping, insert, read, .. } = pending;
        match why {
            NotGathered::Refused(refusal) => self.refuse(connection, out, &refusal).await,
            NotGathered::NoRows => After::Close,
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

    /// Refuses an insert that is not gathered, because no other server takes it. SQL that looked like plain
    /// values is run.
    async fn not_gathered_for_sql(
        &self,
        connection: &mut Connection,
        out: &mut Vec<u8>,
        why: NotGathered,
        pending: Pending,
    ) -> After {
        let (unread, prepared, query_id) = match why {
            NotGathered::Refused(refusal) => return self.refuse(connection, out, &refusal).await,
            NotGathered::Forward(ForwardReason::TooLarge) => {
                return self.refuse(connection, out, &too_large(self.state.max_table_bytes)).await
            }
            NotGathered::Forward(reason) => return self.refuse(connection, out, &not_taken(reason)).await,
            NotGathered::Elsewhere(owner) => return self.hop(connection, out, owner, pending.read.bytes).await,
            NotGathered::NoRows => return After::Close,
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
