//! Recovery of a dead writer's log from the bytes of its segments.
//!
//! Every sound record counts, also behind a damaged stretch. Bytes that are no record and stand at the very
//! end are a *torn tail*: an append that was under way when the writer died, or, after a loss of power, pages
//! that were not written yet; no promised row is in it. All other bytes that are no record are *damage*. It
//! is counted and complained of, and its segment is kept aside when it is done with. An error of the disk is
//! neither: the log is left alone, and tried again.
//!
//! A batch whose rows aren't all there can't be sent under its id, which stands for other rows: its remaining
//! rows go into new batches. But where the log's first segments have been deleted, the batches that began in
//! them were done.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use super::folder::Folder;
use super::format::{id_of, Checksums, HeaderError, Kind, Members, RecordHeader, SegmentHeader, SEGMENT_HEADER_BYTES};
use super::groups::{Group, Groups, RecordLocation};
use super::log::{Batch, Contents, Log};
use super::options::DiskOptions;
use super::runs::{Run, Runs};
use super::scan::{Found, Scanner};
use super::segment::{file_name, Durability, Segment};
use crate::buffer::{BufferError, LeftOvers};
use crate::destination::Destination;
use crate::id::BatchId;

/// The state of a log that is being read.
struct Reading<'a> {
    folder: &'a Folder,
    report: &'a mut LeftOvers,
    segments: VecDeque<Segment>,
    runs: Runs,
    /// The position where the next row should be, if it is known.
    next_position: Option<u64>,
    /// Batches that are neither done nor cut; `done` has the rows of those that are done.
    sealed: HashMap<BatchId, Range<u64>>,
    done: Vec<Range<u64>>,
    destination: Option<Arc<Destination>>,
    /// True if the log was closed: its end is no torn tail.
    is_closed: bool,
    /// The end of the records of the latest segment; `tail` is the range behind it, if that isn't all zeros.
    end: u64,
    tail: Option<Range<u64>>,
}

/// Reads a log whose lock this writer has. Returns `None` if nothing in the log needs to be kept; it is
/// removed then.
pub(super) fn recover(
    folder: Folder,
    options: &DiskOptions,
    report: &mut LeftOvers,
) -> Result<Option<Log>, BufferError> {
    let numbers = folder.segments()?;
    let mut reading = Reading {
        folder: &folder,
        report,
        segments: VecDeque::new(),
        runs: Runs::default(),
        next_position: None,
        sealed: HashMap::new(),
        done: Vec::new(),
        destination: None,
        is_closed: false,
        end: 0,
        tail: None,
    };
    for &number in &numbers {
        reading.segment(number)?;
    }
    reading.end_of_log();
    let Some(destination) = reading.destination.clone() else {
        return reading.without_destination(folder.path.clone()).map(|()| {
            folder.remove();
            None
        });
    };
    let contents = reading.contents(options, numbers.last().map_or(0, |number| number + 1));
    let mut log = Log::of(folder, destination, options, contents);
    while log.seal()?.is_some() {}
    match log.is_done() {
        true => {
            log.remove();
            Ok(None)
        }
        false => Ok(Some(log)),
    }
}

