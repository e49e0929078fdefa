//! The connections that may be open at a time, and the choice of the one that has to leave when there are too
//! many.
//!
//! A new connection is a stranger until its first request turns out to come from a user; only then does it
//! keep its permit for as long as it likes. When all permits are taken, a new connection takes the permit of
//! the stranger that has waited longest without sending a request.

use std::collections::BTreeMap;
use std::future::{poll_fn, Future};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use tokio::sync::Notify;

/// The permits of one port.
pub struct ConnectionLimit {
    most: usize,
    state: Mutex<State>,
    /// Wakes waiters when the last connection has gone.
    emptied: Notify,
}

#[derive(Default)]
struct State {
    taken: usize,
    /// Strangers among the taken permits that have been told to leave.
    leaving: usize,
    next_id: u64,
    /// Strangers that send no request at present, by the order in which they began to wait.
    waiting: BTreeMap<u64, Arc<Leaving>>,
}

/// The sign that a stranger has to leave.
#[derive(Default)]
struct Leaving {
    /// True if the stranger was told to leave. Changed under the lock of the permits only.
    is_told: AtomicBool,
    told: Notify,
}

/// One connection's permit, free again when it is dropped.
pub struct ConnectionPermit {
    limit: Arc<ConnectionLimit>,
    is_known: AtomicBool,
    /// The connection's key among the waiting strangers, if it waits.
    waits_as: Mutex<Option<u64>>,
    leaving: Arc<Leaving>,
}

