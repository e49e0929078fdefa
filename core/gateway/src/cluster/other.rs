//! Another gateway of the cluster.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use prometheus_client::metrics::counter::Counter;
use serde_json::{json, Value};
use tokio::sync::watch;
use windrow_clickhouse::{Client, ClientOptions, Endpoint, TlsError};

use super::changes::{Change, Untold};
use super::health::Health;
use super::hop::{self, Hop};
use super::metrics::{ClusterMetrics, OfGateway};

pub(crate) struct OtherGateway {
    name: String,
    client: Arc<Client>,
    field: String,
    pub(super) health: watch::Sender<Health>,
    pub(super) gauges: OfGateway,
    pub(super) untold: Untold,
    hops: Counter,
    failed: Counter,
}

impl OtherGateway {
    pub(super) fn new(
        name: &str,
        endpoint: Endpoint,
        options: ClientOptions,
        field: String,
        metrics: &ClusterMetrics,
    ) -> Result<OtherGateway, TlsError> {
        let of = metrics.of(name);
        Ok(OtherGateway {
            name: name.to_owned(),
            client: Arc::new(Client::new(endpoint, options)?),
            field,
            health: watch::Sender::default(),
            untold: Untold::default(),
            hops: of.hops.clone(),
            failed: of.failed.clone(),
            gauges: of,
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn client(&self) -> &Arc<Client> {
        &self.client
    }

    /// Returns the value of the hop's field in a ping.
    pub(super) fn ping_value(&self) -> &str {
        &self.field
    }

    /// Returns the value of the hop's field in a hop to this other gateway.
    pub(crate) fn hop_value(&self, back_after: Option<Duration>) -> String {
        hop::value_of(&self.field, Hop { back_after })
    }

    pub(super) fn health(&self) -> Health {
        self.health.borrow().clone()
    }

    /// Tells this gateway of a change. A gateway that is away hears of the change when it is back.
    pub(super) async fn tell(&self, change: Change) {
        let telling = self.untold.tell(change);
        match self.health().is_up() {
            true => telling.await,
            // It is noted by then.
            false => _ = telling.now_or_never(),
        }
    }

    /// Counts an insert that has been answered by this gateway.
    pub(crate) fn answered(&self) {
        self.hops.inc();
    }

    pub(super) fn gave_up(&self) {
        self.failed.inc();
    }

    /// Returns when this gateway has not answered pings for so long that its answers are not waited for any more.
    pub(crate) async fn gone(&self) {
        let mut health = self.health.subscribe();
        // The sender lives as long as this does.
        let _ = health.wait_for(Health::is_gone).await;
    }

    pub(super) fn shown(&self) -> Value {
        let health = self.health();
        json!({
            "address": self.name,
            "is_self": false,
            "up": health.is_up(),
            "reason": health.reason(),
            "version": health.version(),
            "same_list": health.has_same_list(),
            "hops": self.hops.get(),
        })
    }
}
