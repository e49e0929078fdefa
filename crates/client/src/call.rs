use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use windrow_exception::Exception;
use windrow_http::{ClientError, ResponseHead};

use crate::pool::{Client, ConnectError, Lease};
use crate::url::push_param;

/// Who asks. Never shown: the password stays out of logs and errors.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Credentials {
    pub user: String,
    pub password: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credentials({})", self.user)
    }
}

/// Answers to our own questions are small; a server that sends more is cut off.
const MAX_ANSWER_BYTES: usize = 64 << 20;

/// One request: a query as URL parameters, and a body.
pub struct Call<'a> {
    credentials: &'a Credentials,
    target: String,
    fields: String,
    body: &'a [Bytes],
    timeout: Duration,
}

impl<'a> Call<'a> {
    pub fn new(credentials: &'a Credentials, query: &str) -> Call<'a> {
        let mut target = String::with_capacity(query.len() + 256);
        target.push('/');
        push_param(&mut target, "query", query);
        Call { credentials, target, fields: String::new(), body: &[], timeout: Duration::from_secs(30) }
    }

    pub fn param(mut self, name: &str, value: &str) -> Self {
        push_param(&mut self.target, name, value);
        self
    }

    /// Adds a header field; line breaks, which would begin another field, become spaces.
    pub fn field(mut self, name: &str, value: &str) -> Self {
        push_field(&mut self.fields, name, value);
        self
    }

    /// The body, in pieces that are sent one after the other.
    pub fn body(mut self, pieces: &'a [Bytes]) -> Self {
        self.body = pieces;
        self
    }

    /// How long the server may be silent.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    fn head(&self, authority: &str) -> String {
        let length: usize = self.body.iter().map(Bytes::len).sum();
        let mut head = String::with_capacity(self.target.len() + self.fields.len() + 256);
        head.push_str("POST ");
        head.push_str(&self.target);
        head.push_str(" HTTP/1.1\r\n");
        push_field(&mut head, "Host", authority);
        push_field(&mut head, "X-ClickHouse-User", &self.credentials.user);
        push_field(&mut head, "X-ClickHouse-Key", &self.credentials.password);
        push_field(&mut head, "Content-Length", &length.to_string());
        head.push_str(&self.fields);
        head.push_str("\r\n");
        head
    }
}

fn push_field(fields: &mut String, name: &str, value: &str) {
    fields.push_str(name);
    fields.push_str(": ");
    fields.extend(value.chars().map(|c| if matches!(c, '\r' | '\n' | '\0') { ' ' } else { c }));
    fields.push_str("\r\n");
}

/// A successful answer.
#[derive(Debug)]
pub struct Answer {
    pub head: ResponseHead,
    pub body: Bytes,
}

impl Answer {
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap_or("")
    }
}

/// An answer whose body has yet to be read. Dropped before that, its connection is closed.
pub struct Begun {
    pub lease: Lease,
    pub head: ResponseHead,
}

/// Why a call failed, by what the caller may conclude.
#[derive(Debug)]
pub enum CallError {
    /// The request was not sent: it has had no effect, and can be repeated.
    NotSent(ConnectError),
    /// The request was sent, at least in part, and no answer came: it may have been executed or not.
    Unknown(String),
    /// ClickHouse answered with an error.
    Exception(Exception),
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallError::NotSent(error) => error.fmt(f),
            CallError::Unknown(text) => write!(f, "the request was sent, but its outcome is unknown: {text}"),
            CallError::Exception(exception) => exception.fmt(f),
        }
    }
}

impl std::error::Error for CallError {}

impl Client {
    /// Sends a request and reads the whole answer.
    pub async fn call(&self, call: Call<'_>) -> Result<Answer, CallError> {
        let Begun { mut lease, head } = self.begin(&call).await?;
        let body = lease.connection().body(&head).collect(MAX_ANSWER_BYTES, call.timeout).await;
        let body = body.map_err(|error| self.unknown(error))?;
        lease.give_back(&head);
        Ok(Answer { head, body })
    }

    /// Sends a request and reads the answer's head; that of an error whole.
    pub async fn begin(&self, call: &Call<'_>) -> Result<Begun, CallError> {
        let mut lease = self.connection().await.map_err(CallError::NotSent)?;
        let connection = lease.connection();
        let sent = send(connection, call, &self.endpoint().authority()).await;
        // A server may answer and close before it has read everything: its answer counts more than our failure to send.
        let head = match (connection.read_head(false, call.timeout).await, sent) {
            (Ok(head), _) => head,
            (Err(_), Err(error)) => return Err(self.unknown(ClientError::Io(error))),
            (Err(error), Ok(())) => return Err(self.unknown(error)),
        };
        let code = head.field_str("x-clickhouse-exception-code").map(str::to_owned);
        if head.status() == 200 && code.is_none() {
            return Ok(Begun { lease, head });
        }
        let body = connection.body(&head).collect(MAX_ANSWER_BYTES, call.timeout).await;
        match Exception::from_answer(code.as_deref(), &body.map_err(|error| self.unknown(error))?) {
            Some(exception) => {
                lease.give_back(&head);
                Err(CallError::Exception(exception.with_summary(head.field_str("x-clickhouse-summary"))))
            }
            None => Err(CallError::Unknown(format!("{} answered with status {}", self.endpoint(), head.status()))),
        }
    }

    fn unknown(&self, error: ClientError) -> CallError {
        CallError::Unknown(format!("{}: {error}", self.endpoint()))
    }
}

async fn send(
    connection: &mut windrow_http::ClientConnection,
    call: &Call<'_>,
    authority: &str,
) -> std::io::Result<()> {
    const SMALL_BYTES: usize = 16 * 1024;
    let mut head = call.head(authority).into_bytes();
    let mut pieces = call.body;
    // A small body goes out with the head, in one system call.
    if let [first, rest @ ..] = pieces {
        if first.len() <= SMALL_BYTES {
            head.extend_from_slice(first);
            pieces = rest;
        }
    }
    connection.send(&head, call.timeout).await?;
    for piece in pieces {
        connection.send(piece, call.timeout).await?;
    }
    Ok(())
}
