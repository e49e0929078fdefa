//! A batch on its way to the sink: its pieces one after the other, and what becomes of its members.
//!
//! Who is answered when: usually all at the end, after the policy and the lane have been told, so that a writer that
//! comes back finds the next buffer open. Once a batch is in several pieces, or has to be tried again, those whose end
//! is known are answered at once: nobody knows how long the rest will take.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::policy::{FlushEnd, Micros};
use crate::sink::{BatchId, Sink};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::attempt::{attempt, Refusal};
use crate::cut::cut;
use crate::flush_trace::FlushTrace;
use crate::gatherer::Core;
use crate::insert::{AckLevel, InsertError, Outcome};
use crate::isolate::{Piece, Pieces, Unbroken};
use crate::journaling::PieceRecords;
use crate::member::{Cleared, Contents, Member};
use crate::part_counts::count_parts;
use crate::settle::{failed, held_bytes, settle, Settled};
use crate::table::{Launch, Sealed, Size, Table};

/// The part of a flight that others may touch while it is under way.
pub(crate) struct Flight {
    pub(crate) oldest_arrival: Micros,
    /// How many of its inserts nothing but memory keeps, though they were acknowledged.
    pub(crate) unkept_inserts: u64,
    /// What of it stands in the journal.
    pub(crate) records: PieceRecords,
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

/// A member that has left between two attempts.
pub(crate) struct Left {
    pub(crate) size: Size,
    pub(crate) last_error: Option<InsertError>,
    pub(crate) cleared: Option<Cleared>,
}

impl Flight {
    pub(crate) fn new(oldest_arrival: Micros, unkept_inserts: u64) -> Flight {
        Flight { oldest_arrival, unkept_inserts, records: PieceRecords::default(), state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, FlightState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `sender` is told when the flight has ended.
    pub(crate) fn tell_end(&self, sender: oneshot::Sender<()>) {
        self.lock().ends.push(sender);
    }

    /// Takes a member out if the batch is between two attempts. `None`: not here, or not now.
    pub(crate) fn withdraw(&self, member: u64) -> Option<Left> {
        let mut state = self.lock();
        let state = &mut *state;
        let on_ground = state.on_ground.as_mut()?;
        let size = Size::of(on_ground.withdraw(member)?);
        let cleared = on_ground.clear_left();
        state.left_bytes += cleared.as_ref().map_or(0, |cleared| cleared.bytes);
        Some(Left { size, last_error: state.last_error.clone(), cleared })
    }

    /// Looks at what is between two attempts.
    #[cfg(test)]
    pub(crate) fn look_at_ground<T>(&self, look: impl FnOnce(&Contents) -> T) -> Option<T> {
        self.lock().on_ground.as_ref().map(look)
    }

    pub(crate) fn attempt_failed(&self, contents: Contents, error: InsertError) {
        let mut state = self.lock();
        state.on_ground = Some(contents);
        state.last_error = Some(error);
    }

    pub(crate) fn take_off(&self) -> Option<Contents> {
        self.lock().on_ground.take()
    }

    /// Members have come to their end while the others fly on.
    pub(crate) fn leave(&self, held_bytes: u64) {
        self.lock().left_bytes += held_bytes;
    }

    fn left_bytes(&self) -> u64 {
        self.lock().left_bytes
    }

    fn take_ends(&self) -> Vec<oneshot::Sender<()>> {
        std::mem::take(&mut self.lock().ends)
    }
}

/// A batch in the air, with all that its attempts need to know.
pub(crate) struct Aloft<'a, S: Sink> {
    pub(crate) core: &'a Arc<Core<S>>,
    pub(crate) sealed: &'a Sealed,
    pub(crate) flight: &'a Arc<Flight>,
    /// The id under which the journal has the piece at hand.
    written_as: Option<BatchId>,
    /// Whose end is known, and who has not been answered.
    settled: Vec<Settled>,
    any_stored: bool,
}

/// How a flight ended: the members that were not answered on the way, and whether anything was stored.
#[derive(Default)]
struct StoredApart {
    settled: Vec<Settled>,
    any_stored: bool,
    /// False: nobody knows what became of the others.
    is_complete: bool,
}

impl<S: Sink> Aloft<'_, S> {
    pub(crate) fn table(&self) -> &Arc<Table> {
        &self.sealed.shape.table
    }

