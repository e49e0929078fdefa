//! The way of a request to the backend: the changes to the request, and the changes that it makes here.

use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use windrow_clickhouse::{push_param, Client, Exception, Purpose, ReplicaId};
use windrow_http::{Connection, Method};
use windrow_sql::{own_table_references, InsertOutline, OtherStatement};

use super::answer::{self, After};
use super::body::Read;
use super::exchange::Exchange;
use super::forward::{relay, ForwardError, Forwarded, ForwardedBody, Relayed, ToClient, WhenDone};
use super::hedge::Hedge;
use super::own_tables;
use super::request::Caller;
use super::sessions::SessionKey;
use super::strangers::Sender;
use super::text::Text;
use crate::backend::Backend;
use crate::error::Refusal;
use crate::forward_reason::ForwardReason;
use crate::insert::{role, Role};
use crate::statement::{Changes, Learnt, Passage};

/// The reason why a request is forwarded, and facts about the request.
pub(crate) struct Cause<'a> {
    pub(crate) reason: ForwardReason,
    /// The statement, unless it is a plain INSERT or was not looked at.
    pub(crate) statement: Option<&'a OtherStatement>,
    /// The text, if something in it may have to be replaced.
    pub(crate) text: Option<Text>,
    /// The outline of an INSERT, if the statement is one.
    pub(crate) insert: Option<InsertOutline>,
}

/// The outcome of a request that was sent on.
struct ForwardOutcome {
    after: After,
    exception: Option<Exception>,
    /// Says whether the backend executed the request, and said so.
    is_done: bool,
}

impl ForwardOutcome {
    fn failed(after: After) -> ForwardOutcome {
        ForwardOutcome { after, exception: None, is_done: false }
    }
}

impl Cause<'_> {
    /// Makes the cause of a request that needs no looking into.
    pub(super) fn plain(reason: ForwardReason) -> Self {
        Cause { reason, statement: None, text: None, insert: None }
    }
}

