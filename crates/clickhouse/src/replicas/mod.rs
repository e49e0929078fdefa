//! The servers of one ClickHouse, replicas of each other: which of them are there, and which is asked next.
//!
//! A replica is passed over while it can't be connected to, does not answer its pings, or is drained; for a moment when
//! it says that it has too much to do; and for inserts into a table while it says that this table is read-only
//! (`health.rs`). When all are passed over, all but those that are drained are tried all the same (`order.rs`).
//!
//! Nothing here repeats a request. What may have been executed is the caller's to decide.

mod health;
mod order;
mod purpose;
#[cfg(test)]
mod tests;
mod watch;

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use windrow_http::Stream;

pub use self::health::ReplicaHealth;
pub use self::purpose::{Choice, Purpose};

pub(crate) use self::health::is_without_keeper;
pub(crate) use self::watch::There;

use self::health::Health;
use crate::dial::Dialer;
use crate::endpoint::Endpoint;
use crate::pool::ClientOptions;
use crate::tls::TlsError;

/// How long a connection to one of several replicas may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// A replica's place in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReplicaId(u16);

impl ReplicaId {
    pub const FIRST: ReplicaId = ReplicaId(0);

    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

pub struct Replicas {
    list: Vec<Replica>,
    choice: Choice,
    turn: AtomicUsize,
    draining: Mutex<()>,
}

struct Replica {
    endpoint: Endpoint,
    dialer: Dialer,
    requests: AtomicUsize,
    health: Mutex<Health>,
    /// It has not been heard of for a long time.
    gone: Notify,
}

impl Replica {
    fn lock(&self) -> MutexGuard<'_, Health> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Replicas {
    /// There has to be at least one. Whoever has several should [`watch`](Self::watch) them.
    pub fn new(endpoints: Vec<Endpoint>, choice: Choice, options: &ClientOptions) -> Result<Replicas, TlsError> {
        let replica = |endpoint: Endpoint| {
            let dialer = Dialer::to(&endpoint, options)?;
            let (requests, health, gone) = (AtomicUsize::new(0), Mutex::default(), Notify::new());
            Ok(Replica { endpoint, dialer, requests, health, gone })
        };
        let list = endpoints.into_iter().map(replica).collect::<Result<Vec<_>, TlsError>>()?;
        assert!(!list.is_empty(), "a ClickHouse has a server");
        Ok(Replicas { list, choice, turn: AtomicUsize::new(0), draining: Mutex::default() })
    }

    pub fn ids(&self) -> impl Iterator<Item = ReplicaId> {
        (0..self.list.len()).map(|index| ReplicaId(index as u16))
    }

    pub fn are_several(&self) -> bool {
        self.list.len() > 1
    }

    pub fn endpoint(&self, id: ReplicaId) -> &Endpoint {
        &self.list[id.index()].endpoint
    }

    /// The replica at this address.
    pub fn at(&self, address: &str) -> Option<ReplicaId> {
        let is_meant =
            |named: &str| named == address || named.split_once("://").is_some_and(|(_, named)| named == address);
        self.ids().find(|id| is_meant(&self.endpoint(*id).to_string()))
    }

    pub(crate) async fn connect(&self, id: ReplicaId) -> io::Result<Stream> {
        let connecting = tokio::time::timeout(self.patience(Duration::MAX), self.list[id.index()].dialer.connect());
        connecting.await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    /// How long one of several replicas may take to be connected to, for whoever is patient for so long.
    pub fn patience(&self, patience: Duration) -> Duration {
        if self.are_several() {
            patience.min(CONNECT_TIMEOUT)
        } else {
            patience
        }
    }

    /// Gives it nothing new, or gives it work again. What it has begun it brings to an end. False: it is the last one, and
    /// stays as it is.
    pub fn drain(&self, id: ReplicaId, is_drained: bool) -> bool {
        // One after the other: two at once could leave none.
        let _alone = self.draining.lock().unwrap_or_else(PoisonError::into_inner);
        let mut others = self.ids().filter(|other| *other != id);
        let is_last = others.all(|other| self.list[other.index()].lock().is_drained);
        if is_drained && is_last {
            return false;
        }
        self.list[id.index()].lock().is_drained = is_drained;
        true
    }
}

/// All addresses, in their order.
impl std::fmt::Display for Replicas {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (number, replica) in self.list.iter().enumerate() {
            write!(f, "{}{}", if number > 0 { "," } else { "" }, replica.endpoint)?;
        }
        Ok(())
    }
}

/// A request that is under way, counted until it is dropped.
pub struct Use {
    pub(crate) replicas: Arc<Replicas>,
    pub(crate) replica: ReplicaId,
}

impl Use {
    pub fn begin(replicas: Arc<Replicas>, replica: ReplicaId) -> Use {
        replicas.list[replica.index()].requests.fetch_add(1, Ordering::Relaxed);
        Use { replicas, replica }
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        self.replicas.list[self.replica.index()].requests.fetch_sub(1, Ordering::Relaxed);
    }
}
