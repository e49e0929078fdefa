//! What the gateway counts. Names, units and help texts of its metrics are here; the gatherer has its own.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Reason {
    reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Code {
    code: i32,
}

#[derive(Clone)]
pub(crate) struct Metrics {
    pub(crate) accepted: Counter,
    pub(crate) passthrough: Counter,
    pub(crate) backend_read: Counter,
    pub(crate) connections: Gauge,
    pub(crate) refused_connections: Counter,
    pub(crate) admissions: Counter,
    forwarded: Family<Reason, Counter>,
    errors: Family<Code, Counter>,
}

impl Metrics {
    pub(crate) fn register(registry: &mut Registry) -> Metrics {
        let m = Metrics {
            accepted: Counter::default(),
            passthrough: Counter::default(),
            backend_read: Counter::default(),
            connections: Gauge::default(),
            refused_connections: Counter::default(),
            admissions: Counter::default(),
            forwarded: Family::default(),
            errors: Family::default(),
        };
        registry.register("windrow_inserts_accepted", "Inserts taken to be gathered", m.accepted.clone());
        let help = "Of the inserts taken, those whose payload stays the text it is";
        registry.register("windrow_inserts_passthrough", help, m.passthrough.clone());
        registry.register(
            "windrow_inserts_opaque",
            "Former name of windrow_inserts_passthrough",
            m.passthrough.clone(),
        );
        let help = "Of the inserts taken, those whose payload ClickHouse has read";
        registry.register("windrow_inserts_backend_read", help, m.backend_read.clone());
        registry.register(
            "windrow_inserts_asked",
            "Former name of windrow_inserts_backend_read",
            m.backend_read.clone(),
        );
        registry.register("windrow_http_connections", "Open connections of the data port", m.connections.clone());
        let help = "Connections closed at once because there were too many";
        registry.register("windrow_http_connections_refused", help, m.refused_connections.clone());
        let help = "Times that the backend was asked what an insert may do";
        registry.register("windrow_admissions", help, m.admissions.clone());
        let help = "Requests passed on to the backend, by why they were not gathered";
        registry.register("windrow_forwarded_requests", help, m.forwarded.clone());
        let help = "Errors answered by the gateway itself, by ClickHouse's code";
        registry.register("windrow_errors", help, m.errors.clone());
        m
    }

    pub(crate) fn forwarded(&self, reason: &'static str) {
        self.forwarded.get_or_create(&Reason { reason }).inc();
    }

    pub(crate) fn error(&self, code: i32) {
        self.errors.get_or_create(&Code { code }).inc();
    }
}
