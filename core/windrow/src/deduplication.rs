//! The deduplication index of a gateway that starts.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use windrow_engine::{DeduplicationIndex, Machine};
use windrow_log::{Folder, LogOptions};
use windrow_settings::Settings;

use crate::log_writer::LogWriter;

const FOLDER: &str = "deduplication";
/// The folder's name before version 0.1.0.
const FORMER_FOLDER: &str = "ledger";
/// The sizes of the index's log. An insert takes some 30 bytes: there is room for the windows of hundreds of
/// tables.
const OPTIONS: LogOptions = LogOptions { segment_bytes: 4 << 20, max_bytes: 256 << 20, reserve_bytes: 8 << 20 };

pub(crate) struct OpenedDeduplication {
    pub(crate) opened: DeduplicationIndex,
    pub(crate) writer: LogWriter,
}

/// Returns the folder of the index in the data directory. `open` renames a folder that has the former name.
pub(crate) fn folder(data_dir: &Path) -> PathBuf {
    let (present, former) = (data_dir.join(FOLDER), data_dir.join(FORMER_FOLDER));
    if !present.exists() && former.exists() {
        former
    } else {
        present
    }
}

pub(crate) fn open(settings: &Settings) -> Result<OpenedDeduplication, String> {
    let path = settings.data_dir.join(FOLDER);
    let problem = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let found = folder(&settings.data_dir);
    if found != path {
        fs::rename(found, &path).map_err(|error| problem(&error))?;
    }
    let folder = Folder::open(&path).map_err(|error| problem(&error))?;
    let (deduplication, committer) =
        DeduplicationIndex::open(folder, OPTIONS, Arc::new(Machine)).map_err(|error| problem(&error))?;
    let log = deduplication.log().ok_or("the deduplication index has no log")?;
    Ok(OpenedDeduplication { writer: LogWriter::start("deduplication", log, committer)?, opened: deduplication })
}