    pub(crate) fn settle(&mut self, flush: BatchId, members: Vec<Member>, outcome: Outcome) {
        self.any_stored |= outcome.is_ok() && !members.is_empty();
        self.settled.extend(members.into_iter().map(|member| Settled::new(member, flush, outcome.clone())));
    }

    /// The piece will not be stored.
    pub(crate) fn fail(&mut self, piece: Piece, error: &InsertError) {
        self.settled.extend(failed(piece.id, piece.contents, error));
    }

    /// Answers those whose end is known, while the others fly on.
    pub(crate) fn answer(&mut self) {
        let known = std::mem::take(&mut self.settled);
        if !known.is_empty() {
            self.flight.leave(held_bytes(&known));
            settle(self.core, self.sealed, self.flight, known);
        }
    }

    /// Members whose records could not be written: they are not sent. Who was acknowledged at level `memory` is not
    /// among them.
    pub(crate) fn take_unkept(&self, piece: &mut Piece) -> Vec<Member> {
        let Some(journal) = self.core.journal.as_ref().filter(|journal| journal.has_failed()) else {
            return Vec::new();
        };
        let is_unkept = |member: &Member| member.ack != AckLevel::Memory && journal.is_unkept(member);
        match piece.contents.members.iter().any(is_unkept) {
            true => piece.contents.extract(is_unkept),
            false => Vec::new(),
        }
    }

