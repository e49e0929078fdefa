//! The servers of one ClickHouse, which are replicas of each other: which of them are there, and which is asked next.
//!
//! A replica is passed over while it can't be connected to, does not answer its pings, or is drained. It is
//! passed over for a moment when it says that it has too much to do. For inserts into a table, it is passed
//! over while it says that this table is read-only (`health.rs`). When all are passed over, all but the
//! drained ones are tried all the same (`order.rs`).
//!
//! Nothing here repeats a request. The caller decides about a request that may have been executed.

mod health;
mod order;
mod purpose;
#[cfg(test)]
mod tests;
mod watch;

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::Notify;
use windrow_http::Stream;

pub use self::health::ReplicaHealth;
pub use self::purpose::{Choice, Purpose};

pub(crate) use self::health::is_without_keeper;
pub(crate) use self::watch::ReplicaWatch;

use self::health::Health;
use crate::dial::Dialer;
use crate::endpoint::Endpoint;
use crate::pool::ClientOptions;
use crate::tls::TlsError;

/// Time limit for connecting to one of several replicas.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// The most replicas that may come and go while the gateway runs.
const MAX_KNOWN: usize = 1024;

/// Identity of a replica, which stays the same as long as the gateway runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReplicaId(u16);

impl ReplicaId {
    pub const FIRST: ReplicaId = ReplicaId(0);

    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

pub struct Replicas {
    /// All replicas that were ever named. An id keeps its meaning.
    known: Vec<OnceLock<Replica>>,
    /// The replicas that are named now, in their order.
    named: RwLock<Arc<[NamedReplica]>>,
    /// Count of lists that were named so far.
    lists: AtomicUsize,
    /// The first replica of the first list.
    first: OnceLock<ReplicaId>,
    are_several: bool,
    choice: Choice,
    turn: AtomicUsize,
    options: ClientOptions,
    /// A lock for changes, one after the other: two drains at once could leave no replica.
    changing: Mutex<()>,
}

/// A replica that may be asked, and its rank among the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct NamedReplica {
    id: ReplicaId,
    priority: u16,
    weight: u16,
}

/// A replica as a list names it. Replicas of a higher priority number are asked only when none of a lower
/// number is left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub endpoint: Endpoint,
    pub priority: u16,
    /// Share of the requests that are spread.
    pub weight: u16,
}

struct Replica {
    endpoint: Endpoint,
    dialer: Dialer,
    requests: AtomicUsize,
    health: Mutex<Health>,
    /// A signal that the replica has not answered for a long time.
    gone: Notify,
}

impl Replica {
    fn new(endpoint: Endpoint, options: &ClientOptions) -> Result<Replica, TlsError> {
        let dialer = Dialer::to(&endpoint, options)?;
        let (requests, health, gone) = (AtomicUsize::new(0), Mutex::default(), Notify::new());
        Ok(Replica { endpoint, dialer, requests, health, gone })
    }

    fn lock(&self) -> MutexGuard<'_, Health> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Replicas {
    /// Makes the list of replicas, which never changes. A caller that has several should [`watch`](Self::watch) them.
    ///
    /// # Errors
    /// Fails where the certificates can't be read, or the name of a server is not one that a certificate can have.
    ///
    /// # Panics
    /// Panics where `endpoints` is empty.
    pub fn new(endpoints: Vec<Endpoint>, choice: Choice, options: &ClientOptions) -> Result<Replicas, TlsError> {
        assert!(!endpoints.is_empty(), "a ClickHouse has a server");
        let replicas = Replicas::with_room(endpoints.len(), endpoints.len() > 1, choice, options);
        replicas.name(endpoints.into_iter().map(|endpoint| Target { endpoint, priority: 0, weight: 1 }).collect())?;
        Ok(replicas)
    }

    /// Makes an empty list of replicas that [`name`](Self::name) fills, again and again. `named_by` has the
    /// account of all; no request goes there.
    ///
    /// # Errors
    /// Fails where the certificates can't be read, or the name of a server is not one that a certificate can have.
    pub fn named_by(named_by: Endpoint, choice: Choice, options: &ClientOptions) -> Result<Replicas, TlsError> {
        let replicas = Replicas::with_room(MAX_KNOWN, true, choice, options);
        let _ = replicas.known[ReplicaId::FIRST.index()].set(Replica::new(named_by, options)?);
        Ok(replicas)
    }

    fn with_room(room: usize, are_several: bool, choice: Choice, options: &ClientOptions) -> Replicas {
        Replicas {
            known: (0..room).map(|_| OnceLock::new()).collect(),
            named: RwLock::new(Arc::new([])),
            lists: AtomicUsize::new(0),
            first: OnceLock::new(),
            are_several,
            choice,
            turn: AtomicUsize::new(0),
            options: options.clone(),
            changing: Mutex::default(),
        }
    }

