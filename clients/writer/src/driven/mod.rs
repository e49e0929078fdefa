//! A writer for Rust programs: the core, driven by tokio over windrow-clickhouse.

mod driver;
mod error;
mod options;
mod row;
mod table;
mod value;
mod writer;

pub use error::WriterError;
pub use options::{OnError, WriterBuffer, WriterOptions};
pub use row::{Row, RowError};
pub use value::{Column, Date, DateTime, DateTime64, RawString, Uuid, Value, ValueError};
pub use writer::Writer;
