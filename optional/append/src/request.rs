//! The requests to an append.

use arrow_array::RecordBatch;
use bytes::Bytes;
use windrow_clickhouse::Credentials;

use crate::id::AppendId;

/// The number of batches that an append may have: numbers of batches end here.
pub const MAX_BATCHES: u64 = 1 << 32;

/// A request that opens an append. With a batch or a commit it opens the append as well, if that isn't known.
#[derive(Clone, Debug)]
pub struct OpenRequest {
    /// The id; `None` if one is to be made.
    pub id: Option<AppendId>,
    pub database: String,
    pub table: String,
    /// The columns that the batches have; the others of the table take their defaults. `None` stands for
    /// those of the first batch.
    pub columns: Option<Vec<String>>,
    /// True if rows become visible in the order of the numbers. Without, batches are stored as they come;
    /// still all or none.
    pub ordered: bool,
    /// The source that the client takes the batches from, and how it cuts them, in its own words. Another one
    /// is refused.
    pub source: Option<String>,
    /// The user whose append it is: known to be right. In ClickHouse the rows are also written under this account.
    pub credentials: Credentials,
}

/// The rows of one batch.
#[derive(Clone, Debug)]
pub enum Payload {
    /// One Arrow IPC stream.
    ArrowStream(Bytes),
    /// Blocks in ClickHouse's Native format.
    Native(Bytes),
    Batch(RecordBatch),
}

impl Payload {
    /// Returns about how many bytes the rows take in memory.
    pub fn size_bytes(&self) -> usize {
        match self {
            Payload::ArrowStream(bytes) | Payload::Native(bytes) => bytes.len(),
            Payload::Batch(batch) => usize::try_from(crate::size::batch_bytes(batch)).unwrap_or(usize::MAX),
        }
    }
}
