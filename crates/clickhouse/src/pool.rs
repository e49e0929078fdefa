use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use windrow_http::{ClientConnection, ResponseHead, Stream};

use crate::endpoint::Endpoint;
use crate::tls::{client_config, client_config_for_own_port, TlsError};

#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// Connections open at once; more requests wait for one.
    pub max_connections: usize,
    /// For getting a connection: waiting for one that is lent included.
    pub connect_timeout: Duration,
    /// How long a connection may lie idle; less if the server says so.
    pub idle_timeout: Duration,
    /// Certificates to trust instead of the system's.
    pub ca_file: Option<PathBuf>,
    /// The name in the server's certificate, when it isn't the host's.
    pub server_name: Option<String>,
    /// The server is this process, whatever certificate it shows.
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

/// No connection could be made, so no request was sent.
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

/// Connects to one port.
pub struct Dialer {
    host: String,
    port: Port,
    tls: Option<(tokio_rustls::TlsConnector, ServerName<'static>)>,
}

enum Port {
    Known(u16),
    /// That of HTTP, which the native port tells. Zero: not yet, or nobody listened there.
    ToldBy {
        native: u16,
        told: AtomicU16,
    },
}

/// If the native port does not tell it.
const DEFAULT_HTTP_PORT: u16 = 8123;
/// What it tells is shorter.
const MAX_TOLD_BYTES: u64 = 4096;

impl Dialer {
    /// For HTTP.
    fn to(endpoint: &Endpoint, options: &ClientOptions) -> Result<Dialer, TlsError> {
        let dialer = Dialer::new(&endpoint.host, endpoint.port, endpoint.tls, options)?;
        Ok(match endpoint.native_port {
            Some(native) if !endpoint.tls => {
                Dialer { port: Port::ToldBy { native, told: AtomicU16::default() }, ..dialer }
            }
            _ => dialer,
        })
    }

    pub fn new(host: &str, port: u16, tls: bool, options: &ClientOptions) -> Result<Dialer, TlsError> {
        let tls = match tls {
            false => None,
            true => {
                let config = match options.is_own_port {
                    true => client_config_for_own_port()?,
                    false => client_config(options.ca_file.as_deref(), None)?,
                };
                let name = options.server_name.clone().unwrap_or_else(|| host.to_owned());
                let name = ServerName::try_from(name).map_err(|error| TlsError::from(error.to_string()))?;
                Some((tokio_rustls::TlsConnector::from(config), name))
            }
        };
        Ok(Dialer { host: host.to_owned(), port: Port::Known(port), tls })
    }

    pub async fn connect(&self) -> io::Result<Stream> {
        let port = self.port().await?;
        let stream = TcpStream::connect((self.host.as_str(), port)).await.map_err(|error| self.refused(port, error))?;
        stream.set_nodelay(true)?;
        Ok(match &self.tls {
            None => Stream::Plain(stream),
            Some((connector, name)) => {
                let stream = connector.connect(name.clone(), stream).await?;
                Stream::Tls(Box::new(tokio_rustls::TlsStream::Client(stream)))
            }
        })
    }
}

impl Dialer {
    async fn port(&self) -> io::Result<u16> {
        let (native, told) = match &self.port {
            Port::Known(port) => return Ok(*port),
            Port::ToldBy { native, told } => (*native, told),
        };
        match told.load(Ordering::Relaxed) {
            0 => {
                let port = ask_native_port((self.host.as_str(), native)).await?.unwrap_or(DEFAULT_HTTP_PORT);
                told.store(port, Ordering::Relaxed);
                Ok(port)
            }
            port => Ok(port),
        }
    }

    fn refused(&self, port: u16, error: io::Error) -> io::Error {
        let Port::ToldBy { told, .. } = &self.port else { return error };
        // The server may be another when it is there again.
        told.store(0, Ordering::Relaxed);
        io::Error::new(error.kind(), format!("its HTTP port {port}: {error}"))
    }
}

/// Where HTTP is, as ClickHouse tells it to whoever speaks HTTP to its native port.
async fn ask_native_port(native: (&str, u16)) -> io::Result<Option<u16>> {
    let mut stream = TcpStream::connect(native).await?;
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await?;
    let mut text = Vec::new();
    // It closes behind its answer; what is not an answer of ClickHouse's may go on.
    stream.take(MAX_TOLD_BYTES).read_to_end(&mut text).await?;
    Ok(told_http_port(&String::from_utf8_lossy(&text)))
}

/// From ClickHouse's own words on the port of its native protocol.
pub(crate) fn told_http_port(text: &str) -> Option<u16> {
    const USE: &str = "You must use port ";
    text.find(USE).and_then(|at| text[at + USE.len()..].split(' ').next()?.parse().ok()).filter(|port| *port > 0)
}

impl fmt::Display for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls.is_some() { "tcps" } else { "tcp" };
        let (Port::Known(port) | Port::ToldBy { native: port, .. }) = &self.port;
        write!(f, "{scheme}://{}:{port}", self.host)
    }
}

