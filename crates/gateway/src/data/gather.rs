use std::sync::Arc;
use std::time::{Duration, Instant};

use windrow_client::{Credentials, Exception};
use windrow_engine::{AckLevel, DedupKeys, Insert, QueryId, Ticket, Withdrawal};
use windrow_statement::{InsertStatement, TableName};

use super::admit::{prepared, prepared_anew};
use super::answer::Summary;
use super::progress::Progress;
use super::request::Request;
use super::serve::State;
use crate::admission::NotAdmitted;
use crate::backend::Backend;
use crate::error::Refusal;
use crate::insert::{
    memory_to_ask, role, AnswerForm, BatchCompatibility, DedupSettings, Gatherable, NotGatherable, Prepared,
    RequestedSettings, Role, Unread,
};

/// What became of an insert.
pub(crate) struct Gathered {
    pub(crate) query_id: QueryId,
    pub(crate) outcome: Result<Summary, Refusal>,
}

/// Why an insert is not gathered after all.
pub(crate) enum NotGathered {
    Refused(Refusal),
    /// Not for us: forward it, for this reason.
    Forward(&'static str),
    /// The payload could not be read for certain: ClickHouse reads or refuses it.
    NotRead {
        unread: Unread,
        prepared: Arc<Prepared>,
        query_id: QueryId,
    },
}

/// The reason to forward what has no key by which a repeat would be known.
const DEDUPLICATION: &str = "deduplication";
/// Its table collapses rows by a column in which ClickHouse may refuse a value.
const SIGN: &str = "sign";
/// Longer ids are not kept: they stand in buffers and logs by the hundred thousand.
const MAX_QUERY_ID_BYTES: usize = 1024;

/// An insert, as the text of a request gives it.
pub(crate) struct Candidate<'a> {
    pub(crate) request: &'a Request<'a>,
    pub(crate) credentials: &'a Credentials,
    pub(crate) statement: InsertStatement,
    /// The statement's table, with the values of query parameters.
    pub(crate) table: TableName,
    pub(crate) payload: &'a [u8],
    /// Whether the payload is the request's body and nothing else.
    pub(crate) payload_is_body: bool,
}

impl Candidate<'_> {
    /// The name that the insert gives itself: the statement's goes before the URL's.
    pub(super) fn token(&self) -> Option<&str> {
        let in_url = self.request.params.iter().filter_map(|param| Some((param.name(), param.text()?)));
        let in_text = self.statement.settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        DedupSettings::of(in_url.chain(in_text)).token()
    }
}

/// Which connection an insert came on, and when.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin {
    pub(crate) connection_id: u64,
    pub(crate) arrived: Instant,
}

/// An insert that is ready to be handed over. It no longer needs the bytes that it was read from.
pub(crate) struct Ready {
    prepared: Arc<Prepared>,
    read: Gatherable,
    payload_bytes: u64,
    query_id: QueryId,
    dedup: Option<DedupKeys>,
    ack: AckLevel,
}

impl Ready {
    pub(super) fn form(&self) -> AnswerForm {
        self.prepared.answer_form
    }
}

/// Admits and reads an insert.
pub(crate) async fn make_ready(state: &Arc<State>, candidate: Candidate<'_>) -> Result<Ready, NotGathered> {
    let request = candidate.request;
    if let Some(refusal) = invalid_own_setting(request, &candidate.statement) {
        return Err(NotGathered::Refused(refusal));
    }
    if !request.is_framed_plainly() {
        return Err(NotGathered::Forward("setting"));
    }
    if request.query_id().is_some_and(|id| id.len() > MAX_QUERY_ID_BYTES) {
        return Err(NotGathered::Forward("query_id"));
    }
    if request.param("session_id").is_some_and(<[u8]>::is_empty) || request.has_two_quota_keys() {
        return Err(NotGathered::Forward("refused"));
    }
    if let Some(session_id) = request.param_str("session_id") {
        if state.sessions.is_changed(state.sessions.key(&candidate.credentials.user, session_id)) {
            return Err(NotGathered::Forward("session"));
        }
    }
    let prepared = prepared(state, &candidate).await.map_err(not_admitted)?;
    let token = candidate.token();
    // A head with a token is not seen again.
    if candidate.payload_is_body && token.is_none() {
        state.known_heads.put(request, &prepared);
    }
    let ready = match read(state, prepared, candidate.payload, query_id(request), token) {
        Err(NotGathered::NotRead { unread, prepared, query_id }) => {
            return ask_to_read(state, &candidate, unread, prepared, query_id).await
        }
        read => read?,
    };
    if !ready.is_doubtful() {
        return Ok(ready);
    }
    match prepared_anew(state, &candidate, &ready.prepared).await {
        Ok(prepared) => read(state, prepared, candidate.payload, query_id(request), token),
        // What the backend said last holds while it can't be asked.
        Err(NotAdmitted::Unreachable(_) | NotAdmitted::Busy) => Ok(ready),
        Err(error) => Err(not_admitted(error)),
    }
}

