//! The thread that talks to Redis: takes what is queued, sends it as one pipeline, and tells the outcome.
//!
//! Operations that were queued while a pipeline was under way go in the next, in the order of
//! [`queue`](super::queue): that is the group commit. A connection that breaks takes nothing along: the same
//! operations are sent again on the next one, and the scripts see which had been applied.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::address::RedisAddress;
use super::adoption::Adopter;
use super::connection::ConnectionError;
use super::lane::{Bucket, Lane};
use super::link::Link;
use super::queue::{Again, Op};
use super::replace::Loss;
use super::scripts::Verdict;
use super::state::{BatchLimits, HeldRows, LaneNumber, State};
use crate::buffer::{BufferError, BufferEvents};
use crate::destination::Destination;
use crate::id::BatchId;

/// The time to wait before Redis is tried again, or asked again for room.
const AGAIN: Duration = Duration::from_millis(50);
/// The time for which a writer that is closed waits until its last changes are sent.
const CLOSE_LIMIT: Duration = Duration::from_secs(2);

pub(super) struct Shared {
    pub(super) address: RedisAddress,
    pub(super) bucket: Bucket,
    pub(super) destination: Destination,
    pub(super) limits: BatchLimits,
    pub(super) owner: String,
    pub(super) process: String,
    pub(super) has_ended: AtomicBool,
    state: Mutex<State>,
    wake: Condvar,
    ended: Condvar,
    events: Mutex<Option<Arc<dyn BufferEvents>>>,
}

