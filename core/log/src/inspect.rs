//! Inspection of a log's folder, without any change; the gateway may run meanwhile.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::Arc;

use super::chain::is_empty;
use super::format::{HeaderFault, SegmentHeader, KIND_CLOSED, KIND_CONTEXT, SEGMENT_HEADER_BYTES};
use super::index::SharedFile;
use super::salvage::{salvage, Damage};
use super::segment::{file_name, number_of};
use crate::disk::{Disk, DiskFile};

/// The result of an inspection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inspection {
    /// Segments, the oldest first.
    pub segments: Vec<InspectedSegment>,
    pub damaged: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InspectedSegment {
    pub name: String,
    pub file_bytes: u64,
    /// The end of the records, in bytes.
    pub used_bytes: u64,
    /// The records of each kind: their number and their bytes.
    pub kinds: BTreeMap<u8, KindFigures>,
    pub contexts: u64,
    pub first_id: Option<u64>,
    pub last_id: Option<u64>,
    pub closed: bool,
    pub torn_at: Option<u64>,
    pub damages: Vec<Damage>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KindFigures {
    pub records: u64,
    pub bytes: u64,
}

/// A file with a segment's name, and its header if it has a valid one.
pub(super) struct SegmentFile {
    pub(super) number: u64,
    pub(super) file: SharedFile,
    pub(super) header: Result<SegmentHeader, String>,
    /// True if another version of Windrow wrote the file, and it is undamaged as far as can be told.
    pub(super) is_of_another_version: bool,
}

pub(super) fn segment_files<D: Disk>(disk: &D) -> io::Result<Vec<SegmentFile>> {
    let mut numbers: Vec<u64> = disk.list()?.iter().filter_map(|name| number_of(name)).collect();
    numbers.sort_unstable();
    let mut files = Vec::new();
    for number in numbers {
        let file = match disk.open(&file_name(number)) {
            // Removed since the folder was listed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            outcome => outcome?,
        };
        let mut bytes = [0; SEGMENT_HEADER_BYTES];
        let mut filled = 0;
        while filled < bytes.len() {
            match file.read_at(filled as u64, &mut bytes[filled..])? {
                0 => break,
                count => filled += count,
            }
        }
        let decoded = SegmentHeader::decode(&bytes);
        let is_of_another_version = matches!(decoded, Err(HeaderFault::Version { is_whole: true, .. }));
        let header = match decoded {
            Ok(header) if header.number == number => Ok(header),
            Ok(_) => Err("its header is that of another segment".to_owned()),
            Err(fault) => Err(fault.to_string()),
        };
        files.push(SegmentFile { number, file: Arc::new(file), header, is_of_another_version });
    }
    Ok(files)
}

/// Returns the end of a segment, if a header says it.
pub(super) fn end_of(file: &SegmentFile, next: Option<&SegmentFile>) -> Option<u64> {
    let own = file.header.as_ref().ok().map(|header| header.sealed_bytes).filter(|sealed| *sealed > 0);
    let next = next.and_then(|next| next.header.as_ref().ok());
    own.or(next.filter(|next| next.previous == Some(file.number)).map(|next| next.previous_bytes))
}

/// Lists the segments of a log's folder, with their records and their damages.
///
/// # Errors
/// Fails where the folder or a file can't be read.
pub fn inspect<D: Disk>(disk: &D) -> io::Result<Inspection> {
    let files = segment_files(disk)?;
    let mut inspection = Inspection::default();
    for (at, file) in files.iter().enumerate() {
        let next = files.get(at + 1);
        let mut segment = look_into(file, next)?;
        if let Some(why) = missing_before(file, at.checked_sub(1).and_then(|before| files.get(before))) {
            segment.damages.insert(0, Damage { offset: 0, bytes: 0, why });
        }
        inspection.damaged |= !segment.damages.is_empty();
        inspection.segments.push(segment);
    }
    Ok(inspection)
}

/// Returns the text of a damage if the segment before this one is not the one that should be there.
fn missing_before(file: &SegmentFile, before: Option<&SegmentFile>) -> Option<String> {
    let (header, before) = (file.header.as_ref().ok()?, before?);
    let is_covered = header.covers_from <= before.number;
    let previous = header.previous.filter(|previous| *previous != before.number && !is_covered)?;
    Some(format!("{} should stand before it, and doesn't", file_name(previous)))
}

fn look_into(file: &SegmentFile, next: Option<&SegmentFile>) -> io::Result<InspectedSegment> {
    let file_bytes = file.file.len()?;
    let mut segment = InspectedSegment { name: file_name(file.number), file_bytes, ..Default::default() };
    let header = match &file.header {
        Ok(header) => header,
        Err(_) if next.is_none() && is_empty(&*file.file, file_bytes)? => {
            segment.torn_at = Some(0);
            return Ok(segment);
        }
        Err(why) => {
            segment.damages.push(Damage { offset: 0, bytes: file_bytes, why: why.clone() });
            return Ok(segment);
        }
    };
    let salvaged = salvage(&file.file, header, end_of(file, next), &mut |record| match record.header.kind {
        KIND_CONTEXT => segment.contexts += 1,
        KIND_CLOSED => segment.closed = true,
        kind => {
            let figures = segment.kinds.entry(kind).or_default();
            figures.records += 1;
            figures.bytes += record.header.record_bytes() as u64;
            segment.first_id.get_or_insert(record.header.id);
            segment.last_id = Some(record.header.id);
            segment.closed = false;
        }
    })?;
    segment.used_bytes = salvaged.end;
    segment.torn_at = salvaged.torn_at;
    segment.damages = salvaged.damages;
    Ok(segment)
}

impl fmt::Display for Inspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.segments.is_empty() {
            return writeln!(f, "no segments");
        }
        self.segments.iter().try_for_each(|segment| segment.fmt(f))
    }
}

impl fmt::Display for InspectedSegment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} of {} bytes used", self.name, self.used_bytes, self.file_bytes)?;
        if let (Some(first), Some(last)) = (self.first_id, self.last_id) {
            write!(f, ", records {first} to {last}")?;
        }
        for (kind, figures) in &self.kinds {
            write!(f, ", kind {kind}: {} of {} bytes", figures.records, figures.bytes)?;
        }
        if self.contexts > 0 {
            write!(f, ", {} contexts", self.contexts)?;
        }
        writeln!(f, "{}", if self.closed { ", closed" } else { "" })?;
        if let Some(offset) = self.torn_at {
            writeln!(f, "  torn at byte {offset}: a group was being written there; nothing of it was acknowledged")?;
        }
        for Damage { offset, bytes, why } in &self.damages {
            writeln!(f, "  damaged at byte {offset}: {why}; {bytes} bytes can't be read")?;
        }
        Ok(())
    }
}
