//! Pipelines, which bring topics of Kafka into a table. The rows of each message are stored once, and within
//! the allowed latency.

mod accounts;
mod check;
mod engine;
mod latency;
mod metrics;
mod options;
mod plan;
mod record;
mod registry;
mod run;
mod status;
mod tables;
mod view;

pub use check::{
    check, CheckReport, CheckedColumn, CheckedPartition, CheckedTopic, RefusedMessage, Sample, SampledRows,
    UnusedField, Verdict,
};
pub use metrics::PipelineMetrics;
pub use options::{FormatOptions, OnError, Overrides, PipelineOptions, RegistryOptions, StartAt, Topics};
pub use plan::{plan, PlanFault};
pub use record::{token, BatchRecord, Range, RecordError, TooLong};
pub use registry::{RegistryError, SchemaRegistry};
pub use run::{Pipeline, RunningPipeline};
pub use status::{Guarantee, LastError, PartitionStatus, PipelineStatus, Quantiles, State};
pub use tables::{AskError, Asking, FormatQuestion, TableColumn, TableDescription, TableError, Tables};
