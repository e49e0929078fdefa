//! Passes a request on to the backend and its answer back, both as they come, in bounded memory.
//!
//! The answer's body is passed on byte for byte, framing included; its head line by line, because ClickHouse
//! adds progress to it while a query runs. When a client leaves, the backend's connection is closed, too:
//! ClickHouse then does to the query what it does when its own client leaves.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::cluster::OtherGateway;
use bytes::Bytes;
use windrow_clickhouse::{is_of_clickhouse, ConnectError, Exception, Lease};
use windrow_http::{
    AnswerReader, BodyFraming, ChunkedScanner, ClientError, HeadEvent, Method, RequestBody, RequestHead, ResponseHead,
    WriteHalf,
};

/// Time limit for a query, which is as good as none: the client's own patience and ClickHouse's limits end a query.
pub(super) const UNBOUNDED: Duration = Duration::from_secs(7 * 24 * 3600);

/// A request that goes to the backend.
pub(crate) struct Forwarded<'a> {
    pub(crate) head: &'a RequestHead,
    pub(crate) method: Method,
    pub(crate) target: String,
    /// Fields of the request that are left out besides those that concern the connection.
    pub(crate) without: Vec<&'static str>,
    /// Fields that are added.
    pub(crate) with: Vec<(&'static str, String)>,
    pub(crate) body: ForwardedBody,
    /// Says whether a client that closes its side has lost interest: it tells ClickHouse so with
    /// `cancel_http_readonly_queries_on_client_close`. Other clients may have closed only the side on which they send.
    pub(crate) cancel_on_close: bool,
    /// Time after which another replica is asked for a read as well, if the first has not begun to answer.
    pub(crate) hedge_after: Option<Duration>,
}

pub(crate) enum ForwardedBody {
    /// The client's own body: this much of it has been read, and the rest follows as it comes.
    Clients { start: Bytes },
    /// Another body in its place. The rest of the client's body is not read.
    Replaced(Bytes),
    /// The request has been sent already, with its body.
    Sent,
}

impl ForwardedBody {
    fn start(&self) -> &[u8] {
        match self {
            ForwardedBody::Clients { start } | ForwardedBody::Replaced(start) => start,
            ForwardedBody::Sent => &[],
        }
    }
}

/// A failure of forwarding. Once a byte of the answer has gone to the client, the client can't be told of it any more.
pub(crate) enum ForwardError {
    NotSent(ConnectError),
    /// The backend's connection broke before the backend answered.
    NoAnswer(String),
    /// The connection can only be closed: the client is gone.
    Broken,
    /// The connection can only be closed: the backend's broke when the client had a part of the answer.
    HalfAnswer,
}

/// The outcome of an answer that has reached the client.
pub(crate) struct Relayed {
    /// Says whether more came behind the answer's head.
    pub(crate) has_body: bool,
    /// Says whether the client's connection can go on.
    pub(crate) keep_alive: bool,
    /// Says whether ClickHouse itself has answered, and with no error.
    pub(crate) is_done: bool,
    /// The exception that the backend refused the request with.
    pub(crate) exception: Option<Exception>,
}

/// Fields that concern the connection, and the field of a hop, which is between gateways alone.
const OWN_FIELDS: [&str; 9] = [
    "host",
    "connection",
    "keep-alive",
    "content-length",
    "transfer-encoding",
    "expect",
    "te",
    "upgrade",
    "x-windrow-hop",
];

fn is_one_of(name: &str, names: &[&str]) -> bool {
    names.iter().any(|other| name.eq_ignore_ascii_case(other))
}

