//! A schema registry with Confluent's interface. It is asked only for the schema of an id.

use std::fmt;
use std::time::Duration;

use base64::prelude::{Engine, BASE64_STANDARD};
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use windrow_http::{ClientConnection, Stream};

use crate::pipeline::options::RegistryOptions;

const TIMEOUT: Duration = Duration::from_secs(10);
const MAX_ANSWER_BYTES: usize = 4 << 20;

/// A client of a registry. Every request has a connection of its own: there is one request for each new
/// schema, and no more.
#[derive(Clone)]
pub struct SchemaRegistry {
    place: Address,
    authorization: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Address {
    tls: bool,
    host: String,
    port: u16,
    /// Path before the interface's own paths, without a slash at its end.
    path: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RegistryError {
    /// The registry has no such schema, or one of another type. Asking again won't help.
    Refused(String),
    /// The registry can't be asked at present.
    Unavailable(String),
}

impl fmt::Display for RegistryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RegistryError::Refused(text) | RegistryError::Unavailable(text) => f.write_str(text),
        }
    }
}

impl SchemaRegistry {
    /// Makes a client of the registry, without connecting.
    ///
    /// # Errors
    /// Fails where the address is no http:// or https:// URL.
    pub fn new(options: &RegistryOptions) -> Result<SchemaRegistry, String> {
        let place =
            Address::parse(&options.url).ok_or("the schema registry's address is no http:// or https:// URL")?;
        let authorization = options.user.as_ref().map(|user| {
            let password = options.password.as_deref().unwrap_or_default();
            BASE64_STANDARD.encode(format!("{user}:{password}"))
        });
        Ok(SchemaRegistry { place, authorization })
    }

    /// Fetches the text of an Avro schema.
    ///
    /// # Errors
    /// Fails where the registry can't be asked, has no schema of this id, or has one that is not Avro.
    pub async fn schema(&self, id: u32) -> Result<String, RegistryError> {
        let asked = tokio::time::timeout(TIMEOUT, self.ask(id)).await;
        let (status, body) = match asked {
            Ok(answer) => answer.map_err(|why| self.unavailable(&why))?,
            Err(_) => return Err(self.unavailable("it does not answer")),
        };
        let answer: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
        let said = |field: &str| answer.get(field).and_then(serde_json::Value::as_str);
        match (status, said("message")) {
            (200, _) => {
                let kind = said("schemaType").unwrap_or("AVRO");
                if kind != "AVRO" {
                    return Err(self.refused(id, &format!("it is of the type {kind}, not AVRO")));
                }
                said("schema").map(str::to_owned).ok_or_else(|| self.refused(id, "the answer has no schema in it"))
            }
            // Who we are is nothing that a message could do anything about, and what has no message is no registry's
            // word.
            (500.. | 401 | 403 | 408 | 429, _) | (_, None) => Err(self.unavailable(&format!("status {status}"))),
            (status, Some(message)) => Err(self.refused(id, &format!("{message} (status {status})"))),
        }
    }

    async fn ask(&self, id: u32) -> Result<(u16, Vec<u8>), String> {
        let Address { tls, host, port, path } = &self.place;
        let text = |error: &dyn fmt::Display| error.to_string();
        let stream = TcpStream::connect((host.as_str(), *port)).await.map_err(|error| text(&error))?;
        let stream = match tls {
            false => Stream::Plain(stream),
            true => {
                let config = windrow_clickhouse::client_config(None, None).map_err(|error| text(&error))?;
                let name = ServerName::try_from(host.clone()).map_err(|error| text(&error))?;
                let connector = tokio_rustls::TlsConnector::from(config);
                let stream = connector.connect(name, stream).await.map_err(|error| text(&error))?;
                Stream::Tls(Box::new(tokio_rustls::TlsStream::Client(stream)))
            }
        };
        let authorization =
            self.authorization.as_ref().map(|it| format!("Authorization: Basic {it}\r\n")).unwrap_or_default();
        let request = format!(
            "GET {path}/schemas/ids/{id} HTTP/1.1\r\nHost: {host}:{port}\r\n\
             Accept: application/vnd.schemaregistry.v1+json\r\nConnection: close\r\n{authorization}\r\n"
        );
        let mut connection = ClientConnection::new(stream);
        connection.send(request.as_bytes(), TIMEOUT).await.map_err(|error| text(&error))?;
        let head = connection.read_head(false, TIMEOUT).await.map_err(|error| text(&error))?;
        let body = connection.body(&head).collect(MAX_ANSWER_BYTES, TIMEOUT).await.map_err(|error| text(&error))?;
        Ok((head.status(), body.to_vec()))
    }

