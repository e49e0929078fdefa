//! The statements that make the tables, as the exporter makes them.

use crate::kind::Kind;

/// What the times of metrics are kept as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MetricTime {
    /// In seconds, as the exporter does it now.
    #[default]
    DateTime,
    /// In nanoseconds, as its earlier versions did.
    DateTime64,
}

#[derive(Clone, Debug)]
pub struct TableOptions {
    pub database: String,
    /// Of the kind that is asked for.
    pub table: String,
    /// As ClickHouse writes it: `MergeTree()`.
    pub engine: String,
    /// `ON CLUSTER` this one.
    pub cluster: Option<String>,
    /// Zero: rows stay for ever.
    pub ttl_seconds: u64,
    /// Attributes as JSON instead of Maps. The exporter has no such tables for metrics, and they stay as they are.
    pub json: bool,
    pub metric_time: MetricTime,
    /// Of traces: the table, and the view that fills it, by which a trace's time is found.
    pub trace_id_ts: bool,
    /// Year and month. From 26.2 on, logs get text indexes.
    pub server_version: (u32, u32),
}

impl TableOptions {
    pub fn new(kind: Kind, database: impl Into<String>) -> Self {
        TableOptions {
            database: database.into(),
            table: kind.default_table().to_owned(),
            engine: "MergeTree()".to_owned(),
            cluster: None,
            ttl_seconds: 0,
            json: false,
            metric_time: MetricTime::default(),
            trace_id_ts: true,
            server_version: (0, 0),
        }
    }
}

/// What makes the table of a kind, and what stands beside it; each statement does nothing where it is there already.
pub fn create_statements(_kind: Kind, _options: &TableOptions) -> Vec<String> {
    Vec::new()
}
