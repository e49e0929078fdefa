//! Permits for queries: a limited number run at once, and others wait in line, but not for ever.
//!
//! One user has at most three quarters of the permits. Flight SQL, whose streams stay open longest, has at most half.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

use crate::query::{Port, Session};
use crate::user_permits::{UserPermit, UserPermits};

pub(crate) struct QueryPermits {
    permits: UserPermits,
    flight: Arc<Semaphore>,
    count: usize,
    max_wait: Duration,
}

pub(crate) enum NoPermit {
    Closed,
    Busy(String),
}

impl QueryPermits {
    pub(crate) fn new(count: usize, max_wait: Duration) -> QueryPermits {
        let most_of_a_user = (count - count / 4).max(1);
        QueryPermits {
            permits: UserPermits::new(count, most_of_a_user),
            flight: Arc::new(Semaphore::new((count / 2).max(1))),
            count,
            max_wait,
        }
    }

    pub(crate) async fn acquire(&self, session: &Session) -> Result<UserPermit, NoPermit> {
        let also = (session.port == Port::Flight).then_some(&self.flight);
        match tokio::time::timeout(self.max_wait, self.permits.acquire(&session.user, also)).await {
            Ok(Some(permit)) => Ok(permit),
            Ok(None) => Err(NoPermit::Closed),
            Err(_) => Err(NoPermit::Busy(self.too_many(session))),
        }
    }

    /// Waits until all permits are given back, and gives out none from then on.
    pub(crate) async fn close(&self) {
        self.permits.close().await;
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
