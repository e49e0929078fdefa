//! The files of a folder that are segments of the log, and their order. The newest one leads to the ones before.

use std::io;
use std::sync::Arc;

use super::error::{Corruption, OpenError};
use super::format::{HeaderFault, SegmentHeader, SEGMENT_HEADER_BYTES};
use super::index::SharedFile;
use super::segment::{file_name, number_of};
use crate::disk::{Disk, DiskFile};

pub(super) struct FoundFile {
    pub(super) name: String,
    pub(super) header: SegmentHeader,
    pub(super) file: SharedFile,
    pub(super) file_bytes: u64,
}

pub(super) struct FoundSegments {
    /// Segments, each the successor of the one before.
    pub(super) chain: Vec<FoundFile>,
    /// Files in which no record was ever acknowledged, or whose records another file has.
    pub(super) useless: Vec<String>,
    pub(super) next_number: u64,
}

pub(super) fn find_segments<D: Disk>(disk: &D) -> Result<FoundSegments, OpenError> {
    let names = disk.list().map_err(|error| OpenError::Io { file: "the folder".to_owned(), error })?;
    let mut numbers: Vec<u64> = names.iter().filter_map(|name| number_of(name)).collect();
    numbers.sort_unstable();
    let mut useless: Vec<String> =
        names.into_iter().filter(|name| name.ends_with(".rewrite") || name.ends_with(".repaired")).collect();
    useless.sort_unstable();
    let mut files = Vec::new();
    for number in &numbers {
        let name = file_name(*number);
        match open_segment(disk, &name, *number)? {
            Some(file) => files.push(file),
            None => useless.push(name),
        }
    }
    let chain = chain(files, &mut useless)?;
    // Such a file was never completed, unless there is one that was made after it.
    let before_first = chain.first().and_then(|first| first.header.previous).map(file_name);
    if let Some(name) = before_first.filter(|name| useless.contains(name)) {
        return Err(damaged(&name, 0, "it has no header", "all of it is lost"));
    }
    Ok(FoundSegments { chain, useless, next_number: numbers.last().map_or(1, |last| last + 1) })
}

/// Opens a segment. Returns `None` for a file that was being made when the process ended.
fn open_segment<D: Disk>(disk: &D, name: &str, number: u64) -> Result<Option<FoundFile>, OpenError> {
    let failed = |error| OpenError::Io { file: name.to_owned(), error };
    let file = disk.open(name).map_err(failed)?;
    let file_bytes = file.len().map_err(failed)?;
    let mut bytes = [0; SEGMENT_HEADER_BYTES];
    read_up_to(&file, &mut bytes).map_err(failed)?;
    let header = match SegmentHeader::decode(&bytes) {
        // Not all of its room had been taken yet, so nothing was written to it either.
        Ok(header) if file_bytes < header.file_bytes && is_empty(&file, file_bytes).map_err(failed)? => {
            return Ok(None)
        }
        Ok(header) if header.number == number && header.covers_from <= number => header,
        Ok(_) => return Err(damaged(name, 0, "its header is that of another segment", "all of it is lost")),
        Err(HeaderFault::Version { version, .. }) if is_empty(&file, file_bytes).map_err(failed)? => {
            tracing::debug!(version, "an empty segment with half a header");
            return Ok(None);
        }
        Err(fault @ HeaderFault::Version { .. }) => {
            return Err(OpenError::Version { file: name.to_owned(), why: fault.to_string() })
        }
        Err(_) if is_empty(&file, file_bytes).map_err(failed)? => return Ok(None),
        Err(fault) => {
            return Err(damaged(name, 0, &fault.to_string(), "what it holds can't be read without its header"))
        }
    };
    Ok(Some(FoundFile { name: name.to_owned(), header, file: Arc::new(file), file_bytes }))
}

fn read_up_to(file: &dyn DiskFile, into: &mut [u8]) -> io::Result<()> {
    let mut filled = 0;
    while filled < into.len() {
        match file.read_at(filled as u64, &mut into[filled..])? {
            0 => break,
            count => filled += count,
        }
    }
    Ok(())
}

/// Says whether nothing stands behind the header. Records are only written after the header was synced.
pub(super) fn is_empty(file: &dyn DiskFile, file_bytes: u64) -> io::Result<bool> {
    let mut bytes = vec![0; 64 << 10];
    let mut offset = SEGMENT_HEADER_BYTES as u64;
    while offset < file_bytes {
        let count = file.read_at(offset, &mut bytes)?;
        if count == 0 {
            break;
        }
        if bytes[..count].iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
        offset += count as u64;
    }
    Ok(true)
}

/// Puts the segments into their order. The newest one leads to the ones before.
fn chain(mut files: Vec<FoundFile>, useless: &mut Vec<String>) -> Result<Vec<FoundFile>, OpenError> {
    let mut chain: Vec<FoundFile> = Vec::new();
    while let Some(file) = files.pop() {
        let Some(next) = chain.last() else {
            chain.push(file);
            continue;
        };
        let number = file.header.number;
        if next.header.covers_from <= number {
            useless.push(file.name);
        } else if next.header.previous == Some(number) {
            chain.push(file);
        } else if is_empty(&*file.file, file.file_bytes)
            .map_err(|error| OpenError::Io { file: file.name.clone(), error })?
        {
            useless.push(file.name);
        } else {
            let missing = next.header.previous.map_or("an older one".to_owned(), file_name);
            let why = format!("segment {missing} should stand before it, and doesn't");
            return Err(damaged(&next.name, 0, &why, "what that segment held is lost"));
        }
    }
    chain.reverse();
    Ok(chain)
}

pub(super) fn damaged(segment: &str, offset: u64, why: &str, lost: &str) -> OpenError {
    OpenError::Corrupt(Corruption { segment: segment.to_owned(), offset, why: why.to_owned(), lost: lost.to_owned() })
}