impl Shared {
    pub(super) fn new(
        address: RedisAddress,
        destination: Destination,
        limits: BatchLimits,
        owner: String,
        process: String,
    ) -> Shared {
        Shared {
            bucket: Bucket::new(&address),
            address,
            destination,
            limits,
            owner,
            process,
            has_ended: AtomicBool::new(false),
            state: Mutex::default(),
            wake: Condvar::new(),
            ended: Condvar::new(),
            events: Mutex::default(),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn attach(&self, events: Arc<dyn BufferEvents>) {
        *self.events.lock().unwrap_or_else(PoisonError::into_inner) = Some(events);
    }

    fn tell(&self, tell: impl FnOnce(&dyn BufferEvents)) {
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(events) = events {
            tell(&*events);
        }
    }

    /// Makes a lane of this writer's, which may be there already.
    pub(super) fn register(&self, link: &mut Link, lane: &Lane) -> Result<(), ConnectionError> {
        let destination = self.destination.to_bytes();
        link.judge(&self.bucket, |pipeline| pipeline.register(lane, &self.process, &destination)).map(|_| ())
    }

    /// Takes over the lanes that dead writers for the same table have left.
    pub(super) fn adopt(&self, link: &mut Link) -> Result<(), ConnectionError> {
        let adopter = Adopter {
            bucket: &self.bucket,
            owner: &self.owner,
            process: &self.process,
            destination: &self.destination,
        };
        for adopted in adopter.adopt_all(link, |name| self.lock().has_lane(name))? {
            self.lock().enter(adopted, &self.destination, self.limits);
        }
        Ok(())
    }

    /// Wakes the thread, since there is something to be told to Redis.
    pub(super) fn ring(&self) {
        self.wake.notify_one();
    }

    /// Waits until the thread has sent its last changes, within a bound.
    pub(super) fn wait_for_end(&self) {
        let deadline = Instant::now() + CLOSE_LIMIT + self.address.answer_limit;
        let mut state = self.lock();
        while !self.has_ended.load(Ordering::SeqCst) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            state = self.ended.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

pub(super) struct Worker {
    shared: Arc<Shared>,
    link: Option<Link>,
    /// The error of the last attempt to reach Redis; empty if that succeeded.
    trouble: String,
    renew_at: Instant,
    adopt_at: Instant,
    close_by: Option<Instant>,
    /// A lane to go on in, as the own one was lost.
    replacement: Option<Replacement>,
}

struct Replacement {
    lane: Lane,
    loss: Loss,
}

/// The outcomes of a flight's operations.
#[derive(Default)]
struct Settlement {
    kept_before: Option<u64>,
    is_recorded: bool,
    /// True if the bucket had room; `None` if it was not asked.
    has_room: Option<bool>,
    again: Vec<Op>,
    lost: Vec<(LaneNumber, Loss)>,
}

/// A guard that tells the end of the thread, also by a panic: nobody waits for the thread then.
struct EndTold(Arc<Shared>);

impl Drop for EndTold {
    fn drop(&mut self) {
        self.0.has_ended.store(true, Ordering::SeqCst);
        let _state = self.0.lock();
        self.0.ended.notify_all();
    }
}

enum Turn {
    Again,
    Pause,
    End,
}

impl Worker {
    pub(super) fn new(shared: Arc<Shared>, link: Link) -> Worker {
        let now = Instant::now();
        let lease = shared.address.lease;
        Worker {
            shared,
            link: Some(link),
            trouble: String::new(),
            renew_at: now + lease / 3,
            adopt_at: now + lease / 2,
            close_by: None,
            replacement: None,
        }
    }

    pub(super) fn run(mut self) {
        let _told = EndTold(self.shared.clone());
        loop {
            let outcome = self.turn();
            match outcome {
                Ok(Turn::Again) => {}
                Ok(Turn::Pause) => self.pause(),
                Ok(Turn::End) => break,
                Err(error) => {
                    self.trouble = error.to_string();
                    self.link = None;
                    self.pause();
                }
            }
        }
    }

    fn turn(&mut self) -> Result<Turn, ConnectionError> {
        let is_closed = self.wait_for_work();
        let now = Instant::now();
        if is_closed && now >= *self.close_by.get_or_insert(now + CLOSE_LIMIT) {
            return Ok(Turn::End);
        }
        self.expire(now);
        if self.link.is_none() {
            self.link = Some(Link::open(&self.shared.address)?);
        }
        self.replace_lane()?;
        self.keep_house(now)?;
        if self.replacement.is_some() {
            // What is queued is meant for a lane that is not ours any more.
            return Ok(Turn::Again);
        }
        if let Some(turn) = self.fly()? {
            return Ok(turn);
        }
        if is_closed {
            self.leave_all()?;
            return Ok(Turn::End);
        }
        Ok(Turn::Again)
    }

    /// Waits until there is something to do, or something to be looked after. Says whether the writer is closed.
    fn wait_for_work(&mut self) -> bool {
        let shared = self.shared.clone();
        let mut state = shared.lock();
        loop {
            if state.is_closed || !state.queue.is_empty() || self.replacement.is_some() {
                return state.is_closed;
            }
            let until = self.renew_at.min(self.adopt_at);
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            state = shared.wake.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits a moment, or until the next append's time is over.
    fn pause(&mut self) {
        let shared = self.shared.clone();
        let state = shared.lock();
        let now = Instant::now();
        let until = state.queue.next_deadline().map_or(now + AGAIN, |deadline| deadline.min(now + AGAIN));
        let left = until.saturating_duration_since(now);
        drop(shared.ended.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner));
        self.expire(Instant::now());
    }

    fn expire(&mut self, now: Instant) {
        let refused = self.shared.lock().expire(now);
        let patience = self.shared.address.patience.as_secs_f64();
        let text = match (refused.is_empty(), self.trouble.is_empty()) {
            (true, _) => return,
            (false, true) => {
                format!("the writer's Redis had no room for the rows for {patience} s: they were not taken")
            }
            (false, false) => {
                format!(
                    "the writer's Redis was not reached for {patience} s, the rows were not taken: {}",
                    self.trouble
                )
            }
        };
        for HeldRows { positions, held_bytes } in refused {
            self.shared.tell(|events| events.refused(positions, held_bytes, BufferError::Other(text.clone())));
        }
    }

    /// Sends the operations that are queued. Returns `None` if there were none.
    fn fly(&mut self) -> Result<Option<Turn>, ConnectionError> {
        let flight = self.take_flight();
        if flight.is_empty() {
            return Ok(None);
        }
        if let [Op::Read(id)] = flight[..] {
            let outcome = self.read(id);
            if outcome.is_err() {
                self.put_back(flight);
            }
            return outcome.map(|()| Some(Turn::Again));
        }
        let outcome = self.send(&flight);
        match outcome {
            Ok(verdicts) => {
                self.trouble.clear();
                Ok(Some(self.settle(flight, verdicts)))
            }
            Err(error) => {
                self.put_back(flight);
                Err(error)
            }
        }
    }

    fn take_flight(&mut self) -> Vec<Op> {
        let state = &mut *self.shared.lock();
        state.queue.take_flight(state.is_full)
    }

    fn put_back(&mut self, flight: Vec<Op>) {
        self.shared.lock().queue.put_back(flight);
    }

    fn send(&mut self, flight: &[Op]) -> Result<Vec<Verdict>, ConnectionError> {
        let lanes: Vec<Lane> = self.shared.lock().lanes.iter().map(|state| state.lane.clone()).collect();
        let own = self.shared.lock().own;
        let bucket = self.shared.bucket.clone();
        let link = self.link.as_mut().ok_or_else(no_link)?;
        link.judge(&bucket, |pipeline| {
            for op in flight {
                match op {
                    Op::Append(pending) => pipeline.append(&lanes[own], pending.piece.first, pending.piece.rows()),
                    Op::Again(again) => pipeline.append_again(&lanes[own], again),
                    Op::Withdraw { positions, .. } | Op::Skip(positions) => pipeline.withdraw(&lanes[own], positions),
                    Op::Discard(lane) => pipeline.leave(&lanes[*lane], true),
                    Op::Record { lane, serial, change } => pipeline.record(&lanes[*lane], *serial, change),
                    Op::Read(_) => {}
                }
            }
        })
    }

    fn settle(&mut self, flight: Vec<Op>, verdicts: Vec<Verdict>) -> Turn {
        let mut outcome = Settlement::default();
        let mut state = self.shared.lock();
        for (op, verdict) in flight.into_iter().zip(verdicts) {
            state.settle(op, verdict, &mut outcome);
        }
        let must_wait = !outcome.again.is_empty();
        state.queue.put_back(outcome.again);
        state.is_full = outcome.has_room.map_or(state.is_full, |has_room| !has_room);
        let is_full = state.is_full;
        drop(state);
        if let Some(before) = outcome.kept_before {
            self.shared.tell(|events| events.kept(before));
        }
        if outcome.is_recorded || is_full {
            self.shared.tell(|events| events.wake());
        }
        for (lane, loss) in outcome.lost {
            self.lose(lane, loss);
        }
        match must_wait && self.replacement.is_none() {
            true => Turn::Pause,
            false => Turn::Again,
        }
    }

    fn read(&mut self, id: BatchId) -> Result<(), ConnectionError> {
        let wanted = {
            let state = self.shared.lock();
            state.batches.get(&id).map(|batch| {
                let lane = &state.lanes[batch.lane];
                (lane.lane.clone(), lane.index.entries_of(&batch.members), batch.members.clone())
            })
        };
        let Some((lane, entries, rows)) = wanted else { return Ok(()) };
        let bucket = self.shared.bucket.clone();
        let link = self.link.as_mut().ok_or_else(no_link)?;
        let body = link.read(&bucket, &lane, &entries, &rows)?;
        let expected = rows.end - rows.start;
        let body = body.and_then(|body| match body.count() as u64 == expected {
            true => Ok(body),
            false => Err(BufferError::Damaged(format!(
                "Redis, {}: of {expected} rows {} are there",
                lane.rows,
                body.count()
            ))),
        });
        if let Some(batch) = self.shared.lock().batches.get_mut(&id) {
            batch.body = Some(body);
        }
        self.shared.tell(|events| events.wake());
        Ok(())
    }

    /// Looks after leases, lanes that became empty, and lanes of others that died.
    fn keep_house(&mut self, now: Instant) -> Result<(), ConnectionError> {
        if now >= self.renew_at {
            self.renew()?;
            self.renew_at = now + self.shared.address.lease / 3;
        }
        if now >= self.adopt_at && self.replacement.is_none() && !self.shared.lock().is_closed {
            self.adopt()?;
            self.look_after_given_away()?;
            self.adopt_at = now + self.shared.address.lease / 2;
        }
        Ok(())
    }

    fn renew(&mut self) -> Result<(), ConnectionError> {
        self.leave_empty()?;
        let lanes = self.live_lanes();
        let bucket = self.shared.bucket.clone();
        let link = self.link.as_mut().ok_or_else(no_link)?;
        let verdicts = link.judge(&bucket, |pipeline| lanes.iter().for_each(|(_, lane)| pipeline.renew(lane)))?;
        for ((number, _), verdict) in lanes.into_iter().zip(verdicts) {
            if let Some(loss) = Loss::of(&verdict) {
                self.lose(number, loss);
            }
        }
        Ok(())
    }

    fn live_lanes(&self) -> Vec<(usize, Lane)> {
        let state = self.shared.lock();
        let live = state.lanes.iter().enumerate().filter(|(_, lane)| !lane.is_gone);
        live.map(|(number, lane)| (number, lane.lane.clone())).collect()
    }

    /// Leaves adopted lanes of which everything is done.
    fn leave_empty(&mut self) -> Result<(), ConnectionError> {
        let mut lanes = self.live_lanes();
        let state = self.shared.lock();
        lanes.retain(|(number, _)| {
            *number != state.own && state.lanes[*number].index.is_empty() && !state.queue.has_records(*number)
        });
        drop(state);
        self.leave(&lanes)
    }

    fn adopt(&mut self) -> Result<(), ConnectionError> {
        let shared = self.shared.clone();
        let link = self.link.as_mut().ok_or_else(no_link)?;
        shared.adopt(link)
    }

    fn look_after_given_away(&mut self) -> Result<(), ConnectionError> {
        let lanes: Vec<Lane> = self.shared.lock().given_away.iter().map(|given| given.lane.clone()).collect();
        for lane in lanes {
            let bucket = self.shared.bucket.clone();
            let link = self.link.as_mut().ok_or_else(no_link)?;
            if link.tombstone(&bucket, &lane)?.is_none() {
                continue;
            }
            let mut state = self.shared.lock();
            let Some(at) = state.given_away.iter().position(|given| given.lane.name == lane.name) else { continue };
            let given = state.given_away.swap_remove(at);
            drop(state);
            for HeldRows { positions, held_bytes } in given.rows {
                self.shared.tell(|events| events.stored_elsewhere(positions, held_bytes));
            }
        }
        Ok(())
    }

    /// Notes that a lane is another's now, or nowhere.
    fn lose(&mut self, number: LaneNumber, loss: Loss) {
        let mut state = self.shared.lock();
        if std::mem::replace(&mut state.lanes[number].is_gone, true) {
            return;
        }
        if number != state.own {
            state.give_up(number, u64::MAX);
            drop(state);
            self.shared.tell(|events| events.wake());
            return;
        }
        let name = format!("{}+", state.lanes[number].lane.name);
        drop(state);
        self.replacement = Some(Replacement { lane: self.shared.bucket.lane(&name, &self.shared.owner), loss });
    }

    /// Goes on in a lane of its own again, after the former one was lost.
    fn replace_lane(&mut self) -> Result<(), ConnectionError> {
        let Some(wanted) = self.replacement.take() else { return Ok(()) };
        let outcome = self.replace(&wanted);
        match outcome {
            Ok(kept_before) => {
                // Whoever has a batch that was given away now hears so first: another may bring it back.
                self.adopt_at = Instant::now() + self.shared.address.lease / 2;
                if let Some(before) = kept_before {
                    self.shared.tell(|events| events.kept(before));
                }
                self.shared.tell(|events| events.wake());
                Ok(())
            }
            Err(error) => {
                self.replacement = Some(wanted);
                Err(error)
            }
        }
    }

    fn replace(&mut self, wanted: &Replacement) -> Result<Option<u64>, ConnectionError> {
        let shared = self.shared.clone();
        let link = self.link.as_mut().ok_or_else(no_link)?;
        let mut loss = wanted.loss;
        if loss == Loss::Forgotten {
            let former = {
                let state = shared.lock();
                state.lanes[state.own].lane.clone()
            };
            // It was not forgotten: whoever took it has stored all of it.
            if let Some(before) = link.tombstone(&shared.bucket, &former)? {
                loss = Loss::Taken { before };
            }
        }
        shared.register(link, &wanted.lane)?;
        let kept_before = shared.lock().move_to(wanted.lane.clone(), loss);
        Ok(kept_before)
    }

    fn leave_all(&mut self) -> Result<(), ConnectionError> {
        self.leave(&self.live_lanes())
    }

    fn leave(&mut self, lanes: &[(LaneNumber, Lane)]) -> Result<(), ConnectionError> {
        if lanes.is_empty() {
            return Ok(());
        }
        let bucket = self.shared.bucket.clone();
        let link = self.link.as_mut().ok_or_else(no_link)?;
        link.judge(&bucket, |pipeline| lanes.iter().for_each(|(_, lane)| pipeline.leave(lane, false)))?;
        let state = &mut *self.shared.lock();
        lanes.iter().for_each(|(number, _)| state.lanes[*number].is_gone = true);
        Ok(())
    }
}

impl State {
    fn settle(&mut self, op: Op, verdict: Verdict, outcome: &mut Settlement) {
        let lane = if let Op::Record { lane, .. } = op { lane } else { self.own };
        let is_append = matches!(op, Op::Append(_));
        match (op, verdict) {
            // Whoever has the lane that was written elsewhere may have it.
            (Op::Discard(_), _) => {}
            (op, Verdict::Done) => {
                if is_append {
                    outcome.has_room.get_or_insert(true);
                }
                self.was_done(op, outcome);
            }
            (op, verdict @ Verdict::Lost { .. }) => {
                outcome.lost.extend(Loss::of(&verdict).map(|loss| (lane, loss)));
                outcome.again.push(op);
            }
            (op, Verdict::Gap) => {
                // Behind an append for which there is no room; or Redis is not where it was.
                if outcome.again.is_empty() {
                    outcome.lost.push((self.own, Loss::Behind));
                }
                outcome.again.push(op);
            }
            (op, Verdict::Full) => {
                outcome.has_room = Some(false);
                outcome.again.push(op);
            }
        }
    }

    fn was_done(&mut self, op: Op, outcome: &mut Settlement) {
        match op {
            Op::Append(pending) => outcome.kept_before = self.confirm(pending).or(outcome.kept_before),
            Op::Again(Again { batch, .. }) => {
                self.wrote_again(batch);
                outcome.is_recorded |= batch.is_some();
            }
            Op::Record { change, .. } => {
                self.recorded(&change);
                outcome.is_recorded |= !change.writes.is_empty();
            }
            Op::Withdraw { .. } | Op::Skip(_) | Op::Discard(_) | Op::Read(_) => {}
        }
    }
}

fn no_link() -> ConnectionError {
    ConnectionError("Redis is not reached".into())
}