fn not_admitted(error: NotAdmitted) -> NotGathered {
    match error {
        NotAdmitted::Forward(reason) => NotGathered::Forward(reason),
        NotAdmitted::Refused(refusal) => NotGathered::Refused((*refusal).clone()),
        NotAdmitted::Busy => NotGathered::Forward("refused"),
        NotAdmitted::Unreachable(cause) => NotGathered::Refused(Refusal::unreachable(&cause)),
    }
}

impl Ready {
    /// Whether it may have been read against a table that has changed since.
    pub(crate) fn is_doubtful(&self) -> bool {
        self.prepared.is_doubtful()
    }
}

/// Reads the payload of an insert of which nothing else is new.
pub(crate) fn read(
    state: &State,
    prepared: Arc<Prepared>,
    payload: &[u8],
    query_id: QueryId,
    token: Option<&str>,
) -> Result<Ready, NotGathered> {
    match prepared.read(payload) {
        Ok(read) => was_read(state, prepared, read, payload.len() as u64, query_id, token),
        Err(NotGatherable::TooLarge) => Err(NotGathered::Forward("too_large")),
        Err(NotGatherable::NotRead(unread)) => Err(NotGathered::NotRead { unread, prepared, query_id }),
    }
}

fn was_read(
    state: &State,
    prepared: Arc<Prepared>,
    read: Gatherable,
    payload_bytes: u64,
    query_id: QueryId,
    token: Option<&str>,
) -> Result<Ready, NotGathered> {
    let ack = ack_of(state, &prepared, &read);
    // More than its table may ever hold: waiting would be in vain.
    if !state.gatherer.could_hold(read.rows.bytes() as u64, ack) {
        return Err(NotGathered::Forward("too_large"));
    }
    // A refusal that comes when it has been acknowledged helps nobody.
    if ack != AckLevel::Stored && prepared.has_doubtful_marks(&read) {
        return Err(NotGathered::NotRead { unread: Unread::because(SIGN, payload_bytes), prepared, query_id });
    }
    match dedup_keys(state, &prepared, &read, token) {
        Ok(dedup) => Ok(Ready { prepared, read, payload_bytes, query_id, dedup, ack }),
        Err(reason) => Err(NotGathered::NotRead { unread: Unread::because(reason, payload_bytes), prepared, query_id }),
    }
}

/// What can't be read here for certain is read by ClickHouse, if that makes sure what it would store. It has the
/// connections for it that the insert would else be forwarded by.
async fn ask_to_read(
    state: &Arc<State>,
    candidate: &Candidate<'_>,
    unread: Unread,
    mut prepared: Arc<Prepared>,
    query_id: QueryId,
) -> Result<Ready, NotGathered> {
    // Rows that were read, but can't be told apart or may be refused, would be no better known.
    let may_ask = unread.reason != DEDUPLICATION && unread.reason != SIGN;
    let (Backend::ClickHouse(clickhouse), true) = (&state.backend, may_ask) else {
        return Err(NotGathered::NotRead { unread, prepared, query_id });
    };
    let Some(leave) = prepared.leave_to_ask(&state.questions) else {
        return Err(NotGathered::NotRead { unread, prepared, query_id });
    };
    // A column that is new would be skipped.
    if prepared.is_old() {
        prepared = match prepared_anew(state, candidate, &prepared).await {
            Err(NotAdmitted::Unreachable(_) | NotAdmitted::Busy) => prepared,
            anew => anew.map_err(not_admitted)?,
        };
    }
    let Some(_room) = state.body_room.room_for(memory_to_ask(candidate.payload)).await else {
        return Err(NotGathered::NotRead { unread, prepared, query_id });
    };
    let params = candidate.request.params.iter().filter_map(|param| Some((param.name(), param.text()?)));
    let query_parameters = params.filter(|(name, _)| name.starts_with("param_"));
    match prepared.ask(&clickhouse.relay, leave, candidate.payload, query_parameters).await {
        Some(read) => {
            let payload_bytes = candidate.payload.len() as u64;
            was_read(state, prepared, read, payload_bytes, query_id, candidate.token())
        }
        None => Err(NotGathered::NotRead { unread, prepared, query_id }),
    }
}

/// What is too large for one record of the journal, and has nowhere else to go, is stored before it is acknowledged.
fn ack_of(state: &State, prepared: &Prepared, read: &Gatherable) -> AckLevel {
    let max_journaled_bytes = || state.options.settings.get().http.max_decompressed_bytes;
    match state.backend.duckdb().is_some() && read.rows.bytes() > max_journaled_bytes() {
        true => AckLevel::Stored,
        false => prepared.ack,
    }
}

