//! A batch on its way to the sink: its pieces one after the other, in rounds, and what becomes of its
//! members.
//!
//! A piece that has to be tried later ends the round, since nothing is to go before it; unless it is stuck
//! (`retry_state.rs`). Then the other pieces are tried as well, and at last the batch steps aside: its lane
//! goes on without it, and the batch is tried beside the lane until it has come to its end (`line.rs`).
//!
//! Members are usually answered all together at the end, after the policy and the lane have been told, so
//! that a writer that comes back finds the next buffer open. Once a batch is in several pieces, or has to be
//! tried again, members whose end is known are answered at once: nobody knows how long the rest will take.

use std::collections::HashSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::policy::{FlushEnd, Micros};
use crate::sink::{BatchId, Sink};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::attempt::{attempt, Attempted};
use crate::cut::cut;
use crate::flush_trace::FlushTrace;
use crate::gatherer::Core;
use crate::insert::{AckLevel, InsertError, Outcome};
use crate::isolate::{Piece, Pieces, Refusal, Scope};
use crate::journaling::PieceRecords;
use crate::line::{Position, Remainder};
use crate::member::{Cleared, Contents, Member};
use crate::part_counts::count_parts;
use crate::retry_state::{Judgement, Reach, RetryState};
use crate::settle::{failed, held_bytes, settle, Settled};
use crate::signal::Signal;
#[cfg(test)]
use crate::simulation::sabotage::{self, Sabotage};
use crate::table::{Launch, Sealed, Size, Table};

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// The part of a flight that other tasks may touch while it is under way.
pub(crate) struct Flight {
    pub(crate) oldest_arrival: Micros,
    /// Number of the flight's inserts that were acknowledged, though only memory keeps them.
    pub(crate) unkept_inserts: u64,
    /// Records of the flight's pieces in the journal.
    pub(crate) records: PieceRecords,
    /// Signal that the lane goes on without this flight.
    steps_aside: Signal,
    state: Mutex<FlightState>,
}

#[derive(Default)]
struct FlightState {
    /// Pieces between two attempts, of which the sink is known to hold nothing: their members can still
    /// leave.
    on_ground: Vec<Contents>,
    any_stored: bool,
    last_error: Option<InsertError>,
    /// Bytes that were held by members that left before the end. They are given back already.
    left_bytes: u64,
    ends: Vec<oneshot::Sender<()>>,
}

/// A member that has left between two attempts.
pub(crate) struct DepartedMember {
    pub(crate) size: Size,
    pub(crate) last_error: Option<InsertError>,
    pub(crate) cleared: Option<Cleared>,
}

impl Flight {
    pub(crate) fn new(oldest_arrival: Micros, unkept_inserts: u64) -> Flight {
        let (records, steps_aside, state) = (PieceRecords::default(), Signal::default(), Mutex::default());
        Flight { oldest_arrival, unkept_inserts, records, steps_aside, state }
    }

    fn lock(&self) -> MutexGuard<'_, FlightState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers `sender`, which is told when the flight has ended.
    pub(crate) fn tell_end(&self, sender: oneshot::Sender<()>) {
        self.lock().ends.push(sender);
    }

    /// Takes a member out if its piece is between two attempts. Returns `None` if it is not here, or can't
    /// leave now.
    pub(crate) fn withdraw(&self, member: u64) -> Option<DepartedMember> {
        let mut state = self.lock();
        let state = &mut *state;
        let withdraw = |contents: &mut Contents| {
            let size = Size::of(contents.withdraw(member)?);
            Some((size, contents.clear_left()))
        };
        let (size, cleared) = state.on_ground.iter_mut().find_map(withdraw)?;
        state.left_bytes += cleared.as_ref().map_or(0, |cleared| cleared.bytes);
        Some(DepartedMember { size, last_error: state.last_error.clone(), cleared })
    }

    /// Measures the pieces between two attempts. Returns `None` if there are none.
    #[cfg(test)]
    pub(crate) fn measure_ground(&self, measure: impl Fn(&Contents) -> u64) -> Option<u64> {
        let state = self.lock();
        (!state.on_ground.is_empty()).then(|| state.on_ground.iter().map(measure).sum())
    }

    fn rest(&self, on_ground: Vec<Contents>, last_error: Option<InsertError>) {
        let mut state = self.lock();
        state.on_ground = on_ground;
        state.last_error = last_error.or(state.last_error.take());
    }

    fn take_off(&self) -> Vec<Contents> {
        std::mem::take(&mut self.lock().on_ground)
    }

