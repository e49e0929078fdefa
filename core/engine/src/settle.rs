//! The end of an insert: its sender is answered, it is counted and logged, its memory is given back. If it
//! can't be stored and nobody waits for it any more, it becomes a dead letter.

use std::sync::Arc;

use crate::sink::{BatchId, Sink};
use tokio::sync::oneshot;
use windrow_columns::Rows;

use crate::dead_letter_store::FailedInsert;
use crate::deduplication::{enter_stored, Entered};
use crate::flight::Flight;
use crate::gatherer::Core;
use crate::insert::{InsertError, Outcome};
use crate::journaling::{Journaled, Journaling};
use crate::log::{InsertStatus, LogEntry, LoggedBatch};
use crate::member::{Contents, Member};
use crate::posting::Post;
use crate::table::{Sealed, Table};

/// An insert that has come to its end.
pub(crate) struct Settled {
    pub(crate) member: Member,
    pub(crate) outcome: Outcome,
    /// The piece that the insert was stored in, or refused with.
    pub(crate) flush: BatchId,
    /// The insert's rows, where they may have to be kept.
    rows: Option<Rows>,
}

impl Settled {
    pub(crate) fn new(member: Member, flush: BatchId, outcome: Outcome) -> Settled {
        Settled { member, outcome, flush, rows: None }
    }
}

/// Ends all members of a piece with an error. The rows of those whose senders don't wait are kept for their
/// dead letters.
pub(crate) fn failed(flush: BatchId, contents: Contents, error: &InsertError) -> Vec<Settled> {
    let Contents { rows, members, .. } = contents;
    let settled = |member, rows| Settled { member, outcome: Err(error.clone()), flush, rows };
    if members.iter().all(Member::waits) {
        return members.into_iter().map(|member| settled(member, None)).collect();
    }
    let counts: Vec<usize> = members.iter().map(|member| member.rows).collect();
    let each = members.into_iter().zip(rows.into_pieces(&counts));
    each.map(|(member, rows)| match member.waits() {
        true => settled(member, None),
        false => settled(member, Some(rows)),
    })
    .collect()
}

pub(crate) fn held_bytes(settled: &[Settled]) -> u64 {
    settled.iter().map(|settled| settled.member.held_bytes).sum()
}

/// Brings inserts of one batch to their end.
pub(crate) fn settle<S: Sink>(core: &Arc<Core<S>>, sealed: &Sealed, flight: &Arc<Flight>, mut settled: Vec<Settled>) {
    if settled.is_empty() {
        return;
    }
    let table = &sealed.shape.table;
    enter_log(core, sealed, &settled);
    sealed.trace.iter().for_each(|trace| trace.gathered(sealed, &settled));
    let entered = enter_stored(core, &mut settled);
    let mut ends = Ends::default();
    for settled in settled {
        table.metrics.ended(settled.outcome.is_ok(), settled.member.rows as u64, settled.member.payload_bytes);
        ends.add(core, table, sealed, settled);
    }
    table.budget.give_back(ends.free_bytes);
    if let Some(journal) = &core.journal {
        let journal = journal.clone();
        match entered {
            None => journal.done(table, &ends.done),
            Some(entered) => done_when_entered(
                core,
                journal,
                Entering { table: table.clone(), flight: flight.clone(), entered, done: ends.done },
            ),
        }
    }
    if !ends.dead_letters.is_empty() {
        let post = Post {
            table: table.clone(),
            flight: flight.clone(),
            dead_letters: ends.dead_letters,
            held_bytes: ends.kept_bytes,
            journaled: ends.kept,
        };
        core.post(post);
    }
}

/// Inserts on their way into the deduplication index.
struct Entering {
    table: Arc<Table>,
    flight: Arc<Flight>,
    entered: Entered,
    done: Vec<Journaled>,
}

/// Marks inserts as done when the deduplication index has them on the disk: after a crash in between, their
/// repeats would be taken for new. Until then the records of their pieces stay in the journal, and a shutdown
/// waits.
fn done_when_entered<S: Sink>(core: &Arc<Core<S>>, journal: Arc<Journaling>, entering: Entering) {
    let core = core.clone();
    core.posting.begin(0);
    entering.flight.records.hold();
    tokio::spawn(async move {
        let Entering { table, flight, entered, done } = entering;
        entered.wait().await;
        journal.done(&table, &done);
        flight.records.let_go(&journal);
        core.posting.end(0);
    });
}

/// Work that is to be done for inserts that have come to their end.
#[derive(Default)]
struct Ends {
    done: Vec<Journaled>,
    free_bytes: u64,
    dead_letters: Vec<FailedInsert>,
    /// Journal records of the dead letters' inserts, and (`kept_bytes`) the memory that these hold.
    kept: Vec<Journaled>,
    kept_bytes: u64,
}

