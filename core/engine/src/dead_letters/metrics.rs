//! The metrics of the store of dead letters.

use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use windrow_clickhouse::ErrorCode;

use super::index::Amount;
use super::record::Gone;
use crate::metrics::label;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TableLabels {
    database: String,
    table: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ErrorLabels {
    database: String,
    table: String,
    code: i32,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct GoneLabels {
    how: &'static str,
}

pub(super) struct Metrics {
    new: Family<ErrorLabels, Counter>,
    gone: Family<GoneLabels, Counter>,
    kept: Family<TableLabels, Gauge>,
    kept_bytes: Family<TableLabels, Gauge>,
    max_bytes: Gauge<u64, AtomicU64>,
    not_kept: Counter,
}

impl Metrics {
    pub(super) fn register(registry: &mut Registry, max_bytes: u64) -> Metrics {
        let metrics = Metrics {
            new: Family::default(),
            gone: Family::default(),
            kept: Family::default(),
            kept_bytes: Family::default(),
            max_bytes: Gauge::default(),
            not_kept: Counter::default(),
        };
        metrics.max_bytes.set(max_bytes);
        let help = "Acknowledged inserts, and messages of pipelines, that could not be stored and became dead letters, by ClickHouse's error code";
        registry.register("windrow_dead_letters", help, metrics.new.clone());
        let help = "Dead letters that are no more, by how they went";
        registry.register("windrow_dead_letters_gone", help, metrics.gone.clone());
        registry.register("windrow_dead_letters_kept", "Dead letters there are", metrics.kept.clone());
        let help = "What the dead letters count against dead_letters.max_bytes";
        registry.register("windrow_dead_letters_kept_bytes", help, metrics.kept_bytes.clone());
        let help = "The setting dead_letters.max_bytes";
        registry.register("windrow_dead_letters_max_bytes", help, metrics.max_bytes.clone());
        let help = "Attempts to keep a dead letter that failed, for lack of room or because of the disk";
        registry.register("windrow_dead_letters_not_kept", help, metrics.not_kept.clone());
        metrics
    }

    pub(super) fn added(&self, database: &str, table: &str, code: ErrorCode) {
        let labels = ErrorLabels { database: label(database), table: label(table), code: code.number() };
        self.new.get_or_create(&labels).inc();
    }

    pub(super) fn gone(&self, how: Gone, dead_letters: u64) {
        self.gone.get_or_create(&GoneLabels { how: how.as_str() }).inc_by(dead_letters);
    }

    pub(super) fn not_kept(&self) {
        self.not_kept.inc();
    }

    pub(super) fn kept(&self, database: &str, table: &str, amount: Amount) {
        let labels = TableLabels { database: label(database), table: label(table) };
        self.kept.get_or_create(&labels).set(amount.dead_letters as i64);
        self.kept_bytes.get_or_create(&labels).set(amount.bytes as i64);
    }
}
