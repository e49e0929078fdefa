//! OTLP over gRPC: unary calls over HTTP/2, many at a time on one connection.
//!
//! Each call brings one message, which is taken as the bytes that it is. So all that is needed of gRPC here
//! is the five bytes before a message, and the status behind the answer.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll};
use std::time::{Duration, Instant};

use base64::prelude::{Engine, BASE64_STANDARD_NO_PAD as STANDARD_NO_PAD};
use bytes::{BufMut, Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming};
use hyper::header::{HeaderMap, HeaderName, HeaderValue, CONTENT_TYPE};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use windrow_compression::Encoding as Packing;
use windrow_engine::trace::{Parent, RequestTrace};
use windrow_gateway::protocol::{GatewayHandle, NewConnection, Origin, Peer, Read, Room, User};
use windrow_otlp::answer::success;
use windrow_otlp::{Encoding, Signal};

use crate::export::{export, Export};
use crate::payload::{no_room, too_large, unpacked};
use crate::refused::{RefusalReason, Refused};
use crate::sender::{sender, Fields};
use crate::Context;

/// The largest number of calls that one connection has at a time.
const MAX_STREAMS: u32 = 128;
/// Bytes that a client may send ahead of what is read: here in each call, below on each connection.
const STREAM_WINDOW_BYTES: u32 = 256 << 10;
const CONNECTION_WINDOW_BYTES: u32 = 1 << 20;
/// Time between two pings, and time limit for the answer to one.
const PING: Duration = Duration::from_secs(30);
/// A connection on which nobody has called as a user is closed after this time.
const MAX_SILENCE_OF_STRANGERS: Duration = Duration::from_secs(30);
/// The longest request of a health check. A name of a service is all that it has.
const MAX_HEALTH_BYTES: usize = 128;
const HEALTH: &str = "/grpc.health.v1.Health/Check";
const SERVICES: [(&str, Signal); 3] = [
    ("opentelemetry.proto.collector.logs.v1.LogsService", Signal::Logs),
    ("opentelemetry.proto.collector.trace.v1.TraceService", Signal::Traces),
    ("opentelemetry.proto.collector.metrics.v1.MetricsService", Signal::Metrics),
];
/// Bytes before each message: a flag and a length.
const PREFIX_BYTES: usize = 5;

pub(crate) async fn serve(context: &Context, connection: NewConnection) {
    let NewConnection { stream, id, peer, mut stop, .. } = connection;
    let (limits, peer) = (context.gateway.limits(), Arc::new(peer));
    let mut http = http2::Builder::new(TokioExecutor::new());
    http.timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_header_list_size(u32::try_from(limits.max_head_bytes).unwrap_or(u32::MAX))
        .keep_alive_interval(Some(PING))
        .keep_alive_timeout(PING);
    let (read, write) = stream.into_split();
    let service = {
        let (context, peer) = (context.clone(), peer.clone());
        service_fn(move |request| {
            let call =
                Call { context: context.clone(), peer: peer.clone(), connection_id: id, arrived: Instant::now() };
            async move { Ok::<_, Infallible>(call.answer(request).await) }
        })
    };
    let mut serving = std::pin::pin!(http.serve_connection(TokioIo::new(tokio::io::join(read, write)), service));
    let mut is_ending = false;
    let mut has_to_leave = std::pin::pin!(tokio::time::timeout(MAX_SILENCE_OF_STRANGERS, peer.permit.has_to_leave()));
    let mut is_looked_at = true;
    loop {
        tokio::select! {
            biased;
            // What a client does wrong is its own to notice.
            _ = serving.as_mut() => return,
            _ = stop.wait_for(|stop| *stop), if !is_ending => {
                serving.as_mut().graceful_shutdown();
                is_ending = true;
            }
            _ = has_to_leave.as_mut(), if is_looked_at => match peer.permit.is_known() {
                true => is_looked_at = false,
                false => return,
            },
        }
    }
}

struct Call {
    context: Context,
    peer: Arc<Peer>,
    connection_id: u64,
    arrived: Instant,
}

/// A call whose message has been received.
struct ReceivedCall {
    sender: User,
    signal: Signal,
    payload: Bytes,
    fields: HeaderMap,
    /// The owner of the message's room, which is kept for as long as the message is read from.
    _read: Read,
}

impl Call {
    async fn answer(self, request: Request<Incoming>) -> Response<Reply> {
        if is_call(&request) && request.uri().path() == HEALTH {
            return match self.health(request).await {
                Ok(status) => taken(vec![1 << 3, status]),
                Err(refused) => refusal(&refused),
            };
        }
        let shared = self.context.shared.clone();
        let signal = match signal(&request) {
            Ok(signal) => signal,
            Err(refused) => return refusal(&refused),
        };
        let answered = match self.read(request, signal).await {
            Ok(whole) => self.export(whole).await,
            Err(refused) => Err(refused),
        };
        match answered {
            Ok(message) => taken(message),
            Err(refused) => {
                shared.metrics.refused(signal, refused.why);
                refusal(&refused)
            }
        }
    }