    /// Notes that members have come to their end while the others are still under way.
    pub(crate) fn leave(&self, held_bytes: u64) {
        self.lock().left_bytes += held_bytes;
    }

    fn any_stored(&self) -> bool {
        self.lock().any_stored
    }

    fn left_bytes(&self) -> u64 {
        self.lock().left_bytes
    }

    fn take_ends(&self) -> Vec<oneshot::Sender<()>> {
        std::mem::take(&mut self.lock().ends)
    }
}

/// A batch that is being stored, with all that its attempts need to know.
pub(crate) struct FlushContext<'a, S: Sink> {
    pub(crate) core: &'a Arc<Core<S>>,
    pub(crate) sealed: &'a Sealed,
    pub(crate) flight: &'a Arc<Flight>,
    position: Position,
    /// Number of inserts of the whole batch that have not come to their end.
    inserts_left: u64,
    is_aside: bool,
    /// The batch is aside, and the backend may be to blame.
    is_in_doubt: bool,
    /// Some piece of the batch is known to be to blame, and not the backend.
    has_suspected: bool,
    /// Number of inserts that went by themselves since a piece of the batch was stored.
    pub(crate) probes: u32,
    /// Pause before the next round.
    pause: Duration,
    /// Ids of the pieces that are written to the journal.
    written_as: HashSet<BatchId>,
    /// Members whose end is known, and who have not been answered.
    settled: Vec<Settled>,
}

/// The end of a flight: the members that were not answered on the way.
#[derive(Default)]
struct StoredApart {
    settled: Vec<Settled>,
    /// The outcomes of all members are known. If false, nobody knows what became of the others.
    is_complete: bool,
}

impl<'a, S: Sink> FlushContext<'a, S> {
    pub(crate) fn table(&self) -> &Arc<Table> {
        &self.sealed.shape.table
    }

    pub(crate) fn settle(&mut self, flush: BatchId, members: Vec<Member>, outcome: Outcome) {
        if outcome.is_ok() {
            self.flight.lock().any_stored |= !members.is_empty();
            self.probes = 0;
        }
        self.settled.extend(members.into_iter().map(|member| Settled::new(member, flush, outcome.clone())));
    }

    /// Ends a piece that will not be stored.
    pub(crate) fn fail(&mut self, piece: Piece, error: &InsertError) {
        self.settled.extend(failed(piece.id, piece.contents, error));
    }

    /// Answers members whose end is known, while the others are still under way.
    pub(crate) fn answer(&mut self) {
        let known = std::mem::take(&mut self.settled);
        if !known.is_empty() {
            self.flight.leave(held_bytes(&known));
            settle(self.core, self.sealed, self.flight, known);
        }
    }

    /// Takes out members whose records could not be written: they are not sent. Members that were
    /// acknowledged at level `memory` are not among them.
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

    /// Writes to the journal that the piece is about to be sent. After a crash it has to be sent again with
    /// the same members under the same id.
    pub(crate) async fn write_down(&mut self, piece: &Piece) -> Result<(), String> {
        let Some(journal) = &self.core.journal else { return Ok(()) };
        if self.written_as.contains(&piece.id) {
            return Ok(());
        }
        let record = journal.record_piece(piece.id, &piece.contents.members).await?;
        record.into_iter().for_each(|record| self.flight.records.add(record));
        self.written_as.insert(piece.id);
        Ok(())
    }

    /// Returns the number of inserts of the shape that fail, or wait for one that fails.
    pub(crate) fn failing_inserts(&self) -> u64 {
        self.inserts_left + self.position.inserts_aside()
    }

    /// Lets the lane go on without what is left of the batch. `in_doubt` says that the backend may be to
    /// blame; it counts unless a piece of the batch has been proven to be to blame.
    fn step_aside(&mut self, remainder: Remainder, in_doubt: bool) {
        self.is_in_doubt = (self.is_in_doubt || in_doubt) && !self.has_suspected;
        self.position.set_aside(remainder, self.is_in_doubt);
        if !std::mem::replace(&mut self.is_aside, true) {
            self.flight.steps_aside.happens();
        }
    }

