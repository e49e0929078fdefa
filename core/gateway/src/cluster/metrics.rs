//! Metrics of hops and of the gateways' health.

use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Name {
    gateway: String,
}

pub(super) struct ClusterMetrics {
    pub(super) taken: Counter,
    pub(super) refused: Counter,
    pub(super) gateways_up: Gauge,
    pub(super) stretch: Gauge<f64, AtomicU64>,
    hops: Family<Name, Counter>,
    failed: Family<Name, Counter>,
    up: Family<Name, Gauge>,
    lists_differ: Family<Name, Gauge>,
}

/// Metrics of one other gateway.
pub(super) struct OfGateway {
    pub(super) hops: Counter,
    pub(super) failed: Counter,
    pub(super) up: Gauge,
    pub(super) lists_differ: Gauge,
}

impl ClusterMetrics {
    pub(super) fn register(registry: &mut Registry) -> ClusterMetrics {
        let m = ClusterMetrics {
            taken: Counter::default(),
            refused: Counter::default(),
            gateways_up: Gauge::default(),
            stretch: Gauge::default(),
            hops: Family::default(),
            failed: Family::default(),
            up: Family::default(),
            lists_differ: Family::default(),
        };
        let help = "Inserts that came from another gateway, because this one owns them";
        registry.register("windrow_cluster_hops_taken", help, m.taken.clone());
        let help =
            "Requests that were refused because they did not show the gateways' secret, or were meant for another";
        registry.register("windrow_cluster_hops_refused", help, m.refused.clone());
        let help = "Inserts that were answered by another gateway, which owns them";
        registry.register("windrow_cluster_hops", help, m.hops.clone());
        let help = "Inserts that were refused because the gateway that owns them was away";
        registry.register("windrow_cluster_hops_failed", help, m.failed.clone());
        let help = "Whether another gateway answers: 1 or 0";
        registry.register("windrow_cluster_gateway_up", help, m.up.clone());
        let help = "Whether another gateway has other cluster.gateways than this one: 1 or 0";
        registry.register("windrow_cluster_lists_differ", help, m.lists_differ.clone());
        let help = "Gateways that are up, this one included";
        registry.register("windrow_cluster_gateways_up", help, m.gateways_up.clone());
        let help = "How many times longer batches are held than by one gateway alone";
        registry.register("windrow_cluster_hold_factor", help, m.stretch.clone());
        m
    }

    pub(super) fn of(&self, gateway: &str) -> OfGateway {
        let name = Name { gateway: gateway.to_owned() };
        OfGateway {
            hops: self.hops.get_or_create(&name).clone(),
            failed: self.failed.get_or_create(&name).clone(),
            up: self.up.get_or_create(&name).clone(),
            lists_differ: self.lists_differ.get_or_create(&name).clone(),
        }
    }
}
