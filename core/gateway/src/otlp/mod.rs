//! OpenTelemetry's protocol, OTLP: logs, traces and metrics go into the tables of the collector's ClickHouse exporter, each
//! request as one insert for each of its tables, through the stages of [`crate::insert`].
//!
//! - `http.rs` and `grpc.rs`: a request is read from a connection (`payload.rs`), and answered.
//! - `sender.rs`: on whose behalf it comes, before anything of its body is read.
//! - `export.rs`: what is in it is cut by tenants (`tenants.rs`) and tables, and handed over.
//! - `tables.rs`: what is known of a table that rows go into; `create.rs` makes one that is missing.
//! - `refused.rs`: what a sender is told that has to send again, or not; `dead_letters.rs` keeps rows that it drops, though
//!   others of its request were taken.
//!
//! Senders repeat what was not answered, and drop what was refused for good. So nothing is answered as taken before it has
//! its ack level, and an error that may pass is never one that makes a sender drop its rows.

mod create;
mod dead_letters;
mod export;
mod grpc;
mod http;
mod metrics;
mod payload;
mod refused;
mod sender;
mod tables;
mod tenants;

use prometheus_client::registry::Registry;

use self::metrics::Metrics;
use self::tables::Tables;
use crate::metrics::SignalCounts;

pub(crate) use self::metrics::{signal_name, SIGNALS};
pub(crate) use self::{grpc::serve as serve_grpc, http::serve as serve_http};

/// State that all connections share.
pub(crate) struct Otlp {
    tables: Tables,
    metrics: Metrics,
}

impl Otlp {
    pub(crate) fn register(registry: &mut Registry) -> Otlp {
        Otlp { tables: Tables::new(), metrics: Metrics::register(registry) }
    }

    /// Returns the counts of each of [`SIGNALS`].
    pub(crate) fn counts(&self) -> [SignalCounts; SIGNALS.len()] {
        SIGNALS.map(|signal| self.metrics.counts(signal))
    }

    /// Forgets tables that have not been used since the last call but one of this function.
    pub(crate) fn forget_unused(&self) {
        self.tables.age();
    }
}
