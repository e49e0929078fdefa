//! First stage of an insert: a protocol has understood a request as an insert.
//!
//! Each protocol makes a [`Candidate`] of its own requests; the stages behind it are the same for all: `admit.rs`, `parse.rs`,
//! `hand_over.rs`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use windrow_columns::{Block, DataType};
use windrow_engine::trace::RequestTrace;
use windrow_engine::{DataKind, QueryId};
use windrow_sql::{InsertStatement, TableName};

use super::options::StatementOptions;
use super::own_settings::RequestedSettings;
use super::prepared::Prepared;
use super::readers::Unread;
use super::role::{role, Role};
use crate::admission::{NotAdmitted, UserKey};
use crate::cluster::GatewayId;
use crate::data::Peer;
use crate::error::Refusal;
use crate::forward_reason::ForwardReason;

/// Bound of a query id. Longer ones are not kept: ids stand in buffers and logs by the hundred thousand.
const MAX_QUERY_ID_BYTES: usize = 1024;

/// An insert before its admission, without its rows.
pub(crate) struct Candidate<'a> {
    pub(crate) sender: &'a UserKey,
    pub(crate) statement: &'a InsertStatement,
    /// The statement's table, with the values of query parameters.
    pub(crate) table: &'a TableName,
    pub(crate) form: RowsForm<'a>,
    pub(crate) options: &'a StatementOptions<'a>,
    /// Settings of gathering that the protocol itself has. They go before the options.
    pub(crate) gathering: Option<&'a RequestedSettings>,
    /// Deduplication token: the name that the insert gives itself.
    pub(crate) token: Option<&'a str>,
    pub(crate) query_id: Option<&'a str>,
    /// Reason why the protocol can't have the insert gathered, if it can't.
    pub(crate) obstacle: Option<ForwardReason>,
}

/// The form in which an insert's rows come.
#[derive(Clone, Copy)]
pub(crate) enum RowsForm<'a> {
    /// Bytes in the statement's format.
    Text,
    /// Native blocks.
    Blocks,
    /// Columns of these types, which ClickHouse converts to the table's. They are all that it names.
    Columns(&'a [DataType]),
}

impl<'a> RowsForm<'a> {
    pub(super) fn data_kind(self) -> DataKind {
        match self {
            RowsForm::Text => DataKind::Parsed,
            RowsForm::Blocks | RowsForm::Columns(_) => DataKind::Preprocessed,
        }
    }

    /// Returns the types that columns are sent in. Empty: the table's own.
    pub(super) fn sent_as(self) -> &'a [DataType] {
        match self {
            RowsForm::Text | RowsForm::Blocks => &[],
            RowsForm::Columns(types) => types,
        }
    }
}

/// Rows of an insert, as they came.
pub(crate) enum SentRows<'a> {
    /// Text in the statement's format, or Native blocks.
    Bytes(&'a [u8]),
    Columns {
        block: Block,
        /// Bytes of the request that the columns came in.
        payload_bytes: u64,
    },
}

/// Reason why an insert is not gathered after all.
pub(crate) enum NotGathered {
    Refused(Refusal),
    /// Another gateway owns the insert.
    Elsewhere(GatewayId),
    /// The insert is to be forwarded, for this reason.
    Forward(ForwardReason),
    /// The payload could not be read for certain: ClickHouse reads or refuses it.
    NotRead {
        unread: Unread,
        prepared: Arc<Prepared>,
        query_id: QueryId,
    },
    /// The rows did not come. The client has gone, or has been told.
    NoRows,
}

impl NotGathered {
    /// Returns the reason why the backend or the insert's owner gets the insert, where it is not refused.
    pub(crate) fn reason(&self) -> ForwardReason {
        match self {
            NotGathered::Forward(reason) => *reason,
            NotGathered::NotRead { unread, .. } => unread.reason,
            NotGathered::Elsewhere(_) => ForwardReason::Deduplication,
            NotGathered::Refused(_) | NotGathered::NoRows => ForwardReason::Refused,
        }
    }
}

impl From<ForwardReason> for NotGathered {
    fn from(reason: ForwardReason) -> NotGathered {
        NotGathered::Forward(reason)
    }
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

/// Connection that an insert came on, and the time at which it came.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'a> {
    pub(crate) connection_id: u64,
    pub(crate) arrived: Instant,
    /// Time from the sender's last answer to this insert; `None`: it is not known.
    pub(crate) back_after: Option<Duration>,
    /// Trace of the request, if it is traced.
    pub(crate) trace: Option<&'a RequestTrace>,
}

impl<'a> Origin<'a> {
    /// Makes the origin of a request whose sender does not say when it was last answered.
    pub fn new(connection_id: u64, arrived: Instant, trace: Option<&'a RequestTrace>) -> Origin<'a> {
        Origin { connection_id, arrived, back_after: None, trace }
    }

    /// Notes that the request is a known user's: the connection keeps its permit, and the trace is recorded.
    pub fn is_of_user(&self, peer: &Peer) {
        peer.permit.is_of_user();
        if let Some(trace) = self.trace {
            trace.is_of_user();
        }
    }

    /// Notes in the trace that a stage of the request has ended.
    pub fn mark(&self, stage: &'static str) {
        if let Some(trace) = self.trace {
            trace.mark(stage);
        }
    }
}

impl Candidate<'_> {
    /// Checks what can be checked without asking the backend.
    pub(super) fn check(&self) -> Result<(), NotGathered> {
        if let Some(refusal) = self.invalid_own_setting() {
            return Err(NotGathered::Refused(refusal));
        }
        let is_long = |id: &&str| id.len() > MAX_QUERY_ID_BYTES;
        let obstacle = self.obstacle.or(self.query_id.filter(is_long).map(|_| ForwardReason::QueryId));
        obstacle.map_or(Ok(()), |reason| Err(NotGathered::Forward(reason)))
    }

    /// Refuses a misspelt setting of Windrow's. It must not pass in silence: somebody relies on it.
    fn invalid_own_setting(&self) -> Option<Refusal> {
        let in_text = self.statement.settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let mut own = self.options.settings().chain(in_text).filter(|(name, _)| role(name) == Role::Windrow);
        own.find_map(|(name, value)| RequestedSettings::check_own(name, value).err()).map(Refusal::bad_argument)
    }

    pub(super) fn id(&self) -> QueryId {
        query_id(self.query_id)
    }
}

/// Returns the client's own id, or a random one. The id only has to be unique, so the fast generator will do.
pub fn query_id(given: Option<&str>) -> QueryId {
    match given {
        Some(id) => QueryId::Given(Arc::from(id)),
        None => random_query_id(),
    }
}

pub(crate) fn random_query_id() -> QueryId {
    QueryId::Random(fastrand::u128(..) & !(0xf << 76) & !(0x3 << 62) | (4 << 76) | (2 << 62))
}
