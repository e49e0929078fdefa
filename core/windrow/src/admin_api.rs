//! The running gateway's admin port, from the command line.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use serde_json::Value;
use tokio::net::TcpStream;
use windrow_http::{ClientConnection, Stream};
use windrow_settings::Settings;

/// The time limit of one request. Thousands of dead letters may be retried by one request, and each is
/// written to the disk before the answer.
const PATIENCE: Duration = Duration::from_secs(600);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const MAX_ANSWER_BYTES: usize = 1 << 30;

pub(crate) enum ApiError {
    /// The connection is refused: no gateway runs at the address.
    NoGateway(String),
    Failed(String),
}

pub(crate) struct Api {
    address: SocketAddr,
    /// The path that all paths of requests begin with.
    root: &'static str,
    token: Option<String>,
}

impl Api {
    pub(crate) fn new(settings: &Settings, root: &'static str) -> Api {
        let mut address = settings.admin.listen;
        if address.ip().is_unspecified() {
            address.set_ip(match address {
                SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
                SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
            });
        }
        Api { address, root, token: settings.admin.token.as_ref().map(|secret| secret.expose().to_owned()) }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sends a GET for `path` under the root.
    pub(crate) async fn get(&self, path: &str) -> Result<Vec<u8>, ApiError> {
        self.call("GET", path, b"").await
    }

    pub(crate) async fn get_json(&self, path: &str) -> Result<Value, ApiError> {
        json(&self.get(path).await?)
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Result<Value, ApiError> {
        json(&self.call("POST", path, body.to_string().as_bytes()).await?)
    }

    async fn call(&self, method: &str, path: &str, body: &[u8]) -> Result<Vec<u8>, ApiError> {
        let address = self.address;
        let nobody =
            |why: String| ApiError::NoGateway(format!("no gateway answers at {address} (admin.listen): {why}"));
        let stream = match tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return Err(nobody(error.to_string())),
            Err(_) => return Err(nobody("it does not take connections".to_owned())),
        };
        let failed = |error: &dyn std::fmt::Display| ApiError::Failed(format!("the gateway at {address}: {error}"));
        let mut connection = ClientConnection::new(Stream::Plain(stream));
        let mut request = self.head(method, path, body.len()).into_bytes();
        request.extend_from_slice(body);
        connection.send(&request, PATIENCE).await.map_err(|error| failed(&error))?;
        let head = connection.read_head(false, PATIENCE).await.map_err(|error| failed(&error))?;
        let answer =
            connection.body(&head).collect(MAX_ANSWER_BYTES, PATIENCE).await.map_err(|error| failed(&error))?;
        match head.status() {
            200 => Ok(answer.to_vec()),
            status => Err(failed(&refusal(status, &answer))),
        }
    }

    fn head(&self, method: &str, path: &str, body_bytes: usize) -> String {
        // A token with a line break in it could only be refused.
        let token = self.token.as_ref().filter(|token| !token.contains(['\r', '\n']));
        let authorization = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
        format!(
            "{method} {}{path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {body_bytes}\r\n\
             Connection: close\r\n{authorization}\r\n",
            self.root, self.address
        )
    }
}

fn refusal(status: u16, answer: &[u8]) -> String {
    let sentence = json(answer).ok().and_then(|value| Some(value.get("error")?.as_str()?.to_owned()));
    sentence.unwrap_or_else(|| format!("status {status}: {}", String::from_utf8_lossy(answer).trim()))
}

fn json(answer: &[u8]) -> Result<Value, ApiError> {
    serde_json::from_slice(answer).map_err(|error| ApiError::Failed(format!("the answer is not JSON: {error}")))
}
