//! The segment that is written to, and the beginning of a new one.

use std::collections::BTreeSet;
use std::io;
use std::ops::RangeInclusive;
use std::sync::Arc;

use super::committer::Committer;
use super::context::Context;
use super::error::CommitError;
use super::format::{
    record_bytes, Checksums, NewRecord, SegmentHeader, KIND_CLOSED, KIND_CONTEXT, MAX_SEGMENT_BYTES,
    SEGMENT_HEADER_BYTES,
};
use super::index::{Index, Segment, SharedFile};
use super::queue::{Entry, Room};
use crate::disk::{Disk, DiskFile};

/// The smallest segment, in bytes: the smallest block of a disk, unless the usual size is smaller.
const SMALLEST_BYTES: u64 = 4 << 10;

pub(super) struct Active {
    pub(super) number: u64,
    pub(super) file: SharedFile,
    pub(super) checksums: Checksums,
    /// The offset where the next group begins.
    pub(super) end: u64,
    /// Room that was taken for the segment on the disk, in bytes.
    pub(super) bytes: u64,
    pub(super) group: u32,
    /// The number of contexts that stand in the segment.
    pub(super) contexts: u32,
}

/// The records and contexts of an encoded group.
pub(super) struct Encoded {
    records: Vec<EncodedRecord>,
    contexts: Vec<Context>,
}

struct EncodedRecord {
    id: u64,
    offset: u32,
    bytes: usize,
}

pub(crate) fn file_name(number: u64) -> String {
    format!("{number:016x}.segment")
}

pub(crate) fn number_of(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".segment")?;
    (digits.len() == 16).then(|| u64::from_str_radix(digits, 16).ok())?
}

impl Active {
    pub(super) fn name(&self) -> String {
        file_name(self.number)
    }

    /// Encodes the entries into `buffer` as the segment's next group, each context before its first use.
    pub(super) fn encode(&mut self, entries: &[&Entry], buffer: &mut Vec<u8>) -> Encoded {
        buffer.clear();
        self.group += 1;
        let mut encoded = Encoded { records: Vec::with_capacity(entries.len()), contexts: Vec::new() };
        for (at, entry) in entries.iter().enumerate() {
            let context = entry.context.as_ref().map_or(0, |context| self.place(context, &mut encoded, buffer));
            let offset = (self.end + buffer.len() as u64) as u32;
            let record = NewRecord {
                id: entry.id.0,
                group: self.group,
                kind: entry.kind,
                ends_group: at + 1 == entries.len(),
                context,
                payload: &entry.payload,
            };
            record.write(self.checksums, buffer);
            if entry.kind != KIND_CLOSED {
                encoded.records.push(EncodedRecord {
                    id: entry.id.0,
                    offset,
                    bytes: record_bytes(entry.payload.len()),
                });
            }
        }
        encoded
    }

    fn place(&mut self, context: &Context, encoded: &mut Encoded, buffer: &mut Vec<u8>) -> u32 {
        if let Some(place) = context.place_in(self.number) {
            return place;
        }
        self.contexts += 1;
        let payload = context.bytes();
        let record = NewRecord {
            id: 0,
            group: self.group,
            kind: KIND_CONTEXT,
            ends_group: false,
            context: self.contexts,
            payload,
        };
        record.write(self.checksums, buffer);
        context.set_place(self.number, self.contexts);
        encoded.contexts.push(context.clone());
        self.contexts
    }

    /// Takes back the contexts of a group that was not written.
    pub(super) fn forget(&mut self, encoded: &Encoded) {
        self.contexts -= encoded.contexts.len() as u32;
        encoded.contexts.iter().for_each(Context::forget_place);
    }
}

impl Index {
    pub(super) fn commit(&mut self, encoded: &Encoded, end: u64) {
        encoded.records.iter().for_each(|record| self.add(record.id, record.offset, record.bytes));
        if let Some(active) = self.segments.back_mut() {
            active.valid_bytes = end;
            active.contexts.extend(encoded.contexts.iter().cloned());
        }
    }
}

/// The most bytes that entries take in a segment.
struct Needed {
    here_bytes: u64,
    /// Bytes in a new segment, which has no contexts yet.
    anew_bytes: u64,
}

impl<D: Disk> Committer<D> {
    /// Makes sure that the active segment has room for the entries.
    pub(super) fn make_room(&mut self, entries: &[&Entry]) -> Result<(), CommitError> {
        if entries.is_empty() || self.has_room(entries) {
            return Ok(());
        }
        self.begin_segment(self.needed(entries).anew_bytes, self.kept_bytes(entries))
    }

    pub(super) fn has_room(&self, entries: &[&Entry]) -> bool {
        let Some(active) = &self.active else { return false };
        active.end + self.needed(entries).here_bytes + self.kept_bytes(entries) <= active.bytes
    }

