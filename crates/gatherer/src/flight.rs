//! A batch on its way to the sink: attempts, back-off, and narrowing a refusal down to the inserts that caused it.
//!
//! A batch keeps its id as long as it keeps its members. When members leave it after an attempt (withdrawn, or told that
//! their outcome is unknown), what remains is another batch with another id; that is only done where the sink is known to
//! have stored nothing, or can't recognise a repeat anyway.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;
use windrow_client::Exception;
use windrow_policy::{FlushEnd, Micros};
use windrow_sink::{Batch, BatchId, Sink, StoreError};

use crate::gatherer::{random_id, Core};
use crate::insert::{InsertError, Outcome, Withdrawal};
use crate::isolate::{concerns_whole_batch, shows_stale_schema, MAX_STORES_PER_BATCH};
use crate::log::{InsertStatus, LogEntry, LoggedBatch};
use crate::table::{Contents, Launch, Member, Sealed, Table};

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
const MEMORY_LIMIT_EXCEEDED: i32 = 241;
const PARTS_INTERVAL: Micros = Micros::from_millis(2_000);

/// The part of a flight that others may touch while it is under way.
pub(crate) struct Flight {
    pub(crate) oldest_arrival: Micros,
    state: Mutex<FlightState>,
}

#[derive(Default)]
struct FlightState {
    /// The batch between two attempts, while the sink is known to hold nothing of it: members can still leave.
    on_ground: Option<Contents>,
    last_error: Option<InsertError>,
    /// What members that left before the end held: given back already.
    left_bytes: u64,
    ends: Vec<oneshot::Sender<()>>,
}

