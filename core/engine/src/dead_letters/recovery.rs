//! The reading of the log when it is opened.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use windrow_log::{open, Committer, ContextKey, Disk, Log, LogOptions, OpenError, RecordId, Recovered};

use super::dead_letter::{self, origin_of_context};
use super::index::{Entry, Index};
use super::record::{decode_gone, DEAD_LETTER, GONE, MESSAGE};
use super::summary::{DeadLetterId, Origin};

pub(super) struct Opened<D: Disk> {
    pub(super) index: Index,
    pub(super) log: Log,
    pub(super) committer: Committer<D>,
}

/// The reason why the dead letters can't be opened.
#[derive(Debug)]
pub enum DeadLettersOpenError {
    Log(OpenError),
    /// A record is undamaged, but not understood: another version wrote it.
    Record(RecordId),
}

impl fmt::Display for DeadLettersOpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeadLettersOpenError::Log(error) => write!(f, "dead letters: {error}"),
            DeadLettersOpenError::Record(id) => write!(
                f,
                "dead letters: record {id} is whole, but this version of Windrow does not know what it says. Start the version \
                 that wrote it, and retry or discard its dead letters"
            ),
        }
    }
}

impl std::error::Error for DeadLettersOpenError {}

/// The contents of the records read so far.
#[derive(Default)]
pub(super) struct Reading {
    pub(super) index: Index,
    origins: HashMap<ContextKey, Arc<Origin>>,
    /// Records of dead letters that are gone. They are released before `tombstones`, the records that say so.
    finished: Vec<RecordId>,
    tombstones: Vec<RecordId>,
    pub(super) not_understood: Option<RecordId>,
}

pub(super) fn recover<D: Disk>(disk: D, options: LogOptions) -> Result<Opened<D>, DeadLettersOpenError> {
    let mut reading = Reading::default();
    let (log, committer) =
        open(disk, options, &mut |record| reading.visit(&record)).map_err(DeadLettersOpenError::Log)?;
    if let Some(id) = reading.not_understood {
        return Err(DeadLettersOpenError::Record(id));
    }
    log.release_all(reading.finished);
    log.release_all(reading.tombstones);
    Ok(Opened { index: reading.index, log, committer })
}

impl Reading {
    pub(super) fn visit(&mut self, record: &Recovered<'_>) {
        let understood = match record.kind {
            DEAD_LETTER | MESSAGE => self.dead_letter(record),
            GONE => self.gone(record),
            _ => None,
        };
        if understood.is_none() {
            self.not_understood.get_or_insert(record.id);
        }
    }

    fn dead_letter(&mut self, record: &Recovered<'_>) -> Option<()> {
        let (key, context) = record.context?;
        let origin = match self.origins.get(&key) {
            Some(origin) => origin.clone(),
            None => {
                let origin = Arc::new(origin_of_context(record.kind, context)?);
                self.origins.insert(key, origin.clone());
                origin
            }
        };
        let id = DeadLetterId(record.id.0);
        let dead_letter = match record.kind {
            MESSAGE => dead_letter::Recovered::decode_message(id, origin, record.payload)?,
            _ => dead_letter::Recovered::decode(id, origin, record.payload)?,
        };
        // Written twice: the first time nobody could be told that it had been. The later one counts: as long as the
        // earlier is in the log, it is too, and so is what says that it is gone.
        if let Some(earlier) = self.index.same(&dead_letter.identity) {
            self.index.remove(earlier);
            self.finished.push(RecordId(earlier.0));
        }
        self.index.insert(Entry::new(dead_letter.summary, dead_letter.identity, record.payload.len()));
        Some(())
    }

    fn gone(&mut self, record: &Recovered<'_>) -> Option<()> {
        for id in decode_gone(record.payload)? {
            if self.index.remove(id).is_some() {
                self.finished.push(RecordId(id.0));
            }
        }
        self.tombstones.push(record.id);
        Some(())
    }
}