    /// Replaces the replicas by these, in this order. A replica that is not named any more gets nothing new,
    /// and finishes what it has begun. A replica that is named again keeps its id.
    ///
    /// # Errors
    /// Fails where the certificates can't be read, or the name of a server is not one that a certificate can have.
    pub fn name(&self, targets: Vec<Target>) -> Result<(), TlsError> {
        let _alone = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut named = Vec::new();
        for Target { endpoint, priority, weight } in targets {
            match self.id_of(endpoint)? {
                Some(id) => named.push(NamedReplica { id, priority, weight }),
                None => tracing::error!("more than {MAX_KNOWN} replicas were named since the start: start anew"),
            }
        }
        if let Some(first) = named.first() {
            self.first.get_or_init(|| first.id);
        }
        *self.named.write().unwrap_or_else(PoisonError::into_inner) = named.into();
        self.lists.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Returns the id of the replica, a new one if it was never named. Returns `None` where there is no room
    /// for one more.
    fn id_of(&self, endpoint: Endpoint) -> Result<Option<ReplicaId>, TlsError> {
        let known = self.known.iter().position(|known| known.get().is_some_and(|known| known.endpoint == endpoint));
        if let Some(index) = known {
            return Ok(Some(ReplicaId(index as u16)));
        }
        let Some(index) = self.known.iter().position(|known| known.get().is_none()) else { return Ok(None) };
        let _ = self.known[index].set(Replica::new(endpoint, &self.options)?);
        Ok(Some(ReplicaId(index as u16)))
    }

    fn named(&self) -> Arc<[NamedReplica]> {
        self.named.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn replica(&self, id: ReplicaId) -> &Replica {
        self.known[id.index()].get().expect("an id is that of a replica which is known")
    }

    /// Returns the replicas that are named now.
    pub fn ids(&self) -> Vec<ReplicaId> {
        self.named().iter().map(|named| named.id).collect()
    }

    /// Returns the most replicas that there may ever be: every id's index is below it.
    pub fn room(&self) -> usize {
        self.known.len()
    }

    /// Returns the number of the list of replicas. It changes when others may be named.
    pub(crate) fn list_number(&self) -> usize {
        self.lists.load(Ordering::Relaxed)
    }

    pub(crate) fn is_named(&self, id: ReplicaId) -> bool {
        self.named().iter().any(|named| named.id == id)
    }

    /// Says whether there may be more than one replica.
    pub fn are_several(&self) -> bool {
        self.are_several
    }

    pub fn endpoint(&self, id: ReplicaId) -> &Endpoint {
        &self.replica(id).endpoint
    }

    /// Returns the named replica at this address.
    pub fn at(&self, address: &str) -> Option<ReplicaId> {
        let is_meant =
            |named: &str| named == address || named.split_once("://").is_some_and(|(_, named)| named == address);
        self.ids().into_iter().find(|id| is_meant(&self.endpoint(*id).to_string()))
    }

    pub(crate) async fn connect(&self, id: ReplicaId) -> io::Result<Stream> {
        let connecting = tokio::time::timeout(self.patience(Duration::MAX), self.replica(id).dialer.connect());
        connecting.await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    /// Returns the time limit for connecting to a replica, for a caller that would wait for `patience`. One
    /// of several replicas gets less.
    pub fn patience(&self, patience: Duration) -> Duration {
        if self.are_several() {
            patience.min(CONNECT_TIMEOUT)
        } else {
            patience
        }
    }

    /// Drains a replica: it gets nothing new, and finishes what it has begun. Or gives a drained replica work
    /// again. Returns false where it is the last one: it stays as it is.
    pub fn drain(&self, id: ReplicaId, is_drained: bool) -> bool {
        let _alone = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let is_last =
            self.ids().into_iter().filter(|other| *other != id).all(|other| self.replica(other).lock().is_drained);
        if is_drained && is_last {
            return false;
        }
        self.replica(id).lock().is_drained = is_drained;
        true
    }
}

/// Text of all addresses, in their order. As long as there are none, it is the address that `named_by` gave.
impl std::fmt::Display for Replicas {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ids = self.ids();
        if ids.is_empty() {
            return self.endpoint(ReplicaId::FIRST).fmt(f);
        }
        for (number, id) in ids.into_iter().enumerate() {
            write!(f, "{}{}", if number > 0 { "," } else { "" }, self.endpoint(id))?;
        }
        Ok(())
    }
}

/// A request that is under way, counted until it is dropped.
pub struct InflightRequest {
    pub(crate) replicas: Arc<Replicas>,
    pub(crate) replica: ReplicaId,
}

impl InflightRequest {
    pub fn begin(replicas: Arc<Replicas>, replica: ReplicaId) -> InflightRequest {
        replicas.replica(replica).requests.fetch_add(1, Ordering::Relaxed);
        InflightRequest { replicas, replica }
    }

    pub fn replica(&self) -> ReplicaId {
        self.replica
    }
}

impl Drop for InflightRequest {
    fn drop(&mut self) {
        self.replicas.replica(self.replica).requests.fetch_sub(1, Ordering::Relaxed);
    }
}
