//! OTLP over HTTP: the requests of one connection, one after the other.

use std::time::Instant;

use bytes::Bytes;
use windrow_compression::Encoding as Packing;
use windrow_engine::trace::{Parent, RequestTrace};
use windrow_gateway::protocol::{
    after, unreadable, After, GatewayHandle, NewConnection, Origin, Peer, Read, ReadError,
};
use windrow_http::{BodyFraming, Connection, Method, NextRequest, RequestHead, ResponseBuilder};
use windrow_otlp::answer::success;
use windrow_otlp::{Encoding, Signal};

use crate::export::{export, Export};
use crate::payload::{no_room, too_large, unpacked};
use crate::refused::{RefusalReason, Refused};
use crate::sender::{sender, Fields};
use crate::Context;

pub(crate) async fn serve(context: &Context, connection: NewConnection) {
    let gateway = &context.gateway;
    let NewConnection { stream, id, peer, mut stop, .. } = connection;
    let mut connection = Connection::new(stream, gateway.limits().clone());
    let mut out = Vec::new();
    let stop = stop.wait_for(|stop| *stop);
    tokio::pin!(stop);
    loop {
        let next = tokio::select! {
            biased;
            next = peer.permit.wait_for(connection.next_request()) => next,
            _ = &mut stop => return,
        };
        // Somebody else has its permit.
        let Some(next) = next else { return };
        let refused = match next {
            Ok(NextRequest::Request(head)) => {
                let trace = trace(gateway, &head);
                let origin = Origin::new(id, Instant::now(), trace.as_ref());
                let after = exchange(context, &mut connection, &head, (origin, &peer), &mut out).await;
                trace.into_iter().for_each(RequestTrace::end);
                match after {
                    After::KeepAlive if !gateway.is_closing() => continue,
                    _ => return connection.close().await,
                }
            }
            Ok(NextRequest::Closed) | Err(_) => return,
            Ok(NextRequest::Refused(error)) => (error.status(), error.to_string()),
            Ok(NextRequest::TooSlow) => (408, "the request's head did not come in time".to_owned()),
        };
        unreadable(&mut out, refused.0, &refused.1);
        // The client may be gone; the connection ends either way.
        let _ = connection.send(&out).await;
        return connection.close().await;
    }
}

fn trace(gateway: &GatewayHandle, head: &RequestHead) -> Option<RequestTrace> {
    gateway.begin_trace(Instant::now(), || {
        let parent = head.text("traceparent")?;
        Parent::of_header(parent.as_bytes(), head.field("tracestate"))
    })
}

async fn exchange(
    context: &Context,
    connection: &mut Connection,
    head: &RequestHead,
    (origin, peer): (Origin<'_>, &Peer),
    out: &mut Vec<u8>,
) -> After {
    let settings = context.gateway.settings();
    let page = allowed_page(head, &settings.otlp.allowed_origins);
    if let (Method::Options, Some(page), Some(_)) = (head.method(), page, signal_at(path(head))) {
        let after = if connection.body_is_done() { after(head, connection) } else { After::Close };
        preflight(out, head, page, after);
        return if connection.send(out).await.is_ok() { after } else { After::Close };
    }
    // Whoever sends something else may read JSON.
    let encoding = head.text("content-type").and_then(encoding).unwrap_or(Encoding::Json);
    let answer = match signal(head) {
        Ok(signal) => {
            let answer = answer(context, connection, head, (origin, peer), signal).await;
            if let Err(Answer::Refused(refused)) = &answer {
                context.shared.metrics.refused(signal, refused.why);
            }
            answer
        }
        Err(refused) => Err(Answer::Refused(refused)),
    };
    let (refused, body) = match answer {
        Ok(body) => (None, body),
        Err(Answer::Refused(refused)) => {
            let body = refused.status().encode(encoding);
            (Some(refused), body)
        }
        // There is nobody to answer.
        Err(Answer::Nobody) => return After::Close,
    };
    let after = match connection.body_is_done() {
        true => after(head, connection),
        // What is left of the body is not worth reading.
        false => After::Close,
    };
    write(out, head, page, encoding, refused.as_ref(), &body, after);
    match connection.send(out).await {
        Ok(()) => after,
        Err(_) => After::Close,
    }
}

/// The reason why there is no success to report.
enum Answer {
    Refused(Refused),
    Nobody,
}

impl From<Refused> for Answer {
    fn from(refused: Refused) -> Answer {
        Answer::Refused(refused)
    }
}

async fn answer(
    context: &Context,
    connection: &mut Connection,
    head: &RequestHead,
    (origin, peer): (Origin<'_>, &Peer),
    signal: Signal,
) -> Result<Vec<u8>, Answer> {
    let encoding = head.text("content-type").and_then(encoding).ok_or_else(|| {
        Refused::new(RefusalReason::Unsupported, "Content-Type is application/x-protobuf or application/json")
    })?;
    // An empty request would be a success, and whatever came behind it lost.
    if head.framing() == BodyFraming::None {
        return Err(
            Refused::new(RefusalReason::Malformed, "Content-Length or Transfer-Encoding: chunked is needed").into()
        );
    }
    let packing = packing(head)?;
    let sender = sender(&context.gateway, peer, head).await?;
    origin.is_of_user(peer);
    // Its room is held as long as it is read from.
    let (payload, _read) = body(&context.gateway, connection, packing).await?;
    origin.mark("accept");
    let settings = context.gateway.settings();
    let named = |name: &Option<String>| name.as_deref().and_then(|name| head.text(name));
    let (id, tenant) = (named(&settings.otlp.request_id_header), named(&settings.otlp.tenants.header));
    let partial = export(context, &sender, Export { signal, encoding, payload, id, tenant }, origin).await?;
    Ok(success(signal, encoding, partial.as_ref()))
}

/// Returns the site whose page sends from within a browser, if pages of that site may.
fn allowed_page<'h>(head: &'h RequestHead, allowed: &[String]) -> Option<&'h str> {
    head.text("origin").filter(|origin| allowed.iter().any(|one| one == "*" || one.eq_ignore_ascii_case(origin)))
}

