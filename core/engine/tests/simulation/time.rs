use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

/// Time that goes on from one life of the gateway to the next, each of which has a runtime, and so a clock,
/// of its own.
#[derive(Clone, Default)]
pub(super) struct SimTime {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    life_began: Option<Instant>,
    life_began_ms: u64,
    latest_ms: u64,
}

impl SimTime {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a life. It has to be the first call in it.
    pub(super) fn begin_life(&self) {
        let mut state = self.lock();
        state.life_began = Some(Instant::now());
        state.life_began_ms = state.latest_ms;
    }

    /// Returns the time. May only be called within a life.
    pub(super) fn now_ms(&self) -> u64 {
        let mut state = self.lock();
        let elapsed = state.life_began.map_or(0, |began| began.elapsed().as_millis() as u64);
        state.latest_ms = state.life_began_ms + elapsed;
        state.latest_ms
    }

    /// Returns the latest time that was asked for: a life that is being dropped has no clock any more.
    pub(super) fn latest_ms(&self) -> u64 {
        self.lock().latest_ms
    }
}
