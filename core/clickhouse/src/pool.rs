use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use windrow_http::{ClientConnection, ResponseHead};

use crate::endpoint::Endpoint;
use crate::replicas::{Choice, InflightRequest, Purpose, ReplicaId, ReplicaWatch, Replicas};
use crate::tls::TlsError;

#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// The most connections that are open at once; more requests wait for one.
    pub max_connections: usize,
    /// Time limit for getting a connection, with the wait for a connection that is lent to another request.
    pub connect_timeout: Duration,
    /// Time that a connection may lie idle; less if the server says so.
    pub idle_timeout: Duration,
    /// A file of certificates to trust instead of the system's.
    pub ca_file: Option<PathBuf>,
    /// The name in the server's certificate, where it isn't the host's.
    pub server_name: Option<String>,
    /// Says whether the server is this process, and is trusted with whatever certificate it shows.
    pub is_own_port: bool,
}

impl Default for ClientOptions {
    fn default() -> Self {
        ClientOptions {
            max_connections: 256,
            connect_timeout: Duration::from_secs(5),
            idle_timeout: Duration::from_secs(20),
            ca_file: None,
            server_name: None,
            is_own_port: false,
        }
    }
}

/// An attempt to connect that failed, so that no request was sent.
#[derive(Debug)]
pub struct ConnectError {
    pub endpoint: String,
    pub cause: io::Error,
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot connect to {}: {}", self.endpoint, self.cause)
    }
}

impl std::error::Error for ConnectError {}

struct Idle {
    connection: ClientConnection,
    usable_until: Instant,
}

/// Connections to one ClickHouse, which is one server or several replicas.
pub struct Client {
    replicas: Arc<Replicas>,
    connect_timeout: Duration,
    idle_timeout: Duration,
    /// A pool for each replica, made when the replica is first used.
    pools: Vec<OnceLock<Pool>>,
    max_connections: usize,
    is_closed: AtomicBool,
    /// The number of the list of replicas at which idle connections were last closed.
    seen_list: AtomicUsize,
    made: Instant,
    /// Time of the last answer, in milliseconds since the client was made, plus one. Zero: no answer has come.
    answered: AtomicU64,
}

struct Pool {
    permits: Arc<Semaphore>,
    /// The idle connections. `None`: no connection is kept any more.
    idle: Arc<Mutex<Option<Vec<Idle>>>>,
}

impl Client {
    /// Says whether the server has ever answered a call, even with an error.
    pub fn has_answered(&self) -> bool {
        self.answered.load(Ordering::Relaxed) > 0
    }

    /// Says whether the server has answered a call after `moment`.
    pub fn has_answered_since(&self, moment: Instant) -> bool {
        self.has_answered() && self.answered.load(Ordering::Relaxed) > self.millis(moment)
    }

    pub(crate) fn note_answer(&self) {
        self.answered.fetch_max(self.millis(Instant::now()) + 1, Ordering::Relaxed);
    }

    fn millis(&self, moment: Instant) -> u64 {
        moment.saturating_duration_since(self.made).as_millis() as u64
    }

    /// Makes a client of one server.
    ///
    /// # Errors
    /// Fails where the certificates can't be read, or the name of the server is not one that a certificate can have.
    pub fn new(endpoint: Endpoint, options: ClientOptions) -> Result<Client, TlsError> {
        let replicas = Replicas::new(vec![endpoint], Choice::InOrder, &options)?;
        Ok(Client::of(Arc::new(replicas), &options))
    }

    /// Makes a client of replicas. Other clients may share what is known of their health.
    pub fn of(replicas: Arc<Replicas>, options: &ClientOptions) -> Client {
        Client {
            pools: (0..replicas.room()).map(|_| OnceLock::new()).collect(),
            max_connections: options.max_connections,
            is_closed: AtomicBool::new(false),
            seen_list: AtomicUsize::new(0),
            replicas,
            connect_timeout: options.connect_timeout,
            idle_timeout: options.idle_timeout,
            made: Instant::now(),
            answered: AtomicU64::new(0),
        }
    }

