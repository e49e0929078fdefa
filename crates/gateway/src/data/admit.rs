//! What an insert's request has to be asked for only once: the way from its text to a [`Prepared`], remembered or new.
//!
//! While the backend is away nobody can be asked, and what it said last goes on to hold for inserts that are acknowledged
//! before they are stored: they are to notice nothing of it. They are stored as their own user, and refused then if that
//! user may no longer insert. Only what a crash left in the journal is stored with Windrow's own account, so a right that
//! was taken away while the backend could not be asked goes on to work for that; `gather.admission_away_ttl_ms` bounds it.

use std::sync::Arc;
use std::time::Duration;

use windrow_gatherer::AckLevel;
use windrow_sink::Destination;

use super::gather::Candidate;
use super::serve::State;
use crate::admission::{NotAdmitted, TableKey};
use crate::insert::{is_token, prepare, role, Answer, InsertRequest, Known, Prepared, Role, TOKEN};

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
const MAX_LOGGED_QUERY_BYTES: usize = 4096;
/// Who has an earlier answer to go by waits no longer than this for a backend that is silent.
const PATIENCE_WITH_EARLIER_ANSWER: Duration = Duration::from_secs(1);

/// The insert's admission: remembered, or asked for.
pub(super) async fn prepared(state: &Arc<State>, candidate: &Candidate<'_>) -> Result<Arc<Prepared>, NotAdmitted> {
    let signature = signature(candidate);
    let epoch = state.prepared.epoch();
    let earlier = match state.prepared.get(&signature) {
        Known::Fresh(prepared) => {
            if prepared.should_renew(state.prepared.ttl()) {
                renew(state, candidate, signature, prepared.clone());
            }
            return Ok(prepared);
        }
        Known::Earlier(prepared) if prepared.ack != AckLevel::Stored => Some(prepared),
        // Who waits for the backend in any case may as well wait here.
        Known::Earlier(_) | Known::Nothing => None,
    };
    if let Some(earlier) = earlier.as_ref().filter(|earlier| earlier.renewal.has_failed_lately(epoch)) {
        if earlier.renewal.begin() {
            renew(state, candidate, signature, earlier.clone());
        }
        return Ok(earlier.clone());
    }
    let request = insert_request(candidate)?;
    // Who begins to ask after a DDL statement must not get an answer from before it.
    let answer = state.asking.join(&[&signature[..], &epoch.to_le_bytes()].concat());
    match earlier {
        Some(earlier) => ask_or_go_by(state, &signature, &request, &answer, earlier).await,
        None => ask_patiently(state, &signature, &request, &answer).await,
    }
}

/// A new answer, or the earlier one if none is to be had now.
async fn ask_or_go_by(
    state: &Arc<State>,
    signature: &[u8],
    request: &InsertRequest,
    answer: &Answer,
    earlier: Arc<Prepared>,
) -> Result<Arc<Prepared>, NotAdmitted> {
    let epoch = state.prepared.epoch();
    let asked = answer.wait(|| prepare_and_keep(state, signature, request));
    match tokio::time::timeout(PATIENCE_WITH_EARLIER_ANSWER, asked).await {
        Ok(Err(NotAdmitted::Unreachable(_) | NotAdmitted::Busy)) | Err(_) => {
            earlier.renewal.failed(epoch);
            Ok(earlier)
        }
        Ok(Err(refused @ (NotAdmitted::Forward(_) | NotAdmitted::Refused(_)))) => {
            state.prepared.remove(signature);
            Err(refused)
        }
        Ok(Ok(prepared)) => Ok(prepared),
    }
}

/// While the backend is away, for as long as the insert would wait to be stored.
async fn ask_patiently(
    state: &Arc<State>,
    signature: &[u8],
    request: &InsertRequest,
    answer: &Answer,
) -> Result<Arc<Prepared>, NotAdmitted> {
    let patience = patience(state, request);
    let asked = answer.wait(|| ask(state, signature, request, answer));
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
            Err(NotAdmitted::Unreachable(_) | NotAdmitted::Busy) => old.renewal.failed(epoch),
            // It is refused now: let the next insert hear it.
            Err(NotAdmitted::Forward(_) | NotAdmitted::Refused(_)) => state.prepared.remove(&signature),
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
    // That there is a token matters, not which.
    add(if candidate.token().is_some() { b"token" } else { b"" });
    let of_its_own = |name: &str| role(name) == Role::Private || is_token(name);
    for (name, value) in statement.settings.iter().filter(|(name, _)| !of_its_own(name)) {
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
    name == "role" || !(matches!(role(name), Role::Request | Role::Private) || is_token(name))
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
    settings.extend(candidate.token().map(|token| (TOKEN.to_owned(), token.to_owned())));
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

/// The insert's admission with the table as it is now: `doubtful` may not know all of its columns.
pub(super) async fn prepared_anew(
    state: &Arc<State>,
    candidate: &Candidate<'_>,
    doubtful: &Prepared,
) -> Result<Arc<Prepared>, NotAdmitted> {
    let signature = signature(candidate);
    match state.prepared.get(&signature) {
        Known::Fresh(known) if !known.is_doubtful() => return Ok(known),
        Known::Earlier(known) if known.renewal.has_failed_lately(state.prepared.epoch()) => return Ok(known),
        _ => {}
    }
    let request = insert_request(candidate)?;
    let Destination { database, table, .. } = &doubtful.destination;
    let key = TableKey { database: database.clone(), table: table.clone() };
    state.admission.doubt_table(&key, Prepared::BELIEVED_FOR);
    let answer = state.asking.join(&[b"anew", &signature[..]].concat());
    answer.wait(|| prepare_and_keep(state, &signature, &request)).await
}
