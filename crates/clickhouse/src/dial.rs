//! Connecting to one port, with TLS or without.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU16, Ordering};

use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
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
    pub(crate) fn to(endpoint: &Endpoint, options: &ClientOptions) -> Result<Dialer, TlsError> {
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
