//! One request and its answer, on a connection of the client's pool.

use std::fmt;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use windrow_clickhouse::{Client, Lease};

use crate::faults::Fate;

/// The most bytes of an answer. Answers are small: an append's state, or an error.
const MAX_ANSWER_BYTES: usize = 4 << 20;
/// The size up to which a body goes out with the head, in one system call and one packet.
const SMALL_BYTES: usize = 16 * 1024;

pub(super) struct Request<'a> {
    pub(super) method: &'static str,
    pub(super) target: &'a str,
    pub(super) body: Bytes,
    /// The time for which the server may be silent.
    pub(super) timeout: Duration,
}

pub(super) struct Reply {
    pub(super) status: u16,
    /// ClickHouse's code, as the server names it in a field of its own.
    pub(super) code: Option<String>,
    pub(super) batch: Option<u64>,
    pub(super) row: Option<u64>,
    pub(super) body: Bytes,
}

/// The reason why there was no answer. All requests of an append may be sent again.
#[derive(Debug)]
pub(super) enum NoAnswer {
    /// The request had no connection to be sent on.
    NotSent(String),
    /// The request may have had its effect.
    Lost(String),
}

pub(super) async fn exchange(client: &Client, request: &Request<'_>, fate: Fate) -> Result<Reply, NoAnswer> {
    let mut lease = client.connection().await.map_err(|error| NoAnswer::NotSent(in_short(&error.cause)))?;
    let lost = |error: &dyn fmt::Display| NoAnswer::Lost(in_short(error));
    let sent = send(client, &mut lease, request, fate).await;
    if fate.drop || fate.cut {
        return Err(NoAnswer::Lost("the connection was closed on purpose".to_owned()));
    }
    let connection = lease.connection();
    // A server may answer and close before it has read everything: its answer counts more than our failure to send.
    let head = match (connection.read_head(false, request.timeout).await, sent) {
        (Ok(head), _) => head,
        (Err(_), Err(error)) => return Err(lost(&error)),
        (Err(error), Ok(())) => return Err(lost(&error)),
    };
    let body = connection.body(&head).collect(MAX_ANSWER_BYTES, request.timeout).await.map_err(|error| lost(&error))?;
    let number = |name: &str| head.field_str(name).and_then(|text| text.parse().ok());
    let reply = Reply {
        status: head.status(),
        code: head.field_str("x-clickhouse-exception-code").map(str::to_owned),
        batch: number("x-windrow-batch"),
        row: number("x-windrow-row"),
        body,
    };
    lease.give_back(&head);
    Ok(reply)
}

/// Returns the error's text without the operating system's number, which says the same again.
fn in_short(error: &dyn fmt::Display) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}

async fn send(client: &Client, lease: &mut Lease, request: &Request<'_>, fate: Fate) -> io::Result<()> {
    let mut head = head(client, request).into_bytes();
    let mut body = request.body.clone();
    if fate.drop {
        body.truncate(body.len() / 2);
    }
    if body.len() <= SMALL_BYTES {
        head.extend_from_slice(&std::mem::take(&mut body));
    }
    let connection = lease.connection();
    connection.send(&head, request.timeout).await?;
    if !body.is_empty() {
        connection.send(&body, request.timeout).await?;
    }
    Ok(())
}

fn head(client: &Client, request: &Request<'_>) -> String {
    let endpoint = client.endpoint();
    let mut head = format!("{} {} HTTP/1.1\r\n", request.method, request.target);
    let length = request.body.len().to_string();
    for (name, value) in [
        ("Host", endpoint.authority().as_str()),
        ("X-ClickHouse-User", &endpoint.credentials.user),
        ("X-ClickHouse-Key", &endpoint.credentials.password),
        ("Content-Length", &length),
    ] {
        head.push_str(name);
        head.push_str(": ");
        head.extend(value.chars().map(|c| if matches!(c, '\r' | '\n' | '\0') { ' ' } else { c }));
        head.push_str("\r\n");
    }
    head.push_str("\r\n");
    head
}
