use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use crate::exception::Exception;
use bytes::Bytes;
use windrow_http::{ClientError, ResponseHead};

use crate::dial::told_http_port;
use crate::pool::{Client, ConnectError, Lease};
use crate::replicas::{is_without_keeper, Purpose, ReplicaId};
use crate::url::push_param;

/// User and password of a request. `Debug` does not show them: the password stays out of logs and errors.
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

/// The most bytes of an answer to a query of our own. These answers are small; a server that sends more is cut off.
const MAX_ANSWER_BYTES: usize = 64 << 20;

/// One request: a query as URL parameters, and a body.
#[derive(Clone)]
pub struct Call<'a> {
    credentials: &'a Credentials,
    target: String,
    fields: String,
    body: Vec<&'a [u8]>,
    timeout: Duration,
    purpose: Purpose,
}

impl<'a> Call<'a> {
    pub fn new(credentials: &'a Credentials, query: &str) -> Call<'a> {
        let mut target = String::with_capacity(query.len() + 256);
        target.push('/');
        push_param(&mut target, "query", query);
        let timeout = Duration::from_secs(30);
        Call { credentials, target, fields: String::new(), body: Vec::new(), timeout, purpose: Purpose::Question }
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

    /// Sets the body, in pieces that are sent one after the other.
    pub fn body<P: AsRef<[u8]>>(mut self, pieces: &'a [P]) -> Self {
        self.body = pieces.iter().map(AsRef::as_ref).collect();
        self
    }

    /// Sets how long the server may be silent.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the purpose. Without this call it is `Question`, a query of our own, which changes nothing and
    /// may be sent twice.
    pub fn purpose(mut self, purpose: Purpose) -> Self {
        self.purpose = purpose;
        self
    }

    fn head(&self, authority: &str) -> String {
        let length: usize = self.body.iter().map(|piece| piece.len()).sum();
        let mut head = String::with_capacity(self.target.len() + self.fields.len() + 256);
        let Credentials { user, password } = self.credentials;
        let in_fields = survives_in_a_field(user) && survives_in_a_field(password);
        head.push_str("POST ");
        head.push_str(&self.target);
        // ClickHouse ends the name at the first colon. Parameters stand in its log, so they are the last resort.
        let as_basic = !in_fields && !user.contains(':');
        if !in_fields && !as_basic {
            push_param(&mut head, "user", user);
            push_param(&mut head, "password", password);
        }
        head.push_str(" HTTP/1.1\r\n");
        push_field(&mut head, "Host", authority);
        if in_fields {
            push_field(&mut head, "X-ClickHouse-User", user);
            push_field(&mut head, "X-ClickHouse-Key", password);
        }
        if as_basic {
            push_field(&mut head, "Authorization", &self.credentials.to_basic());
        }
        push_field(&mut head, "Content-Length", &length.to_string());
        head.push_str(&self.fields);
        head.push_str("\r\n");
        head
    }
}

/// Says whether HTTP carries the value byte for byte in a header field. Whitespace around a field's value is
/// trimmed, and a password that ends in a space is another password without it.
fn survives_in_a_field(value: &str) -> bool {
    value.trim_ascii() == value && !value.bytes().any(|byte| byte.is_ascii_control())
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
    /// The replica that gave the answer.
    pub replica: ReplicaId,
}

impl Answer {
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap_or("")
    }
}

/// An answer whose body has yet to be read. If it is dropped before that, its connection is closed.
pub struct Begun {
    pub lease: Lease,
    pub head: ResponseHead,
}

/// The cause of a failed call, named by what the caller may conclude.
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
    /// Sends a request and reads the whole answer. A query of our own is sent to another replica if its
    /// answer was lost. A probe (whether rows would be accepted) also goes on to another replica if this one
    /// can accept none now.
    ///
    /// # Errors
    /// Fails where no replica could be reached, no answer came, or ClickHouse answered with an error.
    pub async fn call(&self, call: Call<'_>) -> Result<Answer, CallError> {
        let mut replicas_left = self.replicas().ids().len().max(1);
        loop {
            replicas_left -= 1;
            match self.call_once(&call).await {
                Err(CallError::Unknown(_)) if call.purpose.may_be_repeated() && replicas_left > 0 => {}
                Err(CallError::Exception(exception))
                    if matches!(call.purpose, Purpose::Probe { .. })
                        && is_without_keeper(exception.code)
                        && replicas_left > 0 => {}
                outcome => return outcome,
            }
        }
    }