impl Reading<'_> {
    fn segment(&mut self, number: u64) -> Result<(), BufferError> {
        let path = self.folder.path.join(file_name(number));
        let file = OpenOptions::new().read(true).write(true).open(&path)?;
        let length = file.metadata()?.len();
        let header = match read_header(&file, number)? {
            Ok(header) => header,
            // Room that was taken and never written to.
            Err(HeaderError::Unwritten) => return Ok(std::fs::remove_file(&path)?),
            Err(HeaderError::Version(version)) => {
                let text = format!("{} is of version {version}: a later release has to read it", path.display());
                return Err(BufferError::Other(text));
            }
            Err(HeaderError::Damaged) => {
                self.damage(number, 0..length, "the segment can't be read");
                return Ok(self.folder.keep_aside(&path)?);
            }
        };
        self.end_of_previous(header);
        let checksums = Checksums::of(&header);
        let mut segment = Segment {
            number,
            path,
            file: Arc::new(file),
            checksums,
            bytes: length,
            from: header.first_position,
            to: header.first_position,
            undone: 0,
            is_damaged: false,
            end: None,
            durability: Durability::Unknown,
        };
        self.expect(&mut segment, header.first_position, 0);
        let file = segment.file.clone();
        self.records(&mut segment, Scanner::new(&file, checksums, SEGMENT_HEADER_BYTES as u64, length))?;
        if length < header.bytes {
            segment.is_damaged = true;
            self.damage(number, length..header.bytes, "the file is too short");
        }
        self.segments.push_back(segment);
        Ok(())
    }

    fn records(&mut self, segment: &mut Segment, mut scanner: Scanner<'_>) -> io::Result<()> {
        while let Some(found) = scanner.next()? {
            let makes_sense = match found.header.kind {
                Kind::Rows => self.rows(segment, found),
                _ => self.control(found.header, scanner.payload()?),
            };
            if !makes_sense {
                segment.is_damaged = true;
                let bytes = found.offset..scanner.end;
                self.damage(segment.number, bytes, "a record contradicts others");
            }
        }
        for bytes in std::mem::take(&mut scanner.damage) {
            segment.is_damaged = true;
            self.damage(segment.number, bytes, "what is written there is no record");
        }
        self.end = scanner.end;
        self.tail = scanner.tail;
        Ok(())
    }

    fn rows(&mut self, segment: &mut Segment, found: Found) -> bool {
        let (position, rows) = (found.header.position, u64::from(found.header.rows));
        let expected = self.next_position.unwrap_or(position);
        let Some(end) = position.checked_add(rows).filter(|_| position >= expected) else { return false };
        self.expect(segment, position, found.offset);
        self.runs.push(RecordLocation { segment: segment.number, offset: found.offset }, found.header);
        self.next_position = Some(end);
        segment.to = end;
        true
    }

    /// Expects the next row at this position, and complains of rows that are missing before it.
    fn expect(&mut self, segment: &mut Segment, position: u64, offset: u64) {
        let missing = position.saturating_sub(self.next_position.unwrap_or(position));
        if missing > 0 {
            segment.is_damaged = true;
            self.damage(segment.number, offset..offset, &format!("{missing} rows before are lost"));
        }
        self.next_position = Some(self.next_position.map_or(position, |next| next.max(position)));
    }

    fn control(&mut self, header: RecordHeader, payload: &[u8]) -> bool {
        match header.kind {
            Kind::Destination => {
                let read = Destination::from_bytes(payload).map(Arc::new);
                let makes_sense = read.is_some();
                self.destination = self.destination.take().or(read);
                makes_sense
            }
            Kind::Closed => {
                self.is_closed = true;
                true
            }
            Kind::Done => id_of(payload).is_some_and(|id| {
                self.done.extend(self.sealed.remove(&id));
                true
            }),
            Kind::Seal => self.batches(payload),
            Kind::Split => {
                let Some((id, members)) = payload.split_at_checked(16) else { return false };
                if let Some(id) = id_of(id) {
                    self.sealed.remove(&id);
                }
                self.batches(members)
            }
            Kind::Rows => false,
        }
    }

    fn batches(&mut self, members: &[u8]) -> bool {
        let Some(members) = Members::read_all(members) else { return false };
        self.sealed.extend(members.into_iter().map(|Members { id, from, to }| (id, from..to)));
        true
    }

    /// Checks the end of the previous segment. A writer leaves a segment only when it is full, so its end is
    /// known.
    fn end_of_previous(&mut self, header: SegmentHeader) {
        let Some(previous) = self.segments.back_mut() else { return };
        let number = previous.number;
        let follows = number.checked_add(1) == Some(header.number);
        // A new life of the log says nothing about what it has found.
        let is_short = follows && header.previous_end > self.end;
        if is_short || self.tail.is_some() && header.previous_end > 0 {
            previous.is_damaged = true;
            let to = header.previous_end.max(self.end);
            let bytes = self.tail.take().unwrap_or(self.end..to);
            self.damage(number, bytes, "records at its end can't be read");
        }
        self.tail = None;
    }

    fn end_of_log(&mut self) {
        let Some(tail) = self.tail.take().filter(|_| self.is_closed) else { return };
        if let Some(segment) = self.segments.back_mut() {
            segment.is_damaged = true;
            let number = segment.number;
            self.damage(number, tail, "there is something behind the end of a closed log");
        }
    }

    fn damage(&mut self, segment: u64, bytes: Range<u64>, what: &str) {
        self.report.damaged_bytes += bytes.end.saturating_sub(bytes.start);
        let file = self.folder.path.join(file_name(segment));
        let text = format!("{} at offset {}, {} bytes: {what}", file.display(), bytes.start, bytes.end - bytes.start);
        self.report.complaints.push(text);
    }

    /// Ends a log whose table can't be read: its rows can't be sent, so their segments are kept aside.
    /// Without rows, only damaged segments are kept.
    fn without_destination(mut self, folder: std::path::PathBuf) -> Result<(), BufferError> {
        for mut segment in std::mem::take(&mut self.segments) {
            segment.is_damaged |= !self.runs.0.is_empty();
            match segment.is_damaged {
                true => self.folder.keep_aside(&segment.path)?,
                false => std::fs::remove_file(&segment.path)?,
            }
        }
        if !self.runs.0.is_empty() {
            self.report.complaints.push(format!("{}: the table of its rows can't be read", folder.display()));
        }
        Ok(())
    }

    fn contents(mut self, options: &DiskOptions, next_number: u64) -> Contents {
        let log_from = self.segments.front().map_or(0, |segment| segment.from);
        let uses = self.uses(log_from);
        let mut batches: HashMap<BatchId, Batch> = HashMap::new();
        let mut groups = Groups::new(options);
        for run in &self.runs.0 {
            for (rows, usage) in pieces(run, &uses) {
                let count = rows.end - rows.start;
                match usage {
                    Use::Done => continue,
                    Use::Batch(id) => {
                        let new = Batch { place: run.place, first: rows.start, rows: 0, held_bytes: 0, recorded: 0 };
                        batches.entry(id).or_insert(new).rows += count;
                    }
                    Use::Open => {
                        let bytes = run.bytes / run.rows * count;
                        groups.push(Group { place: run.place, first: rows.start, rows: count, bytes });
                    }
                }
                let segment = self.segments.iter_mut().find(|segment| segment.number == run.place.segment);
                segment.into_iter().for_each(|segment| segment.undone += count);
            }
        }
        let next_position = self.next_position.unwrap_or(log_from);
        Contents { segments: self.segments, next_number, next_position, groups, batches }
    }

    /// Returns what each range of rows belongs to.
    fn uses(&mut self, log_from: u64) -> BTreeMap<u64, (u64, Use)> {
        let mut uses = BTreeMap::new();
        let done = std::mem::take(&mut self.done).into_iter().map(|rows| (rows, Use::Done));
        let mut ranges: Vec<_> = done.collect();
        for (id, rows) in std::mem::take(&mut self.sealed) {
            let present = self.present(&rows);
            match () {
                () if rows.start < log_from => ranges.push((rows, Use::Done)),
                () if present == rows.end - rows.start => ranges.push((rows, Use::Batch(id))),
                () if present == 0 => {}
                () => {
                    let text = format!("batch {id}: only {present} of its rows are there, they go into new batches");
                    self.report.complaints.push(text);
                }
            }
        }
        ranges.sort_by_key(|(rows, _)| rows.start);
        let mut end = 0;
        for (rows, usage) in ranges {
            match rows.start >= end {
                true => {
                    end = rows.end;
                    uses.insert(rows.start, (rows.end, usage));
                }
                false => self.report.complaints.push(format!("a batch of rows {rows:?} overlaps another")),
            }
        }
        uses
    }

    /// Returns how many of these rows were found.
    fn present(&self, rows: &Range<u64>) -> u64 {
        let start = self.runs.0.partition_point(|run| run.end() <= rows.start);
        let concerned = self.runs.0[start..].iter().take_while(|run| run.first < rows.end);
        concerned.map(|run| run.end().min(rows.end) - run.first.max(rows.start)).sum()
    }
}

