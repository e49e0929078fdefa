//! Requests that differ in their bodies only.
//!
//! A writer sends the same head again and again: the same INSERT, credentials and settings. The results for the first
//! such request (its statement, its admission) are kept under the bytes that decide them, so that the others skip
//! decoding and classifying. When the admission doesn't hold any more, a request goes the long way.

use std::sync::Arc;

use windrow_http::{BodyFraming, Method, RequestHead};

use super::request::Request;
use crate::admission::{Admission, Holds, Moment};
use crate::cluster::is_hop_field;
use crate::insert::Prepared;
use crate::recent::Recent;

/// The latest insert of a connection. If the same head comes again, not even its deciding bytes are looked up.
#[derive(Default)]
pub(crate) struct LatestInsert {
    head: Option<RequestHead>,
    known: Option<Arc<Prepared>>,
}

pub(crate) struct KnownHeads {
    entries: Recent<Vec<u8>, Arc<Prepared>>,
}

const MAX_ENTRIES: usize = 40_000;
const MAX_HEAD_BYTES: usize = 8 * 1024;

/// Returns the bytes of a head that decide what its insert is; `None` if the head alone doesn't decide that.
fn deciding_bytes(head: &RequestHead) -> Option<Vec<u8>> {
    let lacks_length = head.framing() == BodyFraming::None;
    if *head.method() != Method::Post || lacks_length || head.raw().len() > MAX_HEAD_BYTES {
        return None;
    }
    let mut bytes = Vec::with_capacity(256);
    bytes.extend_from_slice(head.target().as_bytes());
    for (name, value) in head.fields() {
        if decides(name) {
            bytes.push(b'\n');
            bytes.extend_from_slice(name.as_bytes());
            bytes.push(b':');
            bytes.extend_from_slice(value);
        } else if hides_body(name) || is_hop_field(name) {
            return None;
        }
    }
    Some(bytes)
}

fn decides(name: &str) -> bool {
    let starts_with = |prefix: &str| name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix));
    starts_with("x-clickhouse-") || name.eq_ignore_ascii_case("authorization")
}

/// Says whether a field means that the body is compressed, or a form, or comes only after a go-ahead.
fn hides_body(name: &str) -> bool {
    name.eq_ignore_ascii_case("content-encoding")
        || name.eq_ignore_ascii_case("expect")
        || name.eq_ignore_ascii_case("content-type")
}

/// Says whether the request has nothing of its own that isn't part of its insert's admission.
fn is_plain(request: &Request<'_>) -> bool {
    let own = ["query_id", "session_id", "session_timeout", "session_check", "compress", "decompress"];
    request.head.field("x-clickhouse-query-id").is_none()
        && !request.params.iter().any(|param| own.contains(&param.name()))
}

impl KnownHeads {
    pub(crate) fn new() -> KnownHeads {
        KnownHeads { entries: Recent::new(MAX_ENTRIES) }
    }

    /// Returns the insert that such a head stands for, if its admission surely holds.
    pub(crate) fn get(
        &self,
        head: &RequestHead,
        latest: &mut LatestInsert,
        admission: &Admission,
        now: Moment,
    ) -> Option<Arc<Prepared>> {
        if !latest.head.as_ref().is_some_and(|latest| latest.is_same(head)) {
            let known = deciding_bytes(head).and_then(|bytes| self.entries.get(&bytes));
            *latest = LatestInsert { head: Some(head.clone()), known };
        }
        let known = latest.known.as_ref()?;
        if admission.holds(&known.grounds, now) != Holds::Surely {
            *latest = LatestInsert::default();
            return None;
        }
        match admission.renew(&known.grounds, now) {
            // The long way asks anew what only time can tell.
            true => None,
            false => Some(known.clone()),
        }
    }

    /// Keeps the results for `request`, whose statement stands in its URL and whose payload is its whole body.
    pub(crate) fn put(&self, request: &Request<'_>, prepared: &Arc<Prepared>) {
        if !is_plain(request) {
            return;
        }
        if let Some(bytes) = deciding_bytes(request.head) {
            self.entries.put(bytes, prepared.clone());
        }
    }

    /// Drops the heads that have not been used since the last call.
    pub(crate) fn age(&self) {
        self.entries.age();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn key(text: &str) -> Option<Vec<u8>> {
        deciding_bytes(&RequestHead::parse(Bytes::from(text.to_owned()), 100).unwrap())
    }

    #[test]
    fn lengths_and_hosts_do_not_matter_credentials_do() {
        let one = key("POST /?query=q HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n");
        assert!(one.is_some());
        assert_eq!(one, key("POST /?query=q HTTP/1.1\r\nHost: b\r\nContent-Length: 7\r\n\r\n"));
        assert_ne!(one, key("POST /?query=q HTTP/1.1\r\nAuthorization: Basic x\r\nContent-Length: 5\r\n\r\n"));
        assert_ne!(one, key("POST /?query=q HTTP/1.1\r\nX-ClickHouse-User: joe\r\nContent-Length: 5\r\n\r\n"));
        assert_ne!(one, key("POST /?query=r HTTP/1.1\r\nContent-Length: 5\r\n\r\n"));
    }

    #[test]
    fn bodies_that_do_not_speak_for_themselves_go_the_long_way() {
        for head in [
            "GET /?query=q HTTP/1.1\r\n\r\n",
            "POST /?query=q HTTP/1.1\r\n\r\n",
            "POST /?query=q HTTP/1.1\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\n",
            "POST /?query=q HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n",
            "POST /?query=q HTTP/1.1\r\nContent-Type: multipart/form-data; boundary=x\r\nContent-Length: 5\r\n\r\n",
        ] {
            assert_eq!(key(head), None, "{head}");
        }
    }
}