    async fn call_once(&self, call: &Call<'_>) -> Result<Answer, CallError> {
        let Begun { mut lease, head } = self.begin(call).await?;
        let body = self.body(&mut lease, &head, call).await?;
        self.note_answer();
        let replica = lease.replica();
        self.replicas().did(replica, call.purpose);
        lease.give_back(&head);
        Ok(Answer { head, body, replica })
    }

    /// Sends a request and reads the head of the answer.
    ///
    /// # Errors
    /// Fails where no replica could be reached, no answer came, or ClickHouse answered with an error. The
    /// error's body is read to its end.
    pub async fn begin(&self, call: &Call<'_>) -> Result<Begun, CallError> {
        let lease = self.connection_for(call.purpose).await.map_err(CallError::NotSent)?;
        self.begin_over(lease, call).await
    }

    async fn begin_over(&self, mut lease: Lease, call: &Call<'_>) -> Result<Begun, CallError> {
        let authority = lease.endpoint().authority();
        let there = lease.there(call.purpose);
        let connection = lease.connection();
        let exchange = async {
            let sent = send(connection, call, &authority).await;
            // A server may answer and close before it has read everything: its answer counts more than our failure to
            // send.
            match (connection.read_head(false, call.timeout).await, sent) {
                (Ok(head), _) => Ok(head),
                (Err(_), Err(error)) => Err(ClientError::Io(error)),
                (Err(error), Ok(())) => Err(error),
            }
        };
        let head = there.wait_for(exchange).await.unwrap_or_else(gone).map_err(|error| unknown(&lease, error))?;
        let code = head.field_str("x-clickhouse-exception-code").map(str::to_owned);
        // A page that something in between gives for everything has status 200, too, and nothing is stored.
        if head.status() == 200 && code.is_none() && is_of_clickhouse(&head) {
            return Ok(Begun { lease, head });
        }
        let body = self.body(&mut lease, &head, call).await?;
        match Exception::from_answer(code.as_deref(), &body) {
            Some(exception) => {
                self.note_answer();
                self.replicas().refused(lease.replica(), call.purpose, &exception);
                lease.give_back(&head);
                Err(CallError::Exception(exception.with_summary(head.field_str("x-clickhouse-summary"))))
            }
            None => {
                let strange = strange(head.status(), &body);
                lease.lost(&strange);
                Err(CallError::Unknown(format!("{} {strange}", lease.endpoint())))
            }
        }
    }

    async fn body(&self, lease: &mut Lease, head: &ResponseHead, call: &Call<'_>) -> Result<Bytes, CallError> {
        let there = lease.there(call.purpose);
        let body = there.wait_for(lease.connection().body(head).collect(MAX_ANSWER_BYTES, call.timeout)).await;
        body.unwrap_or_else(gone).map_err(|error| unknown(lease, error))
    }
}

/// Marks the replica as lost and makes the error. Other replicas are asked first until this one answers a ping.
fn unknown(lease: &Lease, error: ClientError) -> CallError {
    lease.lost(&error.to_string());
    CallError::Unknown(format!("{}: {error}", lease.endpoint()))
}

fn gone<T>() -> Result<T, ClientError> {
    Err(ClientError::Io(std::io::Error::new(std::io::ErrorKind::TimedOut, "the replica does not answer any more")))
}

