//! Metrics of the gatherer, with their names, units and help texts. (Those of the journal are in
//! `journal_metrics.rs`.)

use std::collections::HashSet;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::policy::SealReason;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{exponential_buckets, Histogram};
use prometheus_client::registry::{Registry, Unit};

use crate::activity::{Activities, TableActivity};
use crate::journal_metrics::JournalMetrics;
use crate::latency::LatencyHistogram;
use crate::sink::TableKey;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TableLabels {
    database: String,
    table: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabels {
    database: String,
    table: String,
    result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabels {
    database: String,
    table: String,
    reason: &'static str,
}

/// The label that all tables share that have no series of their own.
pub const OTHER_TABLES: &str = "(others)";

/// Escapes a label as Prometheus' text format has it between quotes; the library writes labels as they are.
pub(crate) fn label(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// The tables that have series of their own: the first ones, up to a number. A series takes memory for ever,
/// here and in Prometheus.
struct Named {
    max_tables: usize,
    tables: Mutex<HashSet<TableLabels>>,
}

impl Named {
    /// Returns the table's labels and true, or the labels that it shares with others and false.
    fn labels(&self, database: &str, table: &str) -> (TableLabels, bool) {
        let own = TableLabels { database: label(database), table: label(table) };
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        if tables.contains(&own) || tables.len() < self.max_tables {
            tables.insert(own.clone());
            return (own, true);
        }
        (TableLabels { database: OTHER_TABLES.to_owned(), table: OTHER_TABLES.to_owned() }, false)
    }
}

type Histograms = Family<TableLabels, Histogram, fn() -> Histogram>;

/// Metrics of all tables.
#[derive(Clone)]
pub(crate) struct Metrics {
    named: Arc<Named>,
    inserts: Family<ResultLabels, Counter>,
    rows: Family<ResultLabels, Counter>,
    bytes: Family<ResultLabels, Counter>,
    waiting: Histograms,
    flush: Histograms,
    batch_rows: Histograms,
    batch_inserts: Histograms,
    flushes: Family<ReasonLabels, Counter>,
    retries: Family<TableLabels, Counter>,
    narrowings: Family<TableLabels, Counter>,
    culprits: Family<TableLabels, Counter>,
    given_up: Family<TableLabels, Counter>,
    buffer_bytes: Family<TableLabels, Gauge>,
    oldest: Family<TableLabels, Gauge<f64, AtomicU64>>,
    parts_active: Family<TableLabels, Gauge>,
    parts_created: Family<TableLabels, Counter>,
    parked: Family<TableLabels, Counter>,
    recovered: Family<TableLabels, Counter>,
    backlog_inserts: Family<TableLabels, Gauge>,
    backlog_bytes: Family<TableLabels, Gauge>,
    journal_bytes: Family<TableLabels, Gauge>,
    pub(crate) journal: JournalMetrics,
    pub(crate) activities: Arc<Activities>,
    /// Time from a batch's sealing to its end, for all tables together.
    pub(crate) flush_latency: LatencyHistogram,
}

fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 18))
}

fn amounts() -> Histogram {
    Histogram::new(exponential_buckets(1.0, 4.0, 12))
}

