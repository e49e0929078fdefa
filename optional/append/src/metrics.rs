//! The metrics of appends.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::registry::Registry;

use crate::ended::End;
use crate::room::Room;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    outcome: &'static str,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Metrics {
    pub(crate) open: Gauge,
    pub(crate) batches: Counter,
    pub(crate) spooled: Counter,
    pub(crate) waits: Counter,
    pub(crate) rows: Counter,
    ended: Family<Outcome, Counter>,
}

impl Metrics {
    pub(crate) fn register(registry: &mut Registry) -> Metrics {
        let m = Metrics::default();
        registry.register("windrow_appends_open", "Ordered appends that are open", m.open.clone());
        registry.register("windrow_append_batches", "Batches of ordered appends that were taken", m.batches.clone());
        let help = "Of the batches taken, those that waited in a file";
        registry.register("windrow_append_batches_spooled", help, m.spooled.clone());
        let help = "Batches that had to wait before they were let in";
        registry.register("windrow_append_waits", help, m.waits.clone());
        registry.register("windrow_append_rows", "Rows that ordered appends have stored", m.rows.clone());
        registry.register("windrow_appends_ended", "Ordered appends that ended, by how", m.ended.clone());
        // From 0 on: what appears with its first count is no rise to whoever reads series.
        for outcome in ["committed", "aborted", "failed"] {
            drop(m.ended.get_or_create(&Outcome { outcome }));
        }
        m
    }

    pub(crate) fn ended(&self, end: &End) {
        let outcome = match end {
            End::Committed(committed) => {
                self.rows.inc_by(committed.rows);
                "committed"
            }
            End::Aborted => "aborted",
            End::Failed(_) => "failed",
        };
        self.ended.get_or_create(&Outcome { outcome }).inc();
    }
}

/// A collector that shows the bytes that are held at the moment somebody asks.
#[derive(Debug)]
struct RoomCollector(Arc<Room>);

impl Collector for RoomCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let mut show = |name: &str, help: &str, bytes: u64| {
            let gauge = ConstGauge::new(i64::try_from(bytes).unwrap_or(i64::MAX));
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)
        };
        show("windrow_append_memory_bytes", "What batches of ordered appends hold in memory", self.0.memory_bytes())?;
        show("windrow_append_spool_bytes", "What batches of ordered appends hold in files", self.0.spool_bytes())
    }
}

pub(crate) fn register_room(registry: &mut Registry, room: &Arc<Room>) {
    registry.register_collector(Box::new(RoomCollector(room.clone())));
}
