//! Results as ClickHouse writes them: Arrow record batches in, the bytes of one of ClickHouse's output formats out.
//!
//! Pure functions on memory, one batch at a time. An [`Encoder`] is made for the result's schema and its first batch,
//! which says what only values can say (the names of an ENUM). What is written for a value is byte for byte what
//! ClickHouse writes for the same value of the type in [`Columns`]; a type that ClickHouse's formats have nothing for
//! is an error that names the column.

mod arrow;
mod binary;
mod columns;
mod encoder;
mod error;
mod format;
mod json;
mod native;
mod parquet;
mod row_binary;
mod separated;
mod settings;
mod shape;
mod text;
mod values;

pub use columns::Columns;
pub use encoder::{Encoder, Statistics};
pub use error::ResultError;
pub use format::Format;
pub use settings::OutputSettings;
