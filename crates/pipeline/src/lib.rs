//! Pipelines: from topics of Kafka into a table, each message's rows once, as late as was allowed and no later.

mod options;
mod report;
mod status;
mod tables;

pub use options::{FormatOptions, OnError, Overrides, PipelineOptions, RegistryOptions, StartAt, Topics};
pub use report::{CheckReport, CheckedColumn, CheckedPartition, CheckedTopic, RefusedMessage, Sample};
pub use status::{Guarantee, LastError, PartitionStatus, PipelineStatus, Quantiles, State};
pub use tables::{AskError, Asking, FormatQuestion, TableColumn, TableDescription, TableError, Tables};
