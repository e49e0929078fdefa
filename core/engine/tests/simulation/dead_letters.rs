//! The simulated store of dead letters: it takes some time, sometimes fails, and keeps over every crash all
//! dead letters that it has confirmed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fastrand::Rng;

use super::rows::inserts_of;
use crate::{DeadLetterStore, DeadLettersFull, FailedInsert, InsertError, KeepError, Keeping, TableKey};

#[derive(Clone)]
pub(super) struct SimDeadLetters {
    state: Arc<Mutex<State>>,
    /// Says whether this gateway's machine still runs.
    is_powered: Arc<dyn Fn() -> bool + Send + Sync>,
}

pub(super) struct State {
    random: Rng,
    kept: Vec<Kept>,
    pub(super) failures_per_thousand: u32,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Kept {
    pub(super) insert: u64,
    /// True if the error says that it is unknown whether the insert is stored.
    pub(super) says_may_be_stored: bool,
    journal_id: Option<u64>,
}

impl State {
    pub(super) fn new(seed: u64) -> State {
        State { random: Rng::with_seed(seed), kept: Vec::new(), failures_per_thousand: 0 }
    }

    pub(super) fn kept(&self) -> Vec<Kept> {
        self.kept.clone()
    }
}

impl SimDeadLetters {
    pub(super) fn new(
        state: Arc<Mutex<State>>,
        is_powered: impl Fn() -> bool + Send + Sync + 'static,
    ) -> SimDeadLetters {
        SimDeadLetters { state, is_powered: Arc::new(is_powered) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn write(&self, dead_letters: Vec<FailedInsert>) -> Result<(), KeepError> {
        let (pause, fails) = {
            let mut state = self.lock();
            let fails = state.random.u32(0..1000) < state.failures_per_thousand;
            (Duration::from_millis(state.random.u64(0..30)), fails)
        };
        tokio::time::sleep(pause).await;
        if !(self.is_powered)() {
            std::future::pending::<()>().await;
        }
        if fails {
            return Err(KeepError { dead_letters, why: "the disk failed".into() });
        }
        let mut state = self.lock();
        for dead_letter in &dead_letters {
            let inserts = inserts_of(&dead_letter.rows).unwrap_or_default();
            let says_may_be_stored = matches!(dead_letter.error, InsertError::OutcomeUnknown(_));
            let journal_id = dead_letter.journal_id;
            state.kept.extend(inserts.into_iter().map(|insert| Kept { insert, says_may_be_stored, journal_id }));
        }
        Ok(())
    }
}

impl DeadLetterStore for SimDeadLetters {
    fn keep(&self, dead_letters: Vec<FailedInsert>) -> Keeping<'_> {
        Box::pin(self.write(dead_letters))
    }

    fn refuses(&self, _table: &TableKey) -> Option<DeadLettersFull> {
        None
    }

    fn holds(&self, journal_id: u64) -> bool {
        self.lock().kept.iter().any(|kept| kept.journal_id == Some(journal_id))
    }
}