impl Flight {
    pub(crate) fn new(oldest_arrival: Micros) -> Flight {
        Flight { oldest_arrival, state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, FlightState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `sender` is told when the flight has ended.
    pub(crate) fn tell_end(&self, sender: oneshot::Sender<()>) {
        self.lock().ends.push(sender);
    }

    /// Takes a member out if the batch is between two attempts. `None`: not here, or not now.
    pub(crate) fn withdraw(&self, table: &Table, member: u64) -> Option<Withdrawal> {
        let mut state = self.lock();
        let state = &mut *state;
        let gone = state.on_ground.as_mut()?.withdraw(member)?;
        state.left_bytes += gone.held_bytes;
        table.withdrawn(gone);
        Some(Withdrawal::Withdrawn { last_error: state.last_error.clone() })
    }

    fn land(&self, contents: Contents, error: InsertError) {
        let mut state = self.lock();
        state.on_ground = Some(contents);
        state.last_error = Some(error);
    }

    fn take_off(&self) -> Option<Contents> {
        self.lock().on_ground.take()
    }

    /// Members have come to their end while the others fly on.
    fn leave(&self, settled: &[Settled]) {
        self.lock().left_bytes += held_bytes(settled);
    }

    fn left_bytes(&self) -> u64 {
        self.lock().left_bytes
    }

    fn take_ends(&self) -> Vec<oneshot::Sender<()>> {
        std::mem::take(&mut self.lock().ends)
    }
}

/// An insert that has come to its end.
struct Settled {
    member: Member,
    outcome: Outcome,
}

fn held_bytes(settled: &[Settled]) -> u64 {
    settled.iter().map(|settled| settled.member.held_bytes).sum()
}

/// Flies a batch, and those that queue behind it in its lane.
pub(crate) async fn fly<S: Sink>(core: Arc<Core<S>>, launch: Launch) {
    let mut next = Some(launch);
    while let Some(Launch { mut sealed, flight }) = next {
        let flushed = std::mem::take(&mut sealed.flushed);
        let table = sealed.shape.table.clone();
        let started = Instant::now();
        let mut contents =
            Contents { block: sealed.contents.block.take(), members: std::mem::take(&mut sealed.contents.members) };
        contents.drop_withdrawn();
        observe_sealed(&table, &sealed, &contents);
        let sealed = Arc::new(sealed);
        let settled = store_apart(&core, &sealed, &flight, contents).await;
        let duration = Micros(started.elapsed().as_micros() as u64);
        let ok = settled.iter().any(|settled| settled.outcome.is_ok());
        // The policy and the lane are told first: a writer that is answered may be back before we look again.
        next = table.land(&sealed.shape, &FlushEnd { buffer: sealed.buffer, duration, ok });
        settle(&core, &table, &sealed, settled);
        table.metrics.flush.observe((table.clock.now() - sealed.sealed_at).0 as f64 / 1e6);
        for ended in flushed.into_iter().chain(flight.take_ends()) {
            // Whoever asked may have gone.
            let _ = ended.send(());
        }
        count_parts(&core, &table);
    }
}

fn observe_sealed(table: &Table, sealed: &Sealed, contents: &Contents) {
    table.metrics.batch_rows.observe(contents.block.rows() as f64);
    table.metrics.batch_inserts.observe(contents.members.len() as f64);
    for member in &contents.members {
        table.metrics.waiting.observe((sealed.sealed_at - member.arrived_at).0 as f64 / 1e6);
    }
}

/// Stores the batch in a task of its own: a panic in there must not leave the lane blocked and the bytes taken for ever.
/// Its members then hear that their outcome is unknown, since nobody is left to tell them.
async fn store_apart<S: Sink>(
    core: &Arc<Core<S>>,
    sealed: &Arc<Sealed>,
    flight: &Arc<Flight>,
    contents: Contents,
) -> Vec<Settled> {
    let held_bytes: u64 = contents.members.iter().map(|member| member.held_bytes).sum();
    let storing = tokio::spawn({
        let (core, sealed, flight) = (core.clone(), sealed.clone(), flight.clone());
        async move { store(&core, &sealed, &flight, contents).await }
    });
    storing.await.unwrap_or_else(|error| {
        let table = &sealed.shape.table;
        tracing::error!(database = table.name.database, table = table.name.table, batch = %sealed.id, %error, "a flush failed inside");
        table.budget.give_back(held_bytes - flight.left_bytes());
        Vec::new()
    })
}

/// A part of a batch that is stored under an id of its own.
struct Piece {
    id: BatchId,
    contents: Contents,
}

/// Stores the batch, with retries, and tells how each member ended that was not answered on the way.
async fn store<S: Sink>(core: &Core<S>, sealed: &Sealed, flight: &Flight, contents: Contents) -> Vec<Settled> {
    let mut settled = Vec::with_capacity(contents.members.len());
    let mut pieces = vec![Piece { id: sealed.id, contents }];
    let mut stores_left = MAX_STORES_PER_BATCH;
    while let Some(piece) = pieces.pop() {
        let Some(Refusal { mut piece, error, can_be_narrowed }) =
            attempt(core, sealed, flight, piece, &mut settled).await
        else {
            continue;
        };
        stores_left = stores_left.saturating_sub(1);
        if piece.contents.members.len() > 1 && can_be_narrowed && stores_left > 0 {
            let second = piece.contents.split_off(piece.contents.members.len() / 2);
            // The first half goes first: rows keep their order.
            pieces.push(Piece { id: BatchId(random_id()), contents: second });
            pieces.push(Piece { id: BatchId(random_id()), contents: piece.contents });
        } else {
            settle_all(&mut settled, piece.contents.members, Err(error));
        }
    }
    settled
}

struct Refusal {
    piece: Piece,
    error: InsertError,
    /// Whether a part of the piece may be stored without the rest, and without storing anything twice.
    can_be_narrowed: bool,
}

impl Refusal {
    fn new(piece: Piece, exception: Exception) -> Refusal {
        let can_be_narrowed = !concerns_whole_batch(exception.code);
        Refusal { piece, error: InsertError::Exception(exception), can_be_narrowed }
    }
}

fn settle_all(settled: &mut Vec<Settled>, members: Vec<Member>, outcome: Outcome) {
    settled.extend(members.into_iter().map(|member| Settled { member, outcome: outcome.clone() }));
}

/// Tries until the piece is stored or finally refused, however long that takes: those who wait withdraw when their time
/// is over, and the others were promised that their rows are kept.
async fn attempt<S: Sink>(
    core: &Core<S>,
    sealed: &Sealed,
    flight: &Flight,
    mut piece: Piece,
    settled: &mut Vec<Settled>,
) -> Option<Refusal> {
    let table = &sealed.shape.table;
    let mut pause = FIRST_PAUSE;
    let mut too_large = 0;
    let mut surely_not_stored = true;
    let deduplicates = sealed.shape.destination.deduplicates;
    while !piece.contents.members.is_empty() {
        let members = piece.contents.members.len();
        let error = match send(core, sealed, &mut piece).await {
            Ok(()) => {
                settle_all(settled, piece.contents.members, Ok(()));
                return None;
            }
            Err(StoreError::Refused(exception)) if !exception.is_passing() => {
                if shows_stale_schema(exception.code) {
                    (core.on_stale_schema)(&table.name);
                }
                return Some(Refusal::new(piece, exception));
            }
            // Nobody knows how much of it is stored: another attempt, of all or of a half, could store rows twice.
            Err(StoreError::Failed(exception)) => {
                if shows_stale_schema(exception.code) {
                    (core.on_stale_schema)(&table.name);
                }
                settle_all(settled, piece.contents.members, Err(InsertError::Exception(exception)));
                return None;
            }
            // A batch that is too large for its user's memory gets no smaller by waiting. Not after a lost answer: a half
            // would not be recognised as what may be stored already.
            Err(StoreError::Refused(exception))
                if exception.code == MEMORY_LIMIT_EXCEEDED
                    && too_large >= 2
                    && members > 1
                    && (surely_not_stored || !deduplicates) =>
            {
                return Some(Refusal::new(piece, exception));
            }
            Err(StoreError::Refused(exception)) => InsertError::Exception(exception),
            Err(StoreError::NotSent(text)) => InsertError::Unreachable(text),
            Err(StoreError::Unknown(text)) => InsertError::OutcomeUnknown(text),
        };
        tracing::warn!(
            database = table.name.database, table = table.name.table, batch = %piece.id, inserts = members, %error,
            "a batch could not be stored; trying again"
        );
        too_large += u32::from(matches!(&error, InsertError::Exception(e) if e.code == MEMORY_LIMIT_EXCEEDED));
        if matches!(error, InsertError::OutcomeUnknown(_)) {
            surely_not_stored = false;
            if !deduplicates {
                // Another attempt could store the rows twice. Whoever waits is told so and decides; whoever was promised
                // that the rows are kept is kept to, at that risk.
                let asked = piece.contents.extract(|member| member.outcome.is_some());
                if !asked.is_empty() {
                    piece.id = BatchId(random_id());
                }
                settle_all(settled, asked, Err(error.clone()));
                if piece.contents.members.is_empty() {
                    return None;
                }
            }
        }
        // Nobody knows how long the rest will take.
        let known = std::mem::take(settled);
        if !known.is_empty() {
            flight.leave(&known);
            settle(core, table, sealed, known);
        }
        if surely_not_stored {
            flight.land(piece.contents, error);
            tokio::time::sleep(pause).await;
            piece.contents = flight.take_off()?;
            if piece.contents.drop_withdrawn() {
                piece.id = BatchId(random_id());
            }
        } else {
            tokio::time::sleep(pause).await;
        }
        pause = (pause * 2).min(LONGEST_PAUSE).mul_f64(0.75 + 0.25 * fastrand::f64());
        table.metrics.retries.inc();
    }
    None
}

async fn send<S: Sink>(core: &Core<S>, sealed: &Sealed, piece: &mut Piece) -> Result<(), StoreError> {
    let destination = sealed.shape.destination.clone();
    let batch = Batch { id: piece.id, destination, block: piece.contents.block.take() };
    let result = core.sink.store(&batch).await;
    piece.contents.block = batch.block;
    result.map(|_stored| ())
}

/// Answers, counts and logs the inserts of a batch, and gives their memory back.
fn settle<S: Sink>(core: &Core<S>, table: &Table, sealed: &Sealed, settled: Vec<Settled>) {
    let flush_time_micros = crate::clock::wall_micros();
    let lost = settled.iter().filter(|settled| settled.outcome.is_err() && settled.member.outcome.is_none()).count();
    if lost > 0 {
        let error = settled.iter().find_map(|settled| settled.outcome.as_ref().err()).map(ToString::to_string);
        tracing::error!(
            database = table.name.database,
            table = table.name.table,
            inserts = lost,
            error,
            "inserts that nobody waited for could not be stored"
        );
    }
    core.log.add(LoggedBatch {
        destination: sealed.shape.destination.clone(),
        flush_query_id: Some(sealed.id),
        flush_time_micros,
        timeout_ms: sealed.hold_ms,
        inserts: settled.iter().map(|Settled { member, outcome }| log_entry(sealed, member, outcome)).collect(),
    });
    table.budget.give_back(held_bytes(&settled));
    for Settled { member, outcome } in settled {
        let counters = if outcome.is_ok() { &table.metrics.stored } else { &table.metrics.failed };
        counters.add(1, member.rows as u64, member.payload_bytes);
        if let Some(sender) = member.outcome {
            // Its client may have gone; the insert is settled all the same.
            let _ = sender.send(outcome);
        }
    }
}

fn log_entry(sealed: &Sealed, member: &Member, outcome: &Outcome) -> LogEntry {
    LogEntry {
        event_time_micros: sealed.arrival_wall_micros(member),
        kind: member.kind.clone(),
        query_id: member.query_id.clone(),
        bytes: member.payload_bytes,
        rows: member.rows as u64,
        exception: outcome.as_ref().err().map(|error| Arc::from(error.to_string())),
        status: if outcome.is_ok() { InsertStatus::Ok } else { InsertStatus::FlushError },
    }
}

fn count_parts<S: Sink>(core: &Arc<Core<S>>, table: &Arc<Table>) {
    if table.parts_are_due(PARTS_INTERVAL) {
        let (core, table) = (core.clone(), table.clone());
        tokio::spawn(async move {
            if let Some(parts) = core.sink.parts(&table.name.database, &table.name.table).await {
                table.parts_counted(parts);
            }
        });
    }
}