/// What the insert is known by when it comes again. An error is a reason to forward it.
fn dedup_keys(
    state: &State,
    prepared: &Prepared,
    read: &Gatherable,
    token: Option<&str>,
) -> Result<Option<DedupKeys>, &'static str> {
    let Some(plan) = &prepared.dedup else { return Ok(None) };
    let shape = prepared.shape(&read.compatibility, &state.gatherer);
    plan.keys(token, shape.destination(), &read.rows).map(Some).ok_or(DEDUPLICATION)
}

/// A payload that ClickHouse could not read either stands in the log like any other insert.
pub(crate) fn log_unreadable(
    state: &State,
    prepared: &Prepared,
    query_id: QueryId,
    payload_bytes: u64,
    exception: Exception,
) {
    state.gatherer.log_without_batch(
        prepared.destination().clone(),
        prepared.kind.clone(),
        query_id,
        payload_bytes,
        Some(exception),
    );
}

/// The client's own id, or a random one. Uniqueness is all that is asked of it, so the fast generator will do.
pub(crate) fn query_id(request: &Request<'_>) -> QueryId {
    match request.query_id() {
        Some(id) => QueryId::Given(Arc::from(id)),
        None => random_query_id(),
    }
}

pub(crate) fn random_query_id() -> QueryId {
    QueryId::Random(fastrand::u128(..) & !(0xf << 76) & !(0x3 << 62) | (4 << 76) | (2 << 62))
}

/// Hands an insert over, and waits for its outcome if it is to be acknowledged as stored.
pub(super) async fn store(state: &State, ready: Ready, origin: Origin, progress: &mut Progress<'_>) -> Gathered {
    let query_id = ready.query_id.clone();
    Gathered { query_id, outcome: hand_over(state, ready, origin, progress).await }
}

async fn hand_over(
    state: &State,
    ready: Ready,
    origin: Origin,
    progress: &mut Progress<'_>,
) -> Result<Summary, Refusal> {
    let Ready { prepared, read: Gatherable { rows: brought, compatibility }, payload_bytes, query_id, dedup, ack } =
        ready;
    let (rows, bytes) = (brought.count() as u64, brought.bytes() as u64);
    if rows == 0 {
        let (destination, kind) = (prepared.destination().clone(), prepared.kind(&compatibility));
        state.gatherer.log_without_batch(destination, kind, query_id, payload_bytes, None);
        return Ok(Summary::default());
    }
    let shape = prepared.shape(&compatibility, &state.gatherer);
    let insert = Insert {
        rows: brought,
        payload_bytes,
        writer: origin.connection_id,
        ack,
        patience: prepared.wait_timeout,
        at_once: prepared.at_once,
        dedup,
        history: None,
        query_id,
        kind: prepared.kind(&compatibility),
    };
    let ticket = state.gatherer.push(&shape, insert).await.map_err(|error| Refusal::push(&error))?;
    state.metrics.accepted.inc();
    match compatibility {
        BatchCompatibility::Parsed(_) => {}
        BatchCompatibility::Passthrough { .. } => _ = state.metrics.passthrough.inc(),
        BatchCompatibility::BackendRead => _ = state.metrics.backend_read.inc(),
    }
    let summary = Summary { rows, bytes, elapsed_ns: 0 };
    let Some(ticket) = ticket else {
        // A repeat of what is stored is told what the first was told.
        return Ok(if ack == AckLevel::Stored { summary } else { Summary::default() });
    };
    wait(ticket, prepared.wait_timeout, &summary, progress).await?;
    Ok(Summary { elapsed_ns: origin.arrived.elapsed().as_nanos() as u64, ..summary })
}

async fn wait(
    mut ticket: Ticket,
    timeout: Duration,
    summary: &Summary,
    progress: &mut Progress<'_>,
) -> Result<(), Refusal> {
    let end = tokio::time::Instant::now() + timeout;
    loop {
        let next = progress.interval().map_or(end, |interval| end.min(tokio::time::Instant::now() + interval));
        match tokio::time::timeout_at(next, ticket.outcome()).await {
            Ok(outcome) => return outcome.map_err(Refusal::insert),
            Err(_) if next < end => progress.tell(summary.rows, summary.bytes).await,
            Err(_) => break,
        }
    }
    let timeout_ms = timeout.as_millis() as u64;
    match ticket.withdraw().await {
        Withdrawal::Done(outcome) => outcome.map_err(Refusal::insert),
        Withdrawal::Withdrawn { last_error } => Err(Refusal::withdrawn(timeout_ms, last_error)),
        Withdrawal::InFlight => Err(Refusal::in_flight(timeout_ms)),
    }
}

/// A misspelt setting of ours must not pass in silence: somebody relies on what it promises.
fn invalid_own_setting(request: &Request<'_>, statement: &InsertStatement) -> Option<Refusal> {
    let in_url = request.params.iter().map(|param| (param.name(), param.text().unwrap_or("")));
    let in_text = statement.settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let mut own = in_url.chain(in_text).filter(|(name, _)| role(name) == Role::Windrow);
    own.find_map(|(name, value)| RequestedSettings::check_own(name, value).err()).map(Refusal::bad_argument)
}
