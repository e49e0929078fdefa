//! A limited number of permits, of which no user ever has all.
//!
//! A permit may be held for long: a query holds it as long as its reader reads, and an append until it ends,
//! even while its client sends nothing. So some permits are left for other users, who would otherwise wait
//! for a user who is in no hurry.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

pub struct UserPermits {
    all: Arc<Semaphore>,
    count: usize,
    most_of_a_user: usize,
    /// The permits of users who hold some, or wait for some.
    of_users: Mutex<HashMap<String, Arc<Semaphore>>>,
}

/// A permit, which is given back when it is dropped.
pub struct UserPermit {
    _permits: Vec<OwnedSemaphorePermit>,
}

impl UserPermits {
    pub fn new(count: usize, most_of_a_user: usize) -> UserPermits {
        UserPermits { all: Arc::new(Semaphore::new(count)), count, most_of_a_user, of_users: Mutex::default() }
    }

    /// Waits in line for a permit, and for one of `also` too. The user's own share comes first: a request
    /// that waits for it holds none of the common permits. Returns `None` where no more are given out.
    pub async fn acquire(&self, user: &str, also: Option<&Arc<Semaphore>>) -> Option<UserPermit> {
        let of_user = self.of_user(user);
        let mut permits = Vec::with_capacity(3);
        for semaphore in [Some(&of_user), also, Some(&self.all)].into_iter().flatten() {
            permits.push(semaphore.clone().acquire_owned().await.ok()?);
        }
        Some(UserPermit { _permits: permits })
    }

    /// Waits until all permits are given back, and gives out none from then on.
    pub async fn close(&self) {
        let all = self.all.acquire_many(u32::try_from(self.count).unwrap_or(u32::MAX)).await;
        self.all.close();
        drop(all);
    }

    fn of_user(&self, user: &str) -> Arc<Semaphore> {
        let mut of_users = self.of_users.lock().unwrap_or_else(PoisonError::into_inner);
        // Users come from the settings, but who is gone from them need not be kept.
        of_users.retain(|name, permits| name == user || Arc::strong_count(permits) > 1);
        of_users.entry(user.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(self.most_of_a_user))).clone()
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    /// Returns a permit if one can be had at once.
    fn now(permits: &UserPermits, user: &str, also: Option<&Arc<Semaphore>>) -> Option<UserPermit> {
        match pin!(permits.acquire(user, also)).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(permit) => permit,
            Poll::Pending => None,
        }
    }

    #[test]
    fn one_user_leaves_some_to_others() {
        let permits = UserPermits::new(20, 15);
        let mut of_one: Vec<UserPermit> = std::iter::from_fn(|| now(&permits, "one", None)).collect();
        assert_eq!(of_one.len(), 15);
        let of_other: Vec<UserPermit> = std::iter::from_fn(|| now(&permits, "other", None)).collect();
        assert_eq!(of_other.len(), 5);
        of_one.pop();
        assert!(now(&permits, "third", None).is_some());
        drop((of_one, of_other));
        assert!(now(&permits, "one", None).is_some());
        assert!(permits.of_users.lock().unwrap().len() <= 2, "who has none is forgotten");
    }

    #[test]
    fn who_waits_for_something_else_as_well_holds_nothing_of_everybodys() {
        let (permits, also) = (UserPermits::new(2, 2), Arc::new(Semaphore::new(1)));
        let first = now(&permits, "one", Some(&also)).expect("all is free");
        assert!(now(&permits, "other", Some(&also)).is_none());
        assert!(now(&permits, "other", None).is_some(), "one is left");
        drop(first);
        assert!(now(&permits, "other", Some(&also)).is_some());
    }
}
