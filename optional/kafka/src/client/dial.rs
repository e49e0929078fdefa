//! The making of a connection: TCP, TLS, the versions that the broker speaks, and authentication.

use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::client::connection::{Connection, ConnectionSettings};
use crate::client::frame_pool::FramePool;
use crate::client::options::{ClientOptions, TlsOptions};
use crate::client::sasl;
use crate::error::Error;
use crate::error_code::KafkaErrorCode;
use crate::wire::ApiVersionsRequest;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    pub host: String,
    pub port: u16,
}

impl Address {
    /// Reads `host:port`, with an IPv6 address in brackets.
    pub(crate) fn parse(text: &str) -> Result<Address, Error> {
        let wrong = || Error::Options(format!("A broker's address has to be host:port, not '{text}'"));
        let (host, port) = text.trim().rsplit_once(':').ok_or_else(wrong)?;
        let host = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
            Some(address) => address,
            None if host.contains(':') => return Err(wrong()),
            None => host,
        };
        let port = port.parse().map_err(|_| wrong())?;
        match host.is_empty() {
            true => Err(wrong()),
            false => Ok(Address { host: host.to_owned(), port }),
        }
    }
}

pub(crate) struct Dialer {
    options: Arc<ClientOptions>,
    tls: Option<TlsConnector>,
    /// Memory for the answers of all brokers.
    pool: Arc<FramePool>,
}

impl Dialer {
    pub(crate) fn new(options: Arc<ClientOptions>) -> Result<Self, Error> {
        let tls = options.tls.as_ref().map(connector).transpose()?;
        Ok(Self { options, tls, pool: Arc::default() })
    }

    /// Connects to an address. `broker` is the broker's name in errors.
    pub(crate) async fn dial(&self, address: &Address, broker: &str) -> Result<Connection, Error> {
        let after_ms = self.options.connect_timeout_ms;
        match tokio::time::timeout(Duration::from_millis(after_ms), self.dial_slowly(address, broker)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(Error::Timeout { broker: broker.to_owned(), doing: "connect".to_owned(), after_ms }),
        }
    }

    async fn dial_slowly(&self, address: &Address, broker: &str) -> Result<Connection, Error> {
        let failed = |doing: &str, error: std::io::Error| Error::Network {
            broker: broker.to_owned(),
            doing: doing.to_owned(),
            reason: error.to_string(),
        };
        let stream = TcpStream::connect((address.host.as_str(), address.port)).await;
        let stream = stream.map_err(|error| failed("connect", error))?;
        stream.set_nodelay(true).map_err(|error| failed("connect", error))?;
        let settings = ConnectionSettings {
            broker: broker.to_owned(),
            client_id: self.options.client_id.clone(),
            request_timeout_ms: self.options.request_timeout_ms,
            max_answer_bytes: self.options.max_answer_bytes,
            pool: self.pool.clone(),
        };
        let connection = match &self.tls {
            None => {
                let (reader, writer) = stream.into_split();
                Connection::start(settings, reader, writer)
            }
            Some(tls) => {
                let name = ServerName::try_from(address.host.clone())
                    .map_err(|error| Error::Options(format!("'{}' can't be a server's name: {error}", address.host)))?;
                let stream = tls.connect(name, stream).await.map_err(|error| failed("TLS handshake", error))?;
                let (reader, writer) = tokio::io::split(stream);
                Connection::start(settings, reader, writer)
            }
        };
        self.introduce(&connection, broker).await?;
        Ok(connection)
    }

    async fn introduce(&self, connection: &Connection, broker: &str) -> Result<(), Error> {
        let versions = connection.call_version(&ApiVersionsRequest, 3).await?;
        match versions.error {
            KafkaErrorCode::NONE => connection.set_versions(versions),
            KafkaErrorCode::UNSUPPORTED_VERSION => {
                let what = "it is older than Kafka 2.4, which is the oldest that is spoken".to_owned();
                return Err(Error::Unsupported { broker: broker.to_owned(), what });
            }
            code => return Err(Error::Refused { doing: format!("ApiVersions of {broker}"), code, reason: None }),
        }
        match &self.options.sasl {
            Some(sasl) => sasl::authenticate(connection, broker, sasl).await,
            None => Ok(()),
        }
    }
}

fn connector(options: &TlsOptions) -> Result<TlsConnector, Error> {
    let identity = match (&options.certificate_file, &options.key_file) {
        (Some(certificate), Some(key)) => Some(windrow_clickhouse::Identity { certificate, key }),
        (None, None) => None,
        _ => return Err(Error::Options("A client's certificate and its key can only be given together".to_owned())),
    };
    let config = windrow_clickhouse::client_config(options.ca_file.as_deref(), identity);
    config.map(TlsConnector::from).map_err(|error| Error::Options(format!("TLS: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_host_and_a_port() {
        let address = |host: &str, port| Ok(Address { host: host.to_owned(), port });
        assert_eq!(Address::parse("kafka-1.example:9092"), address("kafka-1.example", 9092));
        assert_eq!(Address::parse(" 10.0.0.1:1 "), address("10.0.0.1", 1));
        assert_eq!(Address::parse("[::1]:9092"), address("::1", 9092));
        for wrong in ["", "kafka", ":9092", "kafka:", "kafka:65536", "::1:9092", "kafka:-1", "http://kafka"] {
            assert!(Address::parse(wrong).is_err(), "{wrong}");
        }
    }
}