/// Says whether the answer is from ClickHouse, which names itself in the header of every answer to a query.
pub fn is_of_clickhouse(head: &ResponseHead) -> bool {
    const PREFIX: &str = "x-clickhouse-";
    head.fields().any(|(name, _)| name.get(..PREFIX.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(PREFIX)))
}

/// Describes a server that answers, but not as ClickHouse does.
fn strange(status: u16, body: &[u8]) -> String {
    match told_http_port(&String::from_utf8_lossy(&body[..body.len().min(4096)])) {
        Some(port) => format!("is the port of ClickHouse's native protocol; that of its HTTP interface is {port}"),
        None => format!("answered with status {status}, but not as ClickHouse does"),
    }
}

async fn send(
    connection: &mut windrow_http::ClientConnection,
    call: &Call<'_>,
    authority: &str,
) -> std::io::Result<()> {
    for together in SendGroups::new(call.head(authority).into_bytes(), &call.body) {
        connection.send(&together, call.timeout).await?;
    }
    Ok(())
}

/// The pieces of a request, grouped by what is sent at once. A large piece is sent as it is; small pieces are
/// joined, the first of them with the head. Each sending is a system call, and often a packet.
struct SendGroups<'a> {
    waiting: Vec<u8>,
    pieces: std::slice::Iter<'a, &'a [u8]>,
    large: Option<&'a [u8]>,
}

impl<'a> SendGroups<'a> {
    const SMALL_BYTES: usize = 32 * 1024;

    fn new(head: Vec<u8>, pieces: &'a [&'a [u8]]) -> SendGroups<'a> {
        SendGroups { waiting: head, pieces: pieces.iter(), large: None }
    }
}

impl<'a> Iterator for SendGroups<'a> {
    type Item = Cow<'a, [u8]>;

    fn next(&mut self) -> Option<Cow<'a, [u8]>> {
        if let Some(large) = self.large.take() {
            return Some(Cow::from(large));
        }
        for piece in self.pieces.by_ref() {
            if self.waiting.len() + piece.len() <= Self::SMALL_BYTES {
                self.waiting.extend_from_slice(piece);
                continue;
            }
            let before = std::mem::take(&mut self.waiting);
            match piece.len() <= Self::SMALL_BYTES {
                true => self.waiting.extend_from_slice(piece),
                false if before.is_empty() => return Some(Cow::from(*piece)),
                false => self.large = Some(piece),
            }
            return Some(Cow::from(before));
        }
        let last = std::mem::take(&mut self.waiting);
        (!last.is_empty()).then(|| Cow::from(last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_native_port_is_told() {
        let said = b"Port 9000 is for clickhouse-client program\r\nYou must use port 8124 for HTTP.\r\n";
        assert!(strange(400, said).ends_with("HTTP interface is 8124"));
        for other in [&b"You must use port x"[..], b"<html>502 Bad Gateway</html>", b"\xff", b""] {
            assert_eq!(strange(502, other), "answered with status 502, but not as ClickHouse does");
        }
    }

    #[test]
    fn small_pieces_go_together_and_large_ones_as_they_are() {
        let small = vec![1; 10_000];
        let large = vec![2; SendGroups::SMALL_BYTES + 1];
        let sizes = |pieces: &[&[u8]]| {
            let sent: Vec<_> = SendGroups::new(b"head".to_vec(), pieces).collect();
            assert_eq!(sent.concat(), [b"head", pieces.concat().as_slice()].concat());
            sent.iter().map(|together| together.len()).collect::<Vec<_>>()
        };
        let (small, large) = (small.as_slice(), large.as_slice());
        assert_eq!(sizes(&[]), [4]);
        assert_eq!(sizes(&[small, &[], small]), [20_004]);
        assert_eq!(sizes(&[small, small, small, small]), [30_004, 10_000]);
        assert_eq!(sizes(&[large, large]), [4, 32_769, 32_769]);
        assert_eq!(sizes(&[small, large, small, large]), [10_004, 32_769, 10_000, 32_769]);
    }
}
