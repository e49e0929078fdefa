//! One writer's log: its segments, the rows that wait in them, and the batches that are not done.

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::folder::Folder;
use super::format::{
    record_bytes, rows_payload_bytes, Kind, Members, MAX_PAYLOAD_BYTES, MEMBERS_BYTES, SEGMENT_HEADER_BYTES,
};
use super::groups::{Group, Groups, RecordLocation};
use super::options::DiskOptions;
use super::read::{Part, Reading};
use super::segment::{Active, Blank, Durability, NewRecord, Segment};
use super::syncing::Unsynced;
use crate::buffer::{AppendError, Appended, BufferError, Kept, Open, Ready, Sealed};
use crate::destination::Destination;
use crate::id::BatchId;
use crate::rows::{held_bytes, Rows};

pub(super) struct Log {
    folder: Folder,
    options: DiskOptions,
    destination: Arc<Destination>,
    destination_bytes: Vec<u8>,
    /// True for this writer's log, false for that of a dead writer.
    is_own: bool,
    is_closed: bool,
    segments: VecDeque<Segment>,
    active: Option<Active>,
    next_number: u64,
    next_position: u64,
    groups: Groups,
    batches: HashMap<BatchId, Batch>,
    disk_bytes: u64,
    /// The number of seals and splits that were recorded.
    recorded: u64,
    /// The number of segments' names that were made in the folder; `synced_names` of them are sure to be there.
    names: u64,
    synced_names: u64,
}

/// A batch that is sealed and not done.
#[derive(Debug, Clone, Copy)]
pub(super) struct Batch {
    pub(super) place: RecordLocation,
    pub(super) first: u64,
    pub(super) rows: u64,
    pub(super) held_bytes: u64,
    /// The number of the seal or split that made the batch.
    pub(super) recorded: u64,
}

/// The contents of a dead writer's log.
pub(super) struct Contents {
    pub(super) segments: VecDeque<Segment>,
    pub(super) next_number: u64,
    pub(super) next_position: u64,
    pub(super) groups: Groups,
    pub(super) batches: HashMap<BatchId, Batch>,
}

impl Log {
    pub(super) fn create(
        folder: Folder,
        destination: Arc<Destination>,
        options: &DiskOptions,
    ) -> Result<Log, BufferError> {
        let contents = Contents {
            segments: VecDeque::new(),
            next_number: 0,
            next_position: 0,
            groups: Groups::new(options),
            batches: HashMap::new(),
        };
        let mut log = Log::of(folder, destination, options, contents);
        log.is_own = true;
        // A folder that can't be written to shows now.
        log.roll(options.segment_bytes)?;
        Ok(log)
    }

    pub(super) fn of(folder: Folder, destination: Arc<Destination>, options: &DiskOptions, contents: Contents) -> Log {
        let Contents { segments, next_number, next_position, groups, batches } = contents;
        let disk_bytes = segments.iter().map(|segment| segment.bytes).sum();
        let destination_bytes = destination.to_bytes();
        Log {
            folder,
            options: options.clone(),
            destination,
            destination_bytes,
            is_own: false,
            is_closed: false,
            segments,
            active: None,
            next_number,
            next_position,
            groups,
            batches,
            disk_bytes,
            recorded: 0,
            names: 0,
            synced_names: 0,
        }
    }

    pub(super) fn has(&self, id: BatchId) -> bool {
        self.batches.contains_key(&id)
    }

    pub(super) fn is_done(&self) -> bool {
        self.batches.is_empty() && self.groups.rows == 0
    }

    pub(super) fn recorded(&self) -> u64 {
        self.recorded
    }

    pub(super) fn disk_bytes(&self) -> u64 {
        self.disk_bytes
    }

    pub(super) fn next_position(&self) -> u64 {
        self.next_position
    }

    pub(super) fn open(&self) -> Open {
        Open { rows: self.groups.rows, full_batches: self.groups.full() }
    }

