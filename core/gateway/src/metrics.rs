//! The counters of the gateway, with the names, units and help texts of its metrics. The gatherer has its own.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use windrow_clickhouse::ErrorCode;
use windrow_engine::LatencyHistogram;

use crate::error::Refusal;
use crate::forward_reason::ForwardReason;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Reason {
    reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Code {
    code: i32,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Route {
    route: &'static str,
}

/// Codes that are counted from the start: a series that appears with its first count shows no rise to Prometheus.
const KNOWN_CODES: [ErrorCode; 6] = [
    ErrorCode::TIMEOUT_EXCEEDED,
    ErrorCode::NETWORK_ERROR,
    ErrorCode::MEMORY_LIMIT_EXCEEDED,
    ErrorCode::NOT_ENOUGH_SPACE,
    ErrorCode::TOO_MANY_PARTS,
    ErrorCode::AUTHENTICATION_FAILED,
];

/// The route of inserts that are gathered.
pub(crate) const GATHERED: &str = "insert";

pub(crate) struct Metrics {
    pub(crate) accepted: Counter,
    pub(crate) passthrough: Counter,
    pub(crate) backend_read: Counter,
    pub(crate) connections: Gauge,
    pub(crate) refused_connections: Counter,
    pub(crate) admissions: Counter,
    /// Reads that a second replica was sent as well, and those of them that it answered.
    pub(crate) hedged_reads: Counter,
    pub(crate) hedged_reads_won: Counter,
    /// Time from reading the head of an insert that is gathered, to its acknowledgement.
    pub(crate) insert_latency: LatencyHistogram,
    requests: Family<Route, LatencyHistogram>,
    forwarded: Family<Reason, Counter>,
    errors: Family<Code, Counter>,
    /// The same counts as in `forwarded` and `errors`, to be read all at once.
    tallies: Mutex<Tallies>,
}

/// Numbers of forwarded requests by reason, and of errors by code.
#[derive(Debug, Default, Clone)]
pub(crate) struct Tallies {
    pub(crate) forwarded: BTreeMap<&'static str, u64>,
    pub(crate) errors: BTreeMap<ErrorCode, ErrorTally>,
}

#[derive(Debug, Default, Clone)]
pub(crate) struct ErrorTally {
    pub(crate) count: u64,
    /// The start of the latest error's text.
    pub(crate) latest: String,
}

/// Numbers of forwarded requests and of errors, without the texts of errors.
#[derive(Debug, Default, Clone)]
pub(crate) struct TallyCounts {
    pub(crate) forwarded: BTreeMap<&'static str, u64>,
    pub(crate) errors: BTreeMap<ErrorCode, u64>,
}

const MAX_TEXT_CHARS: usize = 500;

impl Metrics {
    pub(crate) fn register(registry: &mut Registry) -> Metrics {
        let m = Metrics {
            accepted: Counter::default(),
            passthrough: Counter::default(),
            backend_read: Counter::default(),
            connections: Gauge::default(),
            refused_connections: Counter::default(),
            admissions: Counter::default(),
            hedged_reads: Counter::default(),
            hedged_reads_won: Counter::default(),
            insert_latency: LatencyHistogram::default(),
            requests: Family::default(),
            forwarded: Family::default(),
            errors: Family::default(),
            tallies: Mutex::default(),
        };
        registry.register("windrow_inserts_accepted", "Inserts taken to be gathered", m.accepted.clone());
        let help = "Of the inserts taken, those whose payload stays the text, or the blocks, that it is";
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
        let help = "Times that it was worked out anew what an insert of a kind may do";
        registry.register("windrow_admissions", help, m.admissions.clone());
        let help = "Reads that a second replica was sent as well, since the first did not begin to answer in time";
        registry.register("windrow_hedged_reads", help, m.hedged_reads.clone());
        let help = "Of these, those that the second replica answered";
        registry.register("windrow_hedged_reads_won", help, m.hedged_reads_won.clone());
        let help = "Time from an insert's head to its acknowledgement, of those that are gathered";
        registry.register_with_unit("windrow_insert_duration", help, Unit::Seconds, m.insert_latency.clone());
        let help = "Time from the head of a request over HTTP to the end of its answer, of those that are not gathered";
        registry.register_with_unit("windrow_request_duration", help, Unit::Seconds, m.requests.clone());
        let help = "Requests passed on to the backend, by why they were not gathered";
        registry.register("windrow_forwarded_requests", help, m.forwarded.clone());
        let help = "Errors answered by the gateway itself, by ClickHouse's code";
        registry.register("windrow_errors", help, m.errors.clone());
        KNOWN_CODES.into_iter().for_each(|code| drop(m.errors.get_or_create(&Code { code: code.number() })));
        m
    }

    /// Counts a request over HTTP that has been answered. Inserts that are gathered have a histogram of their own.
    pub(crate) fn answered(&self, route: &'static str, took: Duration) {
        if route == GATHERED {
            return;
        }
        self.requests.get_or_create(&Route { route }).observe(took);
    }

    pub(crate) fn forwarded(&self, reason: ForwardReason) {
        let reason = reason.as_str();
        self.forwarded.get_or_create(&Reason { reason }).inc();
        *self.lock().forwarded.entry(reason).or_default() += 1;
    }

    pub(crate) fn refused(&self, refusal: &Refusal) {
        self.error(refusal.code, &refusal.line(""));
    }

    pub(crate) fn error(&self, code: ErrorCode, text: &str) {
        self.errors.get_or_create(&Code { code: code.number() }).inc();
        let latest = text.chars().take(MAX_TEXT_CHARS).collect();
        let mut tallies = self.lock();
        let tally = tallies.errors.entry(code).or_default();
        (tally.count, tally.latest) = (tally.count + 1, latest);
    }

    pub(crate) fn tallies(&self) -> Tallies {
        self.lock().clone()
    }

    /// Returns the numbers without the texts, for a caller that asks each second.
    pub(crate) fn tally_counts(&self) -> TallyCounts {
        let tallies = self.lock();
        let errors = tallies.errors.iter().map(|(code, tally)| (*code, tally.count)).collect();
        TallyCounts { forwarded: tallies.forwarded.clone(), errors }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Tallies> {
        self.tallies.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
