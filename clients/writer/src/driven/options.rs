//! The options of a writer for Rust programs.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::buffer::Buffer;
use crate::disk::{DiskOptions, DiskSync};
use crate::errors::WriteError;
use crate::retry::{Backoff, Retry};

/// The buffer in which rows wait.
pub enum WriterBuffer {
    /// Memory: rows are gone with the process.
    Memory,
    /// Files of a folder: rows survive the death of the process, and the next writer on the folder stores them.
    Disk { folder: PathBuf, max_disk_bytes: u64, sync: DiskSync },
    /// A buffer of the program's own.
    Own(Arc<dyn Buffer>),
}

impl WriterBuffer {
    pub fn disk(folder: impl Into<PathBuf>) -> WriterBuffer {
        let DiskOptions { max_disk_bytes, sync, .. } = DiskOptions::default();
        WriterBuffer::Disk { folder: folder.into(), max_disk_bytes, sync }
    }
}

/// A callback that is told of each error; it must not block.
pub type OnError = Box<dyn Fn(&Arc<WriteError>) + Send + Sync>;

pub struct WriterOptions {
    /// The most rows of a batch.
    pub batch_rows: usize,
    /// The most bytes of a batch; a single row may be larger.
    pub batch_bytes: usize,
    /// The time for which a row waits for others.
    pub flush_interval: Duration,
    pub buffer: WriterBuffer,
    pub retry: Box<dyn Retry>,
    /// The callback for rows that could not be stored; without it the errors wait in `errors()`.
    pub on_error: Option<OnError>,
    /// The most bytes of rows that wait or are in flight; beyond that, writing waits.
    pub max_bytes: u64,
    /// The most batches that are in flight at once.
    pub max_in_flight: usize,
    /// True if batches are sent one after the other, so that rows are stored in the order in which they were
    /// written.
    pub ordered: bool,
    /// True if `write_row` and `write_rows` return only when their rows are stored.
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
