//! The requests of one append, and the meaning of their answers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::Deserialize;
use windrow_clickhouse::{push_param, Client, ErrorCode, Exception};

use super::failure::Why;
use super::wire::{exchange, NoAnswer, Reply, Request};
use crate::faults::Fate;
use crate::id::AppendId;
use crate::numbers::Numbers;
use crate::options::AppendOptions;
use crate::source::Column;

/// The time within which a server that is alive says something about a batch.
const BATCH_TIMEOUT: Duration = Duration::from_secs(120);
/// The silence after which a commit is asked whether it still goes on; it may take long.
const COMMIT_TIMEOUT: Duration = Duration::from_secs(60);
const QUESTION_TIMEOUT: Duration = Duration::from_secs(30);

/// The reason why a request did not do what it was for.
pub(super) enum Trouble {
    /// The request may be sent again; after a while, if the server asks for one.
    Again {
        cause: Cause,
        wait: bool,
    },
    Final(Why),
}

/// The reason why something has to be sent again.
#[derive(Debug)]
pub(super) enum Cause {
    NotConnected(String),
    Lost(String),
    /// The server, or a proxy before it, said "not now".
    Answered(String),
}

impl Cause {
    pub(super) fn in_short(&self) -> &str {
        match self {
            Cause::NotConnected(text) | Cause::Lost(text) | Cause::Answered(text) => text,
        }
    }
}

impl From<NoAnswer> for Trouble {
    fn from(none: NoAnswer) -> Self {
        let cause = match none {
            NoAnswer::NotSent(text) => Cause::NotConnected(text),
            NoAnswer::Lost(text) => Cause::Lost(text),
        };
        Trouble::Again { cause, wait: false }
    }
}

/// The status of an append, as the server tells it.
#[derive(Debug, Deserialize)]
pub(super) struct Status {
    pub(super) state: String,
    #[serde(default)]
    pub(super) columns: Vec<Column>,
    #[serde(default)]
    pub(super) received: Numbers,
    #[serde(skip)]
    pub(super) totals: Option<Totals>,
    #[serde(default)]
    pub(super) error: Option<StoredError>,
}

impl Status {
    /// Reads a status. The fields of an append that is open, or committed, may stand beside its state or in
    /// an object of its own.
    fn read(body: &[u8]) -> Result<Status, Trouble> {
        let mut whole: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(body).map_err(strange)?;
        for part in ["progress", "committed"] {
            if let Some(serde_json::Value::Object(part)) = whole.remove(part) {
                part.into_iter().for_each(|(name, value)| _ = whole.entry(name).or_insert(value));
            }
        }
        let whole = serde_json::Value::Object(whole);
        // Only what is committed has all of them.
        let totals = serde_json::from_value(whole.clone()).ok();
        let status: Status = serde_json::from_value(whole).map_err(strange)?;
        Ok(Status { totals, ..status })
    }
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct StoredError {
    pub(super) code: i32,
    pub(super) text: String,
    pub(super) batch: Option<u64>,
    pub(super) row: Option<u64>,
}

/// The totals that a committed append has stored.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Totals {
    pub(super) rows: u64,
    pub(super) bytes: u64,
    pub(super) batches: u64,
    pub(super) seconds: f64,
    pub(super) atomic: String,
}

pub(super) struct Requests {
    pub(super) client: Arc<Client>,
    pub(super) id: AppendId,
    /// The parameter `table=` and the others that open the append.
    opening: String,
    /// True if the server has answered to a request: from then on none may open the append anew, which would
    /// go on without the batches that were acknowledged before, if the server has lost them.
    known: AtomicBool,
    /// True if something may have come to the server.
    reached: AtomicBool,
    /// True if a commit may have come to the server.
    commit_sent: AtomicBool,
}

impl Requests {
    /// Makes the requests of an append. Some of `options` say which append it is: they are the same in all
    /// requests that may open it.
    pub(super) fn new(client: Arc<Client>, id: AppendId, table: &str, options: &AppendOptions) -> Requests {
        let AppendOptions { columns, ordered, source, .. } = options;
        let mut opening = String::new();
        push_param(&mut opening, "table", table);
        if let Some(columns) = columns {
            let quoted: Vec<String> = columns.iter().map(|column| quoted(column)).collect();
            push_param(&mut opening, "columns", &quoted.join(","));
        }
        if !*ordered {
            push_param(&mut opening, "ordered", "0");
        }
        if let Some(source) = source {
            push_param(&mut opening, "source", source);
        }
        // It follows another parameter, or stands alone.
        opening.remove(0);
        let [known, reached, commit_sent] = [false; 3].map(AtomicBool::new);
        Requests { client, id, opening, known, reached, commit_sent }
    }

    pub(super) async fn open(&self) -> Result<Status, Trouble> {
        let target = format!("/windrow/v1/appends?id={}&{}", self.id, self.opening);
        let reply = self.ask("POST", &target, QUESTION_TIMEOUT).await?;
        Status::read(&reply.body)
    }

    pub(super) async fn status(&self) -> Result<Status, Trouble> {
        let target = format!("/windrow/v1/appends/{}", self.id);
        let request = Request { method: "GET", target: &target, body: Bytes::new(), timeout: QUESTION_TIMEOUT };
        let reply = self.exchange(&request, Fate::default()).await?;
        match reply.status {
            200 => Status::read(&reply.body),
            404 => Status::read(&reply.body).map_err(|_| self.trouble(&reply)),
            _ => Err(self.trouble(&reply)),
        }
    }

