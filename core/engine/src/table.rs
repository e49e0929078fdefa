//! One table: the lanes of its shapes, its flush policy and its share of the memory, behind one lock.
//!
//! A lane is what a shape has under way: an open buffer, sealed batches that wait for their turn, and at most
//! one flight. It exists only while it holds one of these. Code that holds the lock does no I/O and drops no
//! batch. Batches to be launched are handed out, and the caller launches them after the lock is released.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::policy::{
    Arrival, BufferPolicy, FlushEnd, FlushId, Lane as LaneState, Micros, SealReason, TablePolicy, Urgency, Verdict,
};
use crate::sink::{BatchId, PartCount, PhysicalTable, TableKey};
use tokio::sync::{oneshot, Notify};
use windrow_clickhouse::Exception;
use windrow_log::RecordId;

use crate::backlog::Backlog;
use crate::budget::TableBudget;
use crate::clock::Clock;
use crate::environment::Environment;
use crate::flight::Flight;
use crate::flush_trace::FlushTrace;
use crate::insert::{AckLevel, Insert, InsertKind, QueryId, Withdrawal};
use crate::member::{Arriving, Cleared, Contents, Member, MEMBER_BYTES};
use crate::metrics::{Held, TableMetrics};
use crate::pushed::SourceBatch;
use crate::schedule::Schedule;
use crate::shape::Shape;

pub(crate) struct Table {
    pub(crate) name: TableKey,
    /// Number of the shard of a Distributed table, from 1 on; 0 for the table as a whole.
    pub(crate) shard: u32,
    pub(crate) budget: TableBudget,
    pub(crate) metrics: TableMetrics,
    pub(crate) clock: Clock,
    pub(crate) world: Arc<dyn Environment>,
    schedule: Arc<Schedule>,
    /// Reference to this table for the timer, which is not to keep a table that nobody uses.
    me: Weak<Table>,
    /// Bytes of inserts in the journal that have not come to their end.
    pub(crate) journal_bytes: AtomicU64,
    pub(crate) has_backlog: AtomicBool,
    /// Signal that the backlog has moved on, or is gone, or can't move.
    pub(crate) moved: Notify,
    /// Signal for the feeder to look.
    pub(crate) to_feed: Notify,
    /// Lock of the source whose batch is next to get memory and a place: batches come in the order in which
    /// they were pushed.
    pub(crate) pushing: tokio::sync::Mutex<()>,
    state: Mutex<TableState>,
}

#[derive(Default)]
pub(crate) struct TableState {
    policy: TablePolicy,
    /// Lanes by shape. They are boxed: a node of the map has room for eleven, and most tables have one.
    lanes: BTreeMap<u64, Box<Lane>>,
    /// Flights that have left their lanes, and whose members are about to be answered: a flush on command
    /// waits for them.
    settling: Vec<Arc<Flight>>,
    /// Time at which the timer will look next.
    looked_at: Option<Micros>,
    next_member: u64,
    parts_seen: Option<PartsSeen>,
    /// The error of the sink's system about too many parts, if no flush has ended in another way since.
    too_many_parts: Option<Exception>,
    pub(crate) backlog: Option<Box<Backlog>>,
    /// Number of inserts that had entered backlogs of the table before this one.
    pub(crate) entered_before: u64,
}

struct PartsSeen {
    at: Micros,
    created: Option<u64>,
}

impl TableState {
    fn next_member(&mut self) -> u64 {
        self.next_member += 1;
        self.next_member - 1
    }

    /// Removes a lane that is empty. A lane that waits for its turn is kept until then.
    fn drop_if_empty(&mut self, shape: u64) {
        if self.lanes.get(&shape).is_some_and(|lane| lane.is_empty() && lane.waiting.is_none()) {
            self.lanes.remove(&shape);
        }
    }
}