    /// Writes down that the piece is about to be sent, for those who come after a crash: they have to send it again
    /// with the same members under the same id.
    pub(crate) async fn write_down(&mut self, piece: &Piece) -> Result<(), String> {
        let Some(journal) = &self.core.journal else { return Ok(()) };
        if self.written_as == Some(piece.id) {
            return Ok(());
        }
        let record = journal.record_piece(piece.id, &piece.contents.members).await?;
        record.into_iter().for_each(|record| self.flight.records.add(record));
        self.written_as = Some(piece.id);
        Ok(())
    }
}

/// Flies a batch, and those that queue behind it in its lane.
pub(crate) async fn fly<S: Sink>(core: Arc<Core<S>>, launch: Launch) {
    let mut next = Some(launch);
    while let Some(Launch { mut sealed, flight, flush }) = next {
        let flushed = std::mem::take(&mut sealed.flushed);
        let table = sealed.shape.table.clone();
        let started = Instant::now();
        let mut contents = std::mem::take(&mut sealed.contents);
        table.give_back(contents.drop_left());
        observe_sealed(&table, &sealed, &contents);
        sealed.trace = FlushTrace::begin(core.stores.tracer.as_ref(), &contents.members);
        let left_over = contents.members.iter().filter(|member| member.left_over).count() as u64;
        flight.records.hold();
        sealed.record.into_iter().for_each(|record| flight.records.add(record));
        let sealed = Arc::new(sealed);
        let StoredApart { settled, any_stored, is_complete } = store_apart(&core, &sealed, &flight, contents).await;
        let duration = Micros(started.elapsed().as_micros() as u64);
        // The policy and the lane are told first: a writer that is answered may be back before we look again.
        core.schedule.ended(flush);
        next = table.flight_ended(&sealed.shape, &FlushEnd { buffer: sealed.buffer, duration, ok: any_stored });
        for launch in core.schedule.turns() {
            launch_apart(&core, launch);
        }
        settle(&core, &sealed, &flight, settled);
        if let Some(journal) = core.journal.as_ref().filter(|_| is_complete) {
            flight.records.let_go(journal);
        }
        if table.leftovers_settled(left_over) {
            tracing::info!(
                database = table.name.database,
                table = table.name.table,
                "all inserts that were left in the journal from before have come to their end"
            );
        }
        sealed.trace.iter().for_each(|trace| trace.end(&sealed, any_stored));
        table.metrics.flushed(Duration::from_micros((table.clock.now() - sealed.sealed_at).0));
        table.flight_settled(&flight);
        for ended in flushed.into_iter().chain(flight.take_ends()) {
            // Whoever asked may have gone.
            let _ = ended.send(());
        }
        count_parts(&core, &table);
    }
}

/// In a task of its own. Not in line: a flight's future would hold itself.
fn launch_apart<S: Sink>(core: &Arc<Core<S>>, launch: Launch) {
    let flying: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(fly(core.clone(), launch));
    tokio::spawn(flying);
}

fn observe_sealed(table: &Table, sealed: &Sealed, contents: &Contents) {
    table.metrics.flushes(contents.members.len(), contents.rows.count());
    for member in &contents.members {
        table.metrics.waiting.observe((sealed.sealed_at - member.arrived_at).0 as f64 / 1e6);
    }
}

/// Stores the batch in a task of its own: a panic in there must not leave the lane blocked and the bytes taken for
/// ever. Its members then hear that their outcome is unknown, since nobody is left to tell them; those in the journal
/// are stored after the next start.
async fn store_apart<S: Sink>(
    core: &Arc<Core<S>>,
    sealed: &Arc<Sealed>,
    flight: &Arc<Flight>,
    contents: Contents,
) -> StoredApart {
    let held_bytes: u64 = contents.members.iter().map(|member| member.held_bytes).sum();
    let storing = tokio::spawn({
        let (core, sealed, flight) = (core.clone(), sealed.clone(), flight.clone());
        async move { store(&core, &sealed, &flight, contents).await }
    });
    storing.await.unwrap_or_else(|error| {
        let table = &sealed.shape.table;
        tracing::error!(database = table.name.database, table = table.name.table, batch = %sealed.id, %error, "a flush failed inside");
        table.budget.give_back(held_bytes - flight.left_bytes());
        StoredApart::default()
    })
}

/// Stores the batch piece by piece, and tells how each member ended that was not answered on the way.
async fn store<S: Sink>(core: &Arc<Core<S>>, sealed: &Sealed, flight: &Arc<Flight>, contents: Contents) -> StoredApart {
    let mut aloft = Aloft {
        core,
        sealed,
        flight,
        written_as: None,
        settled: Vec::with_capacity(contents.members.len()),
        any_stored: false,
    };
    let mut pieces = Pieces::new(sealed.id, cut(contents, &sealed.shape.destination), sealed.source.is_some());
    while let Some(piece) = pieces.next() {
        if let Some(refusal) = attempt(&mut aloft, piece).await {
            narrow(&mut aloft, &mut pieces, refusal);
        }
        if !pieces.is_empty() {
            aloft.answer();
        }
    }
    StoredApart { settled: aloft.settled, any_stored: aloft.any_stored, is_complete: true }
}

/// Takes a refused piece apart, or gives its members the refusal.
fn narrow<S: Sink>(aloft: &mut Aloft<'_, S>, pieces: &mut Pieces, refusal: Refusal) {
    let Refusal { piece, exception, can_be_narrowed } = refusal;
    let unbroken = match can_be_narrowed {
        true => pieces.narrow(piece, &exception),
        false => Err(Unbroken { piece, is_given_up: false }),
    };
    let metrics = &aloft.table().metrics;
    match unbroken {
        Ok(()) => {
            metrics.narrowings.inc();
        }
        Err(Unbroken { piece, is_given_up }) => {
            if is_given_up {
                metrics.given_up.inc();
            } else if can_be_narrowed {
                metrics.culprits.inc_by(piece.contents.members.len() as u64);
            }
            aloft.fail(piece, &InsertError::Exception(exception));
        }
    }
}
