//! The store of dead letters of a gateway that starts.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use prometheus_client::registry::Registry;
use windrow_gatherer::dead_letters::{DeadLetterOptions, DeadLetters};
use windrow_journal::Folder;
use windrow_settings::Settings;

use crate::log_writer::LogWriter;

/// Where they are, in the data directory.
pub(super) const FOLDER: &str = "dead-letters";

pub(crate) struct Opened {
    pub(crate) letters: DeadLetters,
    pub(crate) writer: LogWriter,
}

pub(crate) fn open(settings: &Settings, registry: &mut Registry) -> Result<Opened, String> {
    let path = settings.data_dir.join(FOLDER);
    let folder = Folder::open(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let bounds = &settings.dead_letters;
    let options = DeadLetterOptions { max_bytes: bounds.max_bytes, max_age_ms: bounds.max_age_ms };
    let (letters, committer) = DeadLetters::open(folder, options, registry).map_err(|error| error.to_string())?;
    let writer = LogWriter::start("dead letters", letters.log(), committer)?;
    let amount = letters.amount();
    if amount.letters > 0 {
        tracing::warn!(
            letters = amount.letters,
            bytes = amount.bytes,
            "there are dead letters: see windrow dead-letters list"
        );
    }
    if let Some(max_age_ms) = bounds.max_age_ms {
        tokio::spawn(expire(letters.clone(), max_age_ms));
    }
    Ok(Opened { letters, writer })
}

/// Looks often enough that no letter gets much older than it may.
async fn expire(letters: DeadLetters, max_age_ms: u64) {
    let pause = Duration::from_millis((max_age_ms / 10).clamp(100, 60_000));
    loop {
        if let Err(error) = letters.expire(now_micros()).await {
            tracing::error!(%error, "old dead letters could not be discarded");
        }
        tokio::time::sleep(pause).await;
    }
}

pub(super) fn now_micros() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
}