#[derive(Debug, Clone, Copy)]
enum Use {
    Done,
    Batch(BatchId),
    Open,
}

/// Divides a run's rows by what they belong to.
fn pieces(run: &Run, uses: &BTreeMap<u64, (u64, Use)>) -> Vec<(Range<u64>, Use)> {
    let mut pieces = Vec::new();
    let mut at = run.first;
    while at < run.end() {
        let around = uses.range(..=at).next_back().filter(|(_, (end, _))| *end > at);
        let (end, usage) = match around {
            Some((_, &(end, usage))) => (end, usage),
            None => (uses.range(at..).next().map_or(run.end(), |(&start, _)| start), Use::Open),
        };
        let end = end.min(run.end());
        pieces.push((at..end, usage));
        at = end;
    }
    pieces
}

fn read_header(file: &File, number: u64) -> io::Result<Result<SegmentHeader, HeaderError>> {
    let mut bytes = [0; SEGMENT_HEADER_BYTES];
    match file.read_exact_at(&mut bytes, 0) {
        Ok(()) => {}
        // Shorter than a header. An empty one was never written to.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            let length = file.metadata()?.len();
            return Ok(Err(if length == 0 { HeaderError::Unwritten } else { HeaderError::Damaged }));
        }
        Err(error) => return Err(error),
    }
    let header = SegmentHeader::from_bytes(&bytes);
    Ok(header.and_then(|header| if header.number == number { Ok(header) } else { Err(HeaderError::Damaged) }))
}

/// Returns the table and columns of a log, from the first record that tells them.
pub(super) fn destination_of(folder: &Folder) -> io::Result<Option<Destination>> {
    for number in folder.segments()? {
        let file = File::open(folder.path.join(file_name(number)))?;
        let Ok(header) = read_header(&file, number)? else { continue };
        let length = file.metadata()?.len();
        let mut scanner = Scanner::new(&file, Checksums::of(&header), SEGMENT_HEADER_BYTES as u64, length);
        // It is the first record of every segment.
        let Some(found) = scanner.next()?.filter(|found| found.header.kind == Kind::Destination) else { continue };
        debug_assert!(found.header.payload_bytes > 0);
        if let Some(read) = Destination::from_bytes(scanner.payload()?) {
            return Ok(Some(read));
        }
    }
    Ok(None)
}
