//! The port: connections, their limits, TLS, and the shutdown.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use arrow_flight::flight_service_server::FlightServiceServer;
use futures::future::FusedFuture;
use futures::{stream, FutureExt};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic::body::Body;
use tonic::codegen::{http, Service as TowerService};
use tonic::server::NamedService;
use tonic::transport::server::Connected;
use tonic::transport::{Identity, Server, ServerTlsConfig};
use windrow_append::Appends;
use windrow_http::ConnectionLimit;

use crate::command::MAX_COMMAND_BYTES;
use crate::incoming::MAX_MESSAGE_BYTES;
use crate::login::{Login, Peer, Users};
use crate::metrics::Metrics;
use crate::service::Service;
use crate::store::Store;
use crate::whole::Whole;

pub const MAX_CONNECTIONS: usize = 1_000;
/// The most streams of one connection.
const MAX_STREAMS: u32 = 128;
/// The most bytes that a client may send ahead of what is read, for each stream; the next constant is for a
/// connection. It is enough for a slow link.
const STREAM_WINDOW_BYTES: u32 = 4 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 8 << 20;
/// The shortest pause between two pings, and the shortest time limit for the answer to one.
const MIN_PING: Duration = Duration::from_secs(1);
const TLS_TIMEOUT: Duration = Duration::from_secs(10);
/// Time after which a connection without a login is closed.
const MAX_SILENCE_OF_STRANGERS: Duration = Duration::from_secs(30);
/// The most bytes of a message without a login: a user's name and password.
const MAX_LOGIN_BYTES: usize = 64 << 10;

/// The files of a certificate and its key, in PEM.
pub struct TlsFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

pub struct FlightOptions {
    pub store: Store,
    pub appends: Appends,
    pub users: Users,
    pub tls: Option<TlsFiles>,
    /// Time for which a connection may be silent and not answer a ping either. Then its client is gone, and
    /// everything that it had begun is ended.
    pub silence: Duration,
    /// Time for which a client may take nothing of a result.
    pub idle_timeout: Duration,
}

/// The running service on its port.
pub struct FlightServer {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<Result<(), tonic::transport::Error>>,
}

impl FlightServer {
    /// Starts the service.
    ///
    /// # Errors
    /// Fails where the address of the listener is not known, or the certificate and its key can't be used.
    pub fn start(
        listener: TcpListener,
        options: FlightOptions,
        registry: &mut Registry,
    ) -> Result<FlightServer, String> {
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        let metrics = Metrics::register(registry);
        let open = metrics.connections.clone();
        let login = Login::new(options.users);
        let service = Service::new(options.store, options.appends, login, metrics, options.idle_timeout);
        let ping = (options.silence / 2).max(MIN_PING);
        let mut server = Server::builder()
            .max_concurrent_streams(MAX_STREAMS)
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .http2_keepalive_interval(Some(ping))
            .http2_keepalive_timeout(Some(ping));
        if let Some(files) = options.tls {
            let tls = ServerTlsConfig::new().identity(identity(&files)?).timeout(TLS_TIMEOUT);
            server = server.tls_config(tls).map_err(|error| format!("TLS of flight.listen: {error}"))?;
        }
        let (stop, stopped) = oneshot::channel::<()>();
        let stopped = async move { drop(stopped.await) };
        let router = server.add_service(ByCaller::new(service));
        let task = tokio::spawn(router.serve_with_incoming_shutdown(connections(listener, open), stopped));
        Ok(FlightServer { address, stop: Some(stop), task })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Accepts no more connections, lets running calls come to their end within `timeout`, and closes the rest.
    pub async fn shut_down(mut self, timeout: Duration) {
        self.stop.take().map(|stop| stop.send(()));
        if tokio::time::timeout(timeout, &mut self.task).await.is_err() {
            self.task.abort();
        }
    }
}

fn identity(files: &TlsFiles) -> Result<Identity, String> {
    let read = |path: &PathBuf| std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
    Ok(Identity::from_pem(read(&files.certificate)?, read(&files.key)?))
}

/// One service behind the login, with three limits for messages: rows come in large messages, queries in
/// smaller ones, and messages without a login have to be small.
#[derive(Clone)]
struct ByCaller {
    service: Service,
    rows: FlightServiceServer<Service>,
    questions: FlightServiceServer<Service>,
    logins: FlightServiceServer<Service>,
}

impl ByCaller {
    fn new(service: Service) -> ByCaller {
        let limited = |bytes| FlightServiceServer::new(service.clone()).max_decoding_message_size(bytes);
        let (rows, questions, logins) =
            (limited(MAX_MESSAGE_BYTES), limited(MAX_COMMAND_BYTES), limited(MAX_LOGIN_BYTES));
        ByCaller { service, rows, questions, logins }
    }

