//! Opens a log, or only looks at it.
//!
//! Nothing is removed before all was read: a log that can't be opened is left as it was found.

use std::io;
use std::sync::{Arc, Mutex};

use super::chain::{find_segments, FoundSegments};
use super::committer::Committer;
use super::error::OpenError;
use super::queue::Queue;
use super::reading::{Reading, Recovered};
use super::segment::Active;
use super::{Counters, Log, LogOptions, Shared};
use crate::disk::Disk;

/// Opens the log of a folder, which may be empty. `visit` gets each record that is there once, in the order of their ids;
/// all of them are live until they are released. Blocks.
pub fn open<D: Disk>(
    disk: D,
    options: LogOptions,
    visit: &mut dyn FnMut(Recovered<'_>),
) -> Result<(Log, Committer<D>), OpenError> {
    let options = options.settled();
    let found = find_segments(&disk)?;
    let mut reading = Reading::new(visit);
    let active = read(&found, &mut reading)?;
    if let Some(last) = found.chain.last() {
        // What was found in the last segment may not have been synced by whoever wrote it.
        last.file.sync().map_err(|error| OpenError::Io { file: last.name.clone(), error })?;
    }
    remove_useless(&disk, &found.useless)?;
    let (mut index, next_context) = reading.into_index();
    index.has_active = active.is_some();
    let shared = Arc::new(Shared {
        queue: Queue::new(options.bounds(), index.indexed_below()),
        index: Mutex::new(index),
        counters: Counters::default(),
        next_context: next_context.into(),
    });
    let number = active.as_ref().map_or(0, |active| active.number);
    let committer = Committer::new(disk, shared.clone(), options, active, found.next_number);
    shared.queue.set_used(committer.used_bytes(), number);
    Ok((Log::new(shared), committer))
}

/// Visits the records of a log that need not be closed, as [`open`] does, and changes nothing. What is being written meanwhile
/// may be met or not. Blocks.
pub fn look<D: Disk>(disk: &D, visit: &mut dyn FnMut(Recovered<'_>)) -> Result<(), OpenError> {
    let mut tries = 0;
    let found = loop {
        match find_segments(disk) {
            // Removed between two looks, by the one who writes.
            Err(OpenError::Io { error, .. }) if error.kind() == io::ErrorKind::NotFound && tries < 10 => tries += 1,
            outcome => break outcome?,
        }
    };
    read(&found, &mut Reading::new(visit)).map(drop)
}

/// Reads all segments. If more may be written to the last one, that is what is returned.
fn read(found: &FoundSegments, reading: &mut Reading<'_>) -> Result<Option<Active>, OpenError> {
    let mut last = None;
    for (at, file) in found.chain.iter().enumerate() {
        last = reading.read(file, found.chain.get(at + 1).map(|next| &next.header))?;
    }
    Ok(last)
}

fn remove_useless<D: Disk>(disk: &D, names: &[String]) -> Result<(), OpenError> {
    for name in names {
        disk.remove(name).map_err(|error| OpenError::Io { file: name.clone(), error })?;
    }
    if names.is_empty() {
        return Ok(());
    }
    disk.sync_directory().map_err(|error| OpenError::Io { file: "the folder".to_owned(), error })
}
