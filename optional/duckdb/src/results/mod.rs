//! Results as ClickHouse writes them: Arrow record batches in, the bytes of one of ClickHouse's output formats out.
//!
//! These are pure functions on memory, one batch at a time. An [`Encoder`] is made for the result's schema
//! and its first batch, which has what only values can tell (the names of an ENUM). Each value is written
//! byte for byte like ClickHouse writes the same value of the type in [`Columns`]. A type that ClickHouse's
//! formats have nothing for is an error that names the column.

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
