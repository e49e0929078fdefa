use std::sync::Arc;
use std::time::{Duration, Instant};

use windrow_client::{Credentials, Exception};
use windrow_gatherer::{Insert, QueryId, Ticket, Withdrawal};
use windrow_sink::Destination;
use windrow_statement::{InsertStatement, TableName};

use super::answer::Summary;
use super::progress::Progress;
use super::request::Request;
use super::serve::State;
use crate::admission::{NotAdmitted, TableKey};
use crate::error::Refusal;
use crate::insert::{
    prepare, role, Answer, AnswerForm, Gatherable, InsertRequest, Kinship, NotGatherable, Prepared, Role, Said,
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
        reason: &'static str,
        prepared: Arc<Prepared>,
        query_id: QueryId,
    },
}

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// Longer ids are not kept: they stand in buffers and logs by the hundred thousand.
const MAX_QUERY_ID_BYTES: usize = 1024;
const MAX_LOGGED_QUERY_BYTES: usize = 4096;

/// An insert, as the text of a request gives it.
pub(crate) struct Candidate<'a> {
    pub(crate) request: &'a Request<'a>,
    pub(crate) credentials: &'a Credentials,
    pub(crate) statement: InsertStatement,
    /// The statement's table, with the values of query parameters.
    pub(crate) table: TableName,
    /// The statement up to its data.
    pub(crate) head: &'a [u8],
    pub(crate) payload: &'a [u8],
    /// Whether the payload is the request's body and nothing else.
    pub(crate) payload_is_body: bool,
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
    let prepared = prepared(state, &candidate).await.map_err(|error| match error {
        NotAdmitted::Forward(reason) => NotGathered::Forward(reason),
        NotAdmitted::Busy => NotGathered::Forward("refused"),
        NotAdmitted::Unreachable(cause) => NotGathered::Refused(Refusal::unreachable(&cause)),
    })?;
    if candidate.payload_is_body {
        state.known_heads.put(request, state.prepared.epoch(), &prepared);
    }
    let ready = read(state, prepared, candidate.payload, query_id(request))?;
    if !ready.is_doubtful() {
        return Ok(ready);
    }
    match prepared_anew(state, &candidate, &ready.prepared).await {
        Ok(prepared) => read(state, prepared, candidate.payload, query_id(request)),
        // What the backend said last holds while it can't be asked.
        Err(NotAdmitted::Unreachable(_) | NotAdmitted::Busy) => Ok(ready),
        Err(NotAdmitted::Forward(reason)) => Err(NotGathered::Forward(reason)),
    }
}

impl Ready {
    /// Whether it may have been read against a table that has changed since.
    pub(crate) fn is_doubtful(&self) -> bool {
        self.prepared.is_doubtful()
    }
}

/// The insert's admission with the table as it is now: `doubtful` may not know all of its columns.
async fn prepared_anew(
    state: &Arc<State>,
    candidate: &Candidate<'_>,
    doubtful: &Prepared,
) -> Result<Arc<Prepared>, NotAdmitted> {
    let signature = signature(candidate);
    if let Some(known) = state.prepared.get(&signature).filter(|known| !known.is_doubtful()) {
        return Ok(known);
    }
    let request = insert_request(candidate)?;
    let Destination { database, table, .. } = &doubtful.destination;
    let key = TableKey { database: database.clone(), table: table.clone() };
    state.admission.doubt_table(&key, Prepared::BELIEVED_FOR);
    let answer = state.asking.join(&[b"anew", &signature[..]].concat());
    answer.wait(|| prepare_and_keep(state, &signature, &request)).await
}

/// Reads the payload of an insert of which nothing else is new.
pub(crate) fn read(
    state: &State,
    prepared: Arc<Prepared>,
    payload: &[u8],
    query_id: QueryId,
) -> Result<Ready, NotGathered> {
    let payload_bytes = payload.len() as u64;
    match prepared.read(payload) {
        // More than its table may ever hold: waiting would be in vain.
        Ok(read) if !state.gatherer.could_hold(read.rows.bytes() as u64) => Err(NotGathered::Forward("too_large")),
        Ok(read) => Ok(Ready { prepared, read, payload_bytes, query_id }),
        Err(NotGatherable::TooLarge) => Err(NotGathered::Forward("too_large")),
        Err(NotGatherable::NotRead(reason)) => Err(NotGathered::NotRead { reason, prepared, query_id }),
    }
}

