//! The source of a result's batches: the database, or a table that was made here.

use std::collections::VecDeque;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use windrow_clickhouse::Exception;
use windrow_duckdb::RecordStream;

pub(super) enum Source {
    Stream(RecordStream),
    Ready { schema: SchemaRef, batches: VecDeque<RecordBatch> },
}

impl Source {
    pub(super) fn ready(batch: RecordBatch) -> Source {
        Source::Ready { schema: batch.schema(), batches: VecDeque::from([batch]) }
    }

    pub(super) fn schema(&self) -> SchemaRef {
        match self {
            Source::Stream(stream) => stream.schema(),
            Source::Ready { schema, .. } => schema.clone(),
        }
    }

    pub(super) async fn next(&mut self) -> Option<Result<RecordBatch, Exception>> {
        match self {
            Source::Stream(stream) => stream.next().await,
            Source::Ready { batches, .. } => batches.pop_front().map(Ok),
        }
    }
}
