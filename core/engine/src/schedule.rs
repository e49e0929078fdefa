//! The time that all tables share: one timer for all of them, and the order of their turns to flush.
//!
//! A caller may hold a table's lock. So no table's lock is taken here, except by `turns`, which only
//! [`keep_time`] and tasks that have ended a flight call. What is to be looked at or launched is handed out
//! to these.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use crate::policy::{BackendPolicy, FlushId, LaneId, Micros, Stretch, Urgency};
use crate::sink::Sink;
use tokio::sync::Notify;

use crate::budget::Budget;
use crate::clock::Clock;
use crate::flight::fly;
use crate::gatherer::Core;
use crate::shape::Shape;
use crate::table::{Launch, Table};

/// Share of the memory from which on nothing is held any longer than its table's own policy wants.
const MEMORY_IS_SCARCE: f64 = 0.5;

pub(crate) struct Schedule {
    state: Mutex<State>,
    budget: Budget,
    clock: Clock,
    /// Signal that the timer has to wake earlier than it planned.
    earlier: Notify,
    /// Number of gateways that share the backend. It is read for each insert, without a lock.
    gateways: AtomicUsize,
}

#[derive(Default)]
struct State {
    policy: BackendPolicy,
    /// Shapes of the lanes that wait for their turn.
    waiting: HashMap<LaneId, Arc<Shape>>,
    /// Tables by the time at which they want to be looked at. The number tells those of one moment apart.
    looks: BTreeMap<(Micros, u64), Weak<Table>>,
    next_look: u64,
    /// Time at which the timer will wake.
    wakes_at: Option<Micros>,
}

/// Tables that the timer has to look at, and the time at which it will wake again.
#[derive(Default)]
struct Round {
    looks: Vec<Weak<Table>>,
    wakes_at: Option<Micros>,
}

impl Schedule {
    pub(crate) fn new(budget: Budget, clock: Clock, longest_hold: Micros) -> Schedule {
        let mut state = State::default();
        state.policy.set_longest_hold(longest_hold);
        Schedule { state: Mutex::new(state), budget, clock, earlier: Notify::new(), gateways: AtomicUsize::new(1) }
    }

    pub(crate) fn set_gateways(&self, gateways: usize) {
        self.gateways.store(gateways, Ordering::Relaxed);
    }

    pub(crate) fn stretch(&self) -> Stretch {
        Stretch::among(self.gateways.load(Ordering::Relaxed))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Plans a look at the table at this time.
    pub(crate) fn look_at(&self, at: Micros, table: Weak<Table>) {
        let mut state = self.lock();
        let number = state.next_look;
        state.next_look += 1;
        state.looks.insert((at, number), table);
        self.wake_by(&mut state, Some(at));
    }

    /// Notes that the lane is due. Returns `Some` if its flush begins now. With `None` the lane waits for its
    /// turn, and hears of it by [`Table::take_turn`].
    pub(crate) fn due(&self, now: Micros, shape: &Arc<Shape>, urgency: Urgency) -> Option<FlushId> {
        let mut state = self.lock();
        self.look_at_memory(&mut state);
        let lane = LaneId(shape.id);
        let begun = state.policy.due(now, lane, urgency);
        if begun.is_none() {
            state.waiting.insert(lane, shape.clone());
            let wake = state.policy.next_wake();
            self.wake_by(&mut state, wake);
        }
        begun
    }

    /// Raises the urgency of a lane that waits for its turn: somebody waits for it now, or it has become
    /// worth a turn.
    pub(crate) fn raise(&self, shape: &Shape) {
        self.lock().policy.raise(LaneId(shape.id));
        // Nobody may wake before it is its turn: all that it had to wait for may have been credit.
        self.earlier.notify_one();
    }

    /// Returns the next lane whose turn it is.
    fn next(&self) -> Option<(Arc<Shape>, FlushId)> {
        let mut state = self.lock();
        self.look_at_memory(&mut state);
        loop {
            let (lane, flush) = state.policy.next(self.clock.now())?;
            match state.waiting.remove(&lane) {
                Some(shape) => return Some((shape, flush)),
                None => state.policy.ended(self.clock.now(), flush),
            }
        }
    }

    pub(crate) fn ended(&self, flush: FlushId) {
        self.lock().policy.ended(self.clock.now(), flush);
    }

    /// Notes that the backend has refused a batch because it has too much to do.
    pub(crate) fn overloaded(&self) {
        self.lock().policy.overloaded();
    }

    pub(crate) fn set_backend_cpus(&self, cpus: u32) {
        self.lock().policy.set_cpus(cpus);
    }

    /// Returns the flushes whose turn it is now.
    pub(crate) fn turns(&self) -> Vec<Launch> {
        let mut launches = Vec::new();
        while let Some((shape, flush)) = self.next() {
            match shape.table.take_turn(&shape, flush) {
                Some(launch) => launches.push(launch),
                // Its lane is empty by now.
                None => self.ended(flush),
            }
        }
        launches
    }

    fn look_at_memory(&self, state: &mut State) {
        let scarce = self.budget.held_bytes() as f64 > self.budget.max_bytes() as f64 * MEMORY_IS_SCARCE;
        state.policy.set_memory_is_scarce(scarce);
    }

    fn wake_by(&self, state: &mut State, at: Option<Micros>) {
        let Some(at) = at else { return };
        if state.wakes_at.is_none_or(|wakes| at < wakes) {
            state.wakes_at = Some(at);
            self.earlier.notify_one();
        }
    }

    /// Returns the tables whose time has come, and when the next one's will.
    fn round(&self) -> Round {
        let now = self.clock.now();
        let mut state = self.lock();
        let later = state.looks.split_off(&(now, u64::MAX));
        let looks = std::mem::replace(&mut state.looks, later).into_values().collect();
        let next_look = state.looks.first_key_value().map(|((at, _), _)| *at);
        state.wakes_at = [next_look, state.policy.next_wake()].into_iter().flatten().min();
        Round { looks, wakes_at: state.wakes_at }
    }
}

/// Runs the timer of all tables, which asks their policies when time has passed. The timer ends with the
/// gatherer.
pub(crate) async fn keep_time<S: Sink>(core: Weak<Core<S>>, schedule: Arc<Schedule>) {
    /// Time after which an idle timer wakes, only to see whether the gatherer is gone.
    const IDLE: Duration = Duration::from_secs(60);
    loop {
        let wake = {
            let Some(core) = core.upgrade() else { return };
            let launches = schedule.turns();
            let Round { looks, wakes_at } = schedule.round();
            let looked = looks.iter().filter_map(Weak::upgrade).flat_map(|table| table.look());
            for launch in launches.into_iter().chain(looked) {
                tokio::spawn(fly(core.clone(), launch));
            }
            wakes_at.and_then(|at| schedule.clock.instant(at)).unwrap_or_else(|| tokio::time::Instant::now() + IDLE)
        };
        tokio::select! {
            biased;
            () = tokio::time::sleep_until(wake) => {}
            () = schedule.earlier.notified() => {}
        }
    }
}