impl Metrics {
    /// Registers the metrics. At most `max_tables` tables have series of their own.
    pub(crate) fn register(registry: &mut Registry, max_tables: usize) -> Metrics {
        let metrics = Metrics {
            named: Arc::new(Named { max_tables, tables: Mutex::default() }),
            inserts: Family::default(),
            rows: Family::default(),
            bytes: Family::default(),
            waiting: Family::new_with_constructor(seconds),
            flush: Family::new_with_constructor(seconds),
            batch_rows: Family::new_with_constructor(amounts),
            batch_inserts: Family::new_with_constructor(amounts),
            flushes: Family::default(),
            retries: Family::default(),
            narrowings: Family::default(),
            culprits: Family::default(),
            given_up: Family::default(),
            buffer_bytes: Family::default(),
            oldest: Family::default(),
            parts_active: Family::default(),
            parts_created: Family::default(),
            parked: Family::default(),
            recovered: Family::default(),
            backlog_inserts: Family::default(),
            backlog_bytes: Family::default(),
            journal_bytes: Family::default(),
            journal: JournalMetrics::register(registry),
            activities: Arc::default(),
            flush_latency: LatencyHistogram::default(),
        };
        let m = &metrics;
        registry.register("windrow_inserts", "Gathered inserts by how they ended", m.inserts.clone());
        registry.register("windrow_rows", "Rows of gathered inserts by how they ended", m.rows.clone());
        let help = "Payload bytes of gathered inserts by how they ended";
        registry.register_with_unit("windrow_payload", help, Unit::Bytes, m.bytes.clone());
        let help = "Time from an insert's arrival to the sealing of its batch";
        registry.register_with_unit("windrow_insert_wait", help, Unit::Seconds, m.waiting.clone());
        let help = "Time from a batch's sealing to its end, retries included";
        registry.register_with_unit("windrow_flush_duration", help, Unit::Seconds, m.flush.clone());
        registry.register("windrow_batch_rows", "Rows of flushed batches", m.batch_rows.clone());
        registry.register("windrow_batch_inserts", "Inserts of flushed batches", m.batch_inserts.clone());
        registry.register("windrow_flushes", "Sealed batches by the reason for sealing", m.flushes.clone());
        registry.register("windrow_flush_retries", "Attempts to store a batch after its first", m.retries.clone());
        let help = "Refused batches, and parts of them, that were taken apart to find who caused it";
        registry.register("windrow_flush_narrowings", help, m.narrowings.clone());
        let help = "Inserts that were refused on their own account, not with the rest of their batch";
        registry.register("windrow_culprits", help, m.culprits.clone());
        let help =
            "Batches, and parts of them, that were given up: their error mostly passes, and came again and again";
        registry.register("windrow_flush_narrowings_given_up", help, m.given_up.clone());
        let help = "Bytes in buffers and in batches on their way";
        registry.register_with_unit("windrow_buffers", help, Unit::Bytes, m.buffer_bytes.clone());
        let help = "Age of the oldest insert that is not stored yet";
        registry.register_with_unit("windrow_oldest_insert_age", help, Unit::Seconds, m.oldest.clone());
        registry.register("windrow_parts_active", "Active parts of the table, as last seen", m.parts_active.clone());
        let help = "Parts that inserts by anyone created in the table since the gateway first looked";
        registry.register("windrow_parts_created", help, m.parts_created.clone());
        let help = "Inserts that were written to the journal only, since memory was full or others waited before them";
        registry.register("windrow_parked_inserts", help, m.parked.clone());
        let help = "Inserts that an earlier life of the gateway left in the journal";
        registry.register("windrow_recovered_inserts", help, m.recovered.clone());
        let help = "Inserts in the journal that are not in memory yet";
        registry.register("windrow_backlog_inserts", help, m.backlog_inserts.clone());
        let help = "What these inserts take in the journal";
        registry.register_with_unit("windrow_backlog", help, Unit::Bytes, m.backlog_bytes.clone());
        let help = "What inserts that have not come to their end take in the journal";
        registry.register_with_unit("windrow_table_journal", help, Unit::Bytes, m.journal_bytes.clone());
        metrics
    }

    pub(crate) fn for_table(&self, name: &TableKey) -> TableMetrics {
        let (labels, is_named) = self.named.labels(&name.database, &name.table);
        let result = |result| ResultLabels { database: labels.database.clone(), table: labels.table.clone(), result };
        let by_result = |name| ResultCounters {
            inserts: self.inserts.get_or_create(&result(name)).clone(),
            rows: self.rows.get_or_create(&result(name)).clone(),
            bytes: self.bytes.get_or_create(&result(name)).clone(),
        };
        TableMetrics {
            stored: by_result("stored"),
            failed: by_result("failed"),
            withdrawn: by_result("withdrawn"),
            repeats: by_result("repeated"),
            waiting: self.waiting.get_or_create(&labels).clone(),
            flush: self.flush.get_or_create(&labels).clone(),
            batch_rows: self.batch_rows.get_or_create(&labels).clone(),
            batch_inserts: self.batch_inserts.get_or_create(&labels).clone(),
            retries: self.retries.get_or_create(&labels).clone(),
            narrowings: self.narrowings.get_or_create(&labels).clone(),
            culprits: self.culprits.get_or_create(&labels).clone(),
            given_up: self.given_up.get_or_create(&labels).clone(),
            buffer_bytes: self.buffer_bytes.get_or_create(&labels).clone(),
            oldest: self.oldest.get_or_create(&labels).clone(),
            parts_active: self.parts_active.get_or_create(&labels).clone(),
            parts_created: self.parts_created.get_or_create(&labels).clone(),
            parked: self.parked.get_or_create(&labels).clone(),
            recovered: self.recovered.get_or_create(&labels).clone(),
            backlog_inserts: self.backlog_inserts.get_or_create(&labels).clone(),
            backlog_bytes: self.backlog_bytes.get_or_create(&labels).clone(),
            journal_bytes: self.journal_bytes.get_or_create(&labels).clone(),
            flushes: self.flushes.clone(),
            activity: self.activities.of(name),
            flush_latency: self.flush_latency.clone(),
            labels: Arc::new(labels),
            is_named,
        }
    }

    /// Sets the gauges that tables share to zero: they are added up anew each time that somebody asks.
    pub(crate) fn reset_shared(&self) {
        let shared = TableLabels { database: OTHER_TABLES.to_owned(), table: OTHER_TABLES.to_owned() };
        for family in [&self.buffer_bytes, &self.backlog_inserts, &self.backlog_bytes, &self.journal_bytes] {
            if let Some(gauge) = family.get(&shared) {
                gauge.set(0);
            }
        }
        if let Some(oldest) = self.oldest.get(&shared) {
            oldest.set(0.0);
        }
    }
}