    /// Returns the bytes that a segment keeps beside these entries for records that free room, in case no
    /// other segment can be had: enough to finish the records of any segment, so that this one goes and room
    /// comes back.
    fn kept_bytes(&self, entries: &[&Entry]) -> u64 {
        let ordinary = entries.iter().filter(|entry| entry.room == Room::Ordinary).count() as u64;
        if ordinary == 0 {
            return 0;
        }
        let ends_bytes = (self.shared.index().most_live_records() + ordinary) * self.end_bytes;
        let least = self.options.reserve_bytes.min(self.options.segment_bytes / 8);
        least.max(ends_bytes.min(self.options.segment_bytes / 4 * 3))
    }

    fn needed(&self, entries: &[&Entry]) -> Needed {
        let number = self.active.as_ref().map_or(0, |active| active.number);
        let mut seen = BTreeSet::new();
        let mut needed = Needed { here_bytes: 0, anew_bytes: 0 };
        let mut last = None;
        for entry in entries {
            let record = record_bytes(entry.payload.len()) as u64;
            needed.here_bytes += record;
            needed.anew_bytes += record;
            let Some(context) = entry.context.as_ref().filter(|context| last != Some(context.key())) else { continue };
            last = Some(context.key());
            if seen.insert(context.key()) {
                let bytes = record_bytes(context.bytes().len()) as u64;
                needed.anew_bytes += bytes;
                needed.here_bytes += if context.place_in(number).is_none() { bytes } else { 0 };
            }
        }
        needed
    }

    /// Begins a segment with room for a group of `group_bytes`, and for the bytes that are kept beside it. If
    /// that fails, the segment before stays in use if it may.
    pub(super) fn begin_segment(&mut self, group_bytes: u64, kept_bytes: u64) -> Result<(), CommitError> {
        let sizes = self.sizes_of_new(group_bytes + kept_bytes)?;
        let number = self.next_number;
        self.next_number += 1;
        let mut header = self.header_of_new(number).map_err(|error| CommitError::io(&error, true))?;
        let (file, bytes) = self.create(number, sizes).map_err(|error| not_begun(&error))?;
        header.file_bytes = bytes;
        if let Err(error) = self.write_header(&file, &header) {
            // It may stand there, and would say where the one before ends: that must not be written to, unless this is
            // gone.
            let is_gone = self.disk.remove(&file_name(number)).and_then(|()| self.disk.sync_directory()).is_ok();
            if !is_gone {
                self.active = None;
                self.shared.index().has_active = false;
            }
            return Err(not_begun(&error));
        }
        let file: SharedFile = Arc::new(file);
        let end = SEGMENT_HEADER_BYTES as u64;
        self.active = Some(Active {
            number,
            file: file.clone(),
            checksums: header.checksums(),
            end,
            bytes,
            group: 0,
            contexts: 0,
        });
        let mut index = self.shared.index();
        index.segments.push_back(Segment::new(header, file, bytes, end));
        index.has_active = true;
        index.uncertain.clear();
        drop(index);
        self.note_used();
        Ok(())
    }

    /// Creates a file as large as the disk has room for. Returns the file with its size.
    fn create(&self, number: u64, sizes: RangeInclusive<u64>) -> io::Result<(D::File, u64)> {
        let mut bytes = *sizes.end();
        loop {
            match self.disk.create(&file_name(number), bytes) {
                Err(error) if is_full(&error) && bytes > *sizes.start() => bytes = (bytes / 2).max(*sizes.start()),
                outcome => return outcome.map(|file| (file, bytes)),
            }
        }
    }

    fn write_header(&self, file: &D::File, header: &SegmentHeader) -> io::Result<()> {
        file.write_at(0, &header.encode())?;
        file.sync()?;
        self.disk.sync_directory()
    }

    /// Returns the header of a new segment. Its file size is set later.
    fn header_of_new(&self, number: u64) -> io::Result<SegmentHeader> {
        let salt = self.disk.salt()?;
        let index = self.shared.index();
        let last = index.segments.back();
        Ok(SegmentHeader {
            number,
            covers_from: number,
            previous: last.map(|segment| segment.header.number),
            previous_bytes: last.map_or(0, |segment| segment.valid_bytes),
            first_id: index.indexed_below(),
            salt,
            sealed_bytes: 0,
            file_bytes: 0,
        })
    }

    /// Returns the possible sizes of a new segment, from the smallest that has room to the usual one.
    fn sizes_of_new(&self, needed_bytes: u64) -> Result<RangeInclusive<u64>, CommitError> {
        let bounds = self.shared.queue.bounds();
        let least = SEGMENT_HEADER_BYTES as u64 + needed_bytes;
        let taken = self.shared.index().totals().file_bytes + self.rewrite_bytes();
        let left = bounds.reserve_bytes.saturating_sub(taken);
        let bytes = self.options.segment_bytes.max(least).min(left).min(MAX_SEGMENT_BYTES);
        if bytes < least {
            let text = format!("the log's bound of {} bytes is reached", bounds.max_bytes);
            return Err(CommitError::DiskFull(text.into()));
        }
        Ok(least.max(SMALLEST_BYTES).min(bytes)..=bytes)
    }
}

fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

fn not_begun(error: &io::Error) -> CommitError {
    match is_full(error) {
        true => CommitError::DiskFull(error.to_string().into()),
        false => CommitError::io(error, true),
    }
}
