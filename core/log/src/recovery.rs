//! The opening of a log, and the visit that changes nothing.
//!
//! Nothing is removed before all segments were read: a damaged log is left as it was found.

use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use super::chain::{find_segments, FoundSegments};
use super::committer::Committer;
use super::error::OpenError;
use super::queue::Queue;
use super::reading::{Reading, Recovered, Tail};
use super::{Counters, Log, LogOptions, Shared};
use crate::disk::{Disk, DiskFile};

/// Opens the log of a folder, which may be empty. `visit` gets each record that is there once, in the order
/// of the ids; all of them are live until they are released. Blocks.
///
/// # Errors
/// Fails where a segment is damaged or missing, another version of Windrow wrote it, or the disk fails.
pub fn open<D: Disk>(
    disk: D,
    options: LogOptions,
    visit: &mut dyn FnMut(Recovered<'_>),
) -> Result<(Log, Committer<D>), OpenError> {
    let options = options.settled();
    let found = find_segments(&disk)?;
    let mut reading = Reading::new(first_id(&disk, &found)?, visit);
    let tail = read(&found, &mut reading)?;
    if let (Some(last), Some(tail)) = (found.chain.last(), &tail) {
        settle(&*last.file, tail).map_err(|error| OpenError::Io { file: last.name.clone(), error })?;
    }
    let active = tail.and_then(|tail| tail.active);
    settle_names(&disk, &found.useless)?;
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

/// Visits the records of a log that need not be closed, as [`open`] does, and changes nothing. Records that
/// are being written meanwhile may be visited or not. Blocks.
///
/// # Errors
/// Fails where a segment is damaged or missing, another version of Windrow wrote it, or the disk fails.
pub fn look<D: Disk>(disk: &D, visit: &mut dyn FnMut(Recovered<'_>)) -> Result<(), OpenError> {
    let mut tries = 0;
    let found = loop {
        match find_segments(disk) {
            // Removed between two looks, by the one who writes.
            Err(OpenError::Io { error, .. }) if error.kind() == io::ErrorKind::NotFound && tries < 10 => tries += 1,
            outcome => break outcome?,
        }
    };
    read(&found, &mut Reading::new(0, visit)).map(drop)
}

/// Returns the lowest id that a new record may have. A folder that was emptied begins at another id than
/// before: other files may still name records of that time, and must not be taken to name new ones. The id is
/// below 2^52, so that every reader of JSON has room for it.
fn first_id<D: Disk>(disk: &D, found: &FoundSegments) -> Result<u64, OpenError> {
    if !found.chain.is_empty() {
        return Ok(0);
    }
    let salt = disk.salt().map_err(|error| OpenError::Io { file: "the folder".to_owned(), error })?;
    Ok(salt >> 44 << 32 | 1)
}

/// Reads all segments. Returns the tail of the last one, if there is any.
fn read(found: &FoundSegments, reading: &mut Reading<'_>) -> Result<Option<Tail>, OpenError> {
    let mut tail = None;
    for (at, file) in found.chain.iter().enumerate() {
        tail = reading.read(file, found.chain.get(at + 1).map(|next| &next.header))?;
    }
    Ok(tail)
}

/// Writes and syncs the last group once more. Its writer may not have synced it: if the writer's sync failed,
/// the cache may hold the group as if it were on the disk, and a sync here would succeed without writing
/// anything.
fn settle(file: &dyn DiskFile, tail: &Tail) -> io::Result<()> {
    let Range { start: mut offset, end } = tail.last_group.clone();
    let mut bytes = vec![0; 1 << 20];
    while offset < end {
        let wanted = usize::try_from(end - offset).unwrap_or(usize::MAX).min(bytes.len());
        let count = match file.read_at(offset, &mut bytes[..wanted])? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => count,
        };
        file.write_at(offset, &bytes[..count])?;
        offset += count as u64;
    }
    settle_length(file)?;
    file.sync()
}

/// Repeats the same for the file's length, which a failed sync can lose as well: a write of the last byte
/// restores it.
fn settle_length(file: &dyn DiskFile) -> io::Result<()> {
    let Some(last) = file.len()?.checked_sub(1) else { return Ok(()) };
    let mut byte = [0];
    match file.read_at(last, &mut byte)? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => file.write_at(last, &byte),
    }
}

/// Removes useless files and syncs the directory. The process that made the last segment may have been killed
/// before the segment's name was synced: records that are written to it now must not be lost with the name.
fn settle_names<D: Disk>(disk: &D, useless: &[String]) -> Result<(), OpenError> {
    for name in useless {
        disk.remove(name).map_err(|error| OpenError::Io { file: name.clone(), error })?;
    }
    disk.sync_directory().map_err(|error| OpenError::Io { file: "the folder".to_owned(), error })
}
