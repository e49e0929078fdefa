//! The replicas of the backend: their health, and which of them are drained.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::MetricType;
use serde::Deserialize;
use serde_json::{json, Value};
use windrow_clickhouse::{ReplicaHealth, Replicas};
use windrow_http::RequestHead;

use super::answer::Answer;
use crate::backend::Backend;
use crate::state::State;

/// Returns the replicas of a backend that has several.
pub(super) fn several(backend: &Backend) -> Option<&Arc<Replicas>> {
    let replicas = backend.clickhouse()?.client.replicas();
    replicas.are_several().then_some(replicas)
}

pub(super) fn shown(backend: &Backend) -> Value {
    let health = several(backend).map(|replicas| replicas.health()).unwrap_or_default();
    let shown = health.into_iter().map(|replica| {
        let ReplicaHealth { address, is_up, is_drained, read_only_tables, ping, requests, error } = replica;
        json!({
            "address": address,
            "up": is_up,
            "drained": is_drained,
            "read_only_tables": read_only_tables,
            "ping_seconds": ping.map(|ping| ping.as_secs_f64()),
            "requests": requests,
            "reason": error,
        })
    });
    shown.collect()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Order {
    address: String,
    drained: bool,
}

/// Drains a replica, which then gets no new work, or gives it work again.
pub(super) fn drain(state: &State, head: &RequestHead, body: &[u8]) -> Answer {
    const WANTED: &str = "send {\"address\": \"host:port\", \"drained\": true or false} as application/json";
    let kind = head.field_str("content-type").and_then(|kind| kind.split(';').next()).unwrap_or("");
    if !kind.trim().eq_ignore_ascii_case("application/json") {
        return Answer::error(415, WANTED);
    }
    let Ok(Order { address, drained }) = serde_json::from_slice(body) else { return Answer::error(400, WANTED) };
    let Some(replicas) = several(&state.backend) else {
        return Answer::error(409, "the backend has no replicas: the setting `backend` names one server");
    };
    let Some(id) = replicas.at(&address) else {
        return Answer::error(404, &format!("there is no replica {address:?}; there are {replicas}"));
    };
    if !replicas.drain(id, drained) {
        return Answer::error(409, &format!("{address} is the last replica that is not drained: nobody would be left"));
    }
    let replica = replicas.endpoint(id);
    match drained {
        true => tracing::info!(%replica, "the replica is drained: it gets nothing new"),
        false => tracing::info!(%replica, "the replica is not drained any more"),
    }
    Answer::json(200, &json!({ "replicas": shown(&state.backend) }))
}

/// Metrics of each replica, for `/metrics`.
pub(super) struct ReplicaMetrics(pub(super) Arc<Replicas>);

impl fmt::Debug for ReplicaMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReplicaMetrics")
    }
}

impl Collector for ReplicaMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let health = self.0.health();
        let mut write = |name, help, value: fn(&ReplicaHealth) -> i64| {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            health.iter().try_for_each(|replica| {
                let labels = [("replica", replica.address.as_str())];
                ConstGauge::new(value(replica)).encode(family.encode_family(&labels)?)
            })
        };
        let up = "Whether the replica answers: 1 or 0";
        write("windrow_replica_up", up, |replica| i64::from(replica.is_up))?;
        let drained = "Whether the replica is drained, and gets nothing new: 1 or 0";
        write("windrow_replica_drained", drained, |replica| i64::from(replica.is_drained))?;
        let read_only = "Tables that the replica has lately refused an insert into because they are read-only";
        write("windrow_replica_read_only_tables", read_only, |replica| replica.read_only_tables as i64)?;
        let requests = "Requests of Windrow's that are under way at the replica";
        write("windrow_replica_requests", requests, |replica| replica.requests as i64)
    }
}
