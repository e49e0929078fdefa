//! A store of dead letters in memory that fails on demand.

use std::sync::{Arc, Mutex};

use windrow_gatherer::{DeadLetterStore, KeepError, Keeping, Letter, LettersFull, TableName};

#[derive(Clone, Default)]
pub struct FakeLetters {
    inner: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    kept: Vec<Letter>,
    failures_left: usize,
    is_full: bool,
}

impl FakeLetters {
    pub fn fail(&self, times: usize) {
        self.inner.lock().unwrap().failures_left = times;
    }

    pub fn fill(&self) {
        self.inner.lock().unwrap().is_full = true;
    }

    /// What `shown` says of each letter that is kept.
    pub fn kept<T>(&self, shown: impl Fn(&Letter) -> T) -> Vec<T> {
        self.inner.lock().unwrap().kept.iter().map(shown).collect()
    }
}

impl DeadLetterStore for FakeLetters {
    fn keep(&self, letters: Vec<Letter>) -> Keeping<'_> {
        let mut state = self.inner.lock().unwrap();
        let result = match state.failures_left.checked_sub(1) {
            Some(left) => {
                state.failures_left = left;
                Err(KeepError { letters, why: "scripted".into() })
            }
            None => {
                state.kept.extend(letters);
                Ok(())
            }
        };
        Box::pin(std::future::ready(result))
    }

    fn refuses(&self, _table: &TableName) -> Option<LettersFull> {
        self.inner.lock().unwrap().is_full.then_some(LettersFull { max_bytes: 7 })
    }

    fn holds(&self, journal_id: u64) -> bool {
        self.inner.lock().unwrap().kept.iter().any(|letter| letter.journal_id == Some(journal_id))
    }
}