#[derive(Default)]
struct Lane {
    open: Option<OpenBuffer>,
    queue: VecDeque<Sealed>,
    /// The reason and the urgency of a lane that is due, and waits for its turn among all lanes. Until then
    /// the open buffer gathers on.
    waiting: Option<Due>,
    flight: Option<Arc<Flight>>,
    /// Flights that the lane does not wait for any more.
    aside: Vec<Arc<Flight>>,
}

#[derive(Clone, Copy)]
struct Due {
    reason: SealReason,
    urgency: Urgency,
}

impl Lane {
    fn state(&self) -> LaneState {
        match self.flight.is_some() || self.waiting.is_some() || !self.queue.is_empty() {
            true => LaneState::Busy,
            false => LaneState::Free,
        }
    }

    fn is_empty(&self) -> bool {
        self.open.is_none() && self.queue.is_empty() && self.flight.is_none() && self.aside.is_empty()
    }

    fn flights(&self) -> impl Iterator<Item = &Arc<Flight>> {
        self.flight.iter().chain(&self.aside)
    }

    /// Takes back a member that is not in flight.
    fn withdraw(&mut self, member: u64) -> Option<Size> {
        if let Some(open) = &mut self.open {
            if let Some(gone) = open.contents.withdraw(member) {
                let (waited, size) = (gone.waits(), Size::of(gone));
                open.policy.leave(waited, size.rows, size.payload_bytes);
                return Some(size);
            }
        }
        self.queue.iter_mut().find_map(|sealed| sealed.contents.withdraw(member).map(Size::of))
    }

    /// Hands out members that are not in flight, without their rows.
    fn dismiss(&mut self, picked: impl Fn(&Member) -> bool) -> Vec<Member> {
        let mut dismissed = Vec::new();
        if let Some(open) = &mut self.open {
            dismissed = open.contents.dismiss(&picked);
            dismissed.iter().for_each(|gone| open.policy.leave(gone.waits(), gone.rows as u64, gone.payload_bytes));
        }
        dismissed.extend(self.queue.iter_mut().flat_map(|sealed| sealed.contents.dismiss(&picked)));
        dismissed
    }

    /// Hands out what members that have left held, where it can be given back by now.
    fn clear_left(&mut self) -> Vec<Cleared> {
        let open = self.open.iter_mut().map(|open| &mut open.contents);
        let waiting = open.chain(self.queue.iter_mut().map(|sealed| &mut sealed.contents));
        let cleared: Vec<Cleared> = waiting.filter_map(Contents::clear_left).collect();
        if !cleared.is_empty() {
            self.drop_empty();
        }
        cleared
    }

    /// Drops batches that all members have left. Whoever waits for such a batch's end waits for that of the
    /// batch before it.
    fn drop_empty(&mut self) {
        let is_left = |open: &mut OpenBuffer| open.contents.members.is_empty();
        let mut flushed = self.open.take_if(is_left).map_or_else(Vec::new, |open| open.flushed);
        for mut sealed in std::mem::take(&mut self.queue).into_iter().rev() {
            sealed.flushed.append(&mut flushed);
            match sealed.contents.members.is_empty() {
                true => flushed = sealed.flushed,
                false => self.queue.push_front(sealed),
            }
        }
        if let Some(flight) = &self.flight {
            flushed.into_iter().for_each(|sender| flight.tell_end(sender));
        }
    }

    fn shape(&self) -> Option<&Arc<Shape>> {
        self.queue.front().map(|sealed| &sealed.shape).or(self.open.as_ref().map(|open| &open.shape))
    }

    /// Returns the urgency of what goes first. A sealed batch goes first, and something waits behind it;
    /// without one, the open buffer decides.
    fn urgency(&self) -> Urgency {
        match (self.queue.is_empty(), &self.open) {
            (true, Some(open)) => open.policy.urgency(),
            _ => Urgency::Urgent,
        }
    }
}

/// The size of a member that has left.
pub(crate) struct Size {
    rows: u64,
    payload_bytes: u64,
}

