//! Pipelines: from topics of Kafka into a table, each message's rows once, as late as was allowed and no later.

mod accounts;
mod options;
mod record;
mod report;
mod status;
mod tables;

pub use options::{FormatOptions, OnError, Overrides, PipelineOptions, RegistryOptions, StartAt, Topics};
pub use record::{token, BatchRecord, Range, RecordError, TooLong};
pub use report::{CheckReport, CheckedColumn, CheckedPartition, CheckedTopic, RefusedMessage, Sample};
pub use status::{Guarantee, LastError, PartitionStatus, PipelineStatus, Quantiles, State};
pub use tables::{AskError, Asking, FormatQuestion, TableColumn, TableDescription, TableError, Tables};