    pub fn replicas(&self) -> &Arc<Replicas> {
        &self.replicas
    }

    /// Returns the server, or the first of several replicas. All know the same account.
    pub fn endpoint(&self) -> &Endpoint {
        self.replicas.endpoint(ReplicaId::FIRST)
    }

    /// Lends a connection for a query of our own.
    ///
    /// # Errors
    /// Fails where no replica could be connected to in time, or all are drained.
    pub async fn connection(&self) -> Result<Lease, ConnectError> {
        self.connection_for(Purpose::Question).await
    }

    /// Lends a connection: an idle one, or a new one. If all are lent, this waits a while. A replica that
    /// can't be connected to is passed over: nothing was sent to it.
    ///
    /// # Errors
    /// Fails where no replica could be connected to in time, or all that serve the purpose are drained.
    pub async fn connection_for(&self, purpose: Purpose) -> Result<Lease, ConnectError> {
        self.forget_unnamed();
        let mut last = None;
        let found = tokio::time::timeout(self.connect_timeout, self.first_that_answers(purpose, &mut last)).await;
        match found {
            Ok(Some(lease)) => Ok(lease),
            Ok(None) => Err(last.unwrap_or_else(|| self.replicas.all_drained(purpose))),
            Err(_) => Err(last.unwrap_or_else(|| ConnectError {
                endpoint: self.replicas.names(purpose),
                cause: io::ErrorKind::TimedOut.into(),
            })),
        }
    }

    async fn first_that_answers(&self, purpose: Purpose, last: &mut Option<ConnectError>) -> Option<Lease> {
        for replica in self.replicas.order(purpose) {
            match self.idle_or_new(replica).await {
                Ok(lease) => return Some(lease),
                Err(cause) => {
                    self.replicas.failed(replica, &cause);
                    *last = Some(ConnectError { endpoint: self.replicas.endpoint(replica).to_string(), cause });
                }
            }
        }
        None
    }

    async fn idle_or_new(&self, replica: ReplicaId) -> io::Result<Lease> {
        let pool = self.pool(replica);
        // The semaphore is never closed, so this never fails.
        let permit = pool.permits.clone().acquire_owned().await.map_err(|_| io::ErrorKind::Other)?;
        let connection = match pool.take_idle() {
            Some(connection) => connection,
            None => ClientConnection::new(self.replicas.connect(replica).await?),
        };
        Ok(Lease {
            connection: Some(connection),
            pool: pool.idle.clone(),
            idle_timeout: self.idle_timeout,
            used: InflightRequest::begin(self.replicas.clone(), replica),
            _permit: permit,
        })
    }

    /// Closes the idle connections of replicas that are not named any more: no request would use them.
    fn forget_unnamed(&self) {
        let list = self.replicas.list_number();
        if self.seen_list.swap(list, Ordering::Relaxed) == list {
            return;
        }
        let named = self.replicas.ids();
        let unnamed = self.pools.iter().enumerate().filter(|(index, _)| !named.iter().any(|id| id.index() == *index));
        let idle: Vec<_> =
            unnamed.filter_map(|(_, pool)| lock(&pool.get()?.idle).as_mut().map(std::mem::take)).collect();
        // Closed outside of the lock.
        drop(idle);
    }

    fn pool(&self, replica: ReplicaId) -> &Pool {
        self.pools[replica.index()].get_or_init(|| Pool {
            permits: Arc::new(Semaphore::new(self.max_connections)),
            idle: Arc::new(Mutex::new((!self.is_closed.load(Ordering::Relaxed)).then(Vec::new))),
        })
    }

    /// Closes the idle connections, and keeps no connection from now on: a server that shuts down would wait
    /// for them. A call that is under way, or begins later, closes its connection when it ends.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
        let idle: Vec<_> = self.pools.iter().filter_map(|pool| lock(&pool.get()?.idle).take()).collect();
        // Closed outside of the lock.
        drop(idle);
    }
}

