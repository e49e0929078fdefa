//! Third stage of an insert: its payload becomes rows.
//!
//! It is parsed here, or passes through as text, or ClickHouse is asked to read it (`readers.rs`). A [`Parsed`] no longer
//! needs the bytes that it was read from.

use std::sync::Arc;

use windrow_clickhouse::Exception;
use windrow_engine::{AckLevel, DedupKeys, QueryId};

use super::admit::{admit_anew, Admitted};
use super::answer_form::AnswerForm;
use super::backend_reader::memory_to_ask;
use super::candidate::{query_id, Candidate, NotGathered};
use super::prepared::Prepared;
use super::readers::{Gatherable, NotGatherable, Unread};
use crate::admission::NotAdmitted;
use crate::backend::Backend;
use crate::state::State;

/// The reason to forward what has no key by which a repeat would be known.
const DEDUPLICATION: &str = "deduplication";
/// Its table collapses rows by a column in which ClickHouse may refuse a value.
const SIGN: &str = "sign";
/// An insert that is ready to be handed over.
pub(crate) struct Parsed {
    pub(super) prepared: Arc<Prepared>,
    pub(super) read: Gatherable,
    pub(super) payload_bytes: u64,
    pub(crate) query_id: QueryId,
    pub(super) dedup: Option<DedupKeys>,
    pub(super) ack: AckLevel,
}

impl Parsed {
    pub(crate) fn form(&self) -> AnswerForm {
        self.prepared.answer_form
    }

    /// Whether its client waits until it is stored.
    pub(crate) fn waits(&self) -> bool {
        self.ack == AckLevel::Stored
    }

    /// Whether it waits with others for a batch, as an asynchronous insert does.
    pub(crate) fn is_async(&self) -> bool {
        !self.prepared.at_once
    }

    /// Whether its payload had all columns that it was to bring.
    pub(crate) fn has_all_columns(&self) -> bool {
        self.prepared.is_whole(&self.read.compatibility)
    }

    /// Whether it may have been read against a table that has changed since.
    pub(crate) fn is_doubtful(&self) -> bool {
        self.prepared.is_doubtful()
    }
}

impl Admitted<'_> {
    pub(crate) async fn parse(self, state: &Arc<State>) -> Result<Parsed, NotGathered> {
        let Admitted { candidate, prepared } = self;
        let token = candidate.token();
        let parsed = match parse(state, prepared, candidate.payload, query_id(candidate.query_id), token) {
            Err(NotGathered::NotRead { unread, prepared, query_id }) => {
                return ask_to_read(state, candidate, unread, prepared, query_id).await
            }
            parsed => parsed?,
        };
        if !parsed.is_doubtful() {
            return Ok(parsed);
        }
        match admit_anew(state, candidate, &parsed.prepared).await {
            Ok(prepared) => parse(state, prepared, candidate.payload, query_id(candidate.query_id), token),
            // What the backend said last holds while it can't be asked.
            Err(NotAdmitted::Unreachable(_) | NotAdmitted::Busy) => Ok(parsed),
            Err(error) => Err(error.into()),
        }
    }
}

/// Reads the payload of an insert of which nothing else is new.
pub(crate) fn parse(
    state: &State,
    prepared: Arc<Prepared>,
    payload: &[u8],
    query_id: QueryId,
    token: Option<&str>,
) -> Result<Parsed, NotGathered> {
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
) -> Result<Parsed, NotGathered> {
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
        Ok(dedup) => Ok(Parsed { prepared, read, payload_bytes, query_id, dedup, ack }),
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
) -> Result<Parsed, NotGathered> {
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
        prepared = match admit_anew(state, candidate, &prepared).await {
            Err(NotAdmitted::Unreachable(_) | NotAdmitted::Busy) => prepared,
            anew => anew?,
        };
    }
    let Some(_room) = state.body_room.room_for(memory_to_ask(candidate.payload)).await else {
        return Err(NotGathered::NotRead { unread, prepared, query_id });
    };
    let params = candidate.params.iter().filter_map(|param| Some((param.name(), param.text()?)));
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
    match !state.backend.takes_requests() && read.rows.bytes() > max_journaled_bytes() {
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
