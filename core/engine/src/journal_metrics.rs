//! Metrics of the journal as a whole. The journal is only looked at when somebody asks.

use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use crate::journaling::Journaling;

#[derive(Clone, Default)]
pub(crate) struct JournalMetrics {
    segments: Gauge,
    file_bytes: Gauge,
    live_bytes: Gauge,
    inserts: Gauge,
    records: Counter,
    written_bytes: Counter,
    syncs: Counter,
    sync_seconds: Counter<f64, AtomicU64>,
    failed_groups: Counter,
    refused: Counter,
    damaged_inserts: Counter,
}

impl JournalMetrics {
    pub(crate) fn register(registry: &mut Registry) -> JournalMetrics {
        let metrics = JournalMetrics::default();
        let m = &metrics;
        registry.register("windrow_journal_segments", "Files of the journal", m.segments.clone());
        let help = "What the journal's files take on the disk";
        registry.register_with_unit("windrow_journal", help, Unit::Bytes, m.file_bytes.clone());
        let help = "What records that are still needed take of it";
        registry.register_with_unit("windrow_journal_live", help, Unit::Bytes, m.live_bytes.clone());
        let help = "Inserts in the journal that have not come to their end";
        registry.register("windrow_journal_inserts", help, m.inserts.clone());
        registry.register("windrow_journal_records", "Records appended to the journal", m.records.clone());
        let help = "Bytes written to the journal";
        registry.register_with_unit("windrow_journal_written", help, Unit::Bytes, m.written_bytes.clone());
        let help = "Times that the journal was synced: one serves all records that were waiting";
        registry.register("windrow_journal_syncs", help, m.syncs.clone());
        let help = "What writing and syncing the journal took, all together";
        registry.register_with_unit("windrow_journal_sync", help, Unit::Seconds, m.sync_seconds.clone());
        let help = "Groups of records that could not be written or synced";
        registry.register("windrow_journal_failed_groups", help, m.failed_groups.clone());
        let help = "Records that the journal had no room for";
        registry.register("windrow_journal_refused_records", help, m.refused.clone());
        let help = "Inserts that could not be read back from the journal, since it is damaged";
        registry.register("windrow_journal_damaged_inserts", help, m.damaged_inserts.clone());
        metrics
    }

    pub(crate) fn update(&self, journal: &Journaling) {
        let usage = journal.log.usage();
        self.segments.set(usage.segments as i64);
        self.file_bytes.set(usage.file_bytes as i64);
        self.live_bytes.set(usage.live_bytes as i64);
        self.inserts.set(journal.leftovers().inserts as i64);
        raise(&self.records, usage.appended);
        raise(&self.written_bytes, usage.written_bytes);
        raise(&self.syncs, usage.syncs);
        let more_seconds = usage.sync_micros as f64 / 1e6 - self.sync_seconds.get();
        self.sync_seconds.inc_by(more_seconds.max(0.0));
        raise(&self.failed_groups, usage.failed_groups);
        raise(&self.refused, usage.refused);
        raise(&self.damaged_inserts, journal.damaged.load(Ordering::Relaxed));
    }
}

/// Raises a counter to a value. Two who ask in the same moment may count a little twice; nobody else raises
/// it.
fn raise(counter: &Counter, to: u64) {
    counter.inc_by(to.saturating_sub(counter.get()));
}
