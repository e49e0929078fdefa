//! First stage of an insert: a protocol has understood a request as one.
//!
//! HTTP makes a [`Candidate`] of a request ([`data/insert.rs`](crate::data)); whatever else takes inserts makes one of its
//! own, and goes on with the same stages: `admit.rs`, `parse.rs`, `hand_over.rs`.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use windrow_clickhouse::Credentials;
use windrow_columns::DataType;
use windrow_engine::trace::RequestTrace;
use windrow_engine::{DataKind, QueryId};
use windrow_sql::{InsertStatement, TableName};

use super::dedup_settings::DedupSettings;
use super::own_settings::RequestedSettings;
use super::prepared::Prepared;
use super::readers::Unread;
use super::role::{role, Role};
use crate::admission::NotAdmitted;
use crate::cluster::GatewayId;
use crate::data::Peer;
use crate::error::Refusal;
use crate::forward_reason::ForwardReason;

/// Longer ids are not kept: they stand in buffers and logs by the hundred thousand.
const MAX_QUERY_ID_BYTES: usize = 1024;

/// A setting, a role or a query parameter that stands beside a statement.
pub(crate) struct Param<'a> {
    pub(crate) name: Cow<'a, [u8]>,
    pub(crate) value: Cow<'a, [u8]>,
}

impl Param<'_> {
    pub(crate) fn name(&self) -> &str {
        std::str::from_utf8(&self.name).unwrap_or("")
    }

    /// `None` for bytes that aren't text.
    pub(crate) fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.value).ok()
    }
}

/// An insert that nobody has looked into yet.
pub(crate) struct Candidate<'a> {
    pub(crate) credentials: &'a Credentials,
    pub(crate) statement: &'a InsertStatement,
    /// The statement's table, with the values of query parameters.
    pub(crate) table: &'a TableName,
    pub(crate) payload: &'a [u8],
    pub(crate) data_kind: DataKind,
    /// The types that its columns are sent in, where ClickHouse makes the table's of them. Empty: the table's own.
    pub(crate) sent_as: &'a [DataType],
    pub(crate) params: &'a [Param<'a>],
    pub(crate) quota_key: &'a str,
    /// The database that the request names.
    pub(crate) database: Option<&'a str>,
    pub(crate) query_id: Option<&'a str>,
    /// Why the protocol can't have it gathered, if it can't.
    pub(crate) obstacle: Option<ForwardReason>,
}

/// Why an insert is not gathered after all.
pub(crate) enum NotGathered {
    Refused(Refusal),
    /// Another gateway owns it.
    Elsewhere(GatewayId),
    /// Not for us: forward it, for this reason.
    Forward(ForwardReason),
    /// The payload could not be read for certain: ClickHouse reads or refuses it.
    NotRead {
        unread: Unread,
        prepared: Arc<Prepared>,
        query_id: QueryId,
    },
}

impl From<NotAdmitted> for NotGathered {
    fn from(error: NotAdmitted) -> NotGathered {
        match error {
            NotAdmitted::Forward(reason) => NotGathered::Forward(reason),
            NotAdmitted::Refused(refusal) => NotGathered::Refused((*refusal).clone()),
            NotAdmitted::Busy => NotGathered::Forward(ForwardReason::Refused),
            NotAdmitted::Unreachable(cause) => NotGathered::Refused(Refusal::unreachable(&cause)),
        }
    }
}

/// Which connection an insert came on, and when.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin<'a> {
    pub(crate) connection_id: u64,
    pub(crate) arrived: Instant,
    /// How long after its last answer its sender has sent it. `None`: nobody knows.
    pub(crate) back_after: Option<Duration>,
    /// Of a request that is traced.
    pub(crate) trace: Option<&'a RequestTrace>,
}

impl Origin<'_> {
    /// The request is a user's: its connection stays, and its trace is told.
    pub(crate) fn is_of_user(&self, peer: &Peer) {
        peer.permit.is_of_user();
        if let Some(trace) = self.trace {
            trace.is_of_user();
        }
    }

    /// A stage of the request has ended.
    pub(crate) fn mark(&self, stage: &'static str) {
        if let Some(trace) = self.trace {
            trace.mark(stage);
        }
    }
}

impl Candidate<'_> {
    /// What can be said of it without asking anybody.
    pub(super) fn check(&self) -> Result<(), NotGathered> {
        if let Some(refusal) = self.invalid_own_setting() {
            return Err(NotGathered::Refused(refusal));
        }
        let is_long = |id: &&str| id.len() > MAX_QUERY_ID_BYTES;
        let obstacle = self.obstacle.or(self.query_id.filter(is_long).map(|_| ForwardReason::QueryId));
        obstacle.map_or(Ok(()), |reason| Err(NotGathered::Forward(reason)))
    }

    /// The name that the insert gives itself: the statement's goes before the request's.
    pub(crate) fn token(&self) -> Option<&str> {
        let beside = self.params.iter().filter_map(|param| Some((param.name(), param.text()?)));
        let in_text = self.statement.settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        DedupSettings::of(beside.chain(in_text)).token()
    }

    /// A misspelt setting of ours must not pass in silence: somebody relies on what it promises.
    fn invalid_own_setting(&self) -> Option<Refusal> {
        let beside = self.params.iter().map(|param| (param.name(), param.text().unwrap_or("")));
        let in_text = self.statement.settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let mut own = beside.chain(in_text).filter(|(name, _)| role(name) == Role::Windrow);
        own.find_map(|(name, value)| RequestedSettings::check_own(name, value).err()).map(Refusal::bad_argument)
    }
}

/// The client's own id, or a random one. Uniqueness is all that is asked of it, so the fast generator will do.
pub(crate) fn query_id(given: Option<&str>) -> QueryId {
    match given {
        Some(id) => QueryId::Given(Arc::from(id)),
        None => random_query_id(),
    }
}

pub(crate) fn random_query_id() -> QueryId {
    QueryId::Random(fastrand::u128(..) & !(0xf << 76) & !(0x3 << 62) | (4 << 76) | (2 << 62))
}
