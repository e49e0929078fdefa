//! What becomes of an insert at its end: its sender is answered, it is counted and logged, its memory is given back; and if
//! it can't be stored and nobody waits for it any more, it becomes a dead letter.

use std::sync::Arc;

use windrow_block::Rows;
use windrow_sink::{BatchId, Sink};

use crate::gatherer::Core;
use crate::insert::{InsertError, Outcome};
use crate::letters::Letter;
use crate::log::{InsertStatus, LogEntry, LoggedBatch};
use crate::member::{Contents, Member};
use crate::table::{Sealed, Table};

/// An insert that has come to its end.
pub(crate) struct Settled {
    pub(crate) member: Member,
    pub(crate) outcome: Outcome,
    /// The piece that it was stored in, or refused with.
    pub(crate) flush: BatchId,
    /// What it brought, where that may have to be kept.
    rows: Option<Rows>,
}

impl Settled {
    pub(crate) fn new(member: Member, flush: BatchId, outcome: Outcome) -> Settled {
        Settled { member, outcome, flush, rows: None }
    }
}

/// All of a piece has failed. The rows of those whose senders don't wait are kept for their letters.
pub(crate) fn failed(flush: BatchId, mut contents: Contents, error: &InsertError) -> Vec<Settled> {
    let all = contents.rows.take();
    let mut start = 0;
    let members = std::mem::take(&mut contents.members).into_iter().map(|member| {
        let end = start + member.rows;
        let rows = (!member.waits()).then(|| {
            // Taken from what `take` left: empty, and of the same columns.
            let mut rows = contents.rows.clone();
            rows.append_range(&all, start..end);
            rows
        });
        start = end;
        Settled { member, outcome: Err(error.clone()), flush, rows }
    });
    members.collect()
}

pub(crate) fn held_bytes(settled: &[Settled]) -> u64 {
    settled.iter().map(|settled| settled.member.held_bytes).sum()
}

/// Brings inserts of one batch to their end.
pub(crate) fn settle<S: Sink>(core: &Arc<Core<S>>, table: &Arc<Table>, sealed: &Sealed, settled: Vec<Settled>) {
    if settled.is_empty() {
        return;
    }
    enter_log(core, sealed, &settled);
    let (mut letters, mut kept_bytes, mut free_bytes) = (Vec::new(), 0, 0);
    for settled in settled {
        let counters = if settled.outcome.is_ok() { &table.metrics.stored } else { &table.metrics.failed };
        counters.add(1, settled.member.rows as u64, settled.member.payload_bytes);
        let held_bytes = settled.member.held_bytes;
        match end(core, sealed, settled) {
            // Its rows are still there.
            Some(letter) => {
                kept_bytes += held_bytes;
                letters.push(letter);
            }
            None => free_bytes += held_bytes,
        }
    }
    table.budget.give_back(free_bytes);
    core.post(table, letters, kept_bytes);
}

/// Tells whoever waits. Who failed and has nobody to be told is handed back as a letter.
fn end<S: Sink>(core: &Core<S>, sealed: &Sealed, settled: Settled) -> Option<Letter> {
    let Settled { mut member, outcome, flush, rows } = settled;
    let outcome = match member.outcome.take() {
        // Its client may have gone; an insert at level `stored` is settled all the same.
        Some(sender) => sender.send(outcome).err()?,
        None => outcome,
    };
    let (error, rows) = (outcome.err()?, rows?);
    let baggage = member.baggage.map(|baggage| *baggage).unwrap_or_default();
    let arrived = sealed.arrival_wall_micros(member.arrived_at);
    Some(Letter {
        destination: sealed.shape.destination.clone(),
        kind: member.kind,
        rows,
        query_id: member.query_id,
        payload_bytes: member.payload_bytes,
        dedup: baggage.dedup,
        ack: member.ack,
        journal_id: None,
        arrived_wall_micros: baggage.history.map_or(arrived, |history| history.arrived_wall_micros),
        failed_wall_micros: core.stores.surroundings.wall_micros(),
        attempts: baggage.history.map_or(0, |history| history.attempts).saturating_add(member.attempts),
        batch: flush,
        error,
    })
}

fn enter_log<S: Sink>(core: &Core<S>, sealed: &Sealed, settled: &[Settled]) {
    let flush_time_micros = core.stores.surroundings.wall_micros();
    for piece in settled.chunk_by(|one, other| one.flush == other.flush) {
        core.log.add(LoggedBatch {
            destination: sealed.shape.destination.clone(),
            flush_query_id: piece.first().map(|settled| settled.flush),
            flush_time_micros,
            timeout_ms: sealed.hold_ms,
            inserts: piece.iter().map(|settled| log_entry(sealed, &settled.member, &settled.outcome)).collect(),
        });
    }
}

fn log_entry(sealed: &Sealed, member: &Member, outcome: &Outcome) -> LogEntry {
    LogEntry {
        event_time_micros: sealed.arrival_wall_micros(member.arrived_at),
        kind: member.kind.clone(),
        query_id: member.query_id.clone(),
        bytes: member.payload_bytes,
        rows: member.rows as u64,
        exception: outcome.as_ref().err().map(|error| Arc::from(error.to_string())),
        status: if outcome.is_ok() { InsertStatus::Ok } else { InsertStatus::FlushError },
    }
}