    fn unavailable(&self, why: &str) -> RegistryError {
        RegistryError::Unavailable(format!("the schema registry at {} can't be asked: {why}", self.place))
    }

    fn refused(&self, id: u32, why: &str) -> RegistryError {
        RegistryError::Refused(format!("the schema registry at {} gives no schema {id}: {why}", self.place))
    }
}

impl fmt::Debug for SchemaRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SchemaRegistry({})", self.place)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "https" } else { "http" };
        write!(f, "{scheme}://{}:{}{}", self.host, self.port, self.path)
    }
}

impl Address {
    fn parse(url: &str) -> Option<Address> {
        let (tls, rest) = match url.strip_prefix("https://") {
            Some(rest) => (true, rest),
            None => (false, url.strip_prefix("http://")?),
        };
        let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        let (host, port) = match authority.strip_prefix('[') {
            Some(bracketed) => {
                let (host, after) = bracketed.split_once(']')?;
                (host, after.strip_prefix(':'))
            }
            None => authority.split_once(':').map_or((authority, None), |(host, port)| (host, Some(port))),
        };
        let port = match port {
            Some(port) => port.parse().ok()?,
            None if tls => 443,
            None => 80,
        };
        let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        let is_good = !host.is_empty() && is_plain(host) && is_plain(path) && !host.contains('@');
        is_good.then(|| Address { tls, host: host.to_owned(), port, path: path.trim_end_matches('/').to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[test]
    fn places_are_urls() {
        for (url, shown) in [
            ("http://r:8081", Some("http://r:8081")),
            ("https://r/prefix/", Some("https://r:443/prefix")),
            ("http://[::1]:81/", Some("http://::1:81")),
            ("http://", None),
            ("r:8081", None),
            ("http://r:port", None),
            ("http://u:p@r", None),
            ("http://r/a b", None),
        ] {
            assert_eq!(Address::parse(url).map(|place| place.to_string()).as_deref(), shown, "{url}");
        }
    }

    /// Returns the client's result for this answer of a registry.
    async fn answered(answer: &str) -> Result<String, RegistryError> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let answer = answer.to_owned();
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let mut head = vec![0; 1000];
            let length = stream.read(&mut head).await.expect("a request");
            stream.write_all(answer.as_bytes()).await.expect("a reader");
            String::from_utf8_lossy(&head[..length]).into_owned()
        });
        let options = RegistryOptions {
            url: format!("http://127.0.0.1:{port}/x"),
            user: Some("ann".to_owned()),
            password: Some("geheim".to_owned()),
        };
        let schema = SchemaRegistry::new(&options).expect("a good address").schema(7).await;
        let asked = server.await.expect("the server ends");
        assert!(asked.starts_with("GET /x/schemas/ids/7 HTTP/1.1\r\n"), "{asked}");
        assert!(asked.contains("Authorization: Basic YW5uOmdlaGVpbQ==\r\n"), "{asked}");
        schema
    }

    fn http(status: &str, body: &str) -> String {
        format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len())
    }

    #[tokio::test]
    async fn what_the_registry_says_is_told() {
        assert_eq!(answered(&http("200 OK", r#"{"schema":"\"int\""}"#)).await, Ok("\"int\"".to_owned()));
        let refused = |error: Result<String, RegistryError>| match error {
            Err(RegistryError::Refused(text)) => text,
            other => panic!("{other:?}"),
        };
        let text = refused(answered(&http("404 Not Found", r#"{"message":"Schema not found"}"#)).await);
        assert!(text.ends_with("gives no schema 7: Schema not found (status 404)"), "{text}");
        assert!(refused(answered(&http("200 OK", r#"{"schema":"x","schemaType":"JSON"}"#)).await).contains("type JSON"));
        assert!(refused(answered(&http("200 OK", "{}")).await).contains("no schema in it"));
        let unauthorized = r#"{"error_code":40101,"message":"Unauthorized"}"#;
        for (status, body) in [
            ("503 Away", "{}"),
            ("401 Unauthorized", unauthorized),
            ("403 Forbidden", unauthorized),
            ("404 Not Found", "<html>No such backend</html>"),
        ] {
            assert!(matches!(answered(&http(status, body)).await, Err(RegistryError::Unavailable(_))), "{status}");
        }
        let whole = http("200 OK", r#"{"schema":"\"int\""}"#);
        for length in 0..whole.len() {
            assert!(answered(&whole[..length]).await.is_err(), "cut after {length}");
        }
    }
}
