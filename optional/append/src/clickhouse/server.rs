//! Statements sent to ClickHouse, again where that may help.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;
use windrow_clickhouse::{Call, CallError, Client, Credentials, ErrorCode, Exception, Purpose};

use crate::error::AppendError;

/// The time limit of questions, and of statements that touch no rows.
const SHORT: Duration = Duration::from_secs(60);
/// The time limit of statements that write or move rows. Past it the outcome is unknown.
const LONG: Duration = Duration::from_secs(600);

#[derive(Clone)]
pub(super) struct Server {
    client: Arc<Client>,
    own: Credentials,
}

/// The server as it is for one account.
#[derive(Clone)]
pub(super) struct Session {
    server: Server,
    account: Credentials,
}

/// A statement that writes.
pub(super) struct Order<'a> {
    pub(super) statement: &'a str,
    /// The id by which the server knows the statement, and refuses a second one at the same time.
    pub(super) query_id: &'a str,
    pub(super) settings: &'a [(&'a str, &'a str)],
    pub(super) body: &'a [Bytes],
}

impl Server {
    pub(super) fn new(client: Arc<Client>, own: Credentials) -> Server {
        Server { client, own }
    }

    /// Returns the session of the gateway's own account.
    pub(super) fn own(&self) -> Session {
        self.session(self.own.clone())
    }

    pub(super) fn session(&self, account: Credentials) -> Session {
        Session { server: self.clone(), account }
    }

    pub(super) fn close(&self) {
        self.client.close();
    }
}

/// The replica that statements go to. Staging tables are of one server: whatever replicas there are, an
/// append is the first one's.
const WHERE: Purpose = Purpose::First;

impl Session {
    /// Asks a question, and returns the text of the answer.
    pub(super) async fn ask(&self, question: &str, parameters: &[(&str, &str)]) -> Result<String, CallError> {
        let mut call = Call::new(&self.account, question).purpose(WHERE).timeout(SHORT);
        for (name, value) in parameters {
            call = call.param(&format!("param_{name}"), value);
        }
        Ok(self.server.client.call(call).await?.text().to_owned())
    }

    /// Sends a statement that writes, once.
    pub(super) async fn order(&self, order: &Order<'_>) -> Result<(), CallError> {
        let mut call = Call::new(&self.account, order.statement)
            .param("query_id", order.query_id)
            .param("async_insert", "0")
            .purpose(WHERE)
            .timeout(LONG);
        for (name, value) in order.settings {
            call = call.param(name, value);
        }
        self.server.client.call(call.body(order.body)).await.map(drop)
    }

    /// Sends a statement of which a second time does no harm.
    pub(super) async fn run(&self, statement: &str) -> Result<(), CallError> {
        let call = Call::new(&self.account, statement)
            .param("allow_suspicious_low_cardinality_types", "1")
            .param("allow_suspicious_codecs", "1")
            .purpose(WHERE)
            .timeout(LONG);
        self.server.client.call(call).await.map(drop)
    }
}

pub(super) fn may_not(error: &CallError) -> bool {
    matches!(error, CallError::Exception(exception) if exception.code == ErrorCode::ACCESS_DENIED)
}

/// Makes the error for a user who may see nothing of a table, in ClickHouse's words for an INSERT of such a
/// user. `refused` is the answer to EXISTS.
pub(super) fn may_not_insert(refused: CallError) -> AppendError {
    match refused {
        CallError::Exception(exception) if exception.code == ErrorCode::ACCESS_DENIED => {
            let line = exception.line.replacen("the grant SHOW TABLES ON", "the grant INSERT ON", 1);
            AppendError::from(Exception { line, ..exception })
        }
        other => failure(other),
    }
}

/// Says whether the same again may go better, where a second time does no harm.
pub(super) fn may_pass(error: &CallError) -> bool {
    match error {
        CallError::NotSent(_) | CallError::Unknown(_) => true,
        CallError::Exception(exception) => {
            exception.is_passing() || exception.leaves_outcome_open() || is_under_way(exception)
        }
    }
}

/// Says whether the same query is still running from an attempt whose answer was lost.
pub(super) fn is_under_way(exception: &Exception) -> bool {
    exception.code == ErrorCode::QUERY_WITH_SAME_ID_IS_ALREADY_RUNNING
}

/// Tries until it works, fails for good, or the time is over. Only for calls that can be made twice without harm.
pub(super) async fn persist<T, F: Future<Output = Result<T, CallError>>>(
    limit: Duration,
    mut attempt: impl FnMut() -> F,
) -> Result<T, CallError> {
    let end = Instant::now() + limit;
    let mut pause = Duration::from_millis(20);
    loop {
        match attempt().await {
            Err(error) if may_pass(&error) && Instant::now() + pause < end => tokio::time::sleep(pause).await,
            outcome => return outcome,
        }
        pause = (pause * 2).min(Duration::from_secs(2));
    }
}

/// Makes the error that an append is told: it failed, and nothing of it is stored.
pub(super) fn failure(error: CallError) -> AppendError {
    match error {
        CallError::NotSent(error) => AppendError::new(ErrorCode::NETWORK_ERROR, &error.to_string()).with_status(503),
        CallError::Unknown(text) => {
            AppendError::new(ErrorCode::NETWORK_ERROR, &format!("ClickHouse does not answer: {text}")).with_status(503)
        }
        CallError::Exception(exception) => AppendError::from(exception),
    }
}