impl Forwarded<'_> {
    /// Returns how the body is framed on its way to the backend.
    fn framing(&self) -> BodyFraming {
        match &self.body {
            ForwardedBody::Clients { .. } | ForwardedBody::Sent => self.head.framing(),
            ForwardedBody::Replaced(body) => BodyFraming::Length(body.len() as u64),
        }
    }

    fn head_bytes(&self, authority: &str) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.head.raw().len() + 256);
        out.extend_from_slice(self.method.as_str().as_bytes());
        out.push(b' ');
        out.extend_from_slice(self.target.as_bytes());
        // The version decides how the answer is framed, so the backend has to know the client's.
        out.extend_from_slice(if self.head.version_minor() == 0 { b" HTTP/1.0" } else { b" HTTP/1.1" });
        out.extend_from_slice(b"\r\nHost: ");
        out.extend_from_slice(authority.as_bytes());
        out.extend_from_slice(b"\r\n");
        for (name, value) in self.head.fields() {
            if !is_one_of(name, &OWN_FIELDS) && !is_one_of(name, &self.without) {
                push_field(&mut out, name, value);
            }
        }
        for (name, value) in &self.with {
            push_field(&mut out, name, value.as_bytes());
        }
        match self.framing() {
            BodyFraming::Length(length) => push_field(&mut out, "Content-Length", length.to_string().as_bytes()),
            BodyFraming::Chunked => push_field(&mut out, "Transfer-Encoding", b"chunked"),
            BodyFraming::None | BodyFraming::UntilClose => {}
        }
        out.extend_from_slice(b"\r\n");
        out
    }

    /// Says whether all of the body is here.
    pub(super) fn is_whole(&self, body: &RequestBody<'_>) -> bool {
        body.is_done() || matches!(self.body, ForwardedBody::Replaced(_))
    }

    /// Returns the head, and as much of the body as is here.
    pub(super) fn bytes(&self, authority: &str, is_whole: bool) -> Vec<u8> {
        let is_chunked = self.framing() == BodyFraming::Chunked;
        let mut out = self.head_bytes(authority);
        push_data(&mut out, self.body.start(), is_chunked);
        if is_whole && is_chunked {
            out.extend_from_slice(b"0\r\n\r\n");
        }
        out
    }
}

fn push_field(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend(value.iter().map(|&byte| if matches!(byte, b'\r' | b'\n' | 0) { b' ' } else { byte }));
    out.extend_from_slice(b"\r\n");
}

/// A function that is called when the answer has begun and is no error, before the client can know of the answer.
pub(crate) type WhenDone<'a> = &'a (dyn Fn() -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> + Sync);

/// The client that an answer goes to.
pub(crate) struct ToClient<'a> {
    pub(crate) client: &'a mut WriteHalf,
    pub(crate) connection_fields: &'a [u8],
    pub(crate) write_idle: Duration,
    /// Says whether the beginning of the answer is waited for even if the client leaves before it.
    pub(crate) has_to_be_known: bool,
    pub(crate) when_done: WhenDone<'a>,
    /// The gateway that answers, if the answer is not the backend's.
    pub(crate) of: Option<&'a OtherGateway>,
}

/// Sends the request over `lease` and the answer to the client.
pub(crate) async fn relay(
    mut lease: Lease,
    forwarded: Forwarded<'_>,
    body: RequestBody<'_>,
    to_client: ToClient<'_>,
) -> Result<Relayed, ForwardError> {
    let authority = lease.endpoint().authority();
    let (answer, backend) = lease.connection().split(forwarded.method == Method::Head);
    let sent = AtomicBool::new(false);
    let outcome = {
        let upload = upload(&forwarded, &authority, body, backend, to_client.write_idle, &sent);
        let download = download(answer, to_client);
        tokio::pin!(upload, download);
        tokio::select! {
            biased;
            outcome = &mut download => outcome,
            error = &mut upload => Err(error),
        }
    }?;
    let Downloaded { head, keep_alive, error_start, has_body } = outcome;
    // An answer may come before its request is out. The connection then is not where the next request could begin.
    if sent.load(Ordering::Relaxed) {
        lease.give_back(&head);
    }
    Ok(Relayed { has_body, keep_alive, is_done: is_done(&head), exception: exception(&head, &error_start) })
}

/// Sends the request, then watches for the client to leave. Ends only with an error: the answer ends the exchange.
async fn upload(
    forwarded: &Forwarded<'_>,
    authority: &str,
    mut body: RequestBody<'_>,
    backend: &mut WriteHalf,
    idle: Duration,
    sent: &AtomicBool,
) -> ForwardError {
    match send_request(forwarded, authority, &mut body, backend, idle).await {
        // What the client sent can't be completed. The backend must not take the torso for the whole.
        Err(UploadError::Client) => ForwardError::Broken,
        // The backend takes no more; it may have answered already, and the download tells.
        Err(UploadError::Backend) => std::future::pending().await,
        Ok(()) => {
            sent.store(true, Ordering::Relaxed);
            if !forwarded.cancel_on_close {
                return std::future::pending().await;
            }
            body.client_gone().await;
            ForwardError::Broken
        }
    }
}

