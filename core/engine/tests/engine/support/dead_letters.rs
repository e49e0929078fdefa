//! A store of dead letters in memory that fails on demand.

use std::sync::{Arc, Mutex};

use windrow_engine::{DeadLetterStore, DeadLettersFull, FailedInsert, KeepError, Keeping, TableKey};

#[derive(Clone, Default)]
pub struct FakeDeadLetters {
    inner: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    kept: Vec<FailedInsert>,
    failures_left: usize,
    is_full: bool,
}

impl FakeDeadLetters {
    pub fn fail(&self, times: usize) {
        self.inner.lock().unwrap().failures_left = times;
    }

    pub fn fill(&self) {
        self.inner.lock().unwrap().is_full = true;
    }

    /// Returns the result of `shown` for each dead letter that is kept.
    pub fn kept<T>(&self, shown: impl Fn(&FailedInsert) -> T) -> Vec<T> {
        self.inner.lock().unwrap().kept.iter().map(shown).collect()
    }
}

impl DeadLetterStore for FakeDeadLetters {
    fn keep(&self, dead_letters: Vec<FailedInsert>) -> Keeping<'_> {
        let mut state = self.inner.lock().unwrap();
        let result = match state.failures_left.checked_sub(1) {
            Some(left) => {
                state.failures_left = left;
                Err(KeepError { dead_letters, why: "scripted".into() })
            }
            None => {
                state.kept.extend(dead_letters);
                Ok(())
            }
        };
        Box::pin(std::future::ready(result))
    }

    fn refuses(&self, _table: &TableKey) -> Option<DeadLettersFull> {
        self.inner.lock().unwrap().is_full.then_some(DeadLettersFull { max_bytes: 7 })
    }

    fn holds(&self, journal_id: u64) -> bool {
        self.inner.lock().unwrap().kept.iter().any(|dead_letter| dead_letter.journal_id == Some(journal_id))
    }
}
