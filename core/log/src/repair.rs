//! The repair of a damaged log. The readable records of a damaged segment are copied into a new one, which
//! takes its place; the damaged one is moved into the folder `damaged`. The caller has to be the only user of
//! the log.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use super::format::{NewRecord, SegmentHeader, KIND_CLOSED, KIND_CONTEXT, SEGMENT_HEADER_BYTES};
use super::index::SharedFile;
use super::inspect::{end_of, inspect, segment_files, SegmentFile};
use super::salvage::{salvage, Damage};
use super::scan::RawRecord;
use super::segment::file_name;
use crate::disk::Disk;
use crate::folder::Folder;

/// The repair of one segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repaired {
    pub segment: String,
    /// The number of records that were copied into the new segment.
    pub kept_records: u64,
    /// The number of records that were read but can't be used, because the context that they need is missing,
    /// or their ids go back.
    pub lost_records: u64,
    pub damages: Vec<Damage>,
}

/// Repairs the segments that [`inspect`] finds damaged; does nothing to a log that is undamaged.
///
/// # Errors
/// Fails where another version of Windrow wrote a segment (nothing is changed then), or a file can't be read or
/// written.
pub fn repair(folder: &Folder) -> io::Result<Vec<Repaired>> {
    let inspection = inspect(folder)?;
    let damages: BTreeMap<String, Vec<Damage>> = inspection
        .segments
        .into_iter()
        .filter(|segment| !segment.damages.is_empty())
        .map(|segment| (segment.name, segment.damages))
        .collect();
    let files = segment_files(folder)?;
    if let Some(SegmentFile { number, header: Err(why), .. }) = files.iter().find(|file| file.is_of_another_version) {
        let text = format!("segment {}: {why}. It is not damaged: start the Windrow that wrote it", file_name(*number));
        return Err(io::Error::other(text));
    }
    let mut repaired = Vec::new();
    let mut before: Option<Before> = None;
    for (at, file) in files.iter().enumerate() {
        let name = file_name(file.number);
        let next = files.get(at + 1);
        let found = damages.get(&name);
        let is_linked = is_linked(file, before.as_ref());
        match (found, is_linked) {
            (None, true) => before = Some(untouched(file, next)?),
            _ => {
                let (done, segment) = rebuild(folder, file, next, before.as_ref())?;
                repaired.push(Repaired { segment: name, damages: found.cloned().unwrap_or_default(), ..done });
                before = Some(segment);
            }
        }
    }
    Ok(repaired)
}

/// The segment before, as it stands now.
struct Before {
    number: u64,
    end: u64,
    next_id: u64,
}

fn is_linked(file: &SegmentFile, before: Option<&Before>) -> bool {
    let Ok(header) = &file.header else { return false };
    match before {
        None => true,
        Some(before) => header.previous == Some(before.number) || header.covers_from <= before.number,
    }
}

fn untouched(file: &SegmentFile, next: Option<&SegmentFile>) -> io::Result<Before> {
    let Ok(header) = &file.header else { return Err(io::Error::other("a segment without a header is not untouched")) };
    let mut next_id = header.first_id;
    let salvaged = salvage(&file.file, header, end_of(file, next), &mut |record| {
        if record.header.kind != KIND_CONTEXT && record.header.kind != KIND_CLOSED {
            next_id = record.header.id + 1;
        }
    })?;
    Ok(Before { number: file.number, end: salvaged.end, next_id })
}

struct Copy {
    header: SegmentHeader,
    bytes: Vec<u8>,
    /// The damaged segment's contexts, by their numbers there.
    contexts: BTreeMap<u32, Vec<u8>>,
    /// The contexts' numbers in the new segment, by their old ones.
    places: BTreeMap<u32, u32>,
    next_id: u64,
    done: Repaired,
}

fn rebuild(
    folder: &Folder,
    file: &SegmentFile,
    next: Option<&SegmentFile>,
    before: Option<&Before>,
) -> io::Result<(Repaired, Before)> {
    let next_id = before.map_or(0, |before| before.next_id);
    let old = file.header.as_ref().ok();
    let header = SegmentHeader {
        number: file.number,
        covers_from: old.map_or(file.number, |header| header.covers_from),
        previous: before.map(|before| before.number).or(old.and_then(|header| header.previous)),
        previous_bytes: before.map_or(0, |before| before.end),
        first_id: old.map_or(next_id, |header| header.first_id.max(next_id)),
        salt: folder.salt()?,
        sealed_bytes: 0,
        file_bytes: 0,
    };
    let done = Repaired { segment: String::new(), kept_records: 0, lost_records: 0, damages: Vec::new() };
    let mut copy =
        Copy { header, bytes: Vec::new(), contexts: BTreeMap::new(), places: BTreeMap::new(), next_id, done };
    if let Some(old) = old {
        salvage(&file.file, old, end_of(file, next), &mut |record| copy.take(record))?;
    }
    let end = SEGMENT_HEADER_BYTES as u64 + copy.bytes.len() as u64;
    copy.header.sealed_bytes = end;
    copy.header.file_bytes = end;
    replace(folder, &copy)?;
    let next_id = copy.next_id.max(copy.header.first_id);
    Ok((copy.done, Before { number: file.number, end, next_id }))
}

impl Copy {
    fn take(&mut self, record: &RawRecord<'_>) {
        let header = &record.header;
        match header.kind {
            KIND_CLOSED => {}
            KIND_CONTEXT => drop(self.contexts.insert(header.context, record.payload.to_vec())),
            _ if header.id < self.next_id || header.id < self.header.first_id => self.done.lost_records += 1,
            _ => match self.place(header.context) {
                Some(context) => {
                    self.write(header.id, header.kind, context, record.payload);
                    self.next_id = header.id + 1;
                    self.done.kept_records += 1;
                }
                None => self.done.lost_records += 1,
            },
        }
    }

    fn place(&mut self, context: u32) -> Option<u32> {
        if context == 0 {
            return Some(0);
        }
        if let Some(place) = self.places.get(&context) {
            return Some(*place);
        }
        let payload = self.contexts.get(&context)?.clone();
        let place = self.places.len() as u32 + 1;
        self.places.insert(context, place);
        self.write(0, KIND_CONTEXT, place, &payload);
        Some(place)
    }

    fn write(&mut self, id: u64, kind: u8, context: u32, payload: &[u8]) {
        let record = NewRecord { id, group: 1, kind, ends_group: false, context, payload };
        record.write(self.header.checksums(), &mut self.bytes);
    }
}

/// Puts the copy in the damaged segment's place. The damaged file is kept under another name until the new
/// one is complete, and permanently after that.
fn replace(folder: &Folder, copy: &Copy) -> io::Result<()> {
    let name = file_name(copy.header.number);
    let new_name = format!("{:016x}.repaired", copy.header.number);
    match folder.remove(&new_name) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file: SharedFile = Arc::new(folder.create(&new_name, 0)?);
    file.write_at(0, &copy.header.encode())?;
    file.write_at(SEGMENT_HEADER_BYTES as u64, &copy.bytes)?;
    file.sync()?;
    folder.keep_aside(&name)?;
    folder.rename(&new_name, &name)?;
    folder.sync_directory()
}
