//! Counters of the receivers of OTLP.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::{Registry, Unit};
use windrow_engine::LatencyHistogram;
use windrow_gateway::protocol::SignalCounts;
use windrow_otlp::Signal;

use crate::refused::RefusalReason;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfSignal {
    signal: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfRefused {
    signal: &'static str,
    status: &'static str,
    sender: &'static str,
}

impl OfRefused {
    fn new(signal: Signal, why: RefusalReason) -> OfRefused {
        OfRefused { signal: signal_name(signal), status: why.as_str(), sender: why.sender_does() }
    }
}

pub(crate) struct Metrics {
    requests: Family<OfSignal, Counter>,
    rows: Family<OfSignal, Counter>,
    bytes: Family<OfSignal, Counter>,
    rejected: Family<OfSignal, Counter>,
    refused: Family<OfRefused, Counter>,
    /// Refused requests of each signal, of all statuses together.
    refused_of: [AtomicU64; SIGNALS.len()],
    ages: Family<OfSignal, LatencyHistogram>,
}

pub(crate) const SIGNALS: [Signal; 3] = [Signal::Logs, Signal::Traces, Signal::Metrics];

/// Counts of the rows of a request that was taken.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct AcceptedRows {
    pub(crate) rows: u64,
    pub(crate) rejected: u64,
    pub(crate) bytes: u64,
    /// Age of the request's last record, if the record has a time.
    pub(crate) age: Option<Duration>,
}

impl Metrics {
    pub(crate) fn register(registry: &mut Registry) -> Metrics {
        let metrics = Metrics {
            requests: Family::default(),
            rows: Family::default(),
            bytes: Family::default(),
            rejected: Family::default(),
            refused: Family::default(),
            refused_of: Default::default(),
            ages: Family::default(),
        };
        registry.register("windrow_otlp_requests", "Requests of OTLP that were taken", metrics.requests.clone());
        let help = "Log records, spans and points of metrics that were taken by OTLP";
        registry.register("windrow_otlp_rows", help, metrics.rows.clone());
        let help = "Bytes of the requests of OTLP that were taken, unpacked";
        registry.register_with_unit("windrow_otlp_payload", help, Unit::Bytes, metrics.bytes.clone());
        let help = "Rows of requests of OTLP that can never be stored; their senders were told";
        registry.register("windrow_otlp_rejected_rows", help, metrics.rejected.clone());
        let help =
            "Requests of OTLP that were refused, by gRPC's name of the status and by whether their senders try again";
        registry.register("windrow_otlp_refused_requests", help, metrics.refused.clone());
        let help = "Age of a request's last record of OTLP when the request is acknowledged";
        registry.register_with_unit("windrow_otlp_record_age", help, Unit::Seconds, metrics.ages.clone());
        // What appears with its first count is no rise to whoever reads series.
        for signal in SIGNALS {
            let of = OfSignal { signal: signal_name(signal) };
            for family in [&metrics.requests, &metrics.rows, &metrics.bytes, &metrics.rejected] {
                drop(family.get_or_create(&of));
            }
            drop(metrics.ages.get_or_create(&of));
            drop(metrics.refused.get_or_create(&OfRefused::new(signal, RefusalReason::Unavailable)));
        }
        metrics
    }

    pub(crate) fn taken(&self, signal: Signal, taken: AcceptedRows) {
        let of = OfSignal { signal: signal_name(signal) };
        self.requests.get_or_create(&of).inc();
        self.rows.get_or_create(&of).inc_by(taken.rows);
        self.bytes.get_or_create(&of).inc_by(taken.bytes);
        if taken.rejected > 0 {
            self.rejected.get_or_create(&of).inc_by(taken.rejected);
        }
        if let Some(age) = taken.age {
            self.ages.get_or_create(&of).observe(age);
        }
    }

    pub(crate) fn counts(&self, signal: Signal) -> SignalCounts {
        let of = OfSignal { signal: signal_name(signal) };
        let count = |family: &Family<OfSignal, Counter>| family.get_or_create(&of).get();
        SignalCounts {
            signal: of.signal,
            requests: count(&self.requests),
            rows: count(&self.rows),
            bytes: count(&self.bytes),
            rejected_rows: count(&self.rejected),
            refused_requests: self.refused_of[signal as usize].load(Ordering::Relaxed),
            ages: self.ages.get_or_create(&of).counts(),
        }
    }

    pub(crate) fn refused(&self, signal: Signal, why: RefusalReason) {
        self.refused_of[signal as usize].fetch_add(1, Ordering::Relaxed);
        self.refused.get_or_create(&OfRefused::new(signal, why)).inc();
    }
}

pub(crate) fn signal_name(signal: Signal) -> &'static str {
    match signal {
        Signal::Logs => "logs",
        Signal::Traces => "traces",
        Signal::Metrics => "metrics",
    }
}
