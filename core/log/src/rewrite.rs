//! The rewriting of old segments of which little is still needed: the live records of the oldest few are
//! copied into one file, which then takes the place of the last of them and says that it covers the others.
//!
//! - Ids and their order stay. The new file is complete and synced before it gets its name, by one rename;
//!   from then on, a start finds the others covered and removes them.
//! - A rewrite always begins with the oldest segment: a record that says that others are done may only be
//!   left out when those others are left out. The live records are looked up once for the whole run, before
//!   anything is copied, and callers release records in that order; so if a record is left out, all records
//!   that it is about are left out as well.
//! - Work goes on between groups, a slice at a time, so that no group waits long.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;

use super::committer::Committer;
use super::contents::{Contents, LiveIds};
use super::context::{Context, ContextKey};
use super::format::{record_bytes, NewRecord, SegmentHeader, KIND_CLOSED, KIND_CONTEXT, SEGMENT_HEADER_BYTES};
use super::index::{Index, Segment, SharedFile};
use super::scan::{Found, RawRecord, Scan};
use super::segment::file_name;
use crate::disk::Disk;

/// The most bytes that are read or written before the next group has its turn.
const SLICE_BYTES: u64 = 1 << 20;
/// The number of the only group in the new file: the file counts as a whole.
const GROUP: u32 = 1;

/// A rewrite of the oldest segments.
pub(super) struct Rewrite {
    /// The parts, the oldest first. Each becomes one file.
    parts: VecDeque<RewritePart>,
    output: Option<Output>,
    /// The most bytes that the largest of the new files takes, before the files that it replaces are removed.
    planned_bytes: u64,
}

/// Limits of a rewrite.
struct RewriteLimits {
    segment_bytes: u64,
    max_bytes: u64,
    /// The most bytes that everything but records that free room may take.
    ordinary_bytes: u64,
    /// The number of the first segment that is left as it is, with all later ones.
    damaged_from: u64,
}

struct RewritePart {
    /// The segments, the oldest first. Those that were read to their end are kept, to be replaced.
    inputs: Vec<Input>,
    /// The index of the segment that is being read.
    at: usize,
}

struct Input {
    header: SegmentHeader,
    file_bytes: u64,
    live_bytes: u64,
    live: LiveIds,
    contexts: Vec<Context>,
    scan: Scan,
}

struct Output {
    name: String,
    header: SegmentHeader,
    file: SharedFile,
    end: u64,
    contents: Contents,
    contexts: Vec<Context>,
    places: HashMap<ContextKey, u32>,
    buffer: Vec<u8>,
}

impl Rewrite {
    /// Returns the bytes that the rewrite takes on the disk beside the segments, or will take.
    pub(super) fn bytes(&self) -> u64 {
        self.output.as_ref().map_or(0, |output| output.end).max(self.planned_bytes)
    }

    /// Plans a rewrite. Returns `None` where it isn't worth it.
    fn plan(index: &Index, terms: &RewriteLimits) -> io::Result<Option<Rewrite>> {
        let old = index.old_totals();
        let RewriteLimits { segment_bytes, max_bytes, damaged_from, .. } = *terms;
        let dead_bytes = old.file_bytes.saturating_sub(old.live_bytes);
        // Where little room is left, it pays to copy much for it.
        let file_bytes = index.totals().file_bytes;
        let is_nearly_full = file_bytes + 2 * segment_bytes > terms.ordinary_bytes;
        let least_dead_bytes = if is_nearly_full { old.live_bytes / 8 } else { old.live_bytes };
        if index.old_segments() < 2 || dead_bytes < least_dead_bytes.max(2 * segment_bytes) {
            return Ok(None);
        }
        let left_bytes = max_bytes.saturating_sub(file_bytes);
        let mut parts: VecDeque<RewritePart> = VecDeque::new();
        let old_segments = index.segments.iter().take(index.old_segments());
        for segment in old_segments.take_while(|segment| segment.header.number < damaged_from) {
            let input = Input::of(segment);
            match parts.back_mut() {
                Some(part) if part.live_bytes() + input.live_bytes <= segment_bytes => part.inputs.push(input),
                _ => parts.push_back(RewritePart { inputs: vec![input], at: 0 }),
            }
        }
        while parts.back().is_some_and(|part| !part.is_worth_it()) {
            parts.pop_back();
        }
        let planned_bytes = parts.iter().map(RewritePart::planned_bytes).max().unwrap_or(0);
        if parts.is_empty() || planned_bytes > left_bytes {
            return Err(io::Error::other("there is no room to copy what is still needed"));
        }
        Ok(Some(Rewrite { parts, output: None, planned_bytes }))
    }
}

