//! Metrics of pipelines. This file has the names, units and help texts of all of them.

use crate::TopicPartition;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{exponential_buckets, Histogram};
use prometheus_client::registry::{Registry, Unit};

use crate::pipeline::latency::{AgeGauge, LatencyHistogram, MissedReason};

type FloatGauge = Gauge<f64, std::sync::atomic::AtomicU64>;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PipelineLabels {
    pipeline: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PartitionLabels {
    pipeline: String,
    topic: String,
    partition: i32,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StageLabels {
    pipeline: String,
    topic: String,
    partition: i32,
    stage: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabels {
    pipeline: String,
    kind: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabels {
    pipeline: String,
    reason: &'static str,
}

/// The part of a pipeline's environment that has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ErrorKind {
    /// Brokers and the group.
    Kafka,
    /// The table, or the backend as a whole.
    Table,
    /// A message that can't be read, or that the table refuses.
    Message,
    /// The schema registry.
    Registry,
    /// Dead letters that can't be kept.
    DeadLetters,
}

impl ErrorKind {
    const ALL: [ErrorKind; 5] =
        [ErrorKind::Kafka, ErrorKind::Table, ErrorKind::Message, ErrorKind::Registry, ErrorKind::DeadLetters];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            ErrorKind::Kafka => "kafka",
            ErrorKind::Table => "table",
            ErrorKind::Message => "message",
            ErrorKind::Registry => "schema_registry",
            ErrorKind::DeadLetters => "dead_letters",
        }
    }
}

/// Metrics of all pipelines, registered once.
#[derive(Clone)]
pub struct PipelineMetrics {
    messages: Family<PartitionLabels, Counter>,
    rows: Family<PartitionLabels, Counter>,
    bytes: Family<PartitionLabels, Counter>,
    batches: Family<PartitionLabels, Counter>,
    dead_letters: Family<PartitionLabels, Counter>,
    skipped: Family<PartitionLabels, Counter>,
    tombstones: Family<PartitionLabels, Counter>,
    truncated: Family<PartitionLabels, Counter>,
    lag: Family<PartitionLabels, Gauge>,
    oldest: Family<PartitionLabels, AgeGauge>,
    paused: Family<PartitionLabels, Gauge>,
    latency: Family<StageLabels, LatencyHistogram>,
    replays: Family<PipelineLabels, Counter>,
    rebalances: Family<PipelineLabels, Counter>,
    errors: Family<KindLabels, Counter>,
    batch_rows: Family<PipelineLabels, Histogram, fn() -> Histogram>,
    max_latency: Family<PipelineLabels, FloatGauge>,
    missed: Family<ReasonLabels, Counter>,
    held: Family<PipelineLabels, Gauge>,
}

fn amounts() -> Histogram {
    Histogram::new(exponential_buckets(1.0, 4.0, 12))
}

impl PipelineMetrics {
    pub fn register(registry: &mut Registry) -> PipelineMetrics {
        let m = PipelineMetrics {
            messages: Family::default(),
            rows: Family::default(),
            bytes: Family::default(),
            batches: Family::default(),
            dead_letters: Family::default(),
            skipped: Family::default(),
            tombstones: Family::default(),
            truncated: Family::default(),
            lag: Family::default(),
            oldest: Family::default(),
            paused: Family::default(),
            latency: Family::default(),
            replays: Family::default(),
            rebalances: Family::default(),
            errors: Family::default(),
            batch_rows: Family::new_with_constructor(amounts),
            max_latency: Family::default(),
            missed: Family::default(),
            held: Family::default(),
        };
        let help = "Messages that came to their end: stored, without rows, dead letters, skipped";
        registry.register("windrow_kafka_messages", help, m.messages.clone());
        registry.register("windrow_kafka_rows", "Rows that were stored", m.rows.clone());
        // The name has no unit: it is that of the other counters of messages.
        registry.register("windrow_kafka_bytes", "Bytes of messages that came to their end", m.bytes.clone());
        registry.register("windrow_kafka_batches", "Batches that held messages of the partition", m.batches.clone());
        let help = "Messages that became dead letters";
        registry.register("windrow_kafka_dead_letters", help, m.dead_letters.clone());
        let help = "Messages that can't be stored and were left out, as on_error says";
        registry.register("windrow_kafka_skipped", help, m.skipped.clone());
        registry.register(
            "windrow_kafka_tombstones",
            "Messages without a value, which make no row",
            m.tombstones.clone(),
        );
        let help =
            "Offsets that were read and that a later leader of the partition lacks: their messages are lost in Kafka";
        registry.register("windrow_kafka_truncated_offsets", help, m.truncated.clone());
        let help = "Messages in the partition that are not stored yet";
        registry.register("windrow_kafka_lag_messages", help, m.lag.clone());
        let help = "Age of the oldest message that is not stored yet, by its own timestamp; 0 if all are";
        registry.register_with_unit("windrow_kafka_oldest_unstored", help, Unit::Seconds, m.oldest.clone());
        let help = "1 while nothing of the partition is fetched, until something of what is held is stored";
        registry.register("windrow_kafka_paused", help, m.paused.clone());
        let help = "From a message's timestamp until it was fetched (kafka), from there until its batch was sent (gathering), until \
                    that was stored (storing), and all of it (total)";
        registry.register_with_unit("windrow_kafka_latency", help, Unit::Seconds, m.latency.clone());
        let help =
            "Batches of an earlier life, or of another member of the group, that were stored again under their ids";
        registry.register("windrow_kafka_replays", help, m.replays.clone());
        let help = "How often partitions were given to the pipeline, or taken from it";
        registry.register("windrow_kafka_rebalances", help, m.rebalances.clone());
        registry.register("windrow_kafka_errors", "What went wrong, by what it concerns", m.errors.clone());
        registry.register("windrow_kafka_batch_rows", "Rows of stored batches", m.batch_rows.clone());
        let help = "How late messages may be: the setting max_latency";
        registry.register_with_unit("windrow_kafka_max_latency", help, Unit::Seconds, m.max_latency.clone());
        let help = "Messages that were stored later than max_latency allows, by where most of the time went";
        registry.register("windrow_kafka_latency_missed", help, m.missed.clone());
        let help = "Rows in memory that are not stored yet";
        registry.register_with_unit("windrow_kafka_held", help, Unit::Bytes, m.held.clone());
        m
    }

    pub(crate) fn for_pipeline(&self, pipeline: &str, max_latency_seconds: f64) -> OwnMetrics {
        let labels = PipelineLabels { pipeline: pipeline.to_owned() };
        self.max_latency.get_or_create(&labels).set(max_latency_seconds);
        let error = |kind: ErrorKind| KindLabels { pipeline: pipeline.to_owned(), kind: kind.as_str() };
        let missed = |reason: MissedReason| ReasonLabels { pipeline: pipeline.to_owned(), reason: reason.as_str() };
        OwnMetrics {
            pipeline: pipeline.to_owned(),
            replays: self.replays.get_or_create(&labels).clone(),
            rebalances: self.rebalances.get_or_create(&labels).clone(),
            errors: ErrorKind::ALL.map(|kind| (kind, self.errors.get_or_create(&error(kind)).clone())),
            missed: MissedReason::ALL.map(|reason| (reason, self.missed.get_or_create(&missed(reason)).clone())),
            batch_rows: self.batch_rows.get_or_create(&labels).clone(),
            held: self.held.get_or_create(&labels).clone(),
            all: self.clone(),
        }
    }
}

/// Metrics of one pipeline.
pub(crate) struct OwnMetrics {
    pipeline: String,
    pub(crate) replays: Counter,
    pub(crate) rebalances: Counter,
    pub(crate) batch_rows: Histogram,
    pub(crate) held: Gauge,
    errors: [(ErrorKind, Counter); 5],
    missed: [(MissedReason, Counter); 4],
    all: PipelineMetrics,
}

impl OwnMetrics {
    pub(crate) fn error(&self, kind: ErrorKind) {
        if let Some((_, counter)) = self.errors.iter().find(|(known, _)| *known == kind) {
            counter.inc();
        }
    }

    pub(crate) fn missed(&self, reason: MissedReason, messages: u64) {
        if let Some((_, counter)) = self.missed.iter().find(|(known, _)| *known == reason) {
            counter.inc_by(messages);
        }
    }

    /// Returns the metrics of a partition. All of them exist from now on, so that the first increase of each is seen.
    pub(crate) fn for_partition(&self, partition: &TopicPartition) -> PartitionMetrics {
        let (m, labels) = (&self.all, self.labels(partition));
        let stage = |stage| {
            let PartitionLabels { pipeline, topic, partition } = labels.clone();
            m.latency.get_or_create(&StageLabels { pipeline, topic, partition, stage }).clone()
        };
        PartitionMetrics {
            messages: m.messages.get_or_create(&labels).clone(),
            rows: m.rows.get_or_create(&labels).clone(),
            bytes: m.bytes.get_or_create(&labels).clone(),
            batches: m.batches.get_or_create(&labels).clone(),
            dead_letters: m.dead_letters.get_or_create(&labels).clone(),
            skipped: m.skipped.get_or_create(&labels).clone(),
            tombstones: m.tombstones.get_or_create(&labels).clone(),
            truncated: m.truncated.get_or_create(&labels).clone(),
            lag: m.lag.get_or_create(&labels).clone(),
            oldest: m.oldest.get_or_create(&labels).clone(),
            paused: m.paused.get_or_create(&labels).clone(),
            kafka: stage("kafka"),
            gathering: stage("gathering"),
            storing: stage("storing"),
            total: stage("total"),
        }
    }

    /// Removes the gauges of a partition, since another member reports them from now on.
    pub(crate) fn forget_partition(&self, partition: &TopicPartition) {
        let labels = self.labels(partition);
        self.all.lag.remove(&labels);
        self.all.oldest.remove(&labels);
        self.all.paused.remove(&labels);
    }

    fn labels(&self, partition: &TopicPartition) -> PartitionLabels {
        let TopicPartition { topic, partition } = partition;
        PartitionLabels { pipeline: self.pipeline.clone(), topic: topic.to_string(), partition: *partition }
    }
}

/// Metrics of one partition, looked up once.
#[derive(Clone)]
pub(crate) struct PartitionMetrics {
    pub(crate) messages: Counter,
    pub(crate) rows: Counter,
    pub(crate) bytes: Counter,
    pub(crate) batches: Counter,
    pub(crate) dead_letters: Counter,
    pub(crate) skipped: Counter,
    pub(crate) tombstones: Counter,
    pub(crate) truncated: Counter,
    pub(crate) lag: Gauge,
    pub(crate) oldest: AgeGauge,
    pub(crate) paused: Gauge,
    pub(crate) kafka: LatencyHistogram,
    pub(crate) gathering: LatencyHistogram,
    pub(crate) storing: LatencyHistogram,
    pub(crate) total: LatencyHistogram,
}
