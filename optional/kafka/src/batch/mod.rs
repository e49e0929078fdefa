//! Record batches, which a partition's log is made of, in magic 2: the only version that Kafka 4 still writes.
//!
//! A batch is a head of 61 bytes and the records, compressed as a whole. The head alone says which offsets the batch
//! covers and which producer wrote it, so a batch that must not be seen ([`VisibleBatches`]) is never decompressed.
//! Each caller that decodes keeps and reuses a [`Decompressor`]; records of an uncompressed batch are read in the
//! memory of the broker's answer. [`Records`] allocates nothing: a record borrows.

mod compression;
mod decompressor;
mod error;
#[cfg(test)]
mod golden;
mod gzip;
mod head;
mod lz4;
mod output;
mod record_batch;
mod records;
mod snappy;
mod varint;
mod visible;

pub use compression::Compression;
pub use decompressor::Decompressor;
pub use error::BatchError;
pub(crate) use record_batch::{end_offset, Span};
pub use record_batch::{Batches, RecordBatch};
pub use records::{Header, Headers, Record, Records};
pub use visible::VisibleBatches;
