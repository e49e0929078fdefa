use std::sync::Arc;
use std::time::Duration;

use crate::cut::Compression;
use crate::faults::Faults;
use crate::id::AppendId;

/// How far an append is. Told at its begin and after each batch that was sent or acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Rows that the server holds; those it held before this append was resumed are among them.
    pub rows: u64,
    pub batches: u64,
    pub bytes_sent: u64,
    pub bytes_acknowledged: u64,
    /// About how much there is to send, if the source knows.
    pub whole_bytes: Option<u64>,
    /// The source has ended and its number of batches is known.
    pub all_batches: Option<u64>,
}

/// Called by one connection at a time, and never told less than before.
pub type OnProgress = Arc<dyn Fn(&Progress) + Send + Sync>;

/// Told, again and again, while nothing gets through: to which server, and why, as `gateway:8123 (connection refused)`.
pub type OnWaiting = Arc<dyn Fn(&str) + Send + Sync>;

#[derive(Clone)]
pub struct AppendOptions {
    /// `None`: a random one.
    pub id: Option<AppendId>,
    /// Asks what the server has of `id` and sends only what is missing. The source has to be the same, and
    /// `batch_bytes`.
    pub resume: bool,
    /// What tells this source from others, in up to 128 characters of ASCII: the server refuses to go on with the
    /// append of another one. `None`: made from the files, where there are files.
    pub source: Option<String>,
    /// The columns that the source has, by their names in the table. `None`: those that the source names.
    pub columns: Option<Vec<String>>,
    /// Rows are stored in the source's order. Without, still all or none of them.
    pub ordered: bool,
    /// What stands between the fields of CSV files, if not a comma.
    pub delimiter: Option<u8>,
    /// How many batches are sent at once.
    pub connections: usize,
    /// What may lie between the source and the server's answer.
    pub window_bytes: u64,
    pub batch_bytes: u64,
    pub compression: Compression,
    /// How long to try again while nothing gets through.
    pub retry_for: Duration,
    /// The same as long as the server has never been reached: most likely its address is wrong, or it is not running.
    pub connect_for: Duration,
    pub on_progress: Option<OnProgress>,
    pub on_waiting: Option<OnWaiting>,
    pub faults: Option<Faults>,
}

impl Default for AppendOptions {
    fn default() -> Self {
        AppendOptions {
            id: None,
            resume: false,
            source: None,
            columns: None,
            ordered: true,
            delimiter: None,
            connections: 8,
            window_bytes: 64 << 20,
            batch_bytes: 4 << 20,
            compression: Compression::None,
            retry_for: Duration::from_secs(120),
            connect_for: Duration::from_secs(10),
            on_progress: None,
            on_waiting: None,
            faults: None,
        }
    }
}
