//! The limits that appends are held to.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use windrow_adbc::SqlDatabase;
use windrow_clickhouse::{Client, Credentials};

#[derive(Clone, Debug)]
pub struct AppendOptions {
    /// The folder for bodies that wait their turn, and for all that has to survive: `<data-dir>/appends`.
    pub directory: PathBuf,
    /// The most bytes that one append may hold in memory; more goes to files.
    pub window_bytes: u64,
    /// The most bytes that all appends may hold in memory.
    pub max_memory_bytes: u64,
    /// The most bytes that all appends may hold in files.
    pub max_spool_bytes: u64,
    /// The most bytes that one batch may have, unpacked.
    pub max_batch_bytes: u64,
    /// The time for which a batch waits for room before it is refused.
    pub room_wait: Duration,
    /// The time for which an append may be silent.
    pub idle_timeout: Duration,
    /// The number of appends that may be open.
    pub max_open: usize,
    pub max_open_per_user: usize,
}

/// The store that the rows go to.
#[derive(Clone)]
pub enum Store {
    Sql(SqlDatabase),
    ClickHouse {
        client: Arc<Client>,
        /// The gateway's own account.
        own: Credentials,
    },
}
