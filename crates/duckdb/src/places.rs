//! Places for queries: so many run at once, and others wait in line, but not for ever.
//!
//! A query holds its place for as long as its reader reads. So that slow readers leave some to others, one user never has all
//! of them, and Flight SQL, whose streams stay open longest, has half.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

use crate::query::{Port, Session};

pub(crate) struct Places {
    all: Arc<Semaphore>,
    flight: Arc<Semaphore>,
    /// Of the users that have asked: they are known by then, and few.
    users: Mutex<HashMap<String, Arc<Semaphore>>>,
    count: usize,
    max_wait: Duration,
}

/// Given back when it is dropped.
pub(crate) struct Place {
    _permits: Vec<OwnedSemaphorePermit>,
}

pub(crate) enum NoPlace {
    Closed,
    Busy(String),
}

impl From<AcquireError> for NoPlace {
    fn from(_: AcquireError) -> NoPlace {
        NoPlace::Closed
    }
}

impl Places {
    pub(crate) fn new(count: usize, max_wait: Duration) -> Places {
        Places {
            all: Arc::new(Semaphore::new(count)),
            flight: Arc::new(Semaphore::new((count / 2).max(1))),
            users: Mutex::default(),
            count,
            max_wait,
        }
    }

    pub(crate) async fn take(&self, session: &Session) -> Result<Place, NoPlace> {
        let mut wanted = vec![self.of_user(&session.user)];
        if session.port == Port::Flight {
            wanted.push(self.flight.clone());
        }
        wanted.push(self.all.clone());
        let take = async {
            let mut permits = Vec::with_capacity(wanted.len());
            for semaphore in wanted {
                permits.push(semaphore.acquire_owned().await?);
            }
            Ok(Place { _permits: permits })
        };
        let waited = tokio::time::timeout(self.max_wait, take).await;
        waited.unwrap_or_else(|_| Err(NoPlace::Busy(self.too_many(session))))
    }

    /// Waits until all are given back, and gives out none any more.
    pub(crate) async fn close(&self) {
        let all = self.all.acquire_many(u32::try_from(self.count).unwrap_or(u32::MAX)).await;
        self.all.close();
        drop(all);
    }

    fn of_user(&self, user: &str) -> Arc<Semaphore> {
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        let most = (self.count - self.count / 4).max(1);
        users.entry(user.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(most))).clone()
    }

    fn too_many(&self, session: &Session) -> String {
        let (count, user) = (self.count, &session.user);
        format!(
            "Too many simultaneous queries for {} s. Maximum: {count} (duckdb.max_result_connections), three quarters of them for user \
             {user}, half of them over Flight SQL",
            self.max_wait.as_secs()
        )
    }
}