impl ConnectionLimit {
    pub fn new(most: usize) -> Arc<ConnectionLimit> {
        Arc::new(ConnectionLimit { most, state: Mutex::default(), emptied: Notify::new() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a permit for one more connection. Returns `None` where all permits belong to users or to running
    /// requests.
    pub fn take(self: &Arc<ConnectionLimit>) -> Option<ConnectionPermit> {
        let mut state = self.lock();
        // More than one where somebody who was told to leave has turned out to be a user, and stays.
        while state.taken - state.leaving >= self.most {
            let (_, first) = state.waiting.pop_first()?;
            first.is_told.store(true, Ordering::Relaxed);
            first.told.notify_one();
            state.leaving += 1;
        }
        state.taken += 1;
        drop(state);
        let permit = ConnectionPermit {
            limit: self.clone(),
            is_known: AtomicBool::new(false),
            waits_as: Mutex::default(),
            leaving: Arc::default(),
        };
        // From the start: before it is looked at, a hundred others may come.
        permit.waits();
        Some(permit)
    }

    /// Waits until no permit is taken.
    pub async fn emptied(&self) {
        loop {
            let emptied = self.emptied.notified();
            tokio::pin!(emptied);
            emptied.as_mut().enable();
            if self.lock().taken == 0 {
                return;
            }
            emptied.await;
        }
    }
}

impl ConnectionPermit {
    /// Notes that the peer is a user, who keeps the permit.
    pub fn is_of_user(&self) {
        if !self.is_known.swap(true, Ordering::Relaxed) {
            self.works();
            self.stays(&mut self.limit.lock());
        }
    }

    pub fn is_known(&self) -> bool {
        self.is_known.load(Ordering::Relaxed)
    }

    /// Waits for something that the peer has to send. Ends early, with `None`, if a stranger's permit is
    /// needed for another connection.
    pub async fn wait_for<T>(&self, something: impl Future<Output = T>) -> Option<T> {
        if self.is_known() {
            return Some(something.await);
        }
        let mut something = pin!(something);
        // What is there already is not waited for.
        let there = poll_fn(|cx| Poll::Ready(something.as_mut().poll(cx))).await;
        if there.is_pending() {
            self.waits();
        }
        let came = match there {
            Poll::Ready(there) => Some(there),
            Poll::Pending => tokio::select! {
                biased;
                came = something => Some(came),
                () = self.leaving.told.notified() => None,
            },
        };
        self.works();
        came
    }

    /// Ends when a stranger's permit is needed for another connection: for callers that wait by other means.
    pub fn has_to_leave(&self) -> impl Future<Output = ()> + Send + 'static {
        let leaving = self.leaving.clone();
        async move { leaving.told.notified().await }
    }

    /// Adds the stranger to the waiting ones. A stranger that waits already keeps its place among them.
    fn waits(&self) {
        let mut state = self.limit.lock();
        let mut waits_as = self.waits_as();
        if waits_as.is_none() {
            let id = state.next_id;
            state.next_id += 1;
            state.waiting.insert(id, self.leaving.clone());
            *waits_as = Some(id);
        }
    }

    fn works(&self) {
        let mut state = self.limit.lock();
        if let Some(id) = self.waits_as().take() {
            state.waiting.remove(&id);
        }
    }

    /// Takes the connection out of the count of strangers that leave.
    fn stays(&self, state: &mut State) {
        if self.leaving.is_told.swap(false, Ordering::Relaxed) {
            state.leaving -= 1;
        }
    }

    fn waits_as(&self) -> MutexGuard<'_, Option<u64>> {
        self.waits_as.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.works();
        let mut state = self.limit.lock();
        self.stays(&mut state);
        state.taken -= 1;
        if state.taken == 0 {
            self.limit.emptied.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_newcomer_takes_the_slot_of_the_stranger_that_has_waited_longest() {
        let limit = ConnectionLimit::new(3);
        let (known, first, second) = (limit.take().unwrap(), limit.take().unwrap(), limit.take().unwrap());
        known.is_of_user();
        for working in [&first, &second] {
            assert_eq!(working.wait_for(std::future::ready(1)).await, Some(1));
        }
        assert!(limit.take().is_none(), "nobody waits: all are at work");
        let silence = std::future::pending::<()>;
        let (newcomer, another) = {
            let mut known_waits = pin!(known.wait_for(silence()));
            let mut first_waits = pin!(first.wait_for(silence()));
            let mut second_waits = pin!(second.wait_for(silence()));
            for waits in [&mut known_waits, &mut first_waits, &mut second_waits] {
                assert!(poll_fn(|cx| Poll::Ready(waits.as_mut().poll(cx))).await.is_pending());
            }
            let newcomer = limit.take().unwrap();
            assert_eq!(first_waits.await, None);
            assert!(poll_fn(|cx| Poll::Ready(second_waits.as_mut().poll(cx))).await.is_pending());
            let another = limit.take().unwrap();
            assert_eq!(second_waits.await, None);
            (newcomer, another)
        };
        another.is_of_user();
        assert_eq!(newcomer.wait_for(std::future::ready(7)).await, Some(7));
        assert!(limit.take().is_none(), "a user's permit is nobody else's");
        drop((first, second, newcomer, another));
        assert!(limit.take().is_some());
    }

    #[tokio::test]
    async fn who_turns_out_to_be_a_user_stays_and_counts() {
        let limit = ConnectionLimit::new(2);
        let (first, second) = (limit.take().unwrap(), limit.take().unwrap());
        let third = limit.take().unwrap();
        // Told to leave, and served before it was looked at.
        first.is_of_user();
        assert_eq!(first.wait_for(std::future::ready(1)).await, Some(1));
        let fourth = limit.take().unwrap();
        assert_eq!(limit.lock().leaving, 2, "the second and the third make room for it");
        drop((second, third));
        fourth.is_of_user();
        assert!(limit.take().is_none());
        drop((first, fourth));
        let state = limit.lock();
        assert_eq!((state.taken, state.leaving, state.waiting.len()), (0, 0, 0));
    }

    #[tokio::test]
    async fn the_end_is_told_when_all_have_gone() {
        let limit = ConnectionLimit::new(2);
        limit.emptied().await;
        let permit = limit.take().unwrap();
        let told = tokio::spawn({
            let limit = limit.clone();
            async move { limit.emptied().await }
        });
        tokio::task::yield_now().await;
        assert!(!told.is_finished());
        drop(permit);
        told.await.unwrap();
    }
}
