//! Third stage of an insert: its payload becomes rows.
//!
//! It is parsed here, or passes through as text, or ClickHouse is asked to read it (`readers.rs`). A [`Parsed`] no longer
//! needs the bytes that it was read from.

use std::sync::Arc;

use windrow_clickhouse::Exception;
use windrow_columns::Rows;
use windrow_engine::{sink::Destination, AckLevel, DedupKeys, QueryId};

use super::admit::admit_anew;
use super::answer_form::AnswerForm;
use super::backend_reader::memory_to_ask;
use super::candidate::{Candidate, NotGathered, SentRows};
use super::prepared::Prepared;
use super::readers::{BatchCompatibility, Gatherable, Unread};
use crate::admission::{NotAdmitted, ShardOfCut, Sharding};
use crate::cluster::{Cluster, GatewayId, InsertKey};
use crate::error::Refusal;
use crate::forward_reason::ForwardReason;
use crate::state::State;

/// An insert that is ready to be handed over.
pub(crate) struct Parsed {
    pub(super) prepared: Arc<Prepared>,
    pub(super) compatibility: BatchCompatibility,
    pub(super) rows: ReadRows,
    pub(super) payload_bytes: u64,
    pub(crate) query_id: QueryId,
    /// Key that the insert is known by as a whole, however it is cut.
    pub(crate) key: Option<InsertKey>,
    pub(super) ack: AckLevel,
}

/// Rows of an insert, with the keys that they are recognised by when they come again.
pub(super) enum ReadRows {
    Whole(Rows, Option<DedupKeys>),
    /// Parts of the rows, cut by the shards that they go to.
    ByShard(Vec<OfShard>),
}

impl ReadRows {
    pub(super) fn count(&self) -> u64 {
        self.all().map(|rows| rows.count() as u64).sum()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.all().map(|rows| rows.bytes() as u64).sum()
    }

    fn all(&self) -> impl Iterator<Item = &Rows> {
        let (whole, parts) = match self {
            ReadRows::Whole(rows, _) => (Some(rows), [].as_slice()),
            ReadRows::ByShard(parts) => (None, parts.as_slice()),
        };
        whole.into_iter().chain(parts.iter().map(|part| &part.rows))
    }
}

pub(super) struct OfShard {
    pub(super) shard: ShardOfCut,
    pub(super) rows: Rows,
    pub(super) dedup: Option<DedupKeys>,
}

impl Parsed {
    pub(crate) fn form(&self) -> AnswerForm {
        self.prepared.answer_form
    }

    /// Returns the owner of the insert, if that is another gateway.
    pub(crate) fn owner_elsewhere(&self, cluster: &Cluster) -> Option<GatewayId> {
        cluster.elsewhere(self.key?)
    }

    /// Says whether the client waits until the insert is stored.
    pub(crate) fn waits(&self) -> bool {
        self.ack == AckLevel::Stored
    }

    /// Says whether the insert waits with others for a batch, as an asynchronous insert does.
    pub(crate) fn is_async(&self) -> bool {
        !self.prepared.at_once
    }

    /// Says whether the payload had all columns that the insert was to bring.
    pub(crate) fn has_all_columns(&self) -> bool {
        self.prepared.is_whole(&self.compatibility)
    }

    /// Says whether the payload may have been read for a table that has changed since it was asked for.
    pub(crate) fn is_doubtful(&self) -> bool {
        self.prepared.is_doubtful()
    }
}

impl Candidate<'_> {
    /// Makes rows of the bytes or columns that came, as the insert was prepared for them.
    pub(crate) async fn parse(
        &self,
        state: &Arc<State>,
        prepared: Arc<Prepared>,
        rows: SentRows<'_>,
    ) -> Result<Parsed, NotGathered> {
        let payload = match rows {
            SentRows::Bytes(payload) => payload,
            SentRows::Columns { block, payload_bytes } => {
                let Some(present) = prepared.all_columns() else { return Err(ForwardReason::Type.into()) };
                let read = Gatherable { rows: Rows::Parsed(block), compatibility: BatchCompatibility::Parsed(present) };
                return was_read(state, prepared, read, payload_bytes, self.id(), self.token);
            }
        };
        let parsed = match parse(state, prepared, payload, self.id(), self.token) {
            Err(NotGathered::NotRead { unread, prepared, query_id }) => {
                return self.ask_to_read(state, payload, unread, prepared, query_id).await
            }
            parsed => parsed?,
        };
        if !parsed.is_doubtful() {
            return Ok(parsed);
        }
        match admit_anew(state, self, &parsed.prepared).await {
            Ok(prepared) => parse(state, prepared, payload, self.id(), self.token),
            // What the backend said last holds while it can't be asked.
            Err(NotAdmitted::Unreachable(_) | NotAdmitted::Busy) => Ok(parsed),
            Err(error) => Err(error.into()),
        }
    }
}

