//! Hedges: a read that its replica is slow to answer is sent to a second replica as well, if the user wants
//! that (`backend.hedge_reads_ms`). The answer that begins first is passed on, and the other connection is
//! closed: ClickHouse then does to the query there what it does when its client leaves.
//!
//! Only a statement that does nothing but read, and that is here whole, is sent twice. The second replica is
//! asked for speed alone: its error is no answer while the first may have a better one. (The
//! second may not have fetched a new table yet.)

use std::time::Duration;

use windrow_clickhouse::{Client, Lease, Purpose, ReplicaId};
use windrow_http::{Method, RequestBody};
use windrow_sql::only_reads;

use super::exchange::Exchange;
use super::forward::{ForwardError, Forwarded, ForwardedBody, UNBOUNDED};
use super::text::Text;
use crate::metrics::Metrics;
use crate::statement::Changes;

impl Exchange<'_> {
    /// Returns how long the replica of a statement has to begin its answer before a second one is asked;
    /// `None` if no second one is asked.
    pub(super) fn hedge_after(&self, relay: &Client, text: &Text, changes: &Changes) -> Option<Duration> {
        let after_ms = self.state.options.settings.get().backend_hedge_reads_ms?;
        let may_be_sent_twice = relay.replicas().are_several()
            && matches!(self.request.head.method(), Method::Get | Method::Post)
            && !changes.any()
            && text.whole
            // It names an id to take the place of the query that has it, which may run at a replica that is not asked.
            && !self.request.flag("replace_running_query")
            && only_reads(&text.joined());
        may_be_sent_twice.then(|| Duration::from_millis(after_ms))
    }
}

pub(super) struct Hedge<'a> {
    pub(super) client: &'a Client,
    pub(super) purpose: Purpose,
    pub(super) metrics: &'a Metrics,
    pub(super) write_idle: Duration,
}

/// A replica that was sent the request, and the status with which it begins its answer.
struct Begun {
    lease: Lease,
    status: Result<u16, String>,
}

impl Begun {
    fn is_no_error(&self) -> bool {
        matches!(self.status, Ok(..400))
    }

    fn lease(self) -> Result<Lease, ForwardError> {
        self.status.map(|_| self.lease).map_err(ForwardError::NoAnswer)
    }
}

impl Hedge<'_> {
    /// Returns the connection to read the answer from: `first`, or that of another replica if it is quicker.
    /// A request that is not to be sent twice is not sent here at all.
    pub(super) async fn first_to_answer(
        &self,
        first: Lease,
        forwarded: &mut Forwarded<'_>,
        body: &mut RequestBody<'_>,
    ) -> Result<Lease, ForwardError> {
        let Some(after) = forwarded.hedge_after else { return Ok(first) };
        // Only where a statement is free to go: a session has its replica.
        if self.purpose != Purpose::Statement || !forwarded.is_whole(body) {
            return Ok(first);
        }
        let lease = tokio::select! {
            biased;
            lease = self.race(first, forwarded, after) => lease?,
            () = body.client_gone(), if forwarded.cancel_on_close => return Err(ForwardError::Broken),
        };
        forwarded.body = ForwardedBody::Sent;
        Ok(lease)
    }

    async fn race(&self, first: Lease, forwarded: &Forwarded<'_>, after: Duration) -> Result<Lease, ForwardError> {
        let slow = first.replica();
        let mut first = std::pin::pin!(self.ask(first, forwarded));
        if let Ok(begun) = tokio::time::timeout(after, &mut first).await {
            return begun.lease();
        }
        let Some(other) = self.client.replicas().beside(slow) else { return first.await.lease() };
        self.metrics.hedged_reads.inc();
        let mut second = std::pin::pin!(self.ask_another(other, forwarded));
        let failed = tokio::select! {
            biased;
            begun = &mut first => match begun.lease() {
                // An error of the second is better than no answer.
                Err(lost) => return self.won(second.await.ok_or(lost)?),
                answers => return answers,
            },
            begun = &mut second => match begun {
                Some(begun) if begun.is_no_error() => return self.won(begun),
                failed => failed,
            },
        };
        match (first.await.lease(), failed) {
            (Err(_), Some(failed)) => self.won(failed),
            (answer, _) => answer,
        }
    }

    fn won(&self, second: Begun) -> Result<Lease, ForwardError> {
        let lease = second.lease()?;
        self.metrics.hedged_reads_won.inc();
        Ok(lease)
    }

    /// Asks another replica. Returns `None` if there is no connection to it.
    async fn ask_another(&self, replica: ReplicaId, forwarded: &Forwarded<'_>) -> Option<Begun> {
        let lease = self.client.connection_for(Purpose::Only(replica)).await.ok()?;
        Some(self.ask(lease, forwarded).await)
    }

    async fn ask(&self, mut lease: Lease, forwarded: &Forwarded<'_>) -> Begun {
        let request = forwarded.bytes(&lease.endpoint().authority(), true);
        let connection = lease.connection();
        let status = match connection.send(&request, self.write_idle).await {
            Ok(()) => connection.read_status(UNBOUNDED).await.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        Begun { lease, status }
    }
}
