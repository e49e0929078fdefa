//! The port: connections, their limits, TLS, and the end.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use arrow_flight::flight_service_server::FlightServiceServer;
use futures::stream;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;
use tonic::body::Body;
use tonic::codegen::{http, Service as TowerService};
use tonic::server::NamedService;
use tonic::transport::server::{Connected, TcpConnectInfo};
use tonic::transport::{Identity, Server, ServerTlsConfig};
use windrow_append::Appends;

use crate::command::MAX_COMMAND_BYTES;
use crate::incoming::MAX_MESSAGE_BYTES;
use crate::login::{Login, Users};
use crate::metrics::Metrics;
use crate::service::Service;
use crate::store::Store;
use crate::whole::Whole;

const MAX_CONNECTIONS: usize = 1_000;
/// Streams of one connection.
const MAX_STREAMS: u32 = 128;
/// What a client may send ahead of what is read, for each stream and each connection: enough for a slow link.
const STREAM_WINDOW_BYTES: u32 = 4 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 8 << 20;
/// Between two pings, and for the answer to one.
const MIN_PING: Duration = Duration::from_secs(1);
const TLS_TIMEOUT: Duration = Duration::from_secs(10);

/// A certificate and its key, as PEM.
pub struct TlsFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

pub struct FlightOptions {
    pub store: Store,
    pub appends: Appends,
    pub users: Users,
    pub tls: Option<TlsFiles>,
    /// For so long a connection may be silent and not answer a ping either: then its client is gone, and what it had begun is ended.
    pub silence: Duration,
    /// For so long a client may take nothing of a result.
    pub idle_timeout: Duration,
}

/// The service on its port.
pub struct FlightServer {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<Result<(), tonic::transport::Error>>,
}

impl FlightServer {
    /// Serves from now on.
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
        let router = server.add_service(BySize::new(service));
        let task = tokio::spawn(router.serve_with_incoming_shutdown(connections(listener, open), stopped));
        Ok(FlightServer { address, stop: Some(stop), task })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes no more connections, lets what is under way come to its end for so long, and closes what is left.
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

/// One service under two limits: rows come in large messages, questions in small ones, which are read before it is known who asks.
#[derive(Clone)]
struct BySize {
    rows: FlightServiceServer<Service>,
    questions: FlightServiceServer<Service>,
}

impl BySize {
    fn new(service: Service) -> BySize {
        let limited = |bytes| FlightServiceServer::new(service.clone()).max_decoding_message_size(bytes);
        BySize { rows: limited(MAX_MESSAGE_BYTES), questions: limited(MAX_COMMAND_BYTES) }
    }
}

impl NamedService for BySize {
    const NAME: &'static str = <FlightServiceServer<Service> as NamedService>::NAME;
}

impl TowerService<http::Request<Body>> for BySize {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = <FlightServiceServer<Service> as TowerService<http::Request<Body>>>::Future;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let request = request.map(|body| Body::new(Whole::new(body)));
        match request.uri().path().ends_with("/DoPut") {
            true => self.rows.call(request),
            false => self.questions.call(request),
        }
    }
}

/// Connections as they come, as many as may be open.
fn connections(listener: TcpListener, open: Gauge) -> impl futures::Stream<Item = std::io::Result<Connection>> {
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    stream::unfold((listener, room), move |(listener, room)| {
        let open = open.clone();
        async move {
            loop {
                let permit = room.clone().acquire_owned().await.ok()?;
                match listener.accept().await {
                    Ok((stream, _)) => {
                        // Without it small answers wait for nothing; if it can't be set they do.
                        let _ = stream.set_nodelay(true);
                        open.inc();
                        return Some((Ok(Connection { stream, open, _permit: permit }), (listener, room)));
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
    _permit: OwnedSemaphorePermit,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.open.dec();
    }
}

impl Connected for Connection {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> TcpConnectInfo {
        self.stream.connect_info()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
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