enum UploadError {
    Client,
    Backend,
}

async fn send_request(
    forwarded: &Forwarded<'_>,
    authority: &str,
    body: &mut RequestBody<'_>,
    backend: &mut WriteHalf,
    idle: Duration,
) -> Result<(), UploadError> {
    if let ForwardedBody::Sent = forwarded.body {
        return Ok(());
    }
    let chunked = forwarded.framing() == BodyFraming::Chunked;
    let whole = forwarded.is_whole(body);
    let mut out = forwarded.bytes(authority, whole);
    backend.send(&out, idle).await.map_err(|_| UploadError::Backend)?;
    if whole {
        return Ok(());
    }
    while let Some(data) = body.next().await.map_err(|_| UploadError::Client)? {
        if !chunked {
            backend.send(&data, idle).await.map_err(|_| UploadError::Backend)?;
            continue;
        }
        out.clear();
        push_data(&mut out, &data, true);
        backend.send(&out, idle).await.map_err(|_| UploadError::Backend)?;
    }
    if chunked {
        backend.send(b"0\r\n\r\n", idle).await.map_err(|_| UploadError::Backend)?;
    }
    Ok(())
}

fn push_data(out: &mut Vec<u8>, data: &[u8], chunked: bool) {
    if data.is_empty() {
        return;
    }
    if chunked {
        out.extend_from_slice(format!("{:x}\r\n", data.len()).as_bytes());
    }
    out.extend_from_slice(data);
    if chunked {
        out.extend_from_slice(b"\r\n");
    }
}

struct Downloaded {
    head: ResponseHead,
    keep_alive: bool,
    has_body: bool,
    /// The first bytes of an error's body, with its framing.
    error_start: Vec<u8>,
}

/// Length of a chunked body without data.
const EMPTY_CHUNKED_BYTES: usize = b"0\r\n\r\n".len();

/// Number of bytes of an error's text that are worth keeping.
const MAX_ERROR_BYTES: usize = 8 * 1024;

fn exception(head: &ResponseHead, error_start: &[u8]) -> Option<Exception> {
    let code = head.field_str("x-clickhouse-exception-code")?;
    let text = match head.framing() {
        BodyFraming::Chunked => unchunked(error_start),
        _ => error_start.to_vec(),
    };
    Exception::from_answer(Some(code), &text)
}

fn unchunked(mut framed: &[u8]) -> Vec<u8> {
    let (mut scanner, mut data) = (ChunkedScanner::default(), Vec::new());
    while let (false, Ok(scanned)) = (framed.is_empty() || scanner.is_done(), scanner.step(framed)) {
        data.extend_from_slice(&framed[scanned.data]);
        framed = &framed[scanned.consumed..];
    }
    data
}