    /// Decides what is tried next after a piece has failed.
    fn put_off(&mut self, pieces: &mut Pieces, piece: Piece, judgement: Judgement) {
        let deduplicates = self.sealed.shape.destination.deduplicates;
        let can_be_cut = piece.contents.members.len() > 1 && piece.retry_state.may_be_cut(deduplicates);
        self.has_suspected |= piece.retry_state.is_proven();
        match judgement {
            _ if piece.contents.members.is_empty() => {}
            Judgement::Suspected if can_be_cut => {
                self.pause = FIRST_PAUSE;
                pieces.cut_suspected(piece);
            }
            Judgement::Stuck if can_be_cut => {
                self.probes += 1;
                pieces.probe(piece);
            }
            Judgement::Waits if can_be_cut && piece.stays_unknown() => pieces.halve_unknown(piece),
            Judgement::Suspected | Judgement::Stuck | Judgement::StuckWhole if self.may_leave_lane(&piece) => {
                pieces.hold(piece, true);
                self.step_aside(pieces.remainder(), true);
            }
            _ => {
                let may_go_on = piece.retry_state.is_stuck(0) || piece.retry_state.is_new_part();
                let goes_on = self.sealed.source.is_none() && may_go_on;
                pieces.hold(piece, goes_on);
            }
        }
    }

    /// Says whether the batch may leave the lane because of this piece. New inserts wait for those that an
    /// earlier run left: not for ever, but longer than for others.
    fn may_leave_lane(&self, piece: &Piece) -> bool {
        let is_left_over = piece.contents.members.iter().any(|member| member.left_over);
        let has_room = self.is_aside || self.position.has_room_aside();
        has_room && (!is_left_over || piece.retry_state.reach() < Reach::Unknown)
    }

    /// Takes a refused piece apart, or gives its members the refusal.
    fn narrow(&mut self, pieces: &mut Pieces, refusal: Refusal) {
        self.pause = FIRST_PAUSE;
        let failed = pieces.narrow(refusal, &self.sealed.shape.line);
        self.refuse(failed);
    }

    fn refuse(&mut self, refused: impl IntoIterator<Item = Refusal>) {
        for Refusal { piece, exception, scope } in refused {
            if let ([member], Scope::Some) = (&*piece.contents.members, scope) {
                self.sealed.shape.line.was_refused(member.writer);
                self.table().metrics.culprits.inc();
            }
            self.fail(piece, &InsertError::Exception(exception));
        }
    }

    /// Begins the next round, after a pause or as that of the suspects. Returns false if nothing is left to
    /// be tried.
    async fn next_round(&mut self, pieces: &mut Pieces) -> bool {
        if pieces.is_turn_of_suspects(self.is_aside) {
            self.begin_suspects(pieces).await;
            return true;
        }
        if pieces.is_over() {
            return false;
        }
        self.rest(pieces).await;
        true
    }

    /// Lets the batch step aside, so that inserts behind it don't wait until its culprits are found. It stays
    /// where nobody can tell whose inserts would overtake whose.
    fn may_step_aside(&mut self, remainder: Remainder) {
        let senders = &remainder.senders;
        let may_leave = self.is_aside || !senders.may_be_anybody() && self.position.has_room_aside();
        if self.sealed.source.is_none() && !senders.is_nobody() && may_leave {
            self.step_aside(remainder, false);
        }
    }

    async fn begin_suspects(&mut self, pieces: &mut Pieces) {
        let remainder = pieces.remainder();
        let senders = remainder.senders.clone();
        self.may_step_aside(remainder);
        let counts = self.put_down(pieces, None);
        self.position.until_none_is_before(&senders).await;
        if self.position.has_to_follow() {
            self.position.follow().await;
        }
        self.take_up(pieces, counts);
        pieces.begin_suspects();
    }