impl RewritePart {
    fn live_bytes(&self) -> u64 {
        self.inputs.iter().map(|input| input.live_bytes).sum()
    }

    fn planned_bytes(&self) -> u64 {
        let contexts = self.inputs.iter().flat_map(|input| &input.contexts);
        let context_bytes: usize = contexts.map(|context| record_bytes(context.bytes().len())).sum();
        SEGMENT_HEADER_BYTES as u64 + self.live_bytes() + context_bytes as u64
    }

    fn is_worth_it(&self) -> bool {
        let file_bytes: u64 = self.inputs.iter().map(|input| input.file_bytes).sum();
        self.live_bytes() < file_bytes - file_bytes / 8
    }
}

impl Input {
    fn of(segment: &Segment) -> Input {
        let header = segment.header;
        let start = SEGMENT_HEADER_BYTES as u64;
        Input {
            header,
            file_bytes: segment.file_bytes,
            live_bytes: segment.contents.live_bytes(),
            live: segment.contents.live_ids(),
            contexts: segment.contexts.clone(),
            scan: Scan::new(segment.file.clone(), header.checksums(), start, segment.valid_bytes),
        }
    }

    /// Copies a slice of the live records. Returns true if that was the last slice.
    fn copy_slice(&mut self, output: &mut Output) -> io::Result<bool> {
        let start = self.scan.offset;
        while self.scan.offset - start < SLICE_BYTES {
            if self.scan.at_end() {
                return Ok(true);
            }
            let offset = self.scan.offset;
            match self.scan.next()? {
                Found::Record(record) if matches!(record.header.kind, KIND_CONTEXT | KIND_CLOSED) => {}
                Found::Record(record) if !self.live.contains(record.header.id) => {}
                Found::Record(record) => output.copy(&record, &self.contexts)?,
                Found::Nothing | Found::Bad(_) => {
                    let name = file_name(self.header.number);
                    let text = format!("segment {name} is damaged at byte {offset}");
                    return Err(io::Error::new(io::ErrorKind::InvalidData, text));
                }
            }
        }
        Ok(false)
    }
}

impl Output {
    fn copy(&mut self, record: &RawRecord<'_>, contexts: &[Context]) -> io::Result<()> {
        let context = match record.header.context {
            0 => 0,
            index => {
                let context = contexts.get(index as usize - 1);
                self.place(context.ok_or_else(|| io::Error::other("a record's context is not there"))?)
            }
        };
        let offset = self.end + self.buffer.len() as u64;
        self.contents.push(record.header.id, offset as u32, record.header.record_bytes());
        self.write(record.header.id, record.header.kind, context, record.payload);
        Ok(())
    }

    fn place(&mut self, context: &Context) -> u32 {
        if let Some(place) = self.places.get(&context.key()) {
            return *place;
        }
        self.contexts.push(context.clone());
        let place = self.contexts.len() as u32;
        self.places.insert(context.key(), place);
        self.write(0, KIND_CONTEXT, place, context.bytes());
        place
    }