impl Pool {
    fn take_idle(&self) -> Option<ClientConnection> {
        let now = Instant::now();
        loop {
            let mut idle = lock(&self.idle).as_mut()?.pop()?;
            if idle.usable_until > now && !idle.connection.is_stale() {
                return Some(idle.connection);
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // Nothing is done under this lock that could leave it half done.
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// A connection on loan. If it is dropped, it is closed; [`give_back`](Lease::give_back) keeps it for the
/// next request.
pub struct Lease {
    connection: Option<ClientConnection>,
    pool: Arc<Mutex<Option<Vec<Idle>>>>,
    idle_timeout: Duration,
    used: InflightRequest,
    _permit: OwnedSemaphorePermit,
}

impl Lease {
    /// Returns the replica that the connection is to.
    pub fn replica(&self) -> ReplicaId {
        self.used.replica
    }

    pub fn endpoint(&self) -> &Endpoint {
        self.used.replicas.endpoint(self.used.replica)
    }

    /// Notes that a request on this connection got no answer.
    pub(crate) fn lost(&self, why: &str) {
        self.used.replicas.failed(self.used.replica, &io::Error::other(why));
    }

    /// Returns a watch on the replica, for a request that can go to another replica if this one is gone.
    pub(crate) fn there(&self, purpose: Purpose) -> ReplicaWatch {
        let can_go_elsewhere = !matches!(purpose, Purpose::Only(_) | Purpose::First | Purpose::InSession(_));
        ReplicaWatch { of: can_go_elsewhere.then(|| (self.used.replicas.clone(), self.used.replica)) }
    }

    pub fn connection(&mut self) -> &mut ClientConnection {
        self.connection.as_mut().expect("a lease holds its connection until it is given back")
    }

    /// Returns the connection to the pool after an answer that was read to its end, if the server keeps the
    /// connection open.
    pub fn give_back(mut self, head: &ResponseHead) {
        if !head.keep_alive() {
            return;
        }
        let usable_until = Instant::now() + keep_alive_time(head).min(self.idle_timeout);
        if let (Some(kept), Some(connection)) = (lock(&self.pool).as_mut(), self.connection.take()) {
            kept.push(Idle { connection, usable_until });
        }
    }
}

/// Returns the time that an idle connection may be used. If the server closes a connection just when a
/// request is sent, the request is lost, and nobody knows whether it ran. So a connection is not used in the
/// last third of the time that the server promised.
fn keep_alive_time(head: &ResponseHead) -> Duration {
    const UNSAID: Duration = Duration::from_secs(2);
    let promised = head
        .field_str("keep-alive")
        .and_then(|field| field.split(',').find_map(|part| part.trim().strip_prefix("timeout=")))
        .and_then(|seconds| seconds.trim().parse::<u32>().ok());
    promised.map_or(UNSAID, |seconds| Duration::from_secs(u64::from(seconds)) * 2 / 3)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use tokio::io::AsyncReadExt;
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn what_is_given_back_after_the_end_is_closed() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = Endpoint::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
        let client = Client::new(endpoint, ClientOptions::default()).unwrap();
        let answer = Bytes::from_static(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nKeep-Alive: timeout=100\r\n\r\n");
        let answer = ResponseHead::parse(answer, 10, false).unwrap();
        client.connection().await.unwrap().give_back(&answer);
        let kept = client.connection().await.unwrap();
        client.close();
        kept.give_back(&answer);
        client.connection().await.unwrap().give_back(&answer);
        assert!(client.pool(ReplicaId::FIRST).take_idle().is_none());
        // The first one was lent twice.
        for _ in 0..2 {
            let (mut accepted, _) = listener.accept().await.unwrap();
            assert_eq!(accepted.read(&mut [0]).await.unwrap(), 0);
        }
    }
}