struct Idle {
    connection: ClientConnection,
    usable_until: Instant,
}

/// Connections to one ClickHouse.
pub struct Client {
    endpoint: Endpoint,
    dialer: Dialer,
    connect_timeout: Duration,
    idle_timeout: Duration,
    permits: Arc<Semaphore>,
    /// `None`: no connection is kept any more.
    idle: Arc<Mutex<Option<Vec<Idle>>>>,
    pub(crate) has_answered: AtomicBool,
}

impl Client {
    /// Whether the server has ever answered a call, be it with an error.
    pub fn has_answered(&self) -> bool {
        self.has_answered.load(Ordering::Relaxed)
    }

    pub fn new(endpoint: Endpoint, options: ClientOptions) -> Result<Client, TlsError> {
        let dialer = Dialer::to(&endpoint, &options)?;
        Ok(Client {
            endpoint,
            dialer,
            connect_timeout: options.connect_timeout,
            idle_timeout: options.idle_timeout,
            permits: Arc::new(Semaphore::new(options.max_connections)),
            idle: Arc::new(Mutex::new(Some(Vec::new()))),
            has_answered: AtomicBool::new(false),
        })
    }

    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Lends a connection: one that lay idle, or a new one; waits a while if all are lent.
    pub async fn connection(&self) -> Result<Lease, ConnectError> {
        let lent = tokio::time::timeout(self.connect_timeout, self.idle_or_new()).await;
        lent.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())).map_err(|cause| self.refused(cause))
    }

    async fn idle_or_new(&self) -> io::Result<Lease> {
        // The semaphore is never closed, so this never fails.
        let permit = self.permits.clone().acquire_owned().await.map_err(|_| io::ErrorKind::Other)?;
        let connection = match self.take_idle() {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        Ok(self.lease(connection, permit))
    }

    /// Closes the connections that lie idle, and keeps none from now on: a server that shuts down would wait for them.
    /// A call that is under way, or begins later, closes its connection when it ends.
    pub fn close(&self) {
        let idle = lock(&self.idle).take();
        // Closed outside of the lock.
        drop(idle);
    }

    fn lease(&self, connection: ClientConnection, permit: OwnedSemaphorePermit) -> Lease {
        let (pool, idle_timeout) = (self.idle.clone(), self.idle_timeout);
        Lease { connection: Some(connection), pool, idle_timeout, _permit: permit }
    }

    fn refused(&self, cause: io::Error) -> ConnectError {
        ConnectError { endpoint: self.endpoint.to_string(), cause }
    }

    fn take_idle(&self) -> Option<ClientConnection> {
        let now = Instant::now();
        loop {
            let mut idle = lock(&self.idle).as_mut()?.pop()?;
            if idle.usable_until > now && !idle.connection.is_stale() {
                return Some(idle.connection);
            }
        }
    }

    async fn connect(&self) -> io::Result<ClientConnection> {
        Ok(ClientConnection::new(self.dialer.connect().await?))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // Nothing is done under this lock that could leave it half done.
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// A connection on loan. Dropped, it is closed; [`give_back`](Lease::give_back) keeps it for the next.
pub struct Lease {
    connection: Option<ClientConnection>,
    pool: Arc<Mutex<Option<Vec<Idle>>>>,
    idle_timeout: Duration,
    _permit: OwnedSemaphorePermit,
}

impl Lease {
    pub fn connection(&mut self) -> &mut ClientConnection {
        self.connection.as_mut().expect("a lease holds its connection until it is given back")
    }

    /// Returns the connection to the pool after an answer that was read to its end, if the server keeps it open.
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

/// A request on a connection that the server is just closing is lost without anyone knowing whether it ran, so a
/// connection is not used in the last third of the time that the server promised.
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
        assert!(client.take_idle().is_none());
        // The first one was lent twice.
        for _ in 0..2 {
            let (mut accepted, _) = listener.accept().await.unwrap();
            assert_eq!(accepted.read(&mut [0]).await.unwrap(), 0);
        }
    }
}
