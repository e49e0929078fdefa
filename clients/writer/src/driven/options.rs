//! What a writer for Rust programs is told at its opening.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::buffer::Buffer;
use crate::disk::{DiskOptions, DiskSync};
use crate::errors::WriteError;
use crate::retry::{Backoff, Retry};

/// Where rows wait.
pub enum WriterBuffer {
    /// Gone with the process.
    Memory,
    /// In files of a folder: rows survive the death of the process, and the next writer on the folder stores them.
    Disk { folder: PathBuf, max_disk_bytes: u64, sync: DiskSync },
    /// One of the program's own.
    Own(Arc<dyn Buffer>),
}

impl WriterBuffer {
    pub fn disk(folder: impl Into<PathBuf>) -> WriterBuffer {
        let DiskOptions { max_disk_bytes, sync, .. } = DiskOptions::default();
        WriterBuffer::Disk { folder: folder.into(), max_disk_bytes, sync }
    }
}

/// Called with each error; must not block.
pub type OnError = Box<dyn Fn(&Arc<WriteError>) + Send + Sync>;

pub struct WriterOptions {
    /// Rows of a batch, at most.
    pub batch_rows: usize,
    /// Bytes of a batch, at most; a single row may be larger.
    pub batch_bytes: usize,
    /// How long a row waits for others.
    pub flush_interval: Duration,
    pub buffer: WriterBuffer,
    pub retry: Box<dyn Retry>,
    /// Is told of rows that could not be stored; without it they wait in `errors()`.
    pub on_error: Option<OnError>,
    /// Bytes of rows that wait or are in flight; then writing waits.
    pub max_bytes: u64,
    /// Batches that are sent at once.
    pub max_in_flight: usize,
    /// One batch after the other, so that rows are stored in the order in which they were written.
    pub ordered: bool,
    /// `write_row` and `write_rows` return when their rows are stored.
    pub wait: bool,
    /// ClickHouse's settings for the inserts.
    pub settings: Vec<(String, String)>,
}

impl Default for WriterOptions {
    fn default() -> Self {
        let core = crate::Options::default();
        WriterOptions {
            batch_rows: core.batch_rows,
            batch_bytes: core.batch_bytes,
            flush_interval: Duration::from_millis(core.flush_interval_ms),
            buffer: WriterBuffer::Memory,
            retry: Box::new(Backoff::default()),
            on_error: None,
            max_bytes: core.max_bytes,
            max_in_flight: core.max_in_flight,
            ordered: core.ordered,
            wait: false,
            settings: Vec::new(),
        }
    }
}