    async fn answer(mut self, mut request: http::Request<Body>) -> Result<http::Response<Body>, Infallible> {
        let method = Method::of(request.uri().path());
        if let Method::OfUsers(name) | Method::Rows(name) = method {
            // Before anything of its message is read.
            if let Err(status) = self.service.log_in(name, &mut request).await {
                return Ok(status.into_http());
            }
        }
        match method {
            Method::Rows(_) => self.rows.call(request).await,
            Method::OfUsers(_) => self.questions.call(request).await,
            Method::OfAnybody => self.logins.call(request).await,
        }
    }
}

/// The kind of a method, which decides about its login and the size of its messages.
#[derive(Clone, Copy)]
enum Method {
    Rows(&'static str),
    OfUsers(&'static str),
    /// The handshake, and methods that don't exist. They need no login.
    OfAnybody,
}

impl Method {
    fn of(path: &str) -> Method {
        const OF_USERS: [&str; 5] = ["GetFlightInfo", "GetSchema", "DoGet", "DoAction", "ListActions"];
        let name = path.rsplit('/').next().unwrap_or("");
        match OF_USERS.into_iter().find(|known| *known == name) {
            Some(name) => Method::OfUsers(name),
            None if name == "DoPut" => Method::Rows("DoPut"),
            None => Method::OfAnybody,
        }
    }
}

impl NamedService for ByCaller {
    const NAME: &'static str = <FlightServiceServer<Service> as NamedService>::NAME;
}

impl TowerService<http::Request<Body>> for ByCaller {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<http::Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let request = request.map(|body| Body::new(Whole::new(body)));
        Box::pin(self.clone().answer(request))
    }
}

/// Returns connections as they come, up to the most that may be open.
fn connections(listener: TcpListener, open: Gauge) -> impl futures::Stream<Item = std::io::Result<Connection>> {
    let connection_limit = ConnectionLimit::new(MAX_CONNECTIONS);
    stream::unfold((listener, connection_limit), move |(listener, connection_limit)| {
        let open = open.clone();
        async move {
            loop {
                match listener.accept().await {
                    Ok((stream, address)) => {
                        // All are of users: it is closed at once.
                        let Some(permit) = connection_limit.take() else { continue };
                        // Without it small answers wait for nothing; if it can't be set they do.
                        let _ = stream.set_nodelay(true);
                        open.inc();
                        return Some((
                            Ok(Connection::new(stream, open, Peer::new(address.ip(), permit))),
                            (listener, connection_limit),
                        ));
                    }
                    Err(error) => {
                        tracing::warn!(%error, "a connection to the port of Flight SQL can't be accepted");
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                }
            }
        }
    })
}

struct Connection {
    stream: TcpStream,
    open: Gauge,
    peer: Peer,
    /// A future that ends when a connection without a login has to be closed.
    leaves: Pin<Box<dyn FusedFuture<Output = ()> + Send>>,
}

impl Connection {
    fn new(stream: TcpStream, open: Gauge, peer: Peer) -> Connection {
        let wanted = peer.permit.has_to_leave();
        let leaves = Box::pin(tokio::time::timeout(MAX_SILENCE_OF_STRANGERS, wanted).map(|_| ()).fuse());
        Connection { stream, open, peer, leaves }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.open.dec();
    }
}

impl Connected for Connection {
    type ConnectInfo = Peer;

    fn connect_info(&self) -> Peer {
        self.peer.clone()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let is_over = |leaves: &mut Pin<Box<dyn FusedFuture<Output = ()> + Send>>, context: &mut Context<'_>| {
            leaves.is_terminated() || leaves.as_mut().poll(context).is_ready()
        };
        if !self.peer.permit.is_known() && is_over(&mut self.leaves, context) {
            return Poll::Ready(Err(std::io::ErrorKind::ConnectionAborted.into()));
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
