//! A protocol that a crate of its own serves, today OTLP alone: what that crate has to do, and what it finds in the gateway.
//!
//! A [`ProtocolServer`] reads requests from its connections and makes columns of their rows. What there is to decide about
//! an insert is asked of the [`GatewayHandle`]: who sends it, which columns its table has, and what becomes of its rows
//! ([`ColumnInsert`]).

mod column_insert;

use std::sync::Arc;
use std::time::Instant;

use futures::future::BoxFuture;
use tokio::sync::watch;
use windrow_clickhouse::{Client, Credentials, ErrorCode};
use windrow_engine::dead_letters::DeadLetters;
use windrow_engine::sink::TableKey;
use windrow_engine::trace::{Parent, RequestTrace};
use windrow_engine::LatencyCounts;
use windrow_http::{Limits, Stream};
use windrow_settings::Settings;

pub use self::column_insert::{ColumnInsert, ColumnRows, Gathering, NotStored};
pub use crate::data::{after, unreadable, After, BodyRoom, Peer, Port, Read, ReadError, Room};
pub use crate::error::{Refusal, NO_ROOM};
pub use crate::insert::{query_id, Origin};
pub use crate::recent::Recent;

use crate::admission::{Moment, NotAdmitted, UserKey};
use crate::data::{behind, find_sender, Caller, Identity, Sender};
use crate::forward_reason::ForwardReason;
use crate::state::State;

/// A server of a protocol that has ports of its own.
pub trait ProtocolServer: Send + Sync {
    /// Serves a connection until it ends, or has nothing more to do after the gateway began to stop.
    fn serve<'a>(&'a self, gateway: &'a GatewayHandle, connection: NewConnection) -> BoxFuture<'a, ()>;

    /// Returns what has been counted of each kind of request.
    fn counts(&self) -> Vec<SignalCounts>;

    /// Forgets what has not been used since the last call.
    fn forget_unused(&self);
}

/// A connection that has been accepted, after the handshake of TLS.
pub struct NewConnection {
    pub stream: Stream,
    pub port: Port,
    pub id: u64,
    pub peer: Peer,
    /// True once the gateway stops.
    pub stop: watch::Receiver<bool>,
}

/// Counts of one kind of request since the start.
#[derive(Clone, Default)]
pub struct SignalCounts {
    pub signal: &'static str,
    pub requests: u64,
    pub rows: u64,
    pub bytes: u64,
    /// Rows that can never be stored.
    pub rejected_rows: u64,
    pub refused_requests: u64,
    /// Ages of the last records of requests, when these were acknowledged.
    pub ages: LatencyCounts,
}

/// The gateway, as those who serve a protocol see it.
#[derive(Clone)]
pub struct GatewayHandle {
    state: Arc<State>,
}

/// A sender that the backend has confirmed to be a user.
pub struct User {
    /// Credentials as another gateway would be told them.
    given: Credentials,
    /// The account as the backend knows it.
    key: UserKey,
}

impl User {
    /// Returns the credentials as the backend knows them.
    pub fn credentials(&self) -> &Credentials {
        &self.key.credentials
    }
}

/// Reason why the columns of a table are not known.
pub enum NoColumns {
    /// The table is missing, or the user may not see it.
    Missing,
    Refused(Refusal),
}

impl GatewayHandle {
    pub(crate) fn new(state: &Arc<State>) -> GatewayHandle {
        GatewayHandle { state: state.clone() }
    }

    pub fn settings(&self) -> Arc<Settings> {
        self.state.options.settings.get()
    }

    pub fn limits(&self) -> &Arc<Limits> {
        &self.state.options.limits
    }

    pub fn body_room(&self) -> &BodyRoom {
        &self.state.body_room
    }

    pub fn dead_letters(&self) -> &DeadLetters {
        &self.state.dead_letters
    }

    /// Returns the ClickHouse behind the gateway, for statements of users; `None` where another database stands there.
    pub fn clickhouse(&self) -> Option<&Arc<Client>> {
        self.state.backend.clickhouse().map(|clickhouse| &clickhouse.relay)
    }

    /// Says whether the gateway gives deduplication windows to tables.
    pub fn manages_windows(&self) -> bool {
        self.state.admission.windows.manage()
    }

