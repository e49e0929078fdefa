//! A scanner that reads a segment's records in order, and finds the next sound record behind damaged bytes.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use super::format::{record_bytes, Checksums, RecordHeader, RECORD_HEADER_BYTES};

const WINDOW_BYTES: usize = 256 << 10;

/// A sound record.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    pub(super) offset: u64,
    pub(super) header: RecordHeader,
}

pub(super) struct Scanner<'a> {
    window: Window<'a>,
    checksums: Checksums,
    offset: u64,
    /// The offset that no record reaches beyond.
    limit: u64,
    payload: Range<u64>,
    /// Ranges that are no record but have a sound one behind them: damage.
    pub(super) damage: Vec<Range<u64>>,
    /// The range behind the last sound record, if it isn't all zeros.
    pub(super) tail: Option<Range<u64>>,
    /// The end of the last sound record.
    pub(super) end: u64,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(file: &'a File, checksums: Checksums, start: u64, limit: u64) -> Scanner<'a> {
        let window = Window { file, start: 0, bytes: Vec::new() };
        let (offset, payload) = (start, start..start);
        Scanner { window, checksums, offset, limit, payload, damage: Vec::new(), tail: None, end: start }
    }

    /// Returns the next sound record. An error is the disk's.
    pub(super) fn next(&mut self) -> io::Result<Option<Found>> {
        let lost_from = self.offset;
        let mut has_other_than_zeros = false;
        while let Some(head) = self.window.get(self.offset, RECORD_HEADER_BYTES, self.limit)? {
            let header = self.checksums.header(head);
            let is_zero = head[..8] == [0; 8];
            let bytes = header.map_or(8, |header| record_bytes(header.payload_bytes as usize) as u64);
            if let Some(header) = header {
                if self.is_sound(header)? {
                    let found = Found { offset: self.offset, header };
                    if lost_from < self.offset {
                        self.damage.push(lost_from..self.offset);
                    }
                    self.offset += bytes;
                    self.end = self.offset;
                    return Ok(Some(found));
                }
            }
            has_other_than_zeros |= !is_zero;
            // A header that is sound tells how long its record is, also when the rest of it isn't.
            self.offset += bytes;
            if is_zero {
                self.offset += self.window.zeros_at(self.offset, self.limit);
            }
        }
        let is_torn = has_other_than_zeros || self.has_odd_end()?;
        self.tail = is_torn.then_some(lost_from..self.limit);
        self.offset = self.limit;
        Ok(None)
    }

    /// Returns the payload of the record that was found last.
    pub(super) fn payload(&mut self) -> io::Result<&[u8]> {
        let length = (self.payload.end - self.payload.start) as usize;
        Ok(self.window.get(self.payload.start, length, self.limit)?.unwrap_or_default())
    }

    fn is_sound(&mut self, header: RecordHeader) -> io::Result<bool> {
        let start = self.offset + RECORD_HEADER_BYTES as u64;
        let length = header.payload_bytes as usize;
        self.payload = start..start + length as u64;
        let payload = self.window.get(start, length, self.limit)?;
        Ok(payload.is_some_and(|payload| header.is_sound(payload)))
    }

    /// Says whether the last bytes, too few for a record's header, are other than zeros.
    fn has_odd_end(&mut self) -> io::Result<bool> {
        let length = self.limit.saturating_sub(self.offset) as usize;
        let rest = self.window.get(self.offset, length, self.limit)?;
        Ok(rest.is_some_and(|rest| rest.iter().any(|&byte| byte != 0)))
    }
}

/// A part of a file, in memory.
struct Window<'a> {
    file: &'a File,
    start: u64,
    bytes: Vec<u8>,
}

impl Window<'_> {
    /// Returns bytes of the file. Returns `None` if they reach beyond the limit, or beyond the file's end.
    fn get(&mut self, offset: u64, length: usize, limit: u64) -> io::Result<Option<&[u8]>> {
        if offset.checked_add(length as u64).is_none_or(|end| end > limit) {
            return Ok(None);
        }
        let is_inside = offset >= self.start && offset + length as u64 <= self.start + self.bytes.len() as u64;
        if !is_inside {
            self.fill(offset, length, limit)?;
        }
        let at = (offset - self.start) as usize;
        Ok(self.bytes.get(at..at + length))
    }

    fn fill(&mut self, offset: u64, length: usize, limit: u64) -> io::Result<()> {
        let wanted = (limit - offset).min(WINDOW_BYTES.max(length) as u64) as usize;
        self.start = offset;
        self.bytes.resize(wanted, 0);
        let mut filled = 0;
        while filled < wanted {
            match self.file.read_at(&mut self.bytes[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    self.bytes.clear();
                    return Err(error);
                }
            }
        }
        self.bytes.truncate(filled);
        Ok(())
    }

    /// Returns the number of zeros, in steps of eight, that follow in the part in memory.
    fn zeros_at(&self, offset: u64, limit: u64) -> u64 {
        let end = limit.min(self.start + self.bytes.len() as u64);
        if offset < self.start || offset >= end {
            return 0;
        }
        let bytes = &self.bytes[(offset - self.start) as usize..(end - self.start) as usize];
        8 * bytes.chunks_exact(8).take_while(|word| *word == [0; 8]).count() as u64
    }
}