    /// Says whether requests are taken. Load balancers and Kubernetes ask, which are not users.
    async fn health(&self, request: Request<Incoming>) -> Result<u8, Refused> {
        const SERVING: u8 = 1;
        const NOT_SERVING: u8 = 2;
        let (head, body) = request.into_parts();
        let (asked, _read) = message(&self.context.gateway, body, packing(&head.headers)?, MAX_HEALTH_BYTES).await?;
        // The one field of the message: a service's name.
        let service = match &asked[..] {
            [] => "",
            [0x0a, length, name @ ..] if name.len() == usize::from(*length) => std::str::from_utf8(name).unwrap_or("?"),
            _ => return Err(Refused::new(RefusalReason::Malformed, "not a request of grpc.health.v1")),
        };
        let is_known = service.is_empty() || SERVICES.iter().any(|(known, _)| *known == service);
        match is_known {
            true if self.context.gateway.is_closing() => Ok(NOT_SERVING),
            true => Ok(SERVING),
            false => Err(Refused::new(RefusalReason::UnknownService, format!("there is no service {service}"))),
        }
    }

    /// Takes a message in a task of its own: a client that leaves drops its call, but a request that was
    /// begun has to be finished.
    async fn export(self, whole: ReceivedCall) -> Result<Vec<u8>, Refused> {
        let task = tokio::spawn(async move {
            let ReceivedCall { sender, signal, payload, fields, _read } = whole;
            let Call { context, connection_id, arrived, .. } = self;
            let trace = trace(&context.gateway, &fields, arrived);
            let origin = Origin::new(connection_id, arrived, trace.as_ref());
            origin.mark("accept");
            let settings = context.gateway.settings();
            let named = |name: &Option<String>| name.as_deref().and_then(|name| fields.text(name));
            let (id, tenant) = (named(&settings.otlp.request_id_header), named(&settings.otlp.tenants.header));
            let whole = Export { signal, encoding: Encoding::Protobuf, payload, id, tenant };
            let partial = export(&context, &sender, whole, origin).await;
            trace.into_iter().for_each(RequestTrace::end);
            Ok(success(signal, Encoding::Protobuf, partial?.as_ref()))
        });
        task.await
            .unwrap_or_else(|_| Err(Refused::new(RefusalReason::Unavailable, "the request came to no end; try again")))
    }

    async fn read(&self, request: Request<Incoming>, signal: Signal) -> Result<ReceivedCall, Refused> {
        let (head, body) = request.into_parts();
        let packing = packing(&head.headers)?;
        let sender = sender(&self.context.gateway, &self.peer, &head.headers).await?;
        self.peer.permit.is_of_user();
        let limit = self.context.gateway.settings().otlp.max_grpc_message_bytes;
        let (payload, _read) = message(&self.context.gateway, body, packing, limit).await?;
        Ok(ReceivedCall { sender, signal, payload, fields: head.headers, _read })
    }
}

fn trace(gateway: &GatewayHandle, fields: &HeaderMap, arrived: Instant) -> Option<RequestTrace> {
    gateway.begin_trace(arrived, || {
        let parent = fields.text("traceparent")?;
        Parent::of_header(parent.as_bytes(), fields.text("tracestate").map(str::as_bytes))
    })
}

fn signal(request: &Request<Incoming>) -> Result<Signal, Refused> {
    if !is_call(request) {
        return Err(Refused::new(
            RefusalReason::Unsupported,
            "this port takes calls of gRPC; OTLP over HTTP has one of its own",
        ));
    }
    let path = request.uri().path();
    let service = path.strip_prefix('/').and_then(|path| path.strip_suffix("/Export"));
    let known = service.and_then(|service| SERVICES.iter().find(|(known, _)| *known == service));
    known
        .map(|(_, signal)| *signal)
        .ok_or_else(|| Refused::new(RefusalReason::NoService, format!("there is no method {path}")))
}

fn is_call(request: &Request<Incoming>) -> bool {
    let is_grpc = request.headers().text("content-type").is_some_and(|kind| kind.starts_with("application/grpc"));
    is_grpc && request.method() == Method::POST
}

/// Returns the compression of those messages whose flag says that they are compressed.
fn packing(fields: &HeaderMap) -> Result<Option<Packing>, Refused> {
    match fields.text("grpc-encoding") {
        None | Some("identity") => Ok(None),
        Some("gzip") => Ok(Some(Packing::Gzip)),
        Some("zstd") => Ok(Some(Packing::Zstd)),
        Some("deflate") => Ok(Some(Packing::Deflate)),
        Some(name) => {
            let text = format!("messages are packed by gzip, zstd or deflate, not {name}");
            Err(Refused::new(RefusalReason::Unsupported, text))
        }
    }
}

