//! Opens a log: finds out which segments belong to it, reads all records that are there, and tells a torn tail from damage.
//!
//! Nothing is removed before all was read: a log that can't be opened is left as it was found.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex};

use super::committer::Committer;
use super::context::Context;
use super::error::{Corruption, OpenError};
use super::format::{HeaderFault, SegmentHeader, KIND_CLOSED, KIND_CONTEXT, SEGMENT_HEADER_BYTES};
use super::index::{Index, Segment, SharedFile};
use super::queue::Queue;
use super::scan::{Found, RawRecord, Scan};
use super::segment::{file_name, number_of, Active};
use super::{ContextKey, Counters, Log, LogOptions, RecordId, Shared};
use crate::disk::{Disk, DiskFile};

/// A record that was found when the log was opened.
pub struct Recovered<'a> {
    pub id: RecordId,
    pub kind: u8,
    pub context: Option<(ContextKey, &'a [u8])>,
    pub payload: &'a [u8],
}

/// Opens the log of a folder, which may be empty. `visit` gets each record that is there once, in the order of their ids;
/// all of them are live until they are released. Blocks.
pub fn open<D: Disk>(
    disk: D,
    options: LogOptions,
    visit: &mut dyn FnMut(Recovered<'_>),
) -> Result<(Log, Committer<D>), OpenError> {
    let options = options.settled();
    let found = find_segments(&disk)?;
    let mut reading =
        Reading { index: Index::new(1), next_context: 1, known_contexts: HashMap::new(), active: None, visit };
    for (at, file) in found.chain.iter().enumerate() {
        reading.read(file, found.chain.get(at + 1).map(|next| &next.header))?;
    }
    let active = reading.active.take();
    let Reading { mut index, next_context, .. } = reading;
    index.has_active = active.is_some();
    settle_names(&disk, &found.useless)?;
    let next_id = index.indexed_below();
    let shared = Arc::new(Shared {
        queue: Queue::new(options.bounds(), next_id),
        index: Mutex::new(index),
        counters: Counters::default(),
        next_context: next_context.into(),
    });
    let committer = Committer {
        disk,
        shared: shared.clone(),
        options,
        active,
        next_number: found.next_number,
        buffer: Vec::new(),
        chores_paused: false,
        marked_closed: false,
    };
    let active = committer.active.as_ref().map_or(0, |active| active.number);
    shared.queue.set_used(committer.used_bytes(), active);
    Ok((Log::new(shared), committer))
}

struct FoundFile {
    name: String,
    header: SegmentHeader,
    file: SharedFile,
    file_bytes: u64,
}

struct FoundSegments {
    /// Each the successor of the one before.
    chain: Vec<FoundFile>,
    /// Files that nothing was ever acknowledged in, or whose records are kept by another one.
    useless: Vec<String>,
    next_number: u64,
}

fn find_segments<D: Disk>(disk: &D) -> Result<FoundSegments, OpenError> {
    let names = disk.list().map_err(|error| OpenError::Io { file: "the folder".to_owned(), error })?;
    let mut numbers: Vec<u64> = names.iter().filter_map(|name| number_of(name)).collect();
    numbers.sort_unstable();
    let mut useless: Vec<String> = names.into_iter().filter(|name| name.ends_with(".rewrite")).collect();
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
    Ok(FoundSegments { chain, useless, next_number: numbers.last().map_or(1, |last| last + 1) })
}

/// `None`: a file that was being made when the process ended.
fn open_segment<D: Disk>(disk: &D, name: &str, number: u64) -> Result<Option<FoundFile>, OpenError> {
    let failed = |error| OpenError::Io { file: name.to_owned(), error };
    let file = disk.open(name).map_err(failed)?;
    let file_bytes = file.len().map_err(failed)?;
    let mut bytes = [0; SEGMENT_HEADER_BYTES];
    read_up_to(&file, &mut bytes).map_err(failed)?;
    let header = match SegmentHeader::decode(&bytes) {
        Ok(header) if header.number == number && header.covers_from <= number => header,
        Ok(_) => return Err(damaged(name, 0, "its header is that of another segment", "all of it is lost")),
        Err(HeaderFault::Version(version)) if is_empty(&file, file_bytes).map_err(failed)? => {
            tracing::debug!(version, "an empty segment with half a header");
            return Ok(None);
        }
        Err(fault @ HeaderFault::Version(_)) => {
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

/// Whether nothing stands behind the header. Records are only written after the header was synced.
fn is_empty(file: &dyn DiskFile, file_bytes: u64) -> io::Result<bool> {
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

/// Puts the segments into a row, the newest leading to the ones before.
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

/// Whoever made the last segment may have been killed before its name was synced: what is written to it now must not go with it.
fn settle_names<D: Disk>(disk: &D, useless: &[String]) -> Result<(), OpenError> {
    for name in useless {
        disk.remove(name).map_err(|error| OpenError::Io { file: name.clone(), error })?;
    }
    disk.sync_directory().map_err(|error| OpenError::Io { file: "the folder".to_owned(), error })
}

fn write_again(file: &dyn DiskFile, mut offset: u64, end: u64) -> io::Result<()> {
    let mut bytes = vec![0; 1 << 20];
    while offset < end {
        let wanted = usize::try_from(end - offset).unwrap_or(usize::MAX).min(bytes.len());
        let count = match file.read_at(offset, &mut bytes[..wanted])? {
            // Of a header that ends in zeros, the end may be missing, and is zeros to its readers.
            0 => {
                bytes[..wanted].fill(0);
                wanted
            }
            count => count,
        };
        file.write_at(offset, &bytes[..count])?;
        offset += count as u64;
    }
    Ok(())
}

struct Reading<'v> {
    index: Index,
    next_context: u64,
    /// Segments repeat each other's contexts.
    known_contexts: HashMap<Box<[u8]>, Context>,
    /// The last segment, if more can be written to it.
    active: Option<Active>,
    visit: &'v mut dyn FnMut(Recovered<'_>),
}

/// How a segment's reading ended.
struct End {
    bytes: u64,
    group: u32,
    /// Where the last group begins; all before it was synced, or it would not be there.
    last_group_offset: u64,
    /// More may be written behind it.
    is_clean: bool,
}

impl Reading<'_> {
    fn read(&mut self, file: &FoundFile, next: Option<&SegmentHeader>) -> Result<(), OpenError> {
        let header = &file.header;
        let end = match (header.sealed_bytes, next) {
            (0, None) => None,
            (0, Some(next)) => Some(next.previous_bytes),
            (sealed, _) => Some(sealed),
        };
        if end.is_some_and(|end| end > file.file_bytes || end < SEGMENT_HEADER_BYTES as u64) {
            let why = "the file is shorter than what was written to it";
            return Err(damaged(&file.name, file.file_bytes, why, "what stood behind its end is lost"));
        }
        let until = end.unwrap_or(file.file_bytes);
        let mut scan = Scan::new(file.file.clone(), header.checksums(), SEGMENT_HEADER_BYTES as u64, until);
        let segment = Segment::new(*header, file.file.clone(), file.file_bytes, until);
        self.index.begin(segment);
        let ended = self.read_records(file, &mut scan, end.is_some())?;
        self.index.end(ended.bytes);
        if end.is_none() {
            self.take_up(file, &ended).map_err(|error| OpenError::Io { file: file.name.clone(), error })?;
        }
        Ok(())
    }

    /// What was found at the end of the last segment may not have been synced by whoever wrote it. It is written once more: if their
    /// sync failed, the cache may hold it as if it were on the disk, and ours would succeed without writing anything.
    fn take_up(&mut self, file: &FoundFile, ended: &End) -> io::Result<()> {
        write_again(&*file.file, ended.last_group_offset, ended.bytes)?;
        file.file.sync()?;
        if ended.is_clean && ended.bytes < file.file_bytes {
            self.active = Some(Active {
                number: file.header.number,
                file: file.file.clone(),
                checksums: file.header.checksums(),
                end: ended.bytes,
                bytes: file.file_bytes,
                group: ended.group,
                contexts: self.index.segments.back().map_or(0, |segment| segment.contexts.len() as u32),
            });
        }
        Ok(())
    }

    fn read_records(&mut self, file: &FoundFile, scan: &mut Scan, is_sealed: bool) -> Result<End, OpenError> {
        let failed = |error| OpenError::Io { file: file.name.clone(), error };
        let (mut group, mut group_ended) = (0, true);
        let mut last_group_offset = 0;
        loop {
            let offset = scan.offset;
            let at_end = scan.at_end();
            let why = match scan.next().map_err(failed)? {
                Found::Record(record) => match self.take(&record, group, group_ended) {
                    Ok(()) => {
                        if record.header.group != group {
                            last_group_offset = offset;
                        }
                        (group, group_ended) = (record.header.group, record.header.ends_group);
                        continue;
                    }
                    Err(why) => why,
                },
                Found::Nothing if at_end => {
                    return Ok(End { bytes: offset, group, last_group_offset, is_clean: group_ended })
                }
                Found::Nothing => "there is no record where one should be",
                Found::Bad(why) => why,
            };
            if is_sealed {
                return Err(self.damage(file, scan, why, None).map_err(failed)?);
            }
            // What begins here was being written when the process ended, unless something later was written behind it.
            let torn_group = if group_ended { group + 1 } else { group };
            if scan.rest_is_zero().map_err(failed)? {
                return Ok(End { bytes: offset, group, last_group_offset, is_clean: group_ended });
            }
            if let Some(later) = scan.later_group(torn_group).map_err(failed)? {
                return Err(self.damage(file, scan, why, Some(later)).map_err(failed)?);
            }
            tracing::warn!(segment = %file.name, offset, "the log ends within a group that was being written; cut off there");
            return Ok(End { bytes: offset, group, last_group_offset, is_clean: false });
        }
    }

    fn take(&mut self, record: &RawRecord<'_>, group: u32, group_ended: bool) -> Result<(), &'static str> {
        let header = &record.header;
        let expected = if group_ended { group.checked_add(1) } else { Some(group) };
        if Some(header.group) != expected {
            return Err("a record of another group");
        }
        match header.kind {
            KIND_CLOSED => Ok(()),
            KIND_CONTEXT => self.take_context(record),
            _ => self.visit(record),
        }
    }

    fn take_context(&mut self, record: &RawRecord<'_>) -> Result<(), &'static str> {
        let Some(segment) = self.index.segments.back_mut() else { return Err("a context of no segment") };
        if record.header.context as usize != segment.contexts.len() + 1 {
            return Err("contexts are not in order");
        }
        let context = match self.known_contexts.get(record.payload) {
            Some(known) => known.clone(),
            None => {
                let context = Context::new(self.next_context, record.payload.into());
                self.next_context += 1;
                self.known_contexts.insert(record.payload.into(), context.clone());
                context
            }
        };
        context.set_place(segment.header.number, record.header.context);
        segment.contexts.push(context);
        Ok(())
    }

    fn visit(&mut self, record: &RawRecord<'_>) -> Result<(), &'static str> {
        let header = &record.header;
        if header.id < self.index.indexed_below() {
            return Err("ids that go back");
        }
        let Some(segment) = self.index.segments.back() else { return Err("a record of no segment") };
        let context = match header.context {
            0 => None,
            index => Some(segment.contexts.get(index as usize - 1).ok_or("a context that is not there")?),
        };
        (self.visit)(Recovered {
            id: RecordId(header.id),
            kind: header.kind,
            context: context.map(|context| (context.key(), context.bytes())),
            payload: record.payload,
        });
        self.index.add(header.id, record.offset as u32, header.record_bytes());
        Ok(())
    }

    fn damage(&self, file: &FoundFile, scan: &mut Scan, why: &str, later: Option<u64>) -> io::Result<OpenError> {
        let offset = scan.offset;
        let later = match later {
            Some(later) => Some(later),
            None => scan.later_group(0)?,
        };
        let lost = match later {
            Some(later) => {
                format!("the records in the {} bytes from there on are lost, those behind are not", later - offset)
            }
            None => {
                format!("the records in the {} bytes from there to the segment's end are lost", scan.end() - offset)
            }
        };
        Ok(damaged(&file.name, offset, why, &lost))
    }
}

fn damaged(segment: &str, offset: u64, why: &str, lost: &str) -> OpenError {
    OpenError::Corrupt(Corruption { segment: segment.to_owned(), offset, why: why.to_owned(), lost: lost.to_owned() })
}
