//! What is asked of an append.

use arrow_array::RecordBatch;
use bytes::Bytes;
use windrow_clickhouse::Credentials;

use crate::id::AppendId;

/// Numbers of batches end here.
pub const MAX_BATCHES: u64 = 1 << 32;

/// Opens an append. What comes with a batch or a commit opens it as well, if it isn't known.
#[derive(Clone, Debug)]
pub struct OpenRequest {
    /// `None`: one is made.
    pub id: Option<AppendId>,
    pub database: String,
    pub table: String,
    /// The columns that the batches have; the others of the table take their defaults. `None`: those of the first
    /// batch.
    pub columns: Option<Vec<String>>,
    /// Whether rows land in the order of the numbers. Without, batches are stored as they come; still all or none.
    pub ordered: bool,
    /// What the client takes the batches from, and how it cuts them, in its own words. Another one is refused.
    pub source: Option<String>,
    /// Whose append it is: known to be right. In ClickHouse it is also as who the rows are written.
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
    /// What it takes in memory, about.
    pub fn size_bytes(&self) -> usize {
        match self {
            Payload::ArrowStream(bytes) | Payload::Native(bytes) => bytes.len(),
            Payload::Batch(batch) => usize::try_from(crate::size::batch_bytes(batch)).unwrap_or(usize::MAX),
        }
    }
}