async fn download(mut answer: AnswerReader<'_>, to_client: ToClient<'_>) -> Result<Downloaded, ForwardError> {
    let ToClient { client, connection_fields, write_idle: idle, has_to_be_known, when_done, of } = to_client;
    let (mut begun, mut client_is_gone) = (false, false);
    let head = loop {
        let event = match next_head_event(&mut answer, of).await {
            Ok(event) => event,
            Err(_) if begun => return Err(ForwardError::HalfAnswer),
            Err(error) => return Err(ForwardError::NoAnswer(error)),
        };
        let (lines, head) = match event {
            HeadEvent::Lines(lines) => (lines, None),
            HeadEvent::Whole { head, rest } => (rest, Some(head)),
        };
        let mut out = without_connection_fields(&lines, begun);
        if let Some(head) = &head {
            if of.is_some() && !begun && is_ending(head) {
                return Err(ForwardError::NoAnswer("it is shutting down".to_owned()));
            }
            if is_done(head) {
                when_done().await;
            }
            out.extend_from_slice(connection_fields);
            out.extend_from_slice(b"\r\n");
        }
        begun = true;
        client_is_gone = client_is_gone || client.send(&out, idle).await.is_err();
        if client_is_gone && (head.is_some() || !has_to_be_known) {
            return Err(ForwardError::Broken);
        }
        if let Some(head) = head {
            break head;
        }
    };
    let failed = is_error(&head);
    let mut error_start = Vec::new();
    let mut body = answer.into_body(&head);
    let mut body_bytes = 0;
    loop {
        match body.next_raw(UNBOUNDED).await {
            Ok(Some(bytes)) => {
                body_bytes += bytes.len();
                if failed && error_start.len() < MAX_ERROR_BYTES {
                    error_start.extend_from_slice(&bytes[..bytes.len().min(MAX_ERROR_BYTES)]);
                }
                client.send(&bytes, idle).await.map_err(|_| ForwardError::Broken)?;
            }
            Ok(None) => break,
            Err(ClientError::Io(_) | ClientError::Closed | ClientError::Head(_) | ClientError::Body(_)) => {
                return Err(ForwardError::HalfAnswer)
            }
        }
    }
    // An answer that ends with its connection can only be passed on by ending ours.
    let keep_alive = head.framing() != BodyFraming::UntilClose;
    let has_body = body_bytes > EMPTY_CHUNKED_BYTES;
    Ok(Downloaded { head, keep_alive, has_body, error_start })
}

/// Returns the next event of an answer's head. A gateway that has gone without a word is not waited for as a query is.
async fn next_head_event(answer: &mut AnswerReader<'_>, of: Option<&OtherGateway>) -> Result<HeadEvent, String> {
    let event = answer.next_head_event(UNBOUNDED);
    let event = match of {
        None => event.await,
        Some(gateway) => tokio::select! {
            biased;
            event = event => event,
            () = gateway.gone() => return Err("it does not answer pings any more".to_owned()),
        },
    };
    event.map_err(|error| error.to_string())
}

/// Says whether a gateway shuts down. It has then not taken the insert, and is soon there again.
fn is_ending(head: &ResponseHead) -> bool {
    head.status() == 503 && head.field_str("x-clickhouse-exception-code") == Some("236")
}

/// Says whether an answer is an error. ClickHouse refuses some requests before there is an exception, with a
/// status alone.
fn is_error(head: &ResponseHead) -> bool {
    head.status() >= 400 || head.field("x-clickhouse-exception-code").is_some()
}

/// Says whether ClickHouse itself has executed the request. A proxy may answer in its place, and then nothing
/// has been done.
fn is_done(head: &ResponseHead) -> bool {
    !is_error(head) && is_of_clickhouse(head)
}

/// Returns the lines of an answer's head without those about the backend's connection, and without the blank line.
fn without_connection_fields(lines: &[u8], begun: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(lines.len() + 128);
    for (number, line) in lines.split_inclusive(|&byte| byte == b'\n').enumerate() {
        let is_status = number == 0 && !begun;
        let name = line.split(|&byte| byte == b':').next().unwrap_or_default();
        let about_connection =
            [b"connection".as_slice(), b"keep-alive"].iter().any(|field| name.eq_ignore_ascii_case(field));
        let blank = matches!(line, b"\r\n" | b"\n");
        if is_status || !(about_connection || blank) {
            out.extend_from_slice(line);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_errors_text_is_read_through_its_framing() {
        assert_eq!(unchunked(b"4\r\nCode\r\n3\r\n: 6\r\n0\r\n\r\n"), b"Code: 6");
        assert_eq!(unchunked(b"9\r\nCod"), b"Cod", "cut off");
        assert_eq!(unchunked(b"no chunk"), b"");
    }

    #[test]
    fn only_the_connections_own_fields_go() {
        let lines = b"HTTP/1.1 200 OK\r\nConnection: Keep-Alive\r\nX-A: b\r\nKEEP-ALIVE: timeout=3\r\n\r\n";
        assert_eq!(without_connection_fields(lines, false), b"HTTP/1.1 200 OK\r\nX-A: b\r\n");
        assert_eq!(without_connection_fields(b"Connection: x\r\nX-B: c\r\n", true), b"X-B: c\r\n");
    }
}
