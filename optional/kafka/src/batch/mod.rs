//! Record batches: what a partition's log is made of, in magic 2, the only one that Kafka 4 still writes.
//!
//! A batch is a head of 61 bytes and the records, compressed as a whole. Its head alone says which offsets it covers and whose it is, so
//! what must not be seen ([`VisibleBatches`]) is never decompressed. A [`Decompressor`] is kept and reused by whoever decodes; of an
//! uncompressed batch the records are read where the answer of the broker lies. [`Records`] allocates nothing: a record borrows.

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
