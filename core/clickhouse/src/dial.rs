//! Connecting to one port, with TLS or without.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use windrow_http::Stream;

use crate::endpoint::Endpoint;
use crate::pool::ClientOptions;
use crate::tls::{client_config, client_config_for_own_port, TlsError};

/// Connects to one port.
pub struct Dialer {
    host: String,
    port: Port,
    tls: Option<(tokio_rustls::TlsConnector, ServerName<'static>)>,
}

enum Port {
    Known(u16),
    /// The HTTP port that the native port names. Zero: it is not known yet, or nobody listened on it any more.
    ToldBy {
        native: u16,
        told: AtomicU16,
    },
}

/// The HTTP port if the native port does not name one.
const DEFAULT_HTTP_PORT: u16 = 8123;
/// Time that a connection to one address of several may take before the next address is tried beside it, as
/// RFC 8305 recommends.
const NEXT_ADDRESS_AFTER: Duration = Duration::from_millis(250);
/// The most bytes that are read from the native port. Its answer is shorter.
const MAX_TOLD_BYTES: u64 = 4096;

impl Dialer {
    /// Makes a dialer for the HTTP port of the endpoint.
    pub(crate) fn to(endpoint: &Endpoint, options: &ClientOptions) -> Result<Dialer, TlsError> {
        let dialer = Dialer::new(&endpoint.host, endpoint.port, endpoint.tls, options)?;
        Ok(match endpoint.native_port {
            Some(native) if !endpoint.tls => {
                Dialer { port: Port::ToldBy { native, told: AtomicU16::default() }, ..dialer }
            }
            _ => dialer,
        })
    }

    /// Makes a dialer for one port.
    ///
    /// # Errors
    /// Fails where the certificates can't be read, or the name of the server is not one that a certificate can have.
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

    /// Opens a connection, with the TLS handshake if the dialer has TLS.
    ///
    /// # Errors
    /// Fails where no address of the host accepts a connection, or the TLS handshake fails.
    pub async fn connect(&self) -> io::Result<Stream> {
        let port = self.port().await?;
        let stream = connect_to_any(&self.host, port).await.map_err(|error| self.refused(port, error))?;
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

/// Connects to the first address of a name that can be connected to. Names are looked up for each connection,
/// so a server that has moved is found. An address that does not answer delays the next one only for a
/// moment, as in RFC 8305: a name may have addresses of machines that are gone.
async fn connect_to_any(host: &str, port: u16) -> io::Result<TcpStream> {
    connect_to_first(tokio::net::lookup_host((host, port)).await?.collect()).await
}

async fn connect_to_first(mut addresses: VecDeque<SocketAddr>) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    let mut attempts = JoinSet::new();
    loop {
        match addresses.pop_front() {
            // The usual case needs no task.
            Some(only) if attempts.is_empty() && addresses.is_empty() => return TcpStream::connect(only).await,
            Some(next) => drop(attempts.spawn(TcpStream::connect(next))),
            None => {}
        }
        let ended = match addresses.is_empty() {
            true => attempts.join_next().await,
            false => tokio::select! {
                ended = attempts.join_next() => ended,
                () = tokio::time::sleep(NEXT_ADDRESS_AFTER) => continue,
            },
        };
        match ended {
            Some(Ok(Ok(stream))) => return Ok(stream),
            Some(Ok(Err(error))) => last = error,
            Some(Err(error)) => last = io::Error::other(error),
            None => return Err(last),
        }
    }
}

/// Asks the native port for the HTTP port: ClickHouse names it to a client that speaks HTTP to its native port.
async fn ask_native_port(native: (&str, u16)) -> io::Result<Option<u16>> {
    let mut stream = connect_to_any(native.0, native.1).await?;
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await?;
    let mut text = Vec::new();
    // It closes behind its answer; what is not an answer of ClickHouse's may go on.
    stream.take(MAX_TOLD_BYTES).read_to_end(&mut text).await?;
    Ok(told_http_port(&String::from_utf8_lossy(&text)))
}

/// Finds the HTTP port in the text that ClickHouse sends on the port of its native protocol.
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

#[cfg(test)]
mod tests {
    use tokio::net::{TcpListener, TcpSocket};

    use super::*;

    async fn listener() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    }

    #[tokio::test]
    async fn of_several_addresses_the_first_that_takes_connections_is_taken() {
        let (listening, there) = listener().await;
        // Bound and never listening: connections are refused, and nobody else gets the port.
        let closed = TcpSocket::new_v4().unwrap();
        closed.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let gone = closed.local_addr().unwrap();
        for addresses in [vec![there], vec![gone, there], vec![there, gone], vec![gone, gone, there]] {
            let stream = connect_to_first(addresses.into()).await.unwrap();
            assert_eq!(stream.peer_addr().unwrap(), there);
            listening.accept().await.unwrap();
        }
        for addresses in [vec![gone], vec![gone, gone]] {
            let error = connect_to_first(addresses.into()).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        }
        assert_eq!(connect_to_first(VecDeque::new()).await.unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[tokio::test]
    async fn an_address_that_is_silent_holds_the_next_one_up_for_a_moment_only() {
        let (_listening, there) = listener().await;
        // A queue of one that is full: the kernel does not answer the next.
        let full = TcpSocket::new_v4().unwrap();
        full.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let silent = full.local_addr().unwrap();
        let _full = full.listen(0).unwrap();
        let _first = TcpStream::connect(silent).await.unwrap();
        let stream = connect_to_first(vec![silent, there].into()).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), there);
    }
}