    /// Appends all of the rows, or none. `others_bytes` returns the bytes of other logs that count for the
    /// limit too.
    pub(super) fn append(
        &mut self,
        rows: Rows<'_>,
        others_bytes: impl FnOnce() -> u64,
    ) -> Result<Appended, AppendError> {
        if self.is_closed {
            return Err(AppendError::Closed);
        }
        let first = self.next_position;
        let waited = self.groups.rows;
        let needed_bytes = record_bytes(rows_payload_bytes(rows)) as u64;
        let reserve_bytes = self.options.reserve_bytes();
        let fits = self.active.as_ref().is_some_and(|active| active.room(reserve_bytes) >= needed_bytes);
        let is_one_record = rows.count() == 1
            || rows.count() <= self.options.batch_rows && rows.bytes().len() <= self.options.record_bytes();
        let has_filled = match fits && is_one_record {
            true if rows.is_empty() => false,
            true => self.push_rows(rows),
            false => self.append_in_parts(rows, others_bytes)?,
        };
        let ready = match (has_filled, waited) {
            (true, _) => Ready::Full,
            (false, 0) => Ready::FirstRow,
            (false, _) => Ready::No,
        };
        Ok(Appended { first, kept: Kept::Now, ready })
    }

    /// Appends rows that need several records or a new segment. Takes all of those segments before it writes
    /// a record.
    fn append_in_parts(&mut self, rows: Rows<'_>, others_bytes: impl FnOnce() -> u64) -> Result<bool, AppendError> {
        let records = self.cut(rows)?;
        let sizes = self.make_room(&records, others_bytes())?;
        let mut blanks = VecDeque::new();
        for (index, &bytes) in sizes.iter().enumerate() {
            match Blank::create(&self.folder.path, self.next_number + index as u64, bytes) {
                Ok(blank) => blanks.push_back(blank),
                Err(error) => {
                    blanks.into_iter().for_each(Blank::discard);
                    return Err(AppendError::Failed(error.into()));
                }
            }
        }
        let mut has_filled = false;
        for record in records {
            if !self.has_room_for(record) {
                if let Some(blank) = blanks.pop_front() {
                    self.begin(blank).map_err(AppendError::Failed)?;
                }
            }
            has_filled |= self.push_rows(record);
        }
        Ok(has_filled)
    }