impl Exchange<'_> {
    /// Passes on a request that is not gathered, which is the backend's to answer.
    pub(super) async fn forward(
        &self,
        connection: &mut Connection,
        out: &mut Vec<u8>,
        cause: Cause<'_>,
        read: Read,
    ) -> After {
        match &self.state.backend {
            Backend::ClickHouse(clickhouse) => self.pass_on(&clickhouse.relay, connection, out, cause, read).await,
            Backend::Sql(backend) => self.run_sql(&**backend, connection, out, cause, read).await,
        }
    }

    async fn pass_on(
        &self,
        relay: &Client,
        connection: &mut Connection,
        out: &mut Vec<u8>,
        cause: Cause<'_>,
        read: Read,
    ) -> After {
        let Cause { reason, statement, text, insert } = cause;
        let _claim = match self.context().claim_for_forwarded().await {
            Ok(claim) => claim,
            // No query begins there, so an id is nobody's.
            Err(_) if reason == ForwardReason::NotAQuery => None,
            Err(refusal) => return self.refuse(connection, out, &refusal).await,
        };
        self.state.metrics.forwarded(reason);
        let changes = self.changes(statement, text.as_ref(), reason).await;
        let newly_marked = if changes.session { self.mark_session() } else { None };
        let hedge_after = text.as_ref().and_then(|text| self.hedge_after(relay, text, &changes));
        let forwarded = match text {
            Some(text) => match self.stripped(&text, &read.bytes) {
                None if text.whole => self.with_own_tables(text).await,
                stripped => stripped,
            },
            None => None,
        };
        let forwarded = forwarded.unwrap_or_else(|| self.untouched(read.bytes.clone()));
        let forwarded = Forwarded { hedge_after, ..forwarded };
        let (after, exception) =
            self.relay_once(relay, connection, out, (forwarded, read.bytes), insert, &changes).await;
        if let (Some(session), Some(true)) = (newly_marked, exception.map(|exception| exception.is_about_identity())) {
            self.state.sessions.unmark(session);
        }
        after
    }

    /// Returns what the statement may change here, if ClickHouse executes it. A sender whom ClickHouse doesn't know
    /// changes nothing: then no table is asked about, and no session under another user's name is marked.
    async fn changes(&self, statement: Option<&OtherStatement>, text: Option<&Text>, reason: ForwardReason) -> Changes {
        let changes = Changes::of(statement, reason);
        // By other methods only a session can be changed. (To OPTIONS and to the paths of its pages, ClickHouse says
        // yes to anybody.)
        let learnt = if self.request.is_post() { changes.learnt } else { Learnt::Holds };
        let changes = Changes { learnt, ..changes };
        let changes_tables = changes.learnt != Learnt::Holds;
        if !(changes.session || changes_tables) {
            return Changes::default();
        }
        let session = match self.sender().await {
            Sender::Nobody => return Changes::default(),
            Sender::User => changes.session,
            // No insert of his is taken in that session either, before he is known.
            Sender::Away(_) | Sender::Behind | Sender::Unclear => false,
        };
        // Asked before the statement runs: a table that is gone can't be asked about.
        let gone = match statement.zip(text) {
            Some((statement, text)) if changes_tables => self.context().row_removal(statement, &text.joined()).await,
            _ => None,
        };
        Changes { gone, session, ..changes }
    }

    /// Marks the request's session before the statement runs, so that no insert behind it is taken too early.
    fn mark_session(&self) -> Option<SessionKey> {
        let key = self.session()?;
        self.state.sessions.mark_changed(key).then_some(key)
    }

    pub(super) fn session(&self) -> Option<SessionKey> {
        let session_id = self.request.param_str("session_id").filter(|id| !id.is_empty())?;
        Some(self.state.sessions.key(&self.credentials()?.user, session_id))
    }

    /// Sends the request on and its answer back, unless it repeats an insert that is stored. Returns also the
    /// exception that the backend refused it with. `as_it_came` is the part of the body that was read, for
    /// another gateway.
    pub(super) async fn relay_once(
        &self,
        relay: &Client,
        connection: &mut Connection,
        out: &mut Vec<u8>,
        (mut forwarded, as_it_came): (Forwarded<'_>, Bytes),
        insert: Option<InsertOutline>,
        changes: &Changes,
    ) -> (After, Option<Exception>) {
        let purpose = self.purpose(insert.as_ref(), relay);
        let passage = match insert.filter(|_| self.request.is_post()) {
            Some(insert) => {
                let (additions, passage) = self.context().settle_deduplication(&insert).await;
                additions.iter().for_each(|(name, value)| push_param(&mut forwarded.target, name, value));
                passage
            }
            None => Passage::Nameless,
        };
        match &passage {
            Passage::Repeat => return (self.answer_repeat(connection, out).await, None),
            Passage::Refused(refusal) => return (self.refuse(connection, out, refusal).await, None),
            Passage::Elsewhere(owner) => return (self.hop(connection, out, *owner, as_it_came).await, None),
            Passage::Nameless | Passage::Claimed(_) => {}
        }
        self.takes("forward");
        if let Some(trace) = self.origin.trace {
            trace.name("forward");
            trace.mark("decide");
            forwarded.without.push("traceparent");
            forwarded.with.push(("traceparent", trace.context().traceparent()));
        }
        let ForwardOutcome { after, exception, is_done } =
            self.relay(relay, connection, out, forwarded, changes, purpose).await;
        self.origin.mark("forward");
        if let (Some(trace), Some(exception)) = (self.origin.trace, &exception) {
            trace.fail(format!("Code: {}", exception.code));
            if !exception.is_about_identity() {
                trace.is_of_user();
            }
        }
        if is_done && matches!(self.request.head.method(), Method::Get | Method::Post) {
            self.origin.is_of_user(self.peer);
        }
        self.state.conclude(passage, is_done).await;
        (after, exception)
    }

    /// Returns what the backend is wanted for, which decides the replica that is asked.
    fn purpose(&self, insert: Option<&InsertOutline>, relay: &Client) -> Purpose {
        if !relay.replicas().are_several() {
            return Purpose::Statement;
        }
        if let Some(session) = self.session() {
            return self.state.sessions.replica_of(session).map_or(Purpose::InOrder, Purpose::InSession);
        }
        self.context().purpose(insert)
    }

    async fn relay(
        &self,
        client: &Client,
        connection: &mut Connection,
        out: &mut Vec<u8>,
        mut forwarded: Forwarded<'_>,
        changes: &Changes,
        purpose: Purpose,
    ) -> ForwardOutcome {
        // A client that leaves doesn't stop such a statement, and whether it was done has to be known.
        let has_to_be_known = changes.any();
        forwarded.cancel_on_close &= !has_to_be_known;
        let after = answer::after(self.request.head, connection);
        let write_idle = connection.limits().write_idle_timeout;
        let fields = connection_fields(after, connection);
        let is_done = AtomicBool::new(false);
        let mut replica = ReplicaId::FIRST;
        let result = async {
            let lease = client.connection_for(purpose).await.map_err(ForwardError::NotSent)?;
            let (mut body, to) = connection.body().await.map_err(|_| ForwardError::Broken)?;
            let hedge = Hedge { client, purpose, metrics: &self.state.metrics, write_idle };
            let lease = hedge.first_to_answer(lease, &mut forwarded, &mut body).await?;
            replica = lease.replica();
            if let (Some(session), true) = (self.session(), changes.session) {
                self.state.sessions.stays_on(session, replica);
            }
            // Whoever hears the answer may send an insert at once, on another connection.
            let when_done: WhenDone<'_> = &|| {
                is_done.store(true, Ordering::Relaxed);
                Box::pin(self.state.have_changed(changes))
            };
            let to_client =
                ToClient { client: to, connection_fields: &fields, write_idle, has_to_be_known, when_done, of: None };
            relay(lease, forwarded, body, to_client).await
        }
        .await;
        let may_have_changed_more = match &result {
            // What an answer that streams has changed until its end.
            Ok(relayed) => relayed.has_body && is_done.into_inner(),
            Err(ForwardError::Broken) => is_done.into_inner(),
            Err(ForwardError::HalfAnswer | ForwardError::NoAnswer(_)) => true,
            Err(ForwardError::NotSent(_)) => false,
        };
        if may_have_changed_more {
            self.state.have_changed(changes).await;
        }
        match &result {
            Ok(Relayed { exception: Some(exception), .. }) => client.replicas().refused(replica, purpose, exception),
            Ok(Relayed { is_done: true, .. }) => client.replicas().did(replica, purpose),
            _ => {}
        }
        match result {
            Ok(relayed) => ForwardOutcome {
                after: if relayed.keep_alive { after } else { After::Close },
                is_done: relayed.is_done,
                exception: relayed.exception,
            },
            Err(ForwardError::Broken | ForwardError::HalfAnswer) => ForwardOutcome::failed(After::Close),
            Err(ForwardError::NotSent(error)) => {
                ForwardOutcome::failed(self.refuse(connection, out, &Refusal::unreachable(&error.to_string())).await)
            }
            Err(ForwardError::NoAnswer(cause)) => {
                self.refuse(connection, out, &Refusal::backend_lost(&cause)).await;
                ForwardOutcome::failed(After::Close)
            }
        }
    }

    /// Returns the request as it came, but with other credentials on the embedded ClickHouse, and without
    /// Windrow's own settings.
    pub(super) fn untouched(&self, start: Bytes) -> Forwarded<'_> {
        let head = self.request.head;
        let CredentialFields { without, with } = self.credential_fields();
        Forwarded {
            head,
            method: head.method().clone(),
            target: self.target(|_| true),
            without,
            with,
            body: ForwardedBody::Clients { start },
            cancel_on_close: self.cancels_on_close(),
            hedge_after: None,
        }
    }

    fn cancels_on_close(&self) -> bool {
        self.request.flag("cancel_http_readonly_queries_on_client_close")
    }

    /// Returns the target with the parameters that `keep` allows, without Windrow's own.
    pub(super) fn target(&self, keep: impl Fn(&str) -> bool) -> String {
        let replaced = matches!(self.caller, Caller::Default(_));
        let ours = |name: &str| role(name) == Role::Windrow || (replaced && matches!(name, "user" | "password"));
        if self.request.params.iter().all(|param| keep(param.name()) && !ours(param.name())) {
            return self.request.head.target().to_owned();
        }
        let mut target = String::with_capacity(self.request.head.target().len());
        target.push_str(self.request.path);
        let mut separator = '?';
        for (param, as_it_came) in self.request.params_as_they_came() {
            let name = param.name();
            if !ours(name) && keep(name) {
                target.push(separator);
                target.push_str(as_it_came);
                separator = '&';
            }
        }
        target
    }

    /// Returns the fields with credentials, where others take the place of the client's.
    fn credential_fields(&self) -> CredentialFields {
        let Caller::Default(credentials) = &self.caller else { return CredentialFields::default() };
        CredentialFields {
            without: vec!["authorization", "x-clickhouse-user", "x-clickhouse-key"],
            with: vec![
                ("X-ClickHouse-User", credentials.user.clone()),
                ("X-ClickHouse-Key", credentials.password.clone()),
            ],
        }
    }

    /// Returns a statement that reads Windrow's system tables, with the tables beside it; `None` if it
    /// doesn't, or may not.
    async fn with_own_tables(&self, text: Text) -> Option<Forwarded<'_>> {
        if !matches!(self.request.head.method(), Method::Get | Method::Post) {
            return None;
        }
        let (bytes, database) = (text.joined(), self.request.database().unwrap_or(""));
        let credentials = self.credentials()?;
        if own_table_references(&bytes, database, &own_tables::NAMES).references.is_empty() {
            return None;
        }
        if let Sender::Nobody = self.sender().await {
            return None;
        }
        let with = own_tables::beside(self.state, &bytes, database, credentials).await?;
        let mut target = self.target(|name| !matches!(name, "query" | "decompress"));
        with.params().for_each(|(name, value)| push_param(&mut target, &name, value));
        if !self.request.is_post() && self.request.param("readonly").is_none() {
            // What came by GET may not write, and a form can only be posted.
            push_param(&mut target, "readonly", "2");
        }
        let CredentialFields { mut without, with: mut fields } = self.credential_fields();
        without.extend(["content-type", "content-encoding"]);
        fields.push(("Content-Type", with.form.content_type));
        Some(Forwarded {
            head: self.request.head,
            method: Method::Post,
            target,
            without,
            with: fields,
            body: ForwardedBody::Replaced(with.form.body.into()),
            cancel_on_close: self.cancels_on_close(),
            hedge_after: None,
        })
    }
}

#[derive(Default)]
struct CredentialFields {
    without: Vec<&'static str>,
    with: Vec<(&'static str, String)>,
}

pub(super) fn connection_fields(after: After, connection: &Connection) -> Vec<u8> {
    match after {
        After::Close => b"Connection: Close\r\n".to_vec(),
        After::KeepAlive => {
            let (seconds, left) = (connection.limits().keep_alive_timeout.as_secs(), connection.requests_left());
            format!("Connection: Keep-Alive\r\nKeep-Alive: timeout={seconds}, max={left}\r\n").into_bytes()
        }
    }
}
