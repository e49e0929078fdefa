//! Messages of Kafka as rows of a table.
//!
//! These are pure functions on bytes: no I/O, no tasks, no clock. A [`MessagePlan`] is made once for a table.
//! With it a [`MessageReader`] takes the messages of a partition one by one and hands out [`Run`]s of rows.
//! The rows are the same as those of ClickHouse's own engine (docs/kafka-engine.md), except for messages with
//! a bad row, which are refused whole and leave nothing behind.

mod answer;
mod avro;
mod error;
mod fields;
mod format;
mod mapping;
mod message;
mod plan;
mod reader;
mod refusal;
mod run;
#[cfg(test)]
mod tests;
mod virtual_columns;

pub use error::{MessageError, PlanError, Unread};
pub use format::{MessageFormat, SchemaSource};
pub use mapping::{Mapping, Source, Virtual};
pub use message::{Headers, Message};
pub use plan::{ColumnMapping, MessagePlan, Question};
pub use reader::MessageReader;
pub use run::Run;