/// Writes the answer to a browser that asks before it lets a page send, and names the fields that the page
/// would send.
fn preflight(out: &mut Vec<u8>, head: &RequestHead, page: &str, after: After) {
    let response = ResponseBuilder::new(out, 204)
        .date()
        .field("Access-Control-Allow-Origin", page)
        .field("Access-Control-Allow-Methods", "POST")
        .field("Access-Control-Allow-Headers", head.text("access-control-request-headers").unwrap_or_default())
        .field("Access-Control-Max-Age", "7200")
        .field("Vary", "Origin");
    response.field("Connection", if after == After::KeepAlive { "Keep-Alive" } else { "Close" }).end();
}

fn path(head: &RequestHead) -> &str {
    head.target().split(['?', '#']).next().unwrap_or_default()
}

fn signal_at(path: &str) -> Option<Signal> {
    match path {
        "/v1/logs" => Some(Signal::Logs),
        "/v1/traces" => Some(Signal::Traces),
        "/v1/metrics" => Some(Signal::Metrics),
        _ => None,
    }
}

fn signal(head: &RequestHead) -> Result<Signal, Refused> {
    let path = path(head);
    let signal = signal_at(path).ok_or_else(|| {
        let text = format!("there is nothing at {path}: send to /v1/logs, /v1/traces or /v1/metrics");
        Refused::new(RefusalReason::NoService, text)
    })?;
    match head.method() {
        Method::Post => Ok(signal),
        _ => Err(Refused::new(RefusalReason::Method, format!("{path} takes POST alone"))),
    }
}

fn encoding(content_type: &str) -> Option<Encoding> {
    let kind = content_type.split(';').next().unwrap_or_default().trim();
    match () {
        () if kind.eq_ignore_ascii_case("application/x-protobuf") => Some(Encoding::Protobuf),
        () if kind.eq_ignore_ascii_case("application/json") => Some(Encoding::Json),
        () => None,
    }
}

fn packing(head: &RequestHead) -> Result<Option<Packing>, Refused> {
    let unknown = || Refused::new(RefusalReason::Unsupported, "Content-Encoding is gzip, zstd, deflate or none");
    if !head.has("content-encoding") {
        return Ok(None);
    }
    match head.text("content-encoding").ok_or_else(unknown)? {
        "" | "identity" => Ok(None),
        name => Packing::from_content_encoding(name).map(Some).ok_or_else(unknown),
    }
}

/// Reads all of a user's body, and returns it unpacked, with the owner of its room.
async fn body(
    gateway: &GatewayHandle,
    connection: &mut Connection,
    packing: Option<Packing>,
) -> Result<(Bytes, Read), Answer> {
    let limit = gateway.settings().otlp.max_http_body_bytes;
    let (mut body, _) = connection.body().await.map_err(|_| Answer::Nobody)?;
    if body.announced_bytes() > limit as u64 {
        return Err(too_large(limit).into());
    }
    let mut read = gateway.body_room().read(&mut body, limit).await.map_err(not_read)?;
    if !read.whole || read.bytes.len() > limit {
        return Err(too_large(limit).into());
    }
    let Some(packing) = packing else { return Ok((read.bytes.clone(), read)) };
    Ok((unpacked(gateway.body_room(), &mut read, limit, packing).await?, read))
}

fn not_read(error: ReadError) -> Answer {
    match error {
        ReadError::Body => Answer::Nobody,
        ReadError::NoRoom => no_room().into(),
    }
}

fn write(
    out: &mut Vec<u8>,
    head: &RequestHead,
    page: Option<&str>,
    encoding: Encoding,
    refused: Option<&Refused>,
    body: &[u8],
    after: After,
) {
    let status = refused.map_or(200, |refused| refused.why.http_status());
    let kind = match encoding {
        Encoding::Protobuf => "application/x-protobuf",
        Encoding::Json => "application/json",
    };
    let mut response = ResponseBuilder::new(out, status).date().field("Content-Type", kind);
    if let Some(seconds) = refused.and_then(Refused::retry_after) {
        response = response.number("Retry-After", seconds.as_secs());
    }
    if let Some(page) = page {
        response = response
            .field("Access-Control-Allow-Origin", page)
            .field("Access-Control-Expose-Headers", "Retry-After")
            .field("Vary", "Origin");
    }
    response = match status {
        401 => response.field("WWW-Authenticate", "Basic realm=\"Windrow\""),
        405 => response.field("Allow", "POST"),
        _ => response,
    };
    let response = response.field("Connection", if after == After::KeepAlive { "Keep-Alive" } else { "Close" });
    match head.method() {
        Method::Head => response.number("Content-Length", body.len() as u64).end(),
        _ => response.body(body),
    }
}
