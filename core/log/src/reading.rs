//! The reading of a log's segments, one after the other, which distinguishes a torn tail from damage.

use std::collections::HashMap;
use std::io;
use std::ops::Range;

use super::chain::{damaged, FoundFile};
use super::context::Context;
use super::error::OpenError;
use super::format::{SegmentHeader, KIND_CLOSED, KIND_CONTEXT, SEGMENT_HEADER_BYTES};
use super::index::{Index, Segment};
use super::scan::{Found, RawRecord, Scan};
use super::segment::Active;
use super::{ContextKey, RecordId};

/// A record that was found when the log was opened.
pub struct Recovered<'a> {
    pub id: RecordId,
    pub kind: u8,
    pub context: Option<(ContextKey, &'a [u8])>,
    pub payload: &'a [u8],
}

pub(super) struct Reading<'v> {
    index: Index,
    next_context: u64,
    /// Contexts by their bytes, because segments repeat each other's contexts.
    known_contexts: HashMap<Box<[u8]>, Context>,
    visit: &'v mut dyn FnMut(Recovered<'_>),
}

/// The end of a log.
pub(super) struct Tail {
    /// The bytes that may not have been synced: those of the last group, or of the header if there is no
    /// group yet.
    pub(super) last_group: Range<u64>,
    /// The last segment, if more may be written to it.
    pub(super) active: Option<Active>,
}

/// The end of a segment, as reading found it.
struct End {
    bytes: u64,
    group: u32,
    /// The offset of the last group. All bytes before it were synced, or the group would not be there.
    last_group_offset: u64,
    /// True if more may be written behind the end.
    is_clean: bool,
}

impl<'v> Reading<'v> {
    pub(super) fn new(first_id: u64, visit: &'v mut dyn FnMut(Recovered<'_>)) -> Reading<'v> {
        Reading { index: Index::new(first_id), next_context: 1, known_contexts: HashMap::new(), visit }
    }

    /// Returns the index of the records that were read, and the key of the next context.
    pub(super) fn into_index(self) -> (Index, u64) {
        (self.index, self.next_context)
    }

    /// Reads a segment. Returns the tail if it is the last segment, whose end no header says.
    pub(super) fn read(&mut self, file: &FoundFile, next: Option<&SegmentHeader>) -> Result<Option<Tail>, OpenError> {
        let header = &file.header;
        let end = match (header.sealed_bytes, next) {
            (0, None) => None,
            (0, Some(next)) => Some(next.previous_bytes),
            (sealed, _) => Some(sealed),
        };
        let expected = end.unwrap_or(0).max(header.file_bytes);
        if expected > file.file_bytes {
            let why = format!("the file has {} bytes, and should have {expected}", file.file_bytes);
            return Err(damaged(&file.name, file.file_bytes, &why, "what stood behind its end is lost"));
        }
        if end.is_some_and(|end| end < SEGMENT_HEADER_BYTES as u64) {
            return Err(damaged(&file.name, 0, "its end is before its beginning", "all of it is lost"));
        }
        let until = end.unwrap_or(file.file_bytes);
        let mut scan = Scan::new(file.file.clone(), header.checksums(), SEGMENT_HEADER_BYTES as u64, until);
        let segment = Segment::new(*header, file.file.clone(), file.file_bytes, until);
        self.index.begin(segment);
        let ended = self.read_records(file, &mut scan, end.is_some())?;
        self.index.end(ended.bytes);
        let may_go_on = ended.is_clean && ended.bytes < file.file_bytes;
        Ok(end.is_none().then(|| Tail {
            last_group: ended.last_group_offset..ended.bytes,
            active: may_go_on.then(|| self.take_up(file, &ended)),
        }))
    }

    fn take_up(&self, file: &FoundFile, ended: &End) -> Active {
        Active {
            number: file.header.number,
            file: file.file.clone(),
            checksums: file.header.checksums(),
            end: ended.bytes,
            bytes: file.file_bytes,
            group: ended.group,
            contexts: self.index.segments.back().map_or(0, |segment| segment.contexts.len() as u32),
        }
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
