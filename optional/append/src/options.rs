//! The limits that appends are held to.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use windrow_adbc::SqlDatabase;
use windrow_clickhouse::{Client, Credentials};

#[derive(Clone, Debug)]
pub struct AppendOptions {
    /// Bodies that wait their turn, and what has to survive: `<data-dir>/appends`.
    pub directory: PathBuf,
    /// What one append may hold in memory; more goes to files.
    pub window_bytes: u64,
    /// What all appends may hold in memory.
    pub max_memory_bytes: u64,
    /// What all appends may hold in files.
    pub max_spool_bytes: u64,
    /// What one batch may have, unpacked.
    pub max_batch_bytes: u64,
    /// How long a batch waits for room before it is refused.
    pub room_wait: Duration,
    /// How long an append may be silent.
    pub idle_timeout: Duration,
    /// How many appends may be open.
    pub max_open: usize,
    pub max_open_per_user: usize,
}

/// Where the rows go.
#[derive(Clone)]
pub enum Store {
    Sql(SqlDatabase),
    ClickHouse {
        client: Arc<Client>,
        /// The gateway's own account.
        own: Credentials,
    },
}
