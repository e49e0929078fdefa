use std::sync::Arc;
use std::time::Duration;

use crate::cut::Compression;
use crate::faults::Faults;
use crate::id::AppendId;

/// The progress of an append. Told at its begin, after each batch that the server has or acknowledges, and at
/// its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Rows that the server holds; those it held before this append was resumed are among them.
    pub rows: u64,
    pub batches: u64,
    pub bytes_sent: u64,
    pub bytes_acknowledged: u64,
    /// About how many bytes there are to send, if the source knows.
    pub whole_bytes: Option<u64>,
    /// The number of batches, known when the source has ended.
    pub all_batches: Option<u64>,
}

/// A callback for progress. It is called by one connection at a time, and never told less than before.
pub type OnProgress = Arc<dyn Fn(&Progress) + Send + Sync>;

/// A callback that is told, again and again, while nothing gets through: to which server, and why, as
/// `gateway:8123 (connection refused)`.
pub type OnWaiting = Arc<dyn Fn(&str) + Send + Sync>;

#[derive(Clone)]
pub struct AppendOptions {
    /// The append's id; `None` stands for a random one.
    pub id: Option<AppendId>,
    /// True to ask what the server has of `id` and to send only what is missing. The source has to be the
    /// same, and `batch_bytes`.
    pub resume: bool,
    /// A text that tells this source from others, in up to 128 characters of ASCII: the server refuses to go
    /// on with the append of another one. `None`: made from the files, where there are files.
    pub source: Option<String>,
    /// The columns that the source has, by their names in the table. `None` stands for those that the source
    /// names.
    pub columns: Option<Vec<String>>,
    /// True if rows are stored in the source's order. Without, still all or none of them.
    pub ordered: bool,
    /// The character between the fields of CSV files, if not a comma.
    pub delimiter: Option<u8>,
    /// The number of batches that are sent at once.
    pub connections: usize,
    /// The most bytes that may lie between the source and the server's answer.
    pub window_bytes: u64,
    pub batch_bytes: u64,
    pub compression: Compression,
    /// The time to try again while nothing gets through.
    pub retry_for: Duration,
    /// The same time as long as the server has never been reached: most likely its address is wrong, or it is
    /// not running.
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
