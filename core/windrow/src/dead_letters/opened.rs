//! The store of dead letters of a gateway that starts.

use std::time::{SystemTime, UNIX_EPOCH};

use prometheus_client::registry::Registry;
use windrow_engine::dead_letters::{DeadLetterOptions, DeadLetters};
use windrow_log::Folder;
use windrow_settings::Settings;

use crate::log_writer::LogWriter;

/// The folder of the dead letters in the data directory.
pub(super) const FOLDER: &str = "dead-letters";

pub(crate) struct Opened {
    pub(crate) dead_letters: DeadLetters,
    pub(crate) writer: LogWriter,
}

pub(crate) fn open(settings: &Settings, registry: &mut Registry) -> Result<Opened, String> {
    let path = settings.data_dir.join(FOLDER);
    let folder = Folder::open(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let options = DeadLetterOptions { max_bytes: settings.dead_letters.max_bytes };
    let (dead_letters, committer) = DeadLetters::open(folder, options, registry).map_err(|error| error.to_string())?;
    let writer = LogWriter::start("dead letters", dead_letters.log(), committer)?;
    let amount = dead_letters.amount();
    if amount.dead_letters > 0 {
        tracing::warn!(
            dead_letters = amount.dead_letters,
            bytes = amount.bytes,
            "there are dead letters: see windrow dead-letters list"
        );
    }
    Ok(Opened { dead_letters, writer })
}

pub(super) fn now_micros() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
}