/// A payload that ClickHouse could not read either stands in the log like any other insert.
pub(crate) fn log_unreadable(
    state: &State,
    prepared: &Prepared,
    query_id: QueryId,
    payload_bytes: u64,
    exception: Exception,
) {
    state.gatherer.log_unreadable(
        prepared.destination.clone(),
        prepared.kind.clone(),
        query_id,
        payload_bytes,
        exception,
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
    let Ready { prepared, read: Gatherable { rows: brought, kinship }, payload_bytes, query_id } = ready;
    let (rows, bytes) = (brought.count() as u64, brought.bytes() as u64);
    if rows == 0 {
        return Ok(Summary::default());
    }
    let shape = prepared.shape(&kinship, &state.gatherer);
    let insert = Insert {
        rows: brought,
        payload_bytes,
        writer: origin.connection_id,
        ack: prepared.ack,
        patience: prepared.wait_timeout,
        at_once: false,
        dedup: None,
        history: None,
        query_id,
        kind: prepared.kind(&kinship),
    };
    let ticket = state.gatherer.push(&shape, insert).await.map_err(|error| Refusal::push(&error))?;
    state.metrics.accepted.inc();
    if let Kinship::Opaque { .. } = kinship {
        state.metrics.opaque.inc();
    }
    let Some(ticket) = ticket else { return Ok(Summary::default()) };
    let summary = Summary { rows, bytes, elapsed_ns: 0 };
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
    own.find_map(|(name, value)| Said::check_own(name, value).err()).map(Refusal::bad_argument)
}

/// The insert's admission: remembered, or asked for. While the backend is away, for as long as the insert would wait.
async fn prepared(state: &Arc<State>, candidate: &Candidate<'_>) -> Result<Arc<Prepared>, NotAdmitted> {
    let signature = signature(candidate);
    if let Some(prepared) = state.prepared.get(&signature) {
        if prepared.should_renew(state.prepared.ttl()) {
            renew(state, candidate, signature, prepared.clone());
        }
        return Ok(prepared);
    }
    let request = insert_request(candidate)?;
    let patience = patience(state, &request);
    // Who begins to ask after a DDL statement must not get an answer from before it.
    let answer = state.asking.join(&[&signature[..], &state.prepared.epoch().to_le_bytes()].concat());
    let asked = answer.wait(|| ask(state, &signature, &request, &answer));
    tokio::time::timeout(patience, asked).await.unwrap_or_else(|_| {
        let obstacle = answer.last_obstacle().unwrap_or_else(|| "it does not answer".to_owned());
        let waited_ms = patience.as_millis();
        Err(NotAdmitted::Unreachable(format!("{obstacle} (waited wait_for_async_insert_timeout, {waited_ms} ms)")))
    })
}

/// How long the insert would wait to be stored; it waits no longer to be admitted.
fn patience(state: &State, request: &InsertRequest) -> Duration {
    let said = request.settings.iter().rev().find(|(name, _)| name == "wait_for_async_insert_timeout");
    let said = said.and_then(|(_, seconds)| seconds.parse().ok()).and_then(|s| Duration::try_from_secs_f64(s).ok());
    let default = Duration::from_millis(state.options.settings.gather.wait_for_async_insert_timeout_ms);
    said.unwrap_or(default).min(Duration::from_secs(86_400))
}

async fn ask(
    state: &Arc<State>,
    signature: &[u8],
    request: &InsertRequest,
    answer: &Answer,
) -> Result<Arc<Prepared>, NotAdmitted> {
    let mut pause = FIRST_PAUSE;
    loop {
        match prepare_and_keep(state, signature, request).await {
            Err(NotAdmitted::Unreachable(cause)) if !state.is_closing() => {
                answer.note_obstacle(cause);
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            result => return result,
        }
    }
}

async fn prepare_and_keep(
    state: &State,
    signature: &[u8],
    request: &InsertRequest,
) -> Result<Arc<Prepared>, NotAdmitted> {
    let epoch = state.prepared.epoch();
    state.metrics.admissions.inc();
    let prepared = Arc::new(prepare(&state.admission, &state.options.settings, request).await?);
    state.prepared.put(signature, epoch, prepared.clone());
    Ok(prepared)
}

/// Asks the backend again, while the last answer is still good.
fn renew(state: &Arc<State>, candidate: &Candidate<'_>, signature: Vec<u8>, old: Arc<Prepared>) {
    let Ok(request) = insert_request(candidate) else { return };
    let state = state.clone();
    tokio::spawn(async move {
        let epoch = state.prepared.epoch();
        state.metrics.admissions.inc();
        match prepare(&state.admission, &state.options.settings, &request).await {
            Ok(prepared) => state.prepared.put(&signature, epoch, Arc::new(prepared)),
            Err(NotAdmitted::Unreachable(_) | NotAdmitted::Busy) => old.renewal_failed(),
            // It is refused now: let the next insert hear it.
            Err(NotAdmitted::Forward(_)) => state.prepared.remove(&signature),
        }
    });
}

/// Everything that decides how an insert is prepared: of the statement what it says, not how it is written. Lengths go before the parts, so that no two requests look alike.
fn signature(candidate: &Candidate<'_>) -> Vec<u8> {
    let mut signature = Vec::with_capacity(256);
    let mut add = |part: &[u8]| {
        signature.extend_from_slice(&(part.len() as u32).to_le_bytes());
        signature.extend_from_slice(part);
    };
    let request = candidate.request;
    add(candidate.credentials.user.as_bytes());
    add(candidate.credentials.password.as_bytes());
    add(request.quota_key().as_bytes());
    add(request.database().unwrap_or("").as_bytes());
    let statement = &candidate.statement;
    add(candidate.table.database.as_deref().unwrap_or("").as_bytes());
    add(candidate.table.table.as_bytes());
    add(statement.format.as_bytes());
    // No list and an empty one are different things; an empty one does not parse.
    add(&(statement.columns.as_ref().map_or(0, Vec::len) as u32).to_le_bytes());
    for column in statement.columns.iter().flatten() {
        add(column.as_bytes());
    }
    for (name, value) in statement.settings.iter().filter(|(name, _)| role(name) != Role::Private) {
        add(name.as_bytes());
        add(value.as_bytes());
    }
    for param in &request.params {
        if matters(param.name()) {
            add(&param.name);
            add(&param.value);
        }
    }
    signature
}

fn matters(name: &str) -> bool {
    name == "role" || !matches!(role(name), Role::Request | Role::Private)
}

fn insert_request(candidate: &Candidate<'_>) -> Result<InsertRequest, NotAdmitted> {
    let request = candidate.request;
    let text = |value: Option<&str>| value.map(str::to_owned).ok_or(NotAdmitted::Forward("not_text"));
    let (mut roles, mut settings) = (Vec::new(), Vec::new());
    for param in request.params.iter().filter(|param| matters(param.name())) {
        match param.name() {
            "" => return Err(NotAdmitted::Forward("not_text")),
            "role" => roles.push(text(param.text())?),
            name => settings.push((name.to_owned(), text(param.text())?)),
        }
    }
    settings.extend(candidate.statement.settings.iter().cloned());
    Ok(InsertRequest {
        credentials: candidate.credentials.clone(),
        roles,
        quota_key: request.quota_key().to_owned(),
        database: request.database().map(str::to_owned),
        settings,
        statement: candidate.statement.clone(),
        table: candidate.table.clone(),
        query: String::from_utf8_lossy(&candidate.head[..candidate.head.len().min(MAX_LOGGED_QUERY_BYTES)])
            .trim()
            .to_owned(),
    })
}
