//! A limited number of connections, which are opened when they are needed and kept.
//!
//! A connection on which something failed is not used again. When one is lost, all idle ones are closed too:
//! a server that was restarted has lost those as well. While the database can't be reached, requests do not
//! each wait for a refused connection: for a moment after a failure the answer is that failure.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use windrow_clickhouse::Exception;

use crate::connection::Connection;
use crate::driver::Source;
use crate::system::System;

pub(crate) struct Pool {
    source: Arc<Source>,
    system: System,
    version: String,
    permits: Arc<Semaphore>,
    count: u32,
    idle: Mutex<Vec<Connection>>,
    failed: Mutex<Option<(Instant, Exception)>>,
}

/// Time for which a failure to connect is the answer to all requests.
const FAILS_FOR: Duration = Duration::from_millis(500);

impl Pool {
    pub(crate) fn new(source: Arc<Source>, system: System, version: String, count: usize) -> Pool {
        let count = u32::try_from(count).unwrap_or(u32::MAX).max(1);
        Pool {
            source,
            system,
            version,
            permits: Arc::new(Semaphore::new(count as usize)),
            count,
            idle: Mutex::default(),
            failed: Mutex::default(),
        }
    }

    /// Returns the permit for one connection, or `None` where the pool is closed.
    pub(crate) async fn permit(&self) -> Option<OwnedSemaphorePermit> {
        self.permits.clone().acquire_owned().await.ok()
    }

    /// Returns a connection that was used before, or a new one. Blocks.
    pub(crate) fn take(&self) -> Result<Connection, Exception> {
        match self.lock_idle().pop() {
            Some(connection) => Ok(connection),
            None => self.fresh(),
        }
    }

    /// Opens a connection that was never used. Blocks.
    pub(crate) fn fresh(&self) -> Result<Connection, Exception> {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((_, exception)) = failed.filter(|(at, _)| at.elapsed() < FAILS_FOR) {
            return Err(exception);
        }
        let opened = Connection::open(&self.source, self.system, &self.version);
        let failure = opened.as_ref().err().map(|exception| (Instant::now(), exception.clone()));
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = failure;
        opened
    }

    pub(crate) fn give_back(&self, mut connection: Connection) {
        connection.is_used = true;
        if connection.is_sound && !self.permits.is_closed() {
            self.lock_idle().push(connection);
        }
    }

    /// Closes all idle connections, because one was lost.
    pub(crate) fn let_go(&self) {
        let idle = std::mem::take(&mut *self.lock_idle());
        drop(idle);
    }

    /// Waits for running calls, and allows no new ones.
    pub(crate) async fn close(&self) {
        let all = self.permits.acquire_many(self.count).await;
        self.permits.close();
        drop(all);
        self.lock_idle().clear();
    }

    fn lock_idle(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