impl Ends {
    /// Tells the sender if it waits. An insert that failed and has nobody to be told becomes a dead letter.
    fn add<S: Sink>(&mut self, core: &Arc<Core<S>>, table: &Arc<Table>, sealed: &Sealed, settled: Settled) {
        let Settled { mut member, outcome, flush, rows } = settled;
        let (journaled, held_bytes) = (member.journaled, member.held_bytes);
        let untold = match (member.outcome.take(), journaled) {
            (Some(sender), Some(journaled)) if outcome.is_err() && member.waits() => {
                self.free_bytes += held_bytes;
                refuse(core, table, Refused { member, journaled, sender, outcome });
                return;
            }
            // Its client may have gone; an insert at level `stored` is settled all the same.
            (Some(sender), _) => sender.send(outcome).err(),
            (None, _) => Some(outcome),
        };
        match (untold, rows) {
            (Some(Err(error)), Some(rows)) => {
                self.kept_bytes += held_bytes;
                self.kept.extend(journaled);
                self.dead_letters.push(dead_letter(core, sealed, Failed { member, error, flush, rows }));
            }
            _ => {
                self.free_bytes += held_bytes;
                self.done.extend(journaled);
            }
        }
    }
}

/// Tells a sender that waits that its insert is not stored, when a crash can't bring it back any more; or
/// that this isn't certain.
fn refuse<S: Sink>(core: &Arc<Core<S>>, table: &Arc<Table>, refused: Refused) {
    let (core, table) = (core.clone(), table.clone());
    tokio::spawn(async move {
        let Refused { member, journaled, sender, outcome } = refused;
        let outcome = match &core.journal {
            // It is tried again; whoever waits should not have to wait for a disk that fails.
            Some(journal) if !journal.done_for_sure(&table, journaled).await => outcome.map_err(may_come_back),
            _ => outcome,
        };
        // With its keys: until here a repeat waits.
        drop(member);
        let _ = sender.send(outcome);
    });
}

/// An insert in the journal that is not stored, and whose sender waits.
struct Refused {
    member: Member,
    journaled: Journaled,
    sender: oneshot::Sender<Outcome>,
    outcome: Outcome,
}

/// Turns a refusal into the error that is told of an insert that the journal can't forget now.
fn may_come_back(error: InsertError) -> InsertError {
    match error {
        InsertError::OutcomeUnknown(_) => error,
        _ => InsertError::OutcomeUnknown(format!(
            "{error}; the journal could not be written: a restart may send the insert again"
        )),
    }
}

/// An insert that can't be stored.
struct Failed {
    member: Member,
    error: InsertError,
    flush: BatchId,
    rows: Rows,
}

fn dead_letter<S: Sink>(core: &Core<S>, sealed: &Sealed, failed: Failed) -> FailedInsert {
    let Failed { member, error, flush, rows } = failed;
    let arrived_wall_micros = arrival_wall_micros(sealed, &member);
    let baggage = member.baggage.map(|baggage| *baggage).unwrap_or_default();
    FailedInsert {
        destination: sealed.shape.destination.clone(),
        kind: member.kind,
        rows,
        query_id: member.query_id,
        payload_bytes: member.payload_bytes,
        dedup: baggage.dedup,
        ack: member.ack,
        journal_id: member.journaled.map(|journaled| journaled.record.0),
        arrived_wall_micros,
        failed_wall_micros: core.stores.environment.wall_micros(),
        attempts: baggage.history.map_or(0, |history| history.attempts).saturating_add(member.attempts),
        batch: flush,
        error,
    }
}

/// Returns when the insert arrived, at whichever run of the gateway, in microseconds since 1970.
fn arrival_wall_micros(sealed: &Sealed, member: &Member) -> u64 {
    let history = member.baggage.as_ref().and_then(|baggage| baggage.history);
    history.map_or_else(|| sealed.arrival_wall_micros(member.arrived_at), |history| history.arrived_wall_micros)
}

fn enter_log<S: Sink>(core: &Core<S>, sealed: &Sealed, settled: &[Settled]) {
    let flush_time_micros = core.stores.environment.wall_micros();
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
        event_time_micros: arrival_wall_micros(sealed, member),
        kind: member.kind.clone(),
        query_id: member.query_id.clone(),
        bytes: member.payload_bytes,
        rows: member.rows as u64,
        exception: outcome.as_ref().err().map(|error| Arc::from(error.to_string())),
        status: if outcome.is_ok() { InsertStatus::Ok } else { InsertStatus::FlushError },
    }
}