    fn cut<'a>(&self, mut rows: Rows<'a>) -> Result<Vec<Rows<'a>>, AppendError> {
        let mut records = Vec::new();
        while !rows.is_empty() {
            let count = rows.fitting(self.options.batch_rows, self.options.record_bytes(), 1);
            let (now, later) = rows.split_at(count);
            let bytes = rows_payload_bytes(now) as u64;
            let max_bytes = self.options.max_disk_bytes.min(MAX_PAYLOAD_BYTES as u64 - 64);
            if bytes > max_bytes {
                return Err(AppendError::TooLarge { bytes, max_bytes });
            }
            records.push(now);
            rows = later;
        }
        Ok(records)
    }

    /// Returns the sizes of the new segments that these records need.
    fn segments_for(&self, records: &[Rows<'_>]) -> Vec<u64> {
        let reserve_bytes = self.options.reserve_bytes();
        let overhead_bytes = SEGMENT_HEADER_BYTES as u64 + record_bytes(self.destination_bytes.len()) as u64;
        let mut room = self.active.as_ref().map_or(0, |active| active.room(reserve_bytes));
        let mut sizes = Vec::new();
        for &record in records {
            let needed = record_bytes(rows_payload_bytes(record)) as u64;
            if needed > room {
                let least = (overhead_bytes + needed + reserve_bytes).next_multiple_of(4096);
                let bytes = least.max(self.options.segment_bytes);
                sizes.push(bytes);
                room = bytes - overhead_bytes - reserve_bytes;
            }
            room -= needed;
        }
        sizes
    }

    fn has_room_for(&self, record: Rows<'_>) -> bool {
        let needed = record_bytes(rows_payload_bytes(record)) as u64;
        self.active.as_ref().is_some_and(|active| active.room(self.options.reserve_bytes()) >= needed)
    }

    /// Returns the sizes of the new segments that these records need, if the limit allows so many more bytes.
    fn make_room(&mut self, records: &[Rows<'_>], others_bytes: u64) -> Result<Vec<u64>, AppendError> {
        let max_bytes = self.options.max_disk_bytes;
        loop {
            let sizes = self.segments_for(records);
            let new_bytes: u64 = sizes.iter().sum();
            if new_bytes == 0 || self.disk_bytes + others_bytes + new_bytes <= max_bytes {
                return Ok(sizes);
            }
            if !self.is_done() || self.active.is_none() {
                return Err(match new_bytes > max_bytes {
                    true => AppendError::TooLarge { bytes: new_bytes, max_bytes },
                    false => AppendError::Full,
                });
            }
            // The segment that is written to holds nothing that anybody needs.
            self.active = None;
            self.release();
        }
    }

    fn push_rows(&mut self, rows: Rows<'_>) -> bool {
        let (active, segment) = (self.active.as_mut(), self.segments.back_mut());
        let (active, segment) = active.zip(segment).expect("room was made in a segment that is written to");
        let count = rows.count() as u64;
        let place = RecordLocation { segment: segment.number, offset: active.end };
        let lengths: &[u8] = as_bytes(rows.lengths());
        let (position, payload) = (self.next_position, [lengths, rows.bytes()]);
        active.push(NewRecord { kind: Kind::Rows, position, rows: count as u32, payload });
        self.next_position += count;
        segment.to = self.next_position;
        segment.undone += count;
        self.groups.push(Group { place, first: position, rows: count, bytes: rows.bytes().len() as u64 })
    }

    /// Appends a seal, split or done. These may go beyond `max_disk_bytes`, since they lead to room.
    fn push_control(&mut self, kind: Kind, payload: &[u8]) -> Result<(), BufferError> {
        let needed = record_bytes(payload.len()) as u64;
        if self.active.as_ref().is_none_or(|active| active.room(0) < needed) {
            // A dead writer's log needs little.
            let bytes = if self.is_own { self.options.segment_bytes } else { 64 << 10 };
            self.roll(bytes.max(needed + self.destination_bytes.len() as u64 + 4096))?;
        }
        if let Some(active) = self.active.as_mut() {
            active.push(NewRecord { kind, position: 0, rows: 0, payload: [payload, &[]] });
        }
        Ok(())
    }

    fn roll(&mut self, bytes: u64) -> Result<(), BufferError> {
        let blank = Blank::create(&self.folder.path, self.next_number, bytes)?;
        self.begin(blank)
    }

    fn begin(&mut self, blank: Blank) -> Result<(), BufferError> {
        let previous_end = self.active.as_ref().map(|active| active.end);
        let (segment, mut active) = blank.begin(self.next_position, previous_end.unwrap_or(0))?;
        if let (Some(previous), Some(end)) = (self.segments.back_mut(), previous_end) {
            previous.end = Some(end);
        }
        self.next_number = segment.number + 1;
        self.disk_bytes += segment.bytes;
        self.names += 1;
        active.push(NewRecord {
            kind: Kind::Destination,
            position: 0,
            rows: 0,
            payload: [&self.destination_bytes, &[]],
        });
        self.segments.push_back(segment);
        self.active = Some(active);
        self.release();
        Ok(())
    }

    pub(super) fn seal(&mut self) -> Result<Option<Sealed>, BufferError> {
        let Some(group) = self.groups.pop() else { return Ok(None) };
        let recorded = BatchId::random().map_err(BufferError::from).and_then(|id| {
            let mut payload = Vec::with_capacity(MEMBERS_BYTES);
            Members { id, from: group.first, to: group.end() }.push_to(&mut payload);
            self.push_control(Kind::Seal, &payload)?;
            Ok(id)
        });
        let id = recorded.inspect_err(|_| self.groups.put_back(group))?;
        let Group { place, first, rows, bytes } = group;
        let (recorded, held_bytes) = (self.sealings(), held_bytes(bytes as usize, rows as usize));
        let batch = Batch { place, first, rows, held_bytes, recorded };
        self.batches.insert(id, batch);
        Ok(Some(self.sealed(id, batch)))
    }

    /// Returns the number of a new seal or split. In dead writers' logs it is 0: they need no sync by this writer.
    fn sealings(&mut self) -> u64 {
        self.recorded += u64::from(self.is_own);
        if self.is_own {
            self.recorded
        } else {
            0
        }
    }

    fn sealed(&self, id: BatchId, batch: Batch) -> Sealed {
        let Batch { first, rows, held_bytes, .. } = batch;
        match self.is_own {
            true => Sealed { id, rows, positions: first..first + rows, held_bytes, destination: None },
            false => Sealed { id, rows, positions: 0..0, held_bytes: 0, destination: Some(self.destination.clone()) },
        }
    }

    /// Returns the batches of a dead writer's log, in order.
    pub(super) fn sealed_batches(&self) -> Vec<Sealed> {
        let mut batches: Vec<_> = self.batches.iter().collect();
        batches.sort_by_key(|(_, batch)| batch.first);
        batches.into_iter().map(|(&id, &batch)| self.sealed(id, batch)).collect()
    }

    pub(super) fn reading(&self, id: BatchId) -> Result<Reading, BufferError> {
        let batch = self.batches.get(&id).ok_or(BufferError::UnknownBatch(id))?;
        let RecordLocation { segment: first_segment, offset } = batch.place;
        let end = batch.first + batch.rows;
        let concerned = self.segments.iter().filter(|segment| segment.number >= first_segment);
        let parts = concerned.take_while(|segment| segment.number == first_segment || segment.from < end);
        let mut is_suspect = false;
        let parts = parts.map(|segment| {
            is_suspect |= segment.is_damaged;
            Part {
                segment: segment.number,
                file: segment.file.clone(),
                checksums: segment.checksums,
                start: if segment.number == first_segment { offset } else { SEGMENT_HEADER_BYTES as u64 },
                limit: segment.bytes,
            }
        });
        let (parts, name) = (parts.collect(), self.folder.path.display().to_string());
        Ok(Reading { parts, first: batch.first, rows: batch.rows, recorded: batch.recorded, is_suspect, name })
    }

    pub(super) fn split(&mut self, id: BatchId, cuts: &[usize]) -> Result<Vec<Sealed>, BufferError> {
        let body = self.reading(id)?.read()?;
        let parent = *self.batches.get(&id).ok_or(BufferError::UnknownBatch(id))?;
        let mut payload = id.0.to_le_bytes().to_vec();
        let mut children = Vec::new();
        let ends = cuts.iter().copied().chain([body.count()]);
        let mut start = 0;
        for end in ends {
            let (first, rows) = (parent.first + start as u64, (end - start) as u64);
            let held_bytes = body.part(start..end).rows().held_bytes();
            let child = (BatchId::random()?, Batch { place: parent.place, first, rows, held_bytes, recorded: 0 });
            Members { id: child.0, from: first, to: first + rows }.push_to(&mut payload);
            children.push(child);
            start = end;
        }
        self.push_control(Kind::Split, &payload)?;
        let recorded = self.sealings();
        children.iter_mut().for_each(|(_, child)| child.recorded = recorded);
        self.batches.remove(&id);
        self.batches.extend(children.iter().copied());
        Ok(children.into_iter().map(|(id, batch)| self.sealed(id, batch)).collect())
    }

    pub(super) fn done(&mut self, id: BatchId) -> Result<(), BufferError> {
        let Some(batch) = self.batches.remove(&id) else { return Err(BufferError::UnknownBatch(id)) };
        let recorded = self.push_control(Kind::Done, &id.0.to_le_bytes());
        let end = batch.first + batch.rows;
        for segment in &mut self.segments {
            let inside = segment.to.min(end).saturating_sub(segment.from.max(batch.first));
            segment.undone = segment.undone.saturating_sub(inside);
        }
        self.release();
        recorded
    }

    /// Deletes segments from the old end, as far as all rows in them are done.
    fn release(&mut self) {
        let least = usize::from(self.active.is_some());
        while self.segments.len() > least {
            let Some(segment) = self.segments.front().filter(|segment| segment.undone == 0) else { break };
            let removed = match segment.is_damaged {
                true => self.folder.keep_aside(&segment.path),
                false => std::fs::remove_file(&segment.path),
            };
            // What can't be deleted now is tried again with the next one.
            if removed.is_err_and(|error| error.kind() != io::ErrorKind::NotFound) {
                break;
            }
            self.disk_bytes -= segment.bytes;
            self.segments.pop_front();
        }
    }

    /// Returns the segments that have to be synced so that all that was written before is sure to be there.
    pub(super) fn unsynced(&self) -> Vec<Unsynced> {
        let segments = self.segments.iter().filter(|segment| segment.durability != Durability::Whole);
        let unsynced = segments.map(|segment| Unsynced {
            number: segment.number,
            path: segment.path.clone(),
            file: segment.file.clone(),
            checksums: segment.checksums,
            bytes: segment.bytes,
            end: segment.end,
            is_distrusted: segment.durability == Durability::Distrusted,
        });
        unsynced.collect()
    }

    /// Notes that segments were synced. Those that were not written to any more by then need no further sync.
    pub(super) fn was_synced(&mut self, synced: &[Unsynced]) {
        for synced in synced.iter().filter(|synced| synced.end.is_some()) {
            let segment = self.segments.iter_mut().find(|segment| segment.number == synced.number);
            segment.into_iter().for_each(|segment| segment.durability = Durability::Whole);
        }
    }

    /// Returns the folder and how many names were made in it, if it has to be synced.
    pub(super) fn unsynced_names(&self) -> Option<(PathBuf, u64)> {
        (self.synced_names < self.names).then(|| (self.folder.path.clone(), self.names))
    }

    pub(super) fn were_named(&mut self, names: u64) {
        self.synced_names = names;
    }

    /// Notes that a sync of a segment has failed. If it is still written to, later records go into a new segment.
    pub(super) fn distrust(&mut self, number: u64) -> Result<(), BufferError> {
        let Some(segment) = self.segments.iter_mut().find(|segment| segment.number == number) else { return Ok(()) };
        segment.durability = Durability::Distrusted;
        match segment.end {
            None => self.roll(self.options.segment_bytes),
            Some(_) => Ok(()),
        }
    }

    /// Notes that something in a segment is lost, on the disk and in the cache.
    pub(super) fn mark_damaged(&mut self, number: u64) {
        let segment = self.segments.iter_mut().find(|segment| segment.number == number);
        segment.into_iter().for_each(|segment| segment.is_damaged = true);
    }

    #[cfg(test)]
    pub(super) fn files(&self) -> Vec<Arc<File>> {
        self.segments.iter().map(|segment| segment.file.clone()).collect()
    }

    /// Puts a synced copy in the place of a segment. If the segment is gone, the copy is removed.
    pub(super) fn take_copy(&mut self, number: u64, path: &Path, copy: File) -> io::Result<()> {
        let Some(segment) = self.segments.iter_mut().find(|segment| segment.number == number) else {
            return std::fs::remove_file(path);
        };
        std::fs::rename(path, &segment.path)?;
        segment.file = Arc::new(copy);
        segment.durability = Durability::Whole;
        self.names += 1;
        Ok(())
    }

    /// Notes that something in these segments can't be read any more: they are kept aside when they are done.
    pub(super) fn keep_aside(&mut self, reading: &Reading) {
        reading.parts.iter().for_each(|part| self.mark_damaged(part.segment));
    }

    /// Removes the log, all of which is done.
    pub(super) fn remove(mut self) {
        self.active = None;
        self.release();
        self.folder.remove();
    }

    /// Closes a dead writer's log. Rows in it that are not done are left to the next writer.
    pub(super) fn close(self) {
        if self.is_done() {
            self.remove();
        }
    }

    /// Ends all appends and gives back the lock. Removes the log if all of it is done.
    pub(super) fn close_own(&mut self) {
        self.is_closed = true;
        if self.is_done() {
            self.active = None;
            self.release();
            self.folder.remove();
        } else {
            // A log without this record is taken for one of a writer that was killed.
            let _ = self.push_control(Kind::Closed, &[0; 8]);
            self.folder.unlock();
        }
        // What is reported from now on is another writer's affair.
        self.batches.clear();
    }
}

/// Returns the lengths as they stand in a file.
fn as_bytes(lengths: &[u32]) -> &[u8] {
    const { assert!(cfg!(target_endian = "little"), "the files are little-endian") };
    // SAFETY: any initialised u32 is four initialised bytes, and bytes need no alignment.
    unsafe { std::slice::from_raw_parts(lengths.as_ptr().cast(), size_of_val(lengths)) }
}