/// Reads the message of a call, and returns it unpacked, with the owner of its room.
async fn message(
    gateway: &GatewayHandle,
    mut body: Incoming,
    packing: Option<Packing>,
    limit: usize,
) -> Result<(Bytes, Read), Refused> {
    let mut come = BytesMut::new();
    let mut room = Room::default();
    let patience = gateway.limits().body_idle_timeout;
    loop {
        let frame = tokio::time::timeout(patience, body.frame()).await;
        let Some(frame) = frame.map_err(|_| Refused::new(RefusalReason::Unavailable, "the message does not go on"))?
        else {
            break;
        };
        let frame = frame.map_err(|_| Refused::new(RefusalReason::Malformed, "the message ends too early"))?;
        let Ok(data) = frame.into_data() else { continue };
        come.extend_from_slice(&data);
        let announced = announced_bytes(&come);
        if announced.is_some_and(|bytes| bytes > limit) {
            return Err(too_large(limit));
        }
        if announced.is_some_and(|bytes| come.len() > PREFIX_BYTES + bytes) {
            return Err(Refused::new(RefusalReason::Malformed, "a call has one message"));
        }
        // What is announced is believed: a buffer that grows is copied again and again.
        let wanted = announced.map_or(come.len(), |bytes| PREFIX_BYTES + bytes);
        if !gateway.body_room().grow(&mut room, wanted).await {
            return Err(no_room());
        }
        come.reserve(wanted - come.len());
    }
    let come = come.freeze();
    if announced_bytes(&come).is_none_or(|bytes| come.len() < PREFIX_BYTES + bytes) {
        return Err(Refused::new(RefusalReason::Malformed, "the message ends too early"));
    }
    let message = come.slice(PREFIX_BYTES..);
    match (come[0], packing) {
        (0, _) => Ok((message.clone(), Read::of(message, room))),
        (1, Some(packing)) => {
            let mut read = Read::of(message, room);
            Ok((unpacked(gateway.body_room(), &mut read, limit, packing).await?, read))
        }
        (1, None) => {
            Err(Refused::new(RefusalReason::Malformed, "the message is packed, and grpc-encoding does not say how"))
        }
        (flag, _) => Err(Refused::new(RefusalReason::Malformed, format!("a message does not begin with {flag}"))),
    }
}

/// Returns the length that a message announces, or `None` before its first five bytes have come.
fn announced_bytes(come: &[u8]) -> Option<usize> {
    let length = come.get(1..PREFIX_BYTES)?.try_into().ok()?;
    usize::try_from(u32::from_be_bytes(length)).ok()
}

/// The answer to a call: a message, or none, and the status.
struct Reply {
    message: Option<Bytes>,
    trailers: Option<HeaderMap>,
}

impl Body for Reply {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut task::Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let message = self.message.take().map(Frame::data);
        let frame = message.or_else(|| self.trailers.take().map(Frame::trailers));
        Poll::Ready(frame.map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.message.is_none() && self.trailers.is_none()
    }
}

const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");
const ACCEPTED: HeaderName = HeaderName::from_static("grpc-accept-encoding");

fn response(reply: Reply) -> Response<Reply> {
    let mut response = Response::new(reply);
    let fields = response.headers_mut();
    fields.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    fields.insert(ACCEPTED, HeaderValue::from_static("identity,gzip,zstd,deflate"));
    response
}

fn taken(message: Vec<u8>) -> Response<Reply> {
    let mut framed = BytesMut::with_capacity(PREFIX_BYTES + message.len());
    framed.put_u8(0);
    framed.put_u32(message.len() as u32);
    framed.extend_from_slice(&message);
    let mut trailers = HeaderMap::with_capacity(1);
    trailers.insert(STATUS, HeaderValue::from_static("0"));
    response(Reply { message: Some(framed.freeze()), trailers: Some(trailers) })
}

/// Makes the answer without a message: its status stands in the answer's head.
fn refusal(refused: &Refused) -> Response<Reply> {
    let mut response = response(Reply { message: None, trailers: None });
    let fields = response.headers_mut();
    fields.insert(STATUS, HeaderValue::from(refused.why.grpc_code()));
    let details = STANDARD_NO_PAD.encode(refused.status().encode(Encoding::Protobuf));
    for (name, value) in [(MESSAGE, percent_encoded(&refused.message)), (DETAILS, details)] {
        if let Ok(value) = HeaderValue::from_str(&value) {
            fields.insert(name, value);
        }
    }
    response
}

/// Bytes of an error's message that are sent along: the other side has a limit for heads, too.
const MAX_MESSAGE_BYTES: usize = 1024;

fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if encoded.len() >= MAX_MESSAGE_BYTES {
            break;
        }
        match byte {
            b' '..=b'~' if byte != b'%' => encoded.push(char::from(byte)),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_percent_encoded() {
        assert_eq!(percent_encoded("100% of é\n"), "100%25 of %C3%A9%0A");
        assert!(percent_encoded(&"é".repeat(5_000)).len() < MAX_MESSAGE_BYTES + 3);
    }

    #[test]
    fn a_length_is_known_when_its_bytes_have_come() {
        assert_eq!(announced_bytes(&[0, 0, 0, 1]), None);
        assert_eq!(announced_bytes(&[0, 0, 0, 1, 2]), Some(258));
        assert_eq!(announced_bytes(&[1, 255, 255, 255, 255, 7]), Some(u32::MAX as usize));
    }
}