    /// Waits for the batch's turn if it is aside: of the batches that are aside one is sent at a time.
    /// Members can leave while the batch waits.
    async fn turn_beside(&self, pieces: &mut Pieces) -> Option<tokio::sync::MutexGuard<'a, ()>> {
        if !self.is_aside || pieces.is_round_over() {
            return None;
        }
        let line = &self.sealed.shape.line;
        if let Some(turn) = line.try_beside() {
            return Some(turn);
        }
        let counts = self.put_down(pieces, None);
        let turn = line.beside().await;
        self.take_up(pieces, counts);
        Some(turn)
    }

    /// Lets members leave from now on, where their pieces are surely not stored. Returns how many members
    /// each of these pieces has, for `take_up`.
    fn put_down(&self, pieces: &mut Pieces, error: Option<InsertError>) -> Vec<usize> {
        let on_ground: Vec<Contents> = pieces.surely_not_stored().map(|piece| piece.contents.take()).collect();
        let counts = on_ground.iter().map(|contents| contents.members.len()).collect();
        self.flight.rest(on_ground, error);
        counts
    }

    fn take_up(&self, pieces: &mut Pieces, counts: Vec<usize>) {
        for ((piece, contents), before) in pieces.surely_not_stored().zip(self.flight.take_off()).zip(counts) {
            piece.contents = contents;
            if let Some(cleared) = piece.contents.drop_left() {
                self.flight.leave(cleared.bytes);
                self.table().give_back([cleared]);
            }
            if piece.contents.members.len() < before {
                piece.rename(self.sealed.id);
            }
        }
    }

    /// Pauses between two rounds. Meanwhile members can leave pieces that are surely not stored.
    async fn rest(&mut self, pieces: &mut Pieces) {
        self.position.was_tried(pieces.remainder());
        let error = pieces.resting().find_map(|piece| piece.last_error.clone());
        let for_parts = self.core.options.too_many_parts_wait;
        let pauses = pieces
            .resting()
            .filter_map(|piece| Some(piece.retry_state.next_pause(self.pause, piece.last_error.as_ref()?, for_parts)));
        let length = pauses.max();
        let counts = self.put_down(pieces, error);
        match length {
            Some(length) if !self.position.has_to_follow() => tokio::time::sleep(length).await,
            _ => self.position.follow().await,
        }
        self.take_up(pieces, counts);
        if length.is_some() {
            self.table().metrics.retries.inc();
        }
        let chance = (self.core.stores.environment.random_u128() as u32) as f64 / f64::from(u32::MAX);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE).mul_f64(0.75 + 0.25 * chance);
        #[cfg(test)]
        if sabotage::is(Sabotage::ForgetsIdOnRetry) {
            let random = || BatchId(self.core.stores.environment.random_u128());
            pieces.resting().for_each(|piece| piece.id = random());
        }
        pieces.begin_round();
    }
}

/// Stores a batch, and those that queue behind it in its lane.
pub(crate) async fn fly<S: Sink>(core: Arc<Core<S>>, launch: Launch) {
    let mut next = Some(launch);
    while let Some(Launch { mut sealed, flight, flush }) = next {
        let flushed = std::mem::take(&mut sealed.flushed);
        let table = sealed.shape.table.clone();
        let started = Instant::now();
        let mut contents = sealed.contents.take();
        table.give_back(contents.drop_left());
        observe_sealed(&table, &sealed, &contents);
        sealed.trace = FlushTrace::begin(core.stores.tracer.as_ref(), &contents.members);
        let left_over = contents.members.iter().filter(|member| member.left_over).count() as u64;
        flight.records.hold();
        sealed.record.into_iter().for_each(|record| flight.records.add(record));
        let sealed = Arc::new(sealed);
        let mut storing = Box::pin(store_apart(core.clone(), sealed.clone(), flight.clone(), contents));
        let stored = tokio::select! {
            biased;
            stored = &mut storing => Some(stored),
            () = flight.steps_aside.wait() => None,
        };
        let duration = Micros(started.elapsed().as_micros() as u64);
        // The policy and the lane are told first: a writer that is answered may be back before we look again.
        core.schedule.ended(flush);
        let end = FlushEnd { buffer: sealed.buffer, duration, ok: flight.any_stored() };
        next = table.flight_ended(&sealed.shape, &end, stored.is_none());
        for launch in core.schedule.turns() {
            launch_apart(&core, launch);
        }
        let ending = Ending { sealed, flight, flushed };
        match stored {
            Some(stored) => ending.end(&core, stored),
            None => {
                let core = core.clone();
                tokio::spawn(async move {
                    let stored = storing.await;
                    ending.sealed.shape.table.aside_ended(&ending.sealed.shape, &ending.flight);
                    ending.end(&core, stored);
                });
            }
        }
        // What comes now does not wait for what is aside.
        if table.leftovers_settled(left_over) {
            tracing::info!(
                database = table.name.database,
                table = table.name.table,
                "all inserts that were left in the journal from before have come to their end"
            );
        }
    }
}

/// The parts of a flight that are needed when all of its batch has come to its end.
struct Ending {
    sealed: Arc<Sealed>,
    flight: Arc<Flight>,
    flushed: Vec<oneshot::Sender<()>>,
}

