//! The reading of a segment from front to back through a window. It gives the place of every byte that is no
//! sound record.

use std::io;

use super::format::{Checksums, RecordHeader, ALIGNMENT, MAX_SEGMENT_BYTES, RECORD_HEADER_BYTES};
use super::index::SharedFile;
use crate::disk::DiskFile;

pub(crate) const WINDOW_BYTES: usize = 1 << 20;

/// A part of a file in memory.
#[derive(Default)]
pub(crate) struct Window {
    start: u64,
    bytes: Vec<u8>,
}

impl Window {
    /// Returns at least `wanted` bytes from an offset, unless the file ends before.
    pub(crate) fn at(&mut self, file: &dyn DiskFile, offset: u64, wanted: usize, end: u64) -> io::Result<&[u8]> {
        let available = usize::try_from(end.saturating_sub(offset)).unwrap_or(usize::MAX);
        let wanted = wanted.min(available);
        let have = self.bytes_from(offset);
        if have.is_none_or(|have| have < wanted) {
            self.fill(file, offset, wanted.max(WINDOW_BYTES).min(available))?;
        }
        let from = usize::try_from(offset - self.start).expect("a window is no longer than memory");
        Ok(&self.bytes[from.min(self.bytes.len())..])
    }

    pub(crate) fn forget(&mut self) {
        self.bytes.clear();
    }

    fn bytes_from(&self, offset: u64) -> Option<usize> {
        let from = usize::try_from(offset.checked_sub(self.start)?).ok()?;
        self.bytes.len().checked_sub(from)
    }

    fn fill(&mut self, file: &dyn DiskFile, offset: u64, wanted: usize) -> io::Result<()> {
        self.start = offset;
        self.bytes.clear();
        if self.bytes.capacity() > 4 * WINDOW_BYTES && wanted <= WINDOW_BYTES {
            self.bytes = Vec::new();
        }
        self.bytes.resize(wanted, 0);
        let mut filled = 0;
        while filled < wanted {
            match file.read_at(offset + filled as u64, &mut self.bytes[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) => {
                    self.bytes.clear();
                    return Err(error);
                }
            }
        }
        self.bytes.truncate(filled);
        Ok(())
    }
}

/// The largest possible number of a group. A group takes at least a record's header, and more of them don't
/// fit into a segment.
const MAX_GROUP: u32 = (MAX_SEGMENT_BYTES / RECORD_HEADER_BYTES as u64) as u32;
/// The most bytes of apparent records that a search checks. Only a deliberate input looks like records
/// everywhere and has none. The search ends there as if it had found one, because checking all would take too
/// long, and damage must not be taken for a torn tail.
const MAX_CHECKED_BYTES: u64 = 1 << 30;

/// The content at an offset.
pub(crate) enum Found<'a> {
    Record(RawRecord<'a>),
    /// No record: zeros, or the end.
    Nothing,
    Bad(&'static str),
}

pub(crate) struct RawRecord<'a> {
    pub(crate) offset: u64,
    pub(crate) header: RecordHeader,
    pub(crate) payload: &'a [u8],
}

pub(crate) struct Scan {
    file: SharedFile,
    checksums: Checksums,
    window: Window,
    pub(crate) offset: u64,
    /// The end of the scan: bytes behind it are not read.
    end: u64,
}

impl Scan {
    pub(crate) fn new(file: SharedFile, checksums: Checksums, offset: u64, end: u64) -> Scan {
        Scan { file, checksums, window: Window::default(), offset, end }
    }

    /// Reads the record at the scan's place, and moves behind it. Where there is none, the place stays.
    pub(crate) fn next(&mut self) -> io::Result<Found<'_>> {
        let offset = self.offset;
        let found = record_at(&mut self.window, &*self.file, self.checksums, offset, self.end)?;
        if let Found::Record(record) = &found {
            self.offset += record.header.record_bytes() as u64;
        }
        Ok(found)
    }

    pub(crate) fn at_end(&self) -> bool {
        self.offset >= self.end
    }

    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Returns the offset of the next sound record of a later group than this, behind the scan's place.
    pub(crate) fn later_group(&mut self, group: u32) -> io::Result<Option<u64>> {
        let mut offset = self.offset + ALIGNMENT as u64;
        let mut checked_bytes = 0;
        while offset + (RECORD_HEADER_BYTES as u64) <= self.end {
            let bytes = self.window.at(&*self.file, offset, RECORD_HEADER_BYTES, self.end)?;
            let header = RecordHeader::decode(bytes).filter(|header| header.group > group && header.group <= MAX_GROUP);
            let fits = |header: &RecordHeader| header.record_bytes() as u64 <= self.end - offset;
            if let Some(header) = header.filter(fits) {
                let bytes = self.window.at(&*self.file, offset, header.record_bytes(), self.end)?;
                if header.is_sound(bytes, self.checksums) {
                    return Ok(Some(offset));
                }
                checked_bytes += header.record_bytes() as u64;
                if checked_bytes > MAX_CHECKED_BYTES {
                    return Ok(Some(offset));
                }
            }
            offset += ALIGNMENT as u64;
        }
        Ok(None)
    }

    /// Says whether only zeros follow from here on.
    pub(crate) fn rest_is_zero(&mut self) -> io::Result<bool> {
        let mut offset = self.offset;
        while offset < self.end {
            let bytes = self.window.at(&*self.file, offset, WINDOW_BYTES, self.end)?;
            if bytes.is_empty() {
                break;
            }
            if bytes.iter().any(|byte| *byte != 0) {
                return Ok(false);
            }
            offset += bytes.len() as u64;
        }
        Ok(true)
    }
}

pub(crate) fn record_at<'w>(
    window: &'w mut Window,
    file: &dyn DiskFile,
    checksums: Checksums,
    offset: u64,
    end: u64,
) -> io::Result<Found<'w>> {
    let bytes = window.at(file, offset, RECORD_HEADER_BYTES, end)?;
    if bytes.iter().take(RECORD_HEADER_BYTES).all(|byte| *byte == 0) {
        return Ok(Found::Nothing);
    }
    let Some(header) = RecordHeader::decode(bytes) else { return Ok(Found::Bad("no record begins here")) };
    let record_bytes = header.record_bytes();
    if record_bytes as u64 > end - offset {
        return Ok(Found::Bad("the record goes on behind the segment's end"));
    }
    let bytes = window.at(file, offset, record_bytes, end)?;
    if bytes.len() < record_bytes {
        return Ok(Found::Bad("the file ends within the record"));
    }
    if !header.is_sound(bytes, checksums) {
        return Ok(Found::Bad("the checksum is wrong"));
    }
    let payload = &bytes[RECORD_HEADER_BYTES..RECORD_HEADER_BYTES + header.payload_bytes];
    Ok(Found::Record(RawRecord { offset, header, payload }))
}
