//! All segments, oldest first, and their contents.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use super::contents::Contents;
use super::context::Context;
use super::format::{Checksums, SegmentHeader};
use crate::disk::DiskFile;

/// A segment's file, whatever disk it is on.
pub(crate) type SharedFile = Arc<dyn DiskFile>;

pub(crate) struct Segment {
    pub(crate) header: SegmentHeader,
    pub(crate) file: SharedFile,
    /// Bytes that the file takes on the disk.
    pub(crate) file_bytes: u64,
    /// The end of the bytes that were synced.
    pub(crate) valid_bytes: u64,
    pub(crate) contents: Contents,
    /// Contexts in the order of their definition in the segment.
    pub(crate) contexts: Vec<Context>,
}

impl Segment {
    pub(crate) fn new(header: SegmentHeader, file: SharedFile, file_bytes: u64, valid_bytes: u64) -> Segment {
        Segment { header, file, file_bytes, valid_bytes, contents: Contents::default(), contexts: Vec::new() }
    }
}

#[derive(Default)]
pub(crate) struct Index {
    /// Segments, the oldest first. The last one is the active one, while there is one.
    pub(crate) segments: VecDeque<Segment>,
    /// The lowest id that may still be written: every lower id is in a segment, or will never be.
    indexed_below: u64,
    /// Records that were released before they were written.
    released_early: BTreeSet<u64>,
    /// True if the last segment is the one that is written to.
    pub(crate) has_active: bool,
    /// True if a file's new name is not yet sure to be on the disk: the files that it replaces may be back
    /// after a crash.
    pub(crate) names_unsynced: bool,
    /// Records of a group that failed. A start may find them, until there is a segment behind theirs.
    pub(crate) uncertain: BTreeSet<u64>,
}

/// The place where a record is searched.
pub(crate) struct RecordLocation {
    pub(crate) segment: u64,
    /// The segment's salt, which changes when the segment is rewritten.
    pub(crate) salt: u64,
    pub(crate) file: SharedFile,
    pub(crate) checksums: Checksums,
    pub(crate) near: u32,
    pub(crate) valid_bytes: u64,
}

/// Sums over segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) file_bytes: u64,
    pub(crate) live_bytes: u64,
    pub(crate) live_records: u64,
    pub(crate) records: u64,
}

impl Index {
    pub(crate) fn new(indexed_below: u64) -> Index {
        Index { indexed_below, ..Index::default() }
    }

    /// Adds a segment, whose records are added next.
    pub(crate) fn begin(&mut self, segment: Segment) {
        self.indexed_below = self.indexed_below.max(segment.header.first_id);
        self.segments.push_back(segment);
    }

    /// Sets the end of the last segment.
    pub(crate) fn end(&mut self, valid_bytes: u64) {
        self.segments.iter_mut().last().into_iter().for_each(|segment| segment.valid_bytes = valid_bytes);
    }

    /// Adds a record of the active segment.
    pub(crate) fn add(&mut self, id: u64, offset: u32, bytes: usize) {
        // What could not be written of its group may have come after it.
        self.indexed_below = self.indexed_below.max(id + 1);
        let was_released = self.released_early.remove(&id);
        let Some(active) = self.segments.back_mut() else { return };
        active.contents.push(id, offset, bytes);
        if was_released {
            active.contents.release(id);
        }
    }

    /// Notes that a record won't be written.
    pub(crate) fn skip(&mut self, id: u64) {
        self.indexed_below = self.indexed_below.max(id + 1);
        self.released_early.remove(&id);
    }

    pub(crate) fn release(&mut self, id: u64) {
        if id >= self.indexed_below {
            self.released_early.insert(id);
        } else if let Some(segment) = self.segment_of(id) {
            self.segments[segment].contents.release(id);
        }
    }

    pub(crate) fn is_live(&self, id: u64) -> bool {
        self.segment_of(id).is_some_and(|at| self.segments[at].contents.is_live(id))
    }

    /// Says whether a record that was not released could not be written.
    pub(crate) fn is_missing(&self, id: u64) -> bool {
        let is_there = |at: usize| self.segments.get(at).is_some_and(|segment| segment.contents.has(id));
        id < self.indexed_below && !self.segment_of(id).is_some_and(is_there)
    }

    /// Says whether a record, released or not, is in a file, or may still be.
    pub(crate) fn may_have(&self, id: u64) -> bool {
        self.names_unsynced || self.uncertain.contains(&id) || !self.is_missing(id)
    }

    /// Returns the largest number of records of one segment that are still needed.
    pub(crate) fn most_live_records(&self) -> u64 {
        self.segments.iter().map(|segment| segment.contents.live_records()).max().unwrap_or(0)
    }

    pub(crate) fn place(&self, id: u64) -> Option<RecordLocation> {
        let segment = &self.segments[self.segment_of(id)?];
        if !segment.contents.is_live(id) {
            return None;
        }
        Some(RecordLocation {
            segment: segment.header.number,
            salt: segment.header.salt,
            file: segment.file.clone(),
            checksums: segment.header.checksums(),
            near: segment.contents.near(id)?,
            valid_bytes: segment.valid_bytes,
        })
    }

    /// Returns a context of a segment by its number, counted from 1; `None` if the segment has been rewritten
    /// or is gone.
    pub(crate) fn context(&self, segment: u64, salt: u64, index: u32) -> Option<Context> {
        let at = self.segments.partition_point(|known| known.header.number < segment);
        let found =
            self.segments.get(at).filter(|found| found.header.number == segment && found.header.salt == salt)?;
        found.contexts.get((index as usize).checked_sub(1)?).cloned()
    }

    /// Returns the number of old segments. Old segments are those that are not written to any more.
    pub(crate) fn old_segments(&self) -> usize {
        self.segments.len() - usize::from(self.has_active && !self.segments.is_empty())
    }

    pub(crate) fn old_totals(&self) -> Totals {
        totals(self.segments.iter().take(self.old_segments()))
    }

    pub(crate) fn totals(&self) -> Totals {
        totals(self.segments.iter())
    }

    /// Says whether the oldest segment can go. The last one stays: it shows which ids were given out.
    pub(crate) fn front_is_dead(&self) -> bool {
        self.old_segments() > 0 && self.segments.len() > 1 && self.segments[0].contents.live_records() == 0
    }

    /// Returns the lowest id that may still be written: every lower id is in a segment, or will never be.
    pub(crate) fn indexed_below(&self) -> u64 {
        self.indexed_below
    }

    fn segment_of(&self, id: u64) -> Option<usize> {
        self.segments.partition_point(|segment| segment.header.first_id <= id).checked_sub(1)
    }
}

fn totals<'a>(segments: impl Iterator<Item = &'a Segment>) -> Totals {
    segments.fold(Totals::default(), |sum, segment| Totals {
        file_bytes: sum.file_bytes + segment.file_bytes,
        live_bytes: sum.live_bytes + segment.contents.live_bytes(),
        live_records: sum.live_records + segment.contents.live_records(),
        records: sum.records + segment.contents.records(),
    })
}