impl Ending {
    fn end<S: Sink>(self, core: &Arc<Core<S>>, stored: StoredApart) {
        let Ending { sealed, flight, flushed } = self;
        let table = &sealed.shape.table;
        settle(core, &sealed, &flight, stored.settled);
        if let Some(journal) = core.journal.as_ref().filter(|_| stored.is_complete) {
            flight.records.let_go(journal);
        }
        sealed.trace.iter().for_each(|trace| trace.end(&sealed, flight.any_stored()));
        table.metrics.flushed(Duration::from_micros((table.clock.now() - sealed.sealed_at).0));
        table.flight_settled(&flight);
        for ended in flushed.into_iter().chain(flight.take_ends()) {
            // Whoever asked may have gone.
            let _ = ended.send(());
        }
        count_parts(core, table);
    }
}

/// Launches a flight in a task of its own. It can't run within the caller's future: a flight's future would
/// hold itself.
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

/// Stores the batch in a task of its own: a panic in there must not leave the lane blocked and the bytes
/// taken for ever. Its members then hear that their outcome is unknown, since nobody is left to tell them;
/// those in the journal are stored after the next start.
async fn store_apart<S: Sink>(
    core: Arc<Core<S>>,
    sealed: Arc<Sealed>,
    flight: Arc<Flight>,
    contents: Contents,
) -> StoredApart {
    let held_bytes: u64 = contents.members.iter().map(|member| member.held_bytes).sum();
    let storing = tokio::spawn({
        let (sealed, flight) = (sealed.clone(), flight.clone());
        async move { store(&core, &sealed, &flight, contents).await }
    });
    storing.await.unwrap_or_else(|error| {
        let table = &sealed.shape.table;
        tracing::error!(database = table.name.database, table = table.name.table, batch = %sealed.id, %error, "a flush failed inside");
        table.budget.give_back(held_bytes - flight.left_bytes());
        StoredApart::default()
    })
}

/// Stores the batch piece by piece, and returns the end of each member that was not answered on the way.
async fn store<S: Sink>(core: &Arc<Core<S>>, sealed: &Sealed, flight: &Arc<Flight>, contents: Contents) -> StoredApart {
    let mut context = FlushContext {
        core,
        sealed,
        flight,
        position: Position::last(&sealed.shape),
        inserts_left: 0,
        is_aside: false,
        is_in_doubt: false,
        has_suspected: false,
        probes: 0,
        pause: FIRST_PAUSE,
        written_as: HashSet::new(),
        settled: Vec::with_capacity(contents.members.len()),
    };
    let mut pieces = pieces_of(sealed, contents);
    if context.position.has_to_follow() && !pieces.is_over() {
        context.rest(&mut pieces).await;
    }
    loop {
        let turn = context.turn_beside(&mut pieces).await;
        let Some(piece) = pieces.next(sealed.shape.destination.deduplicates) else {
            drop(turn);
            match context.next_round(&mut pieces).await {
                true => continue,
                false => break,
            }
        };
        context.inserts_left = pieces.inserts() + piece.contents.members.len() as u64;
        match attempt(&mut context, piece).await {
            Attempted::Ended => {}
            Attempted::Refused(refusal) => context.narrow(&mut pieces, refusal),
            Attempted::Failed(piece, judgement) => context.put_off(&mut pieces, piece, judgement),
        }
        let refused = pieces.narrow_half(&sealed.shape.line);
        context.refuse(refused);
        if !pieces.is_empty() {
            context.answer();
        }
        if pieces.takes_long() {
            context.may_step_aside(pieces.remainder());
        }
    }
    context.table().metrics.narrowings.inc_by(u64::from(pieces.narrowings));
    StoredApart { settled: context.settled, is_complete: true }
}

/// Returns the batch in pieces, as far as it is known beforehand where it has to be cut.
fn pieces_of(sealed: &Sealed, mut contents: Contents) -> Pieces {
    let is_pushed = sealed.source.is_some();
    // What an earlier life sent may be stored, or even be on its way.
    let was_sent_before = sealed.source.as_ref().map_or(sealed.record.is_some(), |source| source.sent_before);
    let suspects = match is_pushed || was_sent_before {
        true => Vec::new(),
        false => sealed.shape.line.suspects(&contents.members),
    };
    let suspects = suspects.contains(&true).then(|| contents.take_apart(&suspects));
    let parts = if contents.members.is_empty() { Vec::new() } else { cut(contents, &sealed.shape.destination) };
    let is_in_parts = parts.len() > 1 && !is_pushed;
    let retry_state = RetryState::new(!was_sent_before || is_in_parts);
    let mut pieces = Pieces::new(sealed.id, parts, is_pushed, retry_state);
    suspects.into_iter().for_each(|suspects| pieces.suspect(suspects));
    pieces
}