impl Size {
    pub(crate) fn of(member: &Member) -> Size {
        Size { rows: member.rows as u64, payload_bytes: member.payload_bytes }
    }
}

struct OpenBuffer {
    shape: Arc<Shape>,
    policy: BufferPolicy,
    contents: Contents,
    opened_at: Micros,
    opened_wall_micros: u64,
    flushed: Vec<oneshot::Sender<()>>,
}

/// A batch whose id and members are decided once and for all.
pub(crate) struct Sealed {
    pub(crate) shape: Arc<Shape>,
    pub(crate) id: BatchId,
    pub(crate) buffer: crate::policy::BufferId,
    pub(crate) contents: Contents,
    pub(crate) sealed_at: Micros,
    pub(crate) hold_ms: u64,
    opened_at: Micros,
    opened_wall_micros: u64,
    /// Channels to those who wait for the batch's end, whatever it is.
    pub(crate) flushed: Vec<oneshot::Sender<()>>,
    /// The record of the batch's piece in the journal, for a batch of an earlier run.
    pub(crate) record: Option<RecordId>,
    /// The state shared with the source, for a batch that its source has put together.
    pub(crate) source: Option<Arc<SourceBatch>>,
    /// The trace of the flush, from take-off on, if it is traced.
    pub(crate) trace: Option<FlushTrace>,
}

impl Sealed {
    /// Returns when the member arrived, in microseconds since 1970. The time is reckoned from the buffer's
    /// opening: one look at the wall clock serves all of a batch.
    pub(crate) fn arrival_wall_micros(&self, arrived_at: Micros) -> u64 {
        self.opened_wall_micros + (arrived_at - self.opened_at).0
    }
}

/// A sealed batch whose lane is free. Whoever gets it has to store it.
#[must_use]
pub(crate) struct Launch {
    pub(crate) sealed: Sealed,
    pub(crate) flight: Arc<Flight>,
    /// Id of the flush among all flushes under way.
    pub(crate) flush: FlushId,
}

/// The result of putting an insert into its buffer.
pub(crate) struct Pushed {
    pub(crate) member: u64,
    pub(crate) launch: Option<Launch>,
}

pub(crate) struct BufferView {
    pub(crate) shape: Arc<Shape>,
    pub(crate) kind: Arc<InsertKind>,
    pub(crate) opened_wall_micros: u64,
    pub(crate) entries: Vec<(QueryId, u64)>,
}

impl Table {
    /// Bytes that an insert takes besides its rows, at the most that is usual.
    pub(crate) const OVERHEAD_BYTES: u64 = 2 * MEMBER_BYTES;