/// Reads the payload of an insert that is prepared already.
pub(crate) fn parse(
    state: &State,
    prepared: Arc<Prepared>,
    payload: &[u8],
    query_id: QueryId,
    token: Option<&str>,
) -> Result<Parsed, NotGathered> {
    match prepared.read(payload) {
        Ok(read) => was_read(state, prepared, read, payload.len() as u64, query_id, token),
        Err(Unread { reason: reason @ ForwardReason::TooLarge, .. }) => Err(reason.into()),
        Err(unread) => Err(NotGathered::NotRead { unread, prepared, query_id }),
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
        return Err(ForwardReason::TooLarge.into());
    }
    // A refusal that comes when it has been acknowledged helps nobody.
    let known = match ack != AckLevel::Stored && prepared.has_doubtful_marks(&read) {
        true => Err(ForwardReason::Sign.into()),
        false => known_rows(state, &prepared, read.rows, &read.compatibility, token),
    };
    match known {
        Ok((rows, key)) => {
            let compatibility = read.compatibility;
            Ok(Parsed { prepared, compatibility, rows, payload_bytes, query_id, key, ack })
        }
        Err(NotGathered::Forward(reason)) => {
            Err(NotGathered::NotRead { unread: Unread::because(reason, payload_bytes), prepared, query_id })
        }
        Err(why) => Err(why),
    }
}

/// Returns the rows as they are handed over, and the key of the whole insert. Fails with the reason why the
/// rows can't be told apart from others, or can't be cut.
fn known_rows(
    state: &State,
    prepared: &Prepared,
    rows: Rows,
    compatibility: &BatchCompatibility,
    token: Option<&str>,
) -> Result<(ReadRows, Option<InsertKey>), NotGathered> {
    if prepared.dedup.is_none() && prepared.dedup_by_parts.is_none() && prepared.sharding.is_none() {
        return Ok((ReadRows::Whole(rows, None), None));
    }
    // The shape and the keys are those of rows that are not cut.
    let shape = prepared.shape(compatibility, None, &state.gatherer);
    let destination = shape.destination();
    let dedup = dedup_keys(prepared, destination, &rows, token)?;
    let key = dedup.as_ref().map(|keys| InsertKey::new(keys, token.is_some()));
    // Such an insert came when nothing was cut, and is known as a whole.
    let is_known = |whole: &DedupKeys| state.gatherer.deduplication().is_some_and(|known| known.knows(whole));
    let sharding = match &prepared.sharding {
        Some(sharding) if !dedup.as_ref().is_some_and(is_known) => sharding,
        None if was_cut(state, prepared, destination, &rows, token) => {
            return Err(NotGathered::Refused(Refusal::was_cut()))
        }
        _ => return Ok((ReadRows::Whole(rows, dedup), key)),
    };
    // A repeat goes where the first went.
    let draw = dedup.as_ref().map_or_else(|| fastrand::u64(..), |keys| keys.key as u64);
    let (cut, shards) =
        cut_of(state, sharding, &rows, destination, draw, dedup.as_ref()).ok_or(ForwardReason::ShardingKey)?;
    let how = &sharding.cuts()[cut];
    let of_shard = |(shard, rows): (u32, Rows)| {
        let dedup = match prepared.dedup.as_ref().zip(dedup.as_ref()) {
            Some((plan, whole)) => {
                let partitions = plan.partitions_of(destination, &rows).ok_or(ForwardReason::Deduplication)?;
                Some(how.keys(whole, shard, partitions))
            }
            None => None,
        };
        Ok::<_, ForwardReason>(OfShard { shard: ShardOfCut { cut, shard }, rows, dedup })
    };
    let parts = Sharding::cut(how, rows, &shards).into_iter().map(of_shard);
    Ok((ReadRows::ByShard(parts.collect::<Result<_, _>>()?), key))
}

