//! Connections that are kept: a bounded number, opened when they are needed.
//!
//! One on which something failed is not used again, and when one is lost all that lie idle go with it: a server that
//! was restarted has lost those too. While the database can't be reached nobody waits for a connection to be refused
//! again and again: for a moment after a failure the answer is that failure.

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

/// How long a failure to connect is believed.
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

    /// The right to one connection. `None`: the pool is closed.
    pub(crate) async fn permit(&self) -> Option<OwnedSemaphorePermit> {
        self.permits.clone().acquire_owned().await.ok()
    }

    /// A connection that was used before, or a new one. Blocks.
    pub(crate) fn take(&self) -> Result<Connection, Exception> {
        match self.lock_idle().pop() {
            Some(connection) => Ok(connection),
            None => self.fresh(),
        }
    }

    /// A connection that nobody has used. Blocks.
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

    /// Lets go of all that lie idle: one was lost.
    pub(crate) fn let_go(&self) {
        let idle = std::mem::take(&mut *self.lock_idle());
        drop(idle);
    }

    /// Waits for what is under way, and lets nobody begin.
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
