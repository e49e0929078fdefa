//! The files that the gateway keeps on disk. Each log has a folder of the data directory, and a thread that
//! writes it.

use std::path::PathBuf;

use windrow_engine::{open_journal, OpenedJournal};
use windrow_log::{Folder, LogOptions};
use windrow_settings::Settings;

use crate::data_dir_lock::DataDirLock;
use crate::log_writer::LogWriter;

pub(crate) struct DataDirectory {
    writers: Vec<LogWriter>,
    /// The lock of the directory: two gateways on one directory would destroy each other's data. It is given
    /// back last.
    _lock: DataDirLock,
}

impl DataDirectory {
    pub(crate) fn new(lock: DataDirLock, writers: Vec<LogWriter>) -> DataDirectory {
        DataDirectory { writers, _lock: lock }
    }

    /// Ends the threads that write. Nobody may append to the logs any more.
    pub(crate) async fn stop(self) {
        for writer in self.writers {
            writer.stop().await;
        }
    }
}

pub(crate) struct Journal {
    pub(crate) opened: OpenedJournal,
    pub(crate) writer: LogWriter,
}

/// Opens the journal. Reads through all records, which may take some seconds, and begins to write.
pub(crate) async fn journal(settings: &Settings) -> Result<Journal, String> {
    let (path, options) = (settings.data_dir.join("journal"), log_options(settings));
    let open = move || open_at(path, options);
    tokio::task::spawn_blocking(open).await.map_err(|error| format!("the journal could not be opened: {error}"))?
}

fn open_at(path: PathBuf, options: LogOptions) -> Result<Journal, String> {
    let problem = |error: &dyn std::fmt::Display| format!("the journal in {}: {error}", path.display());
    let folder = Folder::open(&path).map_err(|error| problem(&error))?;
    let (opened, committer) = open_journal(folder, options).map_err(|error| problem(&error))?;
    let writer = LogWriter::start("journal", opened.log(), committer)?;
    Ok(Journal { opened, writer })
}

fn log_options(settings: &Settings) -> LogOptions {
    let journal = &settings.journal;
    // For what says that inserts are sent and done, without which no room would ever be free again. A segment goes when
    // all of its inserts are done, and to say so of the smallest ones, sent one by one, takes somewhat more than they
    // do.
    let reserve_bytes = journal.segment_bytes.saturating_mul(2).max(journal.max_bytes / 16);
    LogOptions { segment_bytes: journal.segment_bytes, max_bytes: journal.max_bytes, reserve_bytes }
}