/// Says whether the insert was cut by shards when it came first: as a whole, it would be stored once more.
fn was_cut(state: &State, prepared: &Prepared, to: &Destination, rows: &Rows, token: Option<&str>) -> bool {
    let (Some(plan), Some(known)) = (&prepared.dedup_by_parts, state.gatherer.deduplication()) else { return false };
    let whole = plan.keys(token, to, rows);
    whole.is_some_and(|whole| state.admission.was_cut(&prepared.grounds.schema, &whole, known))
}

/// Returns the position of the cut, and each row's shard. Rows are cut by the shards that there are now; but
/// an insert that was cut otherwise when it came first is cut so again, or its rows would not be recognised
/// on their new shards.
fn cut_of(
    state: &State,
    sharding: &Sharding,
    rows: &Rows,
    destination: &Destination,
    draw: u64,
    dedup: Option<&DedupKeys>,
) -> Option<(usize, Vec<u32>)> {
    if let (Some(whole), Some(deduplication)) = (dedup, state.gatherer.deduplication()) {
        for (at, cut) in sharding.cuts().iter().enumerate().skip(1) {
            let Some(shards) = sharding.shards_of_rows(cut, rows, destination, draw) else { continue };
            let mut used = shards.clone();
            used.sort_unstable();
            used.dedup();
            if used.iter().any(|shard| deduplication.knows(&cut.keys(whole, *shard, Vec::new()))) {
                return Some((at, shards));
            }
        }
    }
    Some((0, sharding.shards_of_rows(&sharding.cuts()[0], rows, destination, draw)?))
}

impl Candidate<'_> {
    /// Lets ClickHouse read a payload that can't be read here for certain, if that makes it certain what
    /// ClickHouse would store. The question uses the connections by which inserts are forwarded.
    async fn ask_to_read(
        &self,
        state: &Arc<State>,
        payload: &[u8],
        unread: Unread,
        mut prepared: Arc<Prepared>,
        query_id: QueryId,
    ) -> Result<Parsed, NotGathered> {
        // Rows that were read, but can't be told apart or may be refused, would be no better known.
        let may_ask = !unread.reason.is_about_read_rows();
        let (Some(clickhouse), true) = (state.backend.clickhouse(), may_ask) else {
            return Err(NotGathered::NotRead { unread, prepared, query_id });
        };
        let Some(permit) = prepared.permit_to_ask(&state.questions) else {
            return Err(NotGathered::NotRead { unread, prepared, query_id });
        };
        // A column that is new would be skipped.
        if prepared.is_old() {
            prepared = match admit_anew(state, self, &prepared).await {
                Err(NotAdmitted::Unreachable(_) | NotAdmitted::Busy) => prepared,
                anew => anew?,
            };
        }
        let Some(_room) = state.body_room.room_for(memory_to_ask(payload)).await else {
            return Err(NotGathered::NotRead { unread, prepared, query_id });
        };
        match prepared.ask(&clickhouse.relay, permit, payload, self.options.query_parameters()).await {
            Some(read) => was_read(state, prepared, read, payload.len() as u64, query_id, self.token),
            None => Err(NotGathered::NotRead { unread, prepared, query_id }),
        }
    }
}

/// Returns the ack level. An insert that is too large for one record of the journal, and can't be forwarded,
/// is stored before it is acknowledged.
fn ack_of(state: &State, prepared: &Prepared, read: &Gatherable) -> AckLevel {
    let max_journaled_bytes = || state.options.settings.get().http.max_decompressed_bytes;
    match !state.backend.takes_requests() && read.rows.bytes() > max_journaled_bytes() {
        true => AckLevel::Stored,
        false => prepared.ack,
    }
}

/// Returns the keys that a repeat of the insert is recognised by. An error is a reason to forward the insert.
fn dedup_keys(
    prepared: &Prepared,
    destination: &Destination,
    rows: &Rows,
    token: Option<&str>,
) -> Result<Option<DedupKeys>, ForwardReason> {
    let Some(plan) = &prepared.dedup else { return Ok(None) };
    plan.keys(token, destination, rows).map(Some).ok_or(ForwardReason::Deduplication)
}

/// Logs a payload that ClickHouse could not read either, like any other insert.
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
