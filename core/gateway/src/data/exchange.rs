//! One request, from its head to its answer.
//!
//! A request whose head was seen before goes straight to its body (`insert.rs`). For any other request, `classify.rs`
//! decides: an insert is gathered (`insert.rs`, through the stages of `crate::insert`), a flush is answered here
//! (`flush.rs`), and everything else is forwarded (`forwarding.rs`), or run by another database (`sql_backend/`).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::OnceCell;
use windrow_clickhouse::Credentials;
use windrow_engine::QueryId;
use windrow_http::{Connection, RequestHead};

use super::answer::{After, Answering};
use super::appends::is_of_appends;
use super::body::{Read, ReadError};
use super::classify::Plan;
use super::forwarding::Cause;
use super::insert::{repeat, Repeated};
use super::known_heads::LatestInsert;
use super::request::{Caller, Request};
use super::strangers::{Peer, Sender};
use crate::admission::Moment;
use crate::backend::Backend;
use crate::cluster::{Cluster, Hop, PING_PATH};
use crate::error::Refusal;
use crate::insert::{AnswerForm, Origin};
use crate::state::State;
use crate::statement::StatementContext;

pub struct Exchange<'a> {
    pub(crate) state: &'a Arc<State>,
    pub request: Request<'a>,
    pub(crate) caller: Caller,
    pub(crate) peer: &'a Peer,
    pub(crate) sender: OnceCell<Sender>,
    pub(crate) origin: Origin<'a>,
    /// Says whether another gateway has sent the request, because this one owns the insert.
    pub(crate) came_by_hop: bool,
    route: Mutex<&'static str>,
}

/// Serves one request, whose head has been read.
pub(crate) async fn exchange(
    state: &Arc<State>,
    connection: &mut Connection,
    head: &RequestHead,
    (origin, peer): (Origin<'_>, &Peer),
    latest: &mut LatestInsert,
    out: &mut Vec<u8>,
) -> After {
    let mut read = Read::nothing();
    let mut has_room = true;
    if let Some(prepared) = state.known_heads.get(head, latest, &state.admission, Moment::of(origin.arrived)) {
        origin.is_of_user(peer);
        match repeat(state, connection, head, prepared, origin, &mut read, out).await {
            Repeated::Answered(after) => return after,
            Repeated::Differs => {}
            Repeated::NoRoom => has_room = false,
        }
    }
    let request = Request::new(head);
    let caller = state.backend.caller(request.identity(), state.options.default_user.as_ref());
    let route = Mutex::new("forward");
    let hop = Cluster::came_by_hop(state.cluster.as_ref(), head);
    let came_by_hop = matches!(hop, Ok(Some(_)));
    let origin = match hop {
        Ok(Some(Hop { back_after })) => Origin { back_after: back_after.or(Some(Duration::MAX)), ..origin },
        _ => origin,
    };
    let exchange = Exchange { state, request, caller, peer, sender: OnceCell::new(), origin, came_by_hop, route };
    let after = match hop {
        Ok(_) => exchange.run(connection, out, has_room, read).await,
        Err(refusal) => exchange.refuse(connection, out, &refusal).await,
    };
    state.metrics.answered(*exchange.route(), origin.arrived.elapsed());
    after
}

impl Exchange<'_> {
    async fn run(&self, connection: &mut Connection, out: &mut Vec<u8>, has_room: bool, mut read: Read) -> After {
        if self.state.backend.knows_users() && self.credentials().is_some() {
            // The gateway has looked at the password itself.
            self.origin.is_of_user(self.peer);
        }
        if let (Backend::Sql(backend), true) = (&self.state.backend, self.request.is_for_anyone()) {
            return self.answer_anyone(&**backend, connection, out).await;
        }
        if let (Some(cluster), true) = (&self.state.cluster, self.came_by_hop) {
            // Only a gateway knows the secret.
            self.peer.permit.is_of_user();
            if self.request.path == PING_PATH {
                return self.pong(cluster, connection, out).await;
            }
            cluster.takes();
        }
        if is_of_appends(self.request.path) {
            self.takes("append");
            return self.append(connection, out).await;
        }
        let plan = match has_room {
            true => self.plan(connection, &mut read).await,
            false => Err(ReadError::NoRoom),
        };
        self.origin.mark("accept");
        let plan = match plan {
            Ok(plan) => plan,
            Err(ReadError::NoRoom) => Plan::Refuse(Refusal::no_room()),
            // The client did not send what it announced; there is nobody to answer.
            Err(ReadError::Body) => return After::Close,
        };
        match plan {
            Plan::Refuse(refusal) => self.refuse(connection, out, &refusal).await,
            Plan::Flush(tables) => {
                self.takes("flush");
                self.flush(connection, out, tables, read).await
            }
            Plan::Forward { reason, statement, text } => {
                let insert = self.outline(text.as_ref());
                let cause = Cause { reason, statement: statement.as_ref(), text, insert };
                self.forward(connection, out, cause, read).await
            }
            Plan::Gather { statement, text } => self.gather(connection, out, statement, text, read).await,
        }
    }

    /// Notes the route that the request takes. The last call counts.
    pub(crate) fn takes(&self, route: &'static str) {
        *self.route() = route;
    }

    fn route(&self) -> MutexGuard<'_, &'static str> {
        self.route.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn credentials(&self) -> Option<&Credentials> {
        match &self.caller {
            Caller::Itself(credentials) | Caller::Default(credentials) => Some(credentials),
            Caller::WrongPassword { .. } | Caller::Unclear => None,
        }
    }

    pub async fn refuse(&self, connection: &mut Connection, out: &mut Vec<u8>, refusal: &Refusal) -> After {
        self.takes("refuse");
        self.state.metrics.refused(refusal);
        if let Some(trace) = self.origin.trace {
            refusal.tell(trace);
        }
        let facts = self.state.admission.facts.get();
        let form = self.form();
        let answering = Answering { head: self.request.head, connection, facts: &facts, form, head_begun: false };
        let given = self.request.query_id().map(|id| QueryId::Given(id.into()));
        let after = answering.refusal(out, &self.request, given.as_ref(), refusal);
        send(connection, out, after).await
    }

    /// Returns the form of an answer that is given before an insert is admitted, or to another statement.
    pub(crate) fn form(&self) -> AnswerForm {
        let user = self.credentials().and_then(|known| self.state.admission.known_user(&self.request.user_key(known)));
        AnswerForm::new(|name| self.request.param_str(name).or_else(|| user.as_ref()?.setting(name)))
    }

    pub(crate) async fn current_database(&self) -> String {
        self.context().current_database().await
    }

    /// Returns the statement's context, without anything of HTTP.
    pub(crate) fn context(&self) -> StatementContext<'_> {
        let known = self.credentials();
        let credentials = known.unwrap_or(self.state.backend.own_credentials());
        StatementContext {
            state: self.state,
            user_key: self.request.user_key(credentials),
            names_user: known.is_some(),
            options: self.request.options(),
            query_id: self.request.query_id(),
            came_by_hop: self.came_by_hop,
            stays_here: self.stays_here(),
        }
    }
}

pub async fn send(connection: &mut Connection, out: &[u8], after: After) -> After {
    match connection.send(out).await {
        Ok(()) => after,
        Err(_) => After::Close,
    }
}
