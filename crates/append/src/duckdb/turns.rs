//! Which appends are written at once.
//!
//! An append that has begun to write keeps its turn until it ends, also while its client sends nothing. So no user gets all
//! turns: those of others would wait for somebody who is not in a hurry.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Others keep their batches meanwhile. Fewer than DuckDB's transactions, so that appends whose clients are slow leave some to
/// the small inserts.
pub(super) const MAX_TRANSACTIONS: usize = 20;
const MAX_OF_A_USER: usize = 15;

pub(super) struct Turns {
    all: Arc<Semaphore>,
    of_users: Mutex<HashMap<String, Arc<Semaphore>>>,
}

/// The user's own comes first: who waits for it holds none of the others'.
pub(crate) struct Turn {
    _of_user: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

impl Default for Turns {
    fn default() -> Turns {
        Turns { all: Arc::new(Semaphore::new(MAX_TRANSACTIONS)), of_users: Mutex::default() }
    }
}

impl Turns {
    /// Waits in line. `None`: no more are given.
    pub(super) async fn wait(&self, user: &str) -> Option<Turn> {
        let of_user = self.of_user(user).acquire_owned().await.ok()?;
        let of_all = self.all.clone().acquire_owned().await.ok()?;
        Some(Turn { _of_user: of_user, _of_all: of_all })
    }

    fn of_user(&self, user: &str) -> Arc<Semaphore> {
        let mut of_users = self.of_users.lock().unwrap_or_else(PoisonError::into_inner);
        // Users come from the settings, but who is gone from them need not be kept.
        of_users.retain(|name, turns| name == user || Arc::strong_count(turns) > 1);
        of_users.entry(user.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(MAX_OF_A_USER))).clone()
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    /// What can be had at once.
    fn now(turns: &Turns, user: &str) -> Option<Turn> {
        match pin!(turns.wait(user)).poll(&mut Context::from_waker(Waker::noop())) {
            std::task::Poll::Ready(turn) => turn,
            std::task::Poll::Pending => None,
        }
    }

    #[test]
    fn one_user_leaves_some_to_others() {
        let turns = Turns::default();
        let mut of_one: Vec<Turn> = std::iter::from_fn(|| now(&turns, "one")).collect();
        assert_eq!(of_one.len(), MAX_OF_A_USER);
        let of_other: Vec<Turn> = std::iter::from_fn(|| now(&turns, "other")).collect();
        assert_eq!(of_other.len(), MAX_TRANSACTIONS - MAX_OF_A_USER);
        of_one.pop();
        assert!(now(&turns, "third").is_some());
        drop((of_one, of_other));
        assert!(now(&turns, "one").is_some());
        assert!(turns.of_users.lock().unwrap().len() <= 2, "who has none is forgotten");
    }
}
