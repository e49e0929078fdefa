//! A segment's file: made whole, mapped while it is written to, read with ordinary reads.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use super::format::{Checksums, Kind, RecordHeader, SegmentHeader, RECORD_HEADER_BYTES, SEGMENT_HEADER_BYTES};

/// A segment that has its header.
pub(super) struct Segment {
    pub(super) number: u64,
    pub(super) path: PathBuf,
    pub(super) file: Arc<File>,
    pub(super) checksums: Checksums,
    pub(super) bytes: u64,
    /// The position of its first row; `to` is the position behind its last row.
    pub(super) from: u64,
    pub(super) to: u64,
    /// The number of its rows that are not done.
    pub(super) undone: u64,
    /// True if something in it can't be read: it is kept aside instead of deleted.
    pub(super) is_damaged: bool,
    /// The offset where its records end, when it is not written to any more.
    pub(super) end: Option<u64>,
    pub(super) durability: Durability,
}

/// The part of a segment that would survive a loss of power.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Durability {
    Unknown,
    /// A sync of the file has failed. The kernel then takes its pages for written, so the next sync would
    /// succeed without writing them: the segment is copied to a new file instead.
    Distrusted,
    /// All of the segment is on the disk, and nothing more is written to it.
    Whole,
}

/// The segment that is written to.
pub(super) struct Active {
    map: Map,
    checksums: Checksums,
    pub(super) end: u64,
    pub(super) bytes: u64,
}

pub(super) struct NewRecord<'a> {
    pub(super) kind: Kind,
    pub(super) position: u64,
    pub(super) rows: u32,
    /// Pieces of the payload.
    pub(super) payload: [&'a [u8]; 2],
}

pub(super) fn file_name(number: u64) -> String {
    format!("{number:016x}.segment")
}

pub(super) fn number_of(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".segment")?;
    (digits.len() == 16).then(|| u64::from_str_radix(digits, 16).ok())?
}

/// A file that will be a segment: all of its room is taken, and it is mapped. Without a header it is no
/// segment yet.
pub(super) struct Blank {
    number: u64,
    path: PathBuf,
    file: File,
    map: Map,
    bytes: u64,
}

impl Blank {
    /// Makes the file, takes its room on the disk and maps it. If the room can't be had, no file is left.
    pub(super) fn create(folder: &Path, number: u64, bytes: u64) -> io::Result<Blank> {
        let path = folder.join(file_name(number));
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
        let mapped = allocate(&file, bytes).and_then(|()| Map::new(&file, bytes));
        let map = mapped.inspect_err(|_| remove(&path))?;
        Ok(Blank { number, path, file, map, bytes })
    }

    pub(super) fn discard(self) {
        remove(&self.path);
    }

    /// Writes the header: from now on this is the segment that is written to.
    pub(super) fn begin(mut self, first_position: u64, previous_end: u64) -> io::Result<(Segment, Active)> {
        let salt = getrandom::u64().map_err(|error| io::Error::other(error.to_string()))?;
        let Blank { number, bytes, .. } = self;
        let header = SegmentHeader { number, salt, first_position, previous_end, bytes };
        let header_bytes = header.to_bytes();
        let (first, rest) = header_bytes.split_at(8);
        self.map.write(8, rest);
        self.map.publish(0, first);
        let checksums = Checksums::of(&header);
        let segment = Segment {
            number,
            path: self.path,
            file: Arc::new(self.file),
            checksums,
            bytes,
            from: first_position,
            to: first_position,
            undone: 0,
            is_damaged: false,
            end: None,
            durability: Durability::Unknown,
        };
        Ok((segment, Active { map: self.map, checksums, end: SEGMENT_HEADER_BYTES as u64, bytes }))
    }
}

/// Removes a file without a header. If that fails, recovery removes it.
fn remove(path: &Path) {
    let _ = std::fs::remove_file(path);
}

/// Takes the room on the disk: pages of a map that have none would end the process when the disk is full.
fn allocate(file: &File, bytes: u64) -> io::Result<()> {
    let length = i64::try_from(bytes).map_err(|_| io::ErrorKind::FileTooLarge)?;
    loop {
        // SAFETY: the descriptor is open for as long as `file` is borrowed.
        if unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, length) } == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EINTR) => continue,
            Some(libc::EOPNOTSUPP) => return write_zeros(file, bytes),
            _ => return Err(error),
        }
    }
}

/// Fills the file with zeros, for file systems that take no room beforehand.
fn write_zeros(file: &File, bytes: u64) -> io::Result<()> {
    let zeros = [0; 64 << 10];
    let mut at = 0;
    while at < bytes {
        let now = (bytes - at).min(zeros.len() as u64);
        file.write_all_at(&zeros[..now as usize], at)?;
        at += now;
    }
    Ok(())
}

impl Active {
    /// Copies a record behind the last one and publishes it. The caller has seen that there is room.
    pub(super) fn push(&mut self, record: NewRecord<'_>) {
        let payload_bytes = record.payload[0].len() + record.payload[1].len();
        let mut hasher = crc32fast::Hasher::new();
        let mut at = self.end as usize + RECORD_HEADER_BYTES;
        for piece in record.payload {
            hasher.update(piece);
            self.map.write(at, piece);
            at += piece.len();
        }
        let header = self.checksums.header_bytes(RecordHeader {
            payload_bytes: payload_bytes as u32,
            payload_crc: hasher.finalize(),
            kind: record.kind,
            position: record.position,
            rows: record.rows,
        });
        let (first, rest) = header.split_at(8);
        self.map.write(self.end as usize + 8, rest);
        self.map.publish(self.end as usize, first);
        self.end += super::format::record_bytes(payload_bytes) as u64;
    }

    /// Returns the bytes that are left for records, if `reserve_bytes` are left alone.
    pub(super) fn room(&self, reserve_bytes: u64) -> u64 {
        self.bytes.saturating_sub(reserve_bytes).saturating_sub(self.end)
    }
}

/// A file in memory, shared with the kernel: bytes that are written here are the kernel's from that moment.
struct Map {
    start: *mut u8,
    bytes: usize,
}

// SAFETY: the map belongs to one log, which is behind a lock; nothing in it is bound to a thread.
unsafe impl Send for Map {}
// SAFETY: through a shared reference nothing is read or written.
unsafe impl Sync for Map {}

impl Map {
    fn new(file: &File, bytes: u64) -> io::Result<Map> {
        let bytes = usize::try_from(bytes).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice. The file has all of these bytes, with room on the
        // disk, and nobody else writes to a log that is locked.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        match start == libc::MAP_FAILED {
            true => Err(io::Error::last_os_error()),
            false => Ok(Map { start: start.cast(), bytes }),
        }
    }

    fn write(&mut self, at: usize, bytes: &[u8]) {
        assert!(at.checked_add(bytes.len()).is_some_and(|end| end <= self.bytes), "a record fits into its segment");
        // SAFETY: the range is inside of the map, as was just seen, and `bytes` can't overlap it: nobody else has it.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.start.add(at), bytes.len()) };
    }

    /// Writes a record's first eight bytes, at once and after all that was written before.
    fn publish(&mut self, at: usize, bytes: &[u8]) {
        assert!(at.is_multiple_of(8) && at + 8 <= self.bytes, "records begin where 8 divides");
        let word = bytes.first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
        // SAFETY: inside of the map, which begins at a page, and aligned, as was just seen.
        unsafe { &*self.start.add(at).cast::<AtomicU64>() }.store(word, Ordering::Release);
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: this is the mapping that was made, and nobody uses it any more.
        unsafe { libc::munmap(self.start.cast(), self.bytes) };
    }
}