    pub(crate) fn new(
        of: PhysicalTable,
        budget: TableBudget,
        metrics: TableMetrics,
        clock: Clock,
        world: Arc<dyn Environment>,
        schedule: Arc<Schedule>,
    ) -> Arc<Table> {
        Arc::new_cyclic(|me| Table {
            name: of.name,
            shard: of.shard,
            budget,
            metrics,
            clock,
            world,
            schedule,
            me: me.clone(),
            journal_bytes: AtomicU64::new(0),
            has_backlog: AtomicBool::new(false),
            moved: Notify::new(),
            to_feed: Notify::new(),
            pushing: tokio::sync::Mutex::default(),
            state: Mutex::default(),
        })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, TableState> {
        // A panic under the lock would be a bug of ours in one insert; the others are still better served than refused.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn held_bytes(insert: &Insert) -> u64 {
        let id_bytes = match &insert.query_id {
            QueryId::Given(id) => id.len() as u64,
            QueryId::Random(_) => 0,
        };
        insert.rows.bytes() as u64 + MEMBER_BYTES + id_bytes
    }

    /// Puts an insert, whose bytes the budget has granted, into the buffer of its shape.
    pub(crate) fn push(&self, shape: &Arc<Shape>, arriving: Arriving) -> Pushed {
        let now = self.clock.now();
        let mut guard = self.lock();
        let state = &mut *guard;
        let id = state.next_member();
        let lane = state.lanes.entry(shape.id).or_default();
        let lane_state = lane.state();
        state.policy.stretch(self.schedule.stretch());
        let open = lane.open.get_or_insert_with(|| OpenBuffer {
            shape: shape.clone(),
            policy: state.policy.open_buffer(),
            contents: Contents::default(),
            opened_at: now,
            opened_wall_micros: self.world.wall_micros(),
            flushed: Vec::new(),
        });
        let insert = &arriving.insert;
        let arrival = Arrival {
            writer: insert.writer,
            waits: insert.ack == AckLevel::Stored,
            back_after: insert.back_after.map(|time| Micros(u64::try_from(time.as_micros()).unwrap_or(u64::MAX))),
            rows: insert.rows.count() as u64,
            bytes: insert.payload_bytes,
        };
        let (at_once, kind) = (insert.at_once, insert.kind.clone());
        open.contents.add(id, now, arriving);
        let verdict = state.policy.arrive(now, &mut open.policy, &arrival, &kind.limits, lane_state);
        let verdict = if at_once { Verdict::Seal(SealReason::AtOnce) } else { verdict };
        let launch = match verdict {
            Verdict::Seal(reason) => self.is_due(now, lane, &mut state.policy, reason),
            Verdict::HoldForFlush => {
                self.raise(lane);
                None
            }
            Verdict::HoldUntil(at) => {
                self.look_at(&mut state.looked_at, at);
                None
            }
        };
        Pushed { member: id, launch }
    }

    /// Puts a batch of an earlier run in line: it was attempted before with these members and under this id.
    pub(crate) fn push_piece(
        &self,
        shape: &Arc<Shape>,
        batch: BatchId,
        record: RecordId,
        arriving: Vec<Arriving>,
    ) -> Option<Launch> {
        let now = self.clock.now();
        let mut guard = self.lock();
        let state = &mut *guard;
        let mut contents = Contents::default();
        for arriving in arriving {
            contents.add(state.next_member(), now, arriving);
        }
        let sealed = Sealed {
            shape: shape.clone(),
            id: batch,
            buffer: state.policy.open_buffer().id(),
            contents,
            sealed_at: now,
            hold_ms: 0,
            opened_at: now,
            opened_wall_micros: self.world.wall_micros(),
            flushed: Vec::new(),
            record: Some(record),
            source: None,
            trace: None,
        };
        let lane = state.lanes.entry(shape.id).or_default();
        lane.queue.push_back(sealed);
        self.line_up(now, lane, &mut state.policy, SealReason::Source)
    }

    /// Puts a batch in line that its source has put together.
    pub(crate) fn push_batch(
        &self,
        shape: &Arc<Shape>,
        batch: BatchId,
        source: Arc<SourceBatch>,
        mut contents: Contents,
    ) -> Option<Launch> {
        let now = self.clock.now();
        let opened_at = contents.members.iter().map(|member| member.arrived_at).min().unwrap_or(now);
        let mut guard = self.lock();
        let state = &mut *guard;
        contents.members.iter_mut().for_each(|member| member.id = state.next_member());
        self.metrics.sealed(SealReason::Source);
        let sealed = Sealed {
            shape: shape.clone(),
            id: batch,
            buffer: state.policy.open_buffer().id(),
            contents,
            sealed_at: now,
            hold_ms: (now - opened_at).0 / 1000,
            opened_at,
            opened_wall_micros: self.world.wall_micros().saturating_sub((now - opened_at).0),
            flushed: Vec::new(),
            record: None,
            source: Some(source),
            trace: None,
        };
        let lane = state.lanes.entry(shape.id).or_default();
        lane.queue.push_back(sealed);
        self.line_up(now, lane, &mut state.policy, SealReason::Source)
    }

    /// Makes the lane due, so that its open buffer goes. A full buffer is sealed at once; others gather on
    /// until it is the lane's turn.
    fn is_due(&self, now: Micros, lane: &mut Lane, policy: &mut TablePolicy, reason: SealReason) -> Option<Launch> {
        if !reason.may_wait() {
            let sealed = self.seal(now, lane, reason)?;
            lane.queue.push_back(sealed);
        }
        self.line_up(now, lane, policy, reason)
    }

    /// Hands out the lane's next batch if it is the lane's turn; otherwise the lane waits for it.
    fn line_up(&self, now: Micros, lane: &mut Lane, policy: &mut TablePolicy, reason: SealReason) -> Option<Launch> {
        if lane.waiting.is_some() {
            self.raise(lane);
            return None;
        }
        if lane.flight.is_some() {
            return None;
        }
        let (shape, urgency) = (lane.shape()?, lane.urgency());
        match self.schedule.due(now, shape, urgency) {
            Some(flush) => self.take_off(now, lane, policy, reason, flush),
            None => {
                lane.waiting = Some(Due { reason, urgency });
                None
            }
        }
    }

    /// Tells the schedule if more depends on the lane's turn than before.
    fn raise(&self, lane: &mut Lane) {
        let urgency = lane.urgency();
        if let (Some(due), Some(shape)) = (lane.waiting, lane.shape()) {
            if due.urgency < urgency {
                self.schedule.raise(shape);
                lane.waiting = Some(Due { urgency, ..due });
            }
        }
    }

    fn take_off(
        &self,
        now: Micros,
        lane: &mut Lane,
        policy: &mut TablePolicy,
        reason: SealReason,
        flush: FlushId,
    ) -> Option<Launch> {
        let sealed = match lane.queue.pop_front() {
            Some(sealed) => sealed,
            None => self.seal(now, lane, reason)?,
        };
        policy.flush_started(now);
        let oldest = sealed.contents.members.first().map_or(sealed.sealed_at, |member| member.arrived_at);
        let flight = Arc::new(Flight::new(oldest, sealed.contents.unkept_inserts()));
        lane.flight = Some(flight.clone());
        Some(Launch { sealed, flight, flush })
    }

    /// Hands out the lane's next batch when its turn has come. Returns `None` if the lane has nothing any
    /// more.
    pub(crate) fn take_turn(&self, shape: &Shape, flush: FlushId) -> Option<Launch> {
        let now = self.clock.now();
        let mut guard = self.lock();
        let state = &mut *guard;
        let lane = state.lanes.get_mut(&shape.id)?;
        let due = lane.waiting.take()?;
        let launch = self.take_off(now, lane, &mut state.policy, due.reason, flush);
        if launch.is_none() {
            state.drop_if_empty(shape.id);
        }
        launch
    }

    fn seal(&self, now: Micros, lane: &mut Lane, reason: SealReason) -> Option<Sealed> {
        let open = lane.open.take()?;
        self.metrics.sealed(reason);
        let by_time = matches!(reason, SealReason::Deadline | SealReason::Quiet);
        Some(Sealed {
            shape: open.shape,
            id: BatchId(crate::gatherer::random_id(&*self.world)),
            buffer: open.policy.id(),
            contents: open.contents,
            sealed_at: now,
            hold_ms: if by_time { (now - open.opened_at).0 / 1000 } else { 0 },
            opened_at: open.opened_at,
            opened_wall_micros: open.opened_wall_micros,
            flushed: open.flushed,
            record: None,
            source: None,
            trace: None,
        })
    }

    fn look_at(&self, looked_at: &mut Option<Micros>, at: Micros) {
        if looked_at.is_none_or(|looked_at| at < looked_at) {
            *looked_at = Some(at);
            self.schedule.look_at(at, self.me.clone());
        }
    }

    /// Looks at all open buffers. The timer calls this, at the time that the table asked for or before.
    pub(crate) fn look(&self) -> Vec<Launch> {
        let now = self.clock.now();
        let mut guard = self.lock();
        let state = &mut *guard;
        let (mut launches, mut next) = (Vec::new(), None);
        for lane in state.lanes.values_mut() {
            let lane_state = lane.state();
            let Some(open) = &lane.open else { continue };
            match state.policy.decide(now, &open.policy, lane_state) {
                Verdict::Seal(reason) => launches.extend(self.is_due(now, lane, &mut state.policy, reason)),
                Verdict::HoldUntil(at) => next = Some(next.map_or(at, |next: Micros| next.min(at))),
                Verdict::HoldForFlush => {}
            }
        }
        // A later time that was asked for first comes too: it finds that an earlier one is registered, and adds none.
        if state.looked_at.is_none_or(|at| at <= now) {
            state.looked_at = None;
        }
        if let Some(next) = next {
            self.look_at(&mut state.looked_at, next);
        }
        launches
    }

    /// Notes that a flight has ended, and `flight_settled` follows. Or the flight steps aside; then
    /// `aside_ended` comes before that. Returns the flight that follows in the lane at once, if there is any.
    pub(crate) fn flight_ended(&self, shape: &Shape, end: &FlushEnd, steps_aside: bool) -> Option<Launch> {
        let now = self.clock.now();
        let mut guard = self.lock();
        let state = &mut *guard;
        state.policy.flush_ended(now, end);
        if end.ok {
            state.too_many_parts = None;
        }
        let lane = state.lanes.get_mut(&shape.id)?;
        match steps_aside {
            true => lane.aside.extend(lane.flight.take()),
            false => state.settling.extend(lane.flight.take()),
        }
        let verdict = match (&lane.open, lane.queue.is_empty()) {
            // What is sealed goes before what is open.
            (_, false) => Verdict::Seal(SealReason::Size),
            (Some(open), true) => state.policy.decide(now, &open.policy, LaneState::Free),
            (None, true) => Verdict::HoldForFlush,
        };
        let next = match verdict {
            Verdict::Seal(reason) if lane.queue.is_empty() => self.is_due(now, lane, &mut state.policy, reason),
            Verdict::Seal(reason) => self.line_up(now, lane, &mut state.policy, reason),
            Verdict::HoldUntil(at) => {
                self.look_at(&mut state.looked_at, at);
                None
            }
            Verdict::HoldForFlush => None,
        };
        state.drop_if_empty(shape.id);
        next
    }

    /// Notes that a flight that had stepped aside has ended.
    pub(crate) fn aside_ended(&self, shape: &Shape, flight: &Arc<Flight>) {
        let mut guard = self.lock();
        let state = &mut *guard;
        state.settling.push(flight.clone());
        let Some(lane) = state.lanes.get_mut(&shape.id) else { return };
        lane.aside.retain(|aside| !Arc::ptr_eq(aside, flight));
        state.drop_if_empty(shape.id);
    }

    /// Notes that all members of a flight are answered: from here on nobody asks to be told its end.
    pub(crate) fn flight_settled(&self, flight: &Arc<Flight>) {
        self.lock().settling.retain(|settling| !Arc::ptr_eq(settling, flight));
    }

    /// Seals everything that is open; `ended` are told when what is under way now has ended.
    pub(crate) fn flush(&self, reason: SealReason) -> Flushing {
        let now = self.clock.now();
        let mut guard = self.lock();
        let state = &mut *guard;
        let mut flushing = Flushing { launches: Vec::new(), ended: Vec::new() };
        for flight in &state.settling {
            let (sender, ended) = oneshot::channel();
            flight.tell_end(sender);
            flushing.ended.push(ended);
        }
        for lane in state.lanes.values_mut() {
            // Each by itself: one that steps aside ends after those behind it.
            let mut wait_for = |tell: &mut dyn FnMut(oneshot::Sender<()>)| {
                let (sender, ended) = oneshot::channel();
                tell(sender);
                flushing.ended.push(ended);
            };
            lane.flights().for_each(|flight| wait_for(&mut |sender| flight.tell_end(sender)));
            lane.queue.iter_mut().for_each(|sealed| wait_for(&mut |sender| sealed.flushed.push(sender)));
            lane.open.iter_mut().for_each(|open| wait_for(&mut |sender| open.flushed.push(sender)));
            flushing.launches.extend(self.is_due(now, lane, &mut state.policy, reason));
        }
        flushing
    }

    /// Takes a member out, wherever it is. Returns `None` if it is being sent, or is not under way any more.
    pub(crate) fn withdraw(&self, member: u64) -> Option<Withdrawal> {
        let (withdrawal, cleared) = self.take_back(member)?;
        self.give_back(cleared);
        Some(withdrawal)
    }

    fn take_back(&self, member: u64) -> Option<(Withdrawal, Vec<Cleared>)> {
        let mut guard = self.lock();
        let found = guard.lanes.iter_mut().find_map(|(shape, lane)| {
            if let Some(gone) = lane.withdraw(member) {
                return Some((*shape, gone, Withdrawal::Withdrawn { last_error: None }, lane.clear_left()));
            }
            let left = lane.flights().find_map(|flight| flight.withdraw(member))?;
            let withdrawal = Withdrawal::Withdrawn { last_error: left.last_error };
            Some((*shape, left.size, withdrawal, left.cleared.into_iter().collect()))
        });
        let (shape, gone, withdrawal, cleared) = found?;
        guard.drop_if_empty(shape);
        self.metrics.withdrawn.add(1, gone.rows, gone.payload_bytes);
        Some((withdrawal, cleared))
    }

    /// Drops what members have left behind, and gives its bytes back. This is not done under the lock: it may
    /// be a batch.
    pub(crate) fn give_back(&self, cleared: impl IntoIterator<Item = Cleared>) {
        for cleared in cleared {
            let bytes = cleared.bytes;
            drop(cleared);
            self.budget.give_back(bytes);
        }
    }

    /// Notes that the table has too many parts. Hands out the members behind the lane's flight that `picked`
    /// chooses; the others go on waiting.
    pub(crate) fn has_too_many_parts(
        &self,
        shape: &Shape,
        exception: &Exception,
        picked: impl Fn(&Member) -> bool,
    ) -> Vec<Member> {
        let (dismissed, cleared) = {
            let mut guard = self.lock();
            guard.too_many_parts = Some(exception.clone());
            self.moved.notify_waiters();
            let Some(lane) = guard.lanes.get_mut(&shape.id) else { return Vec::new() };
            (lane.dismiss(picked), lane.clear_left())
        };
        self.give_back(cleared);
        dismissed
    }

    /// Notes that a flush has failed for another reason than too many parts.
    pub(crate) fn parts_are_not_it(&self) {
        self.lock().too_many_parts = None;
    }

    /// Returns the error of the sink's system about too many parts, if it was the last that was heard of the
    /// table.
    pub(crate) fn too_many_parts(&self) -> Option<Exception> {
        self.lock().too_many_parts.clone()
    }

    pub(crate) fn buffers(&self) -> Vec<BufferView> {
        let guard = self.lock();
        let views = guard.lanes.values().flat_map(|lane| {
            let queued = lane.queue.iter().map(|sealed| (&sealed.shape, &sealed.contents, sealed.opened_wall_micros));
            let open = lane.open.iter().map(|open| (&open.shape, &open.contents, open.opened_wall_micros));
            queued.chain(open)
        });
        views.filter_map(|(shape, contents, opened)| BufferView::of(shape, contents, opened)).collect()
    }

    /// Says whether the parts should be counted again; true at most once per `interval`.
    pub(crate) fn parts_are_due(&self, interval: Micros) -> bool {
        let now = self.clock.now();
        let mut guard = self.lock();
        let created = guard.parts_seen.as_ref().and_then(|seen| seen.created);
        if guard.parts_seen.as_ref().is_some_and(|seen| now - seen.at < interval) {
            return false;
        }
        guard.parts_seen = Some(PartsSeen { at: now, created });
        true
    }

    pub(crate) fn parts_counted(&self, parts: PartCount) {
        let mut guard = self.lock();
        guard.policy.parts(parts.active_in_fullest_partition, parts.throw_at);
        let before = guard.parts_seen.as_mut().and_then(|seen| seen.created.replace(parts.created));
        drop(guard);
        let created = before.map_or(0, |before| parts.created.saturating_sub(before));
        self.metrics.parts(created, parts.active);
    }

    /// Returns the number of inserts that were acknowledged and are not stored, and that only memory keeps.
    pub(crate) fn unkept_inserts(&self) -> u64 {
        let state = self.lock();
        let lanes = state.lanes.values().map(|lane| {
            let waiting =
                lane.open.iter().map(|open| &open.contents).chain(lane.queue.iter().map(|sealed| &sealed.contents));
            let flying: u64 = lane.flights().map(|flight| flight.unkept_inserts).sum();
            flying + waiting.map(Contents::unkept_inserts).sum::<u64>()
        });
        lanes.sum()
    }

    /// Returns the sum of `measure` over all that is here, or `None` if something is being sent.
    #[cfg(test)]
    pub(crate) fn measure(&self, measure: impl Fn(&Contents) -> u64) -> Option<u64> {
        let guard = self.lock();
        let of_lane = |lane: &Lane| {
            let open = lane.open.iter().map(|open| measure(&open.contents));
            let waiting = open.chain(lane.queue.iter().map(|sealed| measure(&sealed.contents)));
            let on_ground: Option<u64> = lane.flights().map(|flight| flight.measure_ground(&measure)).sum();
            Some(waiting.sum::<u64>() + on_ground?)
        };
        guard.lanes.values().map(|lane| of_lane(lane)).sum()
    }

    #[cfg(test)]
    pub(crate) fn batches(&self) -> usize {
        self.lock().lanes.values().map(|lane| lane.queue.len() + usize::from(lane.open.is_some())).sum()
    }

    pub(crate) fn held(&self) -> Held {
        let (oldest, (backlog_inserts, backlog_bytes)) = {
            let guard = self.lock();
            let lanes = guard.lanes.values();
            let arrivals = lanes.flat_map(|lane| {
                let flying = lane.flights().map(|flight| flight.oldest_arrival);
                let queued = lane.queue.iter().filter_map(|sealed| sealed.contents.staying().next());
                let open = lane.open.iter().filter_map(|open| open.contents.staying().next());
                flying.chain(queued.chain(open).map(|member| member.arrived_at))
            });
            let backlog = guard.backlog.as_ref().map_or((0, 0), |backlog| (backlog.inserts(), backlog.bytes()));
            (arrivals.min(), backlog)
        };
        let age = oldest.map_or(0, |arrived| (self.clock.now() - arrived).0);
        Held {
            oldest_seconds: age as f64 / 1e6,
            buffer_bytes: self.budget.held_bytes(),
            backlog_inserts,
            backlog_bytes,
            journal_bytes: self.journal_bytes.load(Ordering::Relaxed),
            parts_active: self.metrics.activity.parts_active(),
        }
    }
}

impl BufferView {
    fn of(shape: &Arc<Shape>, contents: &Contents, opened_wall_micros: u64) -> Option<BufferView> {
        let first = contents.members.first()?;
        let entries = contents.staying().map(|member| (member.query_id.clone(), member.payload_bytes)).collect();
        Some(BufferView { shape: shape.clone(), kind: first.kind.clone(), opened_wall_micros, entries })
    }
}

/// A flush on command: `launches` are to be launched, then all `ended` to be waited for.
pub(crate) struct Flushing {
    pub(crate) launches: Vec<Launch>,
    pub(crate) ended: Vec<oneshot::Receiver<()>>,
}
