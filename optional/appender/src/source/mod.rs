//! The sources of an append's rows. A source blocks and knows no network; its user gives it a thread.

mod arrow;
mod batches;
mod clickhouse_types;
mod columns;
mod csv;
mod error;
mod files;
mod fingerprint;
mod guarded;
mod parquet;

pub use batches::{BatchesSource, ReaderSource};
pub use error::SourceError;
pub use files::{needs_columns, open_files, FileFormat, FileOptions};
pub use fingerprint::fingerprint;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

/// Rows in order, a batch at a time. Opened again on the same input it yields the same batches, or an append
/// can't be resumed.
pub trait Source: Send {
    /// Returns the schema of every batch.
    fn schema(&self) -> SchemaRef;

    /// Returns the next rows; `None` at the end, and after it.
    ///
    /// # Errors
    /// Fails where the input can't be read, or holds no such rows.
    fn next_batch(&mut self) -> Result<Option<RecordBatch>, SourceError>;

    /// Returns about how many bytes all of it has, if that is known before it is read. Small wholes are cut
    /// finer by it.
    fn whole_bytes(&self) -> Option<u64> {
        None
    }
}

/// A column of the table that is appended to, as the gateway names it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
pub struct Column {
    pub name: String,
    /// ClickHouse's name of its type.
    #[serde(rename = "type")]
    pub data_type: String,
}
