//! Rows that are in memory already, or that another library reads.

use std::collections::VecDeque;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::SchemaRef;

use super::{Source, SourceError};

/// Batches at hand, such as a table's.
pub struct BatchesSource {
    schema: SchemaRef,
    batches: VecDeque<RecordBatch>,
    whole_bytes: u64,
}

impl BatchesSource {
    /// Makes a source of batches.
    ///
    /// # Errors
    /// Fails where the batches differ in their columns.
    pub fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Result<BatchesSource, SourceError> {
        if batches.iter().any(|batch| batch.schema().fields() != schema.fields()) {
            return Err(SourceError::new("the batches differ in their columns"));
        }
        let whole_bytes = batches.iter().map(crate::cut::batch_bytes).sum();
        Ok(BatchesSource { schema, batches: batches.into(), whole_bytes })
    }
}

impl Source for BatchesSource {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>, SourceError> {
        Ok(self.batches.pop_front())
    }

    fn whole_bytes(&self) -> Option<u64> {
        Some(self.whole_bytes)
    }
}

/// Any reader of record batches, such as one from another language.
pub struct ReaderSource {
    reader: Box<dyn RecordBatchReader + Send>,
}

impl ReaderSource {
    pub fn new(reader: Box<dyn RecordBatchReader + Send>) -> ReaderSource {
        ReaderSource { reader }
    }
}

impl Source for ReaderSource {
    fn schema(&self) -> SchemaRef {
        self.reader.schema()
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>, SourceError> {
        self.reader.next().transpose().map_err(SourceError::new)
    }
}