    pub(super) async fn put(&self, number: u64, body: &Bytes, fate: Fate) -> Result<(), Trouble> {
        let target = self.opening_if_unknown(&format!("/windrow/v1/appends/{}/batches/{number}", self.id));
        let request = Request { method: "POST", target: &target, body: body.clone(), timeout: BATCH_TIMEOUT };
        let reply = self.exchange(&request, fate).await?;
        self.accepted(&reply)
    }

    pub(super) async fn commit(&self, batches: u64) -> Result<Totals, Trouble> {
        let target = self.opening_if_unknown(&format!("/windrow/v1/appends/{}/commit?batches={batches}", self.id));
        let outcome = self.ask("POST", &target, COMMIT_TIMEOUT).await;
        if !matches!(outcome, Err(Trouble::Again { cause: Cause::NotConnected(_), .. })) {
            self.commit_sent.store(true, Ordering::Relaxed);
        }
        json(&outcome?.body)
    }

    pub(super) async fn abort(&self) -> Result<(), Trouble> {
        let target = format!("/windrow/v1/appends/{}", self.id);
        self.ask("DELETE", &target, QUESTION_TIMEOUT).await.map(|_| ())
    }

    async fn ask(&self, method: &'static str, target: &str, timeout: Duration) -> Result<Reply, Trouble> {
        let request = Request { method, target, body: Bytes::new(), timeout };
        let reply = self.exchange(&request, Fate::default()).await?;
        self.accepted(&reply)?;
        Ok(reply)
    }

    async fn exchange(&self, request: &Request<'_>, fate: Fate) -> Result<Reply, NoAnswer> {
        let outcome = exchange(&self.client, request, fate).await;
        if !matches!(outcome, Err(NoAnswer::NotSent(_))) {
            self.reached.store(true, Ordering::Relaxed);
        }
        outcome
    }

    fn accepted(&self, reply: &Reply) -> Result<(), Trouble> {
        match reply.status {
            200 | 201 => {
                self.known.store(true, Ordering::Relaxed);
                Ok(())
            }
            _ => Err(self.trouble(reply)),
        }
    }

    fn trouble(&self, reply: &Reply) -> Trouble {
        let exception = Exception::from_answer(reply.code.as_deref(), &reply.body);
        let (server, status) = (self.client.endpoint().to_string(), reply.status);
        let text = |exception: &Option<Exception>| match exception {
            Some(exception) => exception.to_string(),
            None => format!("the server answered with status {status}"),
        };
        match (status, exception) {
            // What stands between may say so as well; and nothing but waiting helps.
            (502..=504 | 429, exception) => Trouble::Again { cause: Cause::Answered(text(&exception)), wait: true },
            // The server does not know the append. A table that isn't there is a 404 as well, by another code.
            (404, Some(exception)) if exception.code == ErrorCode::BAD_ARGUMENTS => Trouble::Final(Why::Gone),
            (_, Some(exception)) => Trouble::Final(Why::Refused { exception, batch: reply.batch, row: reply.row }),
            (500.., None) => Trouble::Again { cause: Cause::Answered(text(&None)), wait: true },
            (_, None) => Trouble::Final(Why::NotWindrow { server, status }),
        }
    }

    fn opening_if_unknown(&self, target: &str) -> String {
        if self.known.load(Ordering::Relaxed) {
            return target.to_owned();
        }
        let joint = if target.contains('?') { '&' } else { '?' };
        format!("{target}{joint}{}", self.opening)
    }

    /// Notes that the append is there: no request may open it anew.
    pub(super) fn is_known(&self) {
        self.known.store(true, Ordering::Relaxed);
    }

    pub(super) fn was_reached(&self) -> bool {
        self.reached.load(Ordering::Relaxed)
    }

    /// Returns the failure of a server that could not be reached any more.
    pub(super) fn unreachable(&self, cause: &Cause) -> Why {
        let server = self.client.endpoint();
        let last_error = match cause {
            Cause::NotConnected(text) => format!("cannot connect to {server}: {text}"),
            Cause::Lost(text) => format!("{server}: {text}"),
            Cause::Answered(text) => text.clone(),
        };
        let commit_sent = self.commit_sent.load(Ordering::Relaxed);
        Why::Unreachable { last_error, reached: self.was_reached(), commit_sent }
    }
}

fn json<T: DeserializeOwned>(body: &Bytes) -> Result<T, Trouble> {
    serde_json::from_slice(body).map_err(strange)
}

fn strange(error: serde_json::Error) -> Trouble {
    Trouble::Again { cause: Cause::Answered(format!("the server's answer can't be read: {error}")), wait: true }
}

/// Returns a name as the `columns` parameter takes it.
fn quoted(name: &str) -> String {
    windrow_sql::backquote_if_need(name)
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn names_are_quoted_where_they_must_be() {
        assert_eq!(
            [quoted("a_1"), quoted("1a"), quoted("a,b"), quoted("a`\\")],
            ["a_1", "`1a`", "`a,b`", "`a\\`\\\\`"]
        );
    }
}