    fn write(&mut self, id: u64, kind: u8, context: u32, payload: &[u8]) {
        let record = NewRecord { id, group: GROUP, kind, ends_group: false, context, payload };
        record.write(self.header.checksums(), &mut self.buffer);
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        self.file.write_at(self.end, &self.buffer)?;
        // A slice at a time, so that the last sync has not all to do.
        self.file.sync()?;
        self.end += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    fn seal(&mut self) -> io::Result<()> {
        self.header.sealed_bytes = self.end;
        self.header.file_bytes = self.end;
        self.file.write_at(0, &self.header.encode())?;
        self.file.sync()
    }
}

impl<D: Disk> Committer<D> {
    /// Performs a slice of the work. Returns false where there is none.
    pub(super) fn rewrite_slice(&mut self) -> io::Result<bool> {
        if self.rewrite.is_none() {
            let terms = RewriteLimits {
                segment_bytes: self.options.segment_bytes,
                max_bytes: self.options.max_bytes,
                ordinary_bytes: self.shared.queue.bounds().ordinary_bytes,
                damaged_from: self.damaged_from,
            };
            self.rewrite = Rewrite::plan(&self.shared.index(), &terms)?;
        }
        let Some(mut rewrite) = self.rewrite.take() else { return Ok(false) };
        match self.advance(&mut rewrite) {
            Ok(()) => {
                self.rewrite = Some(rewrite).filter(|rewrite| !rewrite.parts.is_empty());
                self.note_used();
                Ok(true)
            }
            Err(error) => {
                let part = rewrite.parts.front();
                let input = part
                    .and_then(|part| part.inputs.get(part.at))
                    .filter(|_| error.kind() == io::ErrorKind::InvalidData);
                self.damaged_from = input.map_or(self.damaged_from, |input| input.header.number);
                self.abandon_rewrite(rewrite);
                Err(error)
            }
        }
    }

    /// Stops a rewrite, because a closed log doesn't begin or finish one.
    pub(super) fn stop_rewriting(&mut self) {
        if let Some(rewrite) = self.rewrite.take() {
            self.abandon_rewrite(rewrite);
        }
    }

    fn abandon_rewrite(&mut self, rewrite: Rewrite) {
        if let Some(output) = rewrite.output {
            // Left behind, it is removed by the next start.
            let _ = self.disk.remove(&output.name);
        }
        self.note_used();
    }

    fn advance(&mut self, rewrite: &mut Rewrite) -> io::Result<()> {
        let Some(part) = rewrite.parts.front_mut() else { return Ok(()) };
        let output = match &mut rewrite.output {
            Some(output) => output,
            None => rewrite.output.insert(self.begin_output(part)?),
        };
        if let Some(input) = part.inputs.get_mut(part.at) {
            if input.copy_slice(output)? {
                part.at += 1;
            }
            return output.flush();
        }
        output.seal()?;
        self.disk.rename(&output.name, &file_name(output.header.number))?;
        if let (Some(part), Some(output)) = (rewrite.parts.pop_front(), rewrite.output.take()) {
            self.replace(&part, output);
        }
        // At once, since both take room now.
        self.remove_covered().map(drop)
    }

    fn begin_output(&self, part: &RewritePart) -> io::Result<Output> {
        let (Some(first), Some(last)) = (part.inputs.first(), part.inputs.last()) else {
            return Err(io::Error::other("there is nothing to copy"));
        };
        let number = last.header.number;
        let name = format!("{number:016x}.rewrite");
        match self.disk.remove(&name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let salt = self.disk.salt()?;
        let header = SegmentHeader { number, salt, sealed_bytes: 0, file_bytes: 0, ..first.header };
        let file = self.disk.create(&name, 0)?;
        Ok(Output {
            name,
            header,
            file: Arc::new(file),
            end: SEGMENT_HEADER_BYTES as u64,
            contents: Contents::default(),
            contexts: Vec::new(),
            places: HashMap::new(),
            buffer: Vec::new(),
        })
    }

    /// Replaces the segments in the index after the new file has its name. The name is synced before the old
    /// files are removed.
    fn replace(&mut self, part: &RewritePart, output: Output) {
        let numbers = part.inputs.iter().map(|input| input.header.number);
        self.covered.extend(numbers.filter(|number| *number != output.header.number).map(file_name));
        let mut index = self.shared.index();
        index.names_unsynced = true;
        let mut segment = Segment::new(output.header, output.file, output.end, output.end);
        segment.contexts = output.contexts;
        segment.contents = output.contents;
        let released: Vec<u64> = segment.contents.ids().filter(|id| !index.is_live(*id)).collect();
        for id in released {
            segment.contents.release(id);
        }
        let start = index.segments.partition_point(|known| known.header.number < part.inputs[0].header.number);
        index.segments.drain(start..start + part.inputs.len());
        index.segments.insert(start, segment);
    }
}