    pub fn is_closing(&self) -> bool {
        self.state.is_closing()
    }

    /// Begins the trace of a request; `None` where it is not traced. `parent` is called where requests are traced.
    pub fn begin_trace(&self, arrived: Instant, parent: impl FnOnce() -> Option<Parent>) -> Option<RequestTrace> {
        self.state.options.tracer.as_ref()?.begin(parent(), arrived)
    }

    /// Finds out whether the sender with these credentials is a user. Returns `None` where that is unclear.
    ///
    /// # Errors
    /// Fails where the backend has no such user, can't be asked now, or is to be asked about too many others first.
    pub async fn find_user(&self, peer: &Peer, given: Credentials) -> Result<Option<User>, Refusal> {
        let state = &self.state;
        let default_user = state.options.default_user.as_ref();
        let credentials = match state.backend.caller(Identity::Claimed(given.clone()), default_user) {
            Caller::Itself(credentials) | Caller::Default(credentials) => credentials,
            Caller::WrongPassword { user } => return Err(Refusal::wrong_password(&user)),
            Caller::Unclear => return Ok(None),
        };
        let key = UserKey::of(&credentials);
        match find_sender(state, peer, &key).await {
            Sender::User => Ok(Some(User { given, key })),
            Sender::Nobody => Err(Refusal::wrong_password(&given.user)),
            Sender::Away(cause) => Err(Refusal::unreachable(&cause)),
            Sender::Behind => Err(behind()),
            Sender::Unclear => Ok(None),
        }
    }

    /// Returns the version of the user's ClickHouse: the two numbers that it begins with.
    ///
    /// # Errors
    /// Fails where the backend does not say who the user is.
    pub async fn server_version(&self, user: &User) -> Result<(u32, u32), Refusal> {
        let context = self.state.admission.user(user.key.clone()).await;
        let version = context.map_err(|_| Refusal::unreachable("it does not say who the user is"))?.version;
        Ok((version.major, version.minor))
    }

    /// Returns the names and types of those columns of a table that rows are written into. While the backend is away,
    /// its last answer holds.
    ///
    /// # Errors
    /// Fails where the table is missing, or the backend can't be asked now.
    pub async fn columns(&self, user: &User, table: &TableKey) -> Result<Vec<(String, String)>, NoColumns> {
        let admission = &self.state.admission;
        match admission.unless_away(admission.table(table, &user.key)).await {
            Ok(schema) => Ok(schema.written_columns()),
            // Whoever may not see any of its columns is refused the description, whether there is such a table or not.
            Err(NotAdmitted::Forward(ForwardReason::UnknownTable | ForwardReason::Refused)) => Err(NoColumns::Missing),
            Err(NotAdmitted::Forward(ForwardReason::UnknownUser)) => {
                Err(NoColumns::Refused(Refusal::wrong_password(&user.given.user)))
            }
            Err(NotAdmitted::Forward(_)) => {
                Err(NoColumns::Refused(Refusal::unreachable("it does not say which columns the table has")))
            }
            Err(NotAdmitted::Refused(refusal)) if refusal.code == ErrorCode::UNKNOWN_TABLE => Err(NoColumns::Missing),
            Err(NotAdmitted::Refused(refusal)) => Err(NoColumns::Refused((*refusal).clone())),
            Err(NotAdmitted::Busy) => Err(NoColumns::Refused(Refusal::unreachable("it is too busy"))),
            Err(NotAdmitted::Unreachable(cause)) => {
                let kept = admission.kept_table(&user.key, table, self.state.kept_ttl());
                kept.map(|schema| schema.written_columns())
                    .ok_or_else(|| NoColumns::Refused(Refusal::unreachable(&cause)))
            }
        }
    }

    /// Says whether a table is there at this moment, as far as the user sees it. While the backend can't be asked, none is.
    pub async fn has_table(&self, user: &User, table: &TableKey) -> bool {
        self.state.admission.table_at(table, &user.key, Moment::now()).await.is_ok()
    }

    /// Makes the gateway ask the backend again, because tables have been made or changed.
    pub fn tables_have_changed(&self) {
        self.state.forget_what_was_learnt();
    }
}
