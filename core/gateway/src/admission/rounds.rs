//! Questions in rounds: one round is under way at most, and everything that is asked meanwhile goes into the
//! next one together.
//!
//! So the number of questions depends on the time that the backend takes for one, not on the number of
//! callers. A round goes on when its callers have gone.

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::hash::Hash;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use super::standing::Moment;

pub(crate) type Answers<K, A> = HashMap<K, A>;
type Asked<K, A> = Pin<Box<dyn Future<Output = Answers<K, A>> + Send>>;
type Ask<K, A> = Box<dyn Fn(Vec<K>, Moment) -> Asked<K, A> + Send + Sync>;
type Published<K, A> = Option<Arc<Answers<K, A>>>;

pub(crate) struct Rounds<K, A> {
    ask: Ask<K, A>,
    state: Mutex<State<K, A>>,
}

struct State<K, A> {
    running: Option<Round<K, A>>,
    next: Option<Round<K, A>>,
}

struct Round<K, A> {
    /// Moment at which the round began; `None`: it is not under way yet.
    began: Option<Moment>,
    keys: HashSet<K>,
    answers: watch::Sender<Published<K, A>>,
}

impl<K: Clone + Eq + Hash + Send + Sync + 'static, A: Clone + Send + Sync + 'static> Rounds<K, A> {
    /// Makes the rounds. `ask` gets all keys of a round and the moment at which the round began.
    pub(crate) fn new<F>(ask: impl Fn(Vec<K>, Moment) -> F + Send + Sync + 'static) -> Arc<Rounds<K, A>>
    where
        F: Future<Output = Answers<K, A>> + Send + 'static,
    {
        let ask: Ask<K, A> = Box::new(move |keys, began| Box::pin(ask(keys, began)));
        Arc::new(Rounds { ask, state: Mutex::new(State { running: None, next: None }) })
    }

    /// Returns the answer of a round that begins at `since` or later. `None`: the round had none for this
    /// key, or broke off.
    pub(crate) async fn answer(self: &Arc<Self>, key: K, since: Moment) -> Option<A> {
        let mut answers = self.join(&key, since);
        let published = answers.wait_for(Option::is_some).await.ok()?;
        published.as_ref()?.get(&key).cloned()
    }

    /// Asks in a round that begins at `since` or later, without waiting for the answer.
    pub(crate) fn begin(self: &Arc<Self>, key: K, since: Moment) {
        drop(self.join(&key, since));
    }

    /// Returns the moment at which the round under way began.
    pub(crate) fn running_since(&self) -> Option<Moment> {
        self.lock().running.as_ref().and_then(|round| round.began)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State<K, A>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn join(self: &Arc<Self>, key: &K, since: Moment) -> watch::Receiver<Published<K, A>> {
        let mut state = self.lock();
        let running = state.running.as_ref().filter(|round| round.keys.contains(key) && round.began >= Some(since));
        if let Some(round) = running {
            return round.answers.subscribe();
        }
        let round = state.next.get_or_insert_with(|| Round {
            began: None,
            keys: HashSet::new(),
            answers: watch::Sender::new(None),
        });
        round.keys.insert(key.clone());
        let answers = round.answers.subscribe();
        if state.running.is_none() {
            tokio::spawn(drive(self.clone()));
            state.start();
        }
        answers
    }
}

impl<K: Clone, A> State<K, A> {
    /// Starts the next round.
    fn start(&mut self) {
        self.running = self.next.take().map(|round| Round { began: Some(Moment::now()), ..round });
    }

    fn running(&self) -> Option<(Vec<K>, Moment)> {
        let round = self.running.as_ref()?;
        Some((round.keys.iter().cloned().collect(), round.began?))
    }
}

/// Guard that ends the rounds if a question is given up, by a panic or with the runtime: then callers that
/// wait get no answer.
struct Ending<K, A> {
    rounds: Arc<Rounds<K, A>>,
    is_orderly: bool,
}

impl<K, A> Drop for Ending<K, A> {
    fn drop(&mut self) {
        if !self.is_orderly {
            let mut state = self.rounds.state.lock().unwrap_or_else(PoisonError::into_inner);
            (state.running, state.next) = (None, None);
        }
    }
}

async fn drive<K, A>(rounds: Arc<Rounds<K, A>>)
where
    K: Clone + Eq + Hash + Send + Sync + 'static,
    A: Clone + Send + Sync + 'static,
{
    let mut ending = Ending { rounds: rounds.clone(), is_orderly: false };
    loop {
        let Some((keys, began)) = rounds.lock().running() else { break };
        let answers = (rounds.ask)(keys, began).await;
        let mut state = rounds.lock();
        if let Some(round) = state.running.take() {
            round.answers.send_replace(Some(Arc::new(answers)));
        }
        if state.next.is_none() {
            break;
        }
        state.start();
    }
    // A caller that asks from now on begins another round.
    ending.is_orderly = true;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::sync::Semaphore;

    struct Backend {
        rounds: Arc<Rounds<u32, u32>>,
        asked: Arc<AtomicUsize>,
        gate: Arc<Semaphore>,
    }

    /// Makes rounds that answer a number with its double, once for each permit of the gate.
    fn backend() -> Backend {
        let (asked, gate) = (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(0)));
        let rounds = Rounds::new({
            let (asked, gate) = (asked.clone(), gate.clone());
            move |keys: Vec<u32>, _| {
                let (asked, gate) = (asked.clone(), gate.clone());
                async move {
                    asked.fetch_add(1, Ordering::Relaxed);
                    gate.acquire().await.unwrap().forget();
                    assert!(!keys.contains(&13), "asked for trouble");
                    keys.into_iter().map(|key| (key, key * 2)).collect()
                }
            }
        });
        Backend { rounds, asked, gate }
    }

    #[tokio::test]
    async fn a_thousand_who_ask_at_once_are_answered_in_two_rounds() {
        let Backend { rounds, asked, gate } = backend();
        gate.add_permits(100);
        let since = Moment::default();
        let askers: Vec<_> = (0..1_000)
            .map(|key| {
                let rounds = rounds.clone();
                tokio::spawn(async move { rounds.answer(key + 100, since).await })
            })
            .collect();
        for (key, asker) in (100..).zip(askers) {
            assert_eq!(asker.await.unwrap(), Some(key * 2));
        }
        assert_eq!(asked.load(Ordering::Relaxed), 2);
    }

    #[tokio::test]
    async fn an_answer_from_before_a_doubt_is_not_taken_behind_it() {
        let Backend { rounds, asked, gate } = backend();
        rounds.begin(1, Moment::default());
        tokio::task::yield_now().await;
        let doubted = Moment::now();
        assert!(rounds.running_since().is_some_and(|began| began <= doubted));
        let late = tokio::spawn({
            let rounds = rounds.clone();
            async move { rounds.answer(1, Moment::of(std::time::Instant::now())).await }
        });
        tokio::task::yield_now().await;
        gate.add_permits(1);
        tokio::task::yield_now().await;
        gate.add_permits(1);
        assert_eq!(late.await.unwrap(), Some(2));
        assert_eq!(asked.load(Ordering::Relaxed), 2);
    }

    #[tokio::test]
    async fn a_round_that_breaks_off_answers_nobody_and_the_next_one_works() {
        let Backend { rounds, gate, .. } = backend();
        gate.add_permits(2);
        assert_eq!(rounds.answer(13, Moment::default()).await, None);
        assert_eq!(rounds.answer(4, Moment::default()).await, Some(8));
    }
}
