use std::fmt;
use std::sync::Arc;

use windrow_block::{Block, DataType};
use windrow_client::Credentials;

/// Names a batch for ever: retries, also after a restart, carry the same one. A random UUID.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct BatchId(pub u128);

impl fmt::Display for BatchId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.0;
        write!(
            f,
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            (id >> 96) as u32,
            (id >> 80) as u16,
            (id >> 64) as u16,
            (id >> 48) as u16,
            id as u64 & 0xffff_ffff_ffff
        )
    }
}

impl fmt::Debug for BatchId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Where and as whom a batch is written: all that inserts must have in common to share one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Destination {
    pub database: String,
    pub table: String,
    /// Names of the columns that the rows carry, in their order.
    pub columns: Vec<String>,
    pub types: Vec<DataType>,
    /// Batches are written with their senders' own rights.
    pub credentials: Credentials,
    pub roles: Vec<String>,
    pub quota_key: String,
    /// Settings that change what is written, sorted by name.
    pub settings: Vec<(String, String)>,
    /// Whether the table keeps a window of the batches it has stored, so that a repeat under the same id is harmless.
    pub deduplicates: bool,
}

/// What a sink receives.
#[derive(Debug)]
pub struct Batch {
    pub id: BatchId,
    pub destination: Arc<Destination>,
    pub block: Block,
}
