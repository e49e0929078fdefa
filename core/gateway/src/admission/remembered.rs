use std::collections::HashMap;
use std::future::Future;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::NotAdmitted;

/// Answers of the backend, each kept for a while. At most one question for each key is under way: other
/// callers wait for its answer.
pub(crate) struct Remembered<K, V> {
    entries: Mutex<HashMap<K, Arc<Remembering<V>>>>,
    ttl: Duration,
}

struct Remembering<V> {
    answer: tokio::sync::Mutex<Option<Answer<V>>>,
}

struct Answer<V> {
    value: Arc<V>,
    at: Instant,
    /// Says whether the value may no longer be true. It still holds while the backend can't be asked.
    is_doubted: bool,
}

/// Bound of the keys. More are a flood of names that don't exist: then all are thrown out.
const MAX_KEYS: usize = 10_000;

impl<K: Hash + Eq + Clone, V> Remembered<K, V> {
    pub(crate) fn new(ttl: Duration) -> Remembered<K, V> {
        Remembered { entries: Mutex::default(), ttl }
    }

    pub(crate) async fn get<F>(&self, key: &K, ask: impl FnOnce() -> F) -> Result<Arc<V>, NotAdmitted>
    where
        F: Future<Output = Result<V, NotAdmitted>>,
    {
        let entry = self.entry(key);
        let mut answer = entry.answer.lock().await;
        if let Some(known) = answer.as_ref().filter(|known| !known.is_doubted && known.at.elapsed() < self.ttl) {
            return Ok(known.value.clone());
        }
        match (ask().await, answer.as_ref()) {
            (Ok(value), _) => {
                let value = Arc::new(value);
                *answer = Some(Answer { value: value.clone(), at: Instant::now(), is_doubted: false });
                Ok(value)
            }
            // While the backend can't be asked, what it said last holds.
            (Err(NotAdmitted::Unreachable(_) | NotAdmitted::Busy), Some(known)) => Ok(known.value.clone()),
            (Err(error), _) => {
                *answer = None;
                Err(error)
            }
        }
    }

    /// Returns the last answer, however old. `None`: there is none, or a question is under way.
    pub(crate) fn known(&self, key: &K) -> Option<Arc<V>> {
        let entry = self.entries.lock().unwrap_or_else(PoisonError::into_inner).get(key)?.clone();
        let answer = entry.answer.try_lock().ok()?;
        answer.as_ref().map(|known| known.value.clone())
    }

    /// Makes the next caller ask anew, unless the answer is younger than `age`.
    pub(crate) fn doubt(&self, key: &K, age: Duration) {
        let entry = self.entry(key);
        // Who holds the lock is asking.
        let Ok(mut answer) = entry.answer.try_lock() else { return };
        if let Some(known) = answer.as_mut().filter(|known| known.at.elapsed() >= age) {
            known.is_doubted = true;
        }
    }

    pub(crate) fn clear(&self) {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn entry(&self, key: &K) -> Arc<Remembering<V>> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = entries.get(key) {
            return entry.clone();
        }
        if entries.len() >= MAX_KEYS {
            entries.clear();
        }
        let entry = Arc::new(Remembering { answer: tokio::sync::Mutex::new(None) });
        entries.insert(key.clone(), entry.clone());
        entry
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forward_reason::ForwardReason;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[tokio::test]
    async fn many_askers_make_one_question() {
        let remembered = Remembered::<u8, u8>::new(Duration::from_secs(60));
        let asked = AtomicU32::new(0);
        let ask = || async {
            asked.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
            Ok(7)
        };
        let (a, b) = tokio::join!(remembered.get(&1, ask), remembered.get(&1, ask));
        assert_eq!((*a.unwrap(), *b.unwrap(), asked.load(Ordering::Relaxed)), (7, 7, 1));
    }

    #[tokio::test]
    async fn what_is_doubted_is_asked_again() {
        let remembered = Remembered::<u8, u8>::new(Duration::from_secs(60));
        let say = |value| move || async move { Ok(value) };
        assert_eq!(*remembered.get(&1, say(7)).await.unwrap(), 7);
        remembered.doubt(&1, Duration::from_secs(60));
        assert_eq!(*remembered.get(&1, say(8)).await.unwrap(), 7, "it is too young to be doubted");
        remembered.doubt(&1, Duration::ZERO);
        let away = || async { Err(NotAdmitted::Unreachable("away".into())) };
        assert_eq!(*remembered.get(&1, away).await.unwrap(), 7, "while nobody can be asked it holds");
        assert_eq!(*remembered.get(&1, say(8)).await.unwrap(), 8);
        assert_eq!(*remembered.get(&1, say(9)).await.unwrap(), 8);
    }

    #[tokio::test]
    async fn the_last_answer_holds_while_nobody_can_be_asked() {
        let remembered = Remembered::<u8, u8>::new(Duration::ZERO);
        let away = || async { Err(NotAdmitted::Unreachable("away".into())) };
        assert!(remembered.get(&1, away).await.is_err());
        assert_eq!(*remembered.get(&1, || async { Ok(7) }).await.unwrap(), 7);
        assert_eq!(*remembered.get(&1, away).await.unwrap(), 7);
        let refused = || async { Err(NotAdmitted::Forward(ForwardReason::Refused)) };
        assert!(remembered.get(&1, refused).await.is_err());
        assert!(remembered.get(&1, away).await.is_err(), "a refusal ends what was known");
    }
}