/// Counters of inserts that ended in one way.
pub(crate) struct ResultCounters {
    inserts: Counter,
    rows: Counter,
    bytes: Counter,
}

impl ResultCounters {
    pub(crate) fn add(&self, inserts: u64, rows: u64, bytes: u64) {
        self.inserts.inc_by(inserts);
        self.rows.inc_by(rows);
        self.bytes.inc_by(bytes);
    }
}

/// One table's metrics, looked up once.
pub(crate) struct TableMetrics {
    stored: ResultCounters,
    failed: ResultCounters,
    pub(crate) withdrawn: ResultCounters,
    pub(crate) repeats: ResultCounters,
    pub(crate) waiting: Histogram,
    flush: Histogram,
    batch_rows: Histogram,
    batch_inserts: Histogram,
    pub(crate) retries: Counter,
    pub(crate) narrowings: Counter,
    pub(crate) culprits: Counter,
    pub(crate) given_up: Counter,
    buffer_bytes: Gauge,
    oldest: Gauge<f64, AtomicU64>,
    parts_active: Gauge,
    parts_created: Counter,
    pub(crate) parked: Counter,
    pub(crate) recovered: Counter,
    backlog_inserts: Gauge,
    backlog_bytes: Gauge,
    journal_bytes: Gauge,
    flushes: Family<ReasonLabels, Counter>,
    pub(crate) activity: Arc<TableActivity>,
    flush_latency: LatencyHistogram,
    labels: Arc<TableLabels>,
    is_named: bool,
}

/// Amounts that a table holds at this moment.
#[derive(Debug, Default, Clone, Copy)]
pub struct Held {
    pub oldest_seconds: f64,
    pub buffer_bytes: u64,
    pub backlog_inserts: u64,
    pub backlog_bytes: u64,
    pub journal_bytes: u64,
    /// Active parts as they were last counted; 0 where nobody counted them.
    pub parts_active: u64,
}

impl Held {
    /// Returns what two tables hold together.
    pub fn and(self, other: Held) -> Held {
        Held {
            oldest_seconds: self.oldest_seconds.max(other.oldest_seconds),
            buffer_bytes: self.buffer_bytes + other.buffer_bytes,
            backlog_inserts: self.backlog_inserts + other.backlog_inserts,
            backlog_bytes: self.backlog_bytes + other.backlog_bytes,
            journal_bytes: self.journal_bytes + other.journal_bytes,
            parts_active: self.parts_active + other.parts_active,
        }
    }
}

impl TableMetrics {
    pub(crate) fn holds(&self, held: &Held) {
        let gauges = [
            (&self.buffer_bytes, held.buffer_bytes),
            (&self.backlog_inserts, held.backlog_inserts),
            (&self.backlog_bytes, held.backlog_bytes),
            (&self.journal_bytes, held.journal_bytes),
        ];
        for (gauge, value) in gauges {
            match self.is_named {
                true => gauge.set(value as i64),
                false => gauge.inc_by(value as i64),
            };
        }
        let oldest = if self.is_named { held.oldest_seconds } else { self.oldest.get().max(held.oldest_seconds) };
        self.oldest.set(oldest);
    }

    /// Counts an insert that has come to its end.
    pub(crate) fn ended(&self, is_stored: bool, rows: u64, bytes: u64) {
        match is_stored {
            true => self.stored.add(1, rows, bytes),
            false => {
                self.failed.add(1, rows, bytes);
                self.activity.failed(1);
            }
        }
    }

    /// Counts a batch that is on its way.
    pub(crate) fn flushes(&self, inserts: usize, rows: usize) {
        self.batch_inserts.observe(inserts as f64);
        self.batch_rows.observe(rows as f64);
        self.activity.flushed(inserts as u64, rows as u64);
    }

    /// Counts a batch that has come to its end.
    pub(crate) fn flushed(&self, took: Duration) {
        self.flush.observe(took.as_secs_f64());
        self.flush_latency.observe(took);
    }

    /// Sets the number of active parts, and counts the parts that were created since the last count.
    pub(crate) fn parts(&self, created: u64, active: u64) {
        self.parts_created.inc_by(created);
        self.activity.parts(created, active);
        // Those of tables that share a series can't be told from one table's.
        if self.is_named {
            self.parts_active.set(active as i64);
        }
    }

    pub(crate) fn sealed(&self, reason: SealReason) {
        let labels = ReasonLabels {
            database: self.labels.database.clone(),
            table: self.labels.table.clone(),
            reason: reason.as_str(),
        };
        self.flushes.get_or_create(&labels).inc();
    }
}
