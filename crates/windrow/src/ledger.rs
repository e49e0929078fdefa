//! The ledger of stored inserts of a gateway that starts.

use std::sync::Arc;

use windrow_gatherer::{Ledger, Machine};
use windrow_journal::log::LogOptions;
use windrow_journal::Folder;
use windrow_settings::Settings;

use crate::log_writer::LogWriter;

/// Where it is, in the data directory.
const FOLDER: &str = "ledger";
/// An insert takes some 30 bytes: room for the windows of hundreds of tables.
const OPTIONS: LogOptions = LogOptions { segment_bytes: 4 << 20, max_bytes: 256 << 20, reserve_bytes: 8 << 20 };

pub(crate) struct OpenedLedger {
    pub(crate) opened: Ledger,
    pub(crate) writer: LogWriter,
}

pub(crate) fn open(settings: &Settings) -> Result<OpenedLedger, String> {
    let path = settings.data_dir.join(FOLDER);
    let problem = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let folder = Folder::open(&path).map_err(|error| problem(&error))?;
    let (ledger, committer) = Ledger::open(folder, OPTIONS, Arc::new(Machine)).map_err(|error| problem(&error))?;
    let log = ledger.log().ok_or("the ledger has no log")?;
    Ok(OpenedLedger { writer: LogWriter::start("ledger", log, committer)?, opened: ledger })
}
