//! The bytes of segments and records. `docs/internals/writer-disk.md` describes them; change both, and the version.

use crate::id::BatchId;
use crate::rows::Rows;

pub(super) const MAGIC: [u8; 8] = *b"WINDROWB";
pub(super) const VERSION: u32 = 1;
pub(super) const SEGMENT_HEADER_BYTES: usize = 64;
pub(super) const RECORD_HEADER_BYTES: usize = 32;
/// The most bytes that a record's payload can have.
pub(super) const MAX_PAYLOAD_BYTES: usize = u32::MAX as usize;

/// The header at the beginning of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SegmentHeader {
    pub(super) number: u64,
    /// A random number that the checksums of the segment's records begin with. A user who only chooses the
    /// values of rows can't write bytes that pass for a record.
    pub(super) salt: u64,
    /// The position before which all rows stand in earlier segments.
    pub(super) first_position: u64,
    /// The number of bytes of the previous segment that are records.
    pub(super) previous_end: u64,
    /// The bytes that were reserved for the segment on the disk.
    pub(super) bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Destination = 1,
    Rows = 2,
    Seal = 3,
    Split = 4,
    Done = 5,
    /// The log was closed by its writer: no record is missing behind.
    Closed = 6,
}

impl Kind {
    fn of(byte: u8) -> Option<Kind> {
        [Kind::Destination, Kind::Rows, Kind::Seal, Kind::Split, Kind::Done, Kind::Closed]
            .into_iter()
            .find(|&kind| kind as u8 == byte)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RecordHeader {
    pub(super) payload_bytes: u32,
    pub(super) payload_crc: u32,
    pub(super) kind: Kind,
    /// The position of the first row; 0 for other kinds.
    pub(super) position: u64,
    /// The number of rows; 0 for other kinds.
    pub(super) rows: u32,
}

/// A batch's id and members, as seals and splits have them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Members {
    pub(super) id: BatchId,
    pub(super) from: u64,
    pub(super) to: u64,
}

pub(super) const MEMBERS_BYTES: usize = 32;

/// Returns the bytes that a record takes in a segment.
pub(super) fn record_bytes(payload_bytes: usize) -> usize {
    RECORD_HEADER_BYTES + payload_bytes.next_multiple_of(8)
}

pub(super) fn rows_payload_bytes(rows: Rows<'_>) -> usize {
    4 * rows.count() + rows.bytes().len()
}

impl SegmentHeader {
    pub(super) fn to_bytes(self) -> [u8; SEGMENT_HEADER_BYTES] {
        let mut out = [0; SEGMENT_HEADER_BYTES];
        out[..8].copy_from_slice(&MAGIC);
        put_u32(&mut out, 8, VERSION);
        for (at, value) in
            [(16, self.number), (24, self.salt), (32, self.first_position), (40, self.previous_end), (48, self.bytes)]
        {
            put_u64(&mut out, at, value);
        }
        let crc = header_crc(&out);
        put_u32(&mut out, 12, crc);
        out
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Result<SegmentHeader, HeaderError> {
        let bytes = bytes.get(..SEGMENT_HEADER_BYTES).ok_or(HeaderError::Damaged)?;
        // These are written last.
        if bytes[..8] == [0; 8] {
            return Err(HeaderError::Unwritten);
        }
        if bytes[..8] != MAGIC || get_u32(bytes, 12) != header_crc(bytes) {
            return Err(HeaderError::Damaged);
        }
        match get_u32(bytes, 8) {
            VERSION => Ok(SegmentHeader {
                number: get_u64(bytes, 16),
                salt: get_u64(bytes, 24),
                first_position: get_u64(bytes, 32),
                previous_end: get_u64(bytes, 40),
                bytes: get_u64(bytes, 48),
            }),
            version => Err(HeaderError::Version(version)),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeaderError {
    /// The segment was never written to.
    Unwritten,
    Damaged,
    /// The segment is of a later release.
    Version(u32),
}

fn header_crc(bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&bytes[..12]);
    hasher.update(&bytes[16..SEGMENT_HEADER_BYTES]);
    hasher.finalize()
}

/// The segment's number and salt, which the checksums of its records begin with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Checksums {
    number: u64,
    salt: u64,
}

impl Checksums {
    pub(super) fn of(header: &SegmentHeader) -> Checksums {
        Checksums { number: header.number, salt: header.salt }
    }

    fn of_header(self, header: &[u8]) -> u32 {
        let mut bytes = [0; 16 + RECORD_HEADER_BYTES - 4];
        put_u64(&mut bytes, 0, self.number);
        put_u64(&mut bytes, 8, self.salt);
        bytes[16..].copy_from_slice(&header[4..RECORD_HEADER_BYTES]);
        crc32fast::hash(&bytes)
    }

    pub(super) fn header_bytes(self, header: RecordHeader) -> [u8; RECORD_HEADER_BYTES] {
        let mut out = [0; RECORD_HEADER_BYTES];
        put_u32(&mut out, 4, header.payload_bytes);
        put_u32(&mut out, 8, header.payload_crc);
        out[12] = header.kind as u8;
        put_u64(&mut out, 16, header.position);
        put_u32(&mut out, 24, header.rows);
        let crc = self.of_header(&out);
        put_u32(&mut out, 0, crc);
        out
    }

    /// Reads a record's header, without a look at the payload. Returns `None` if the bytes are no header of a
    /// record.
    pub(super) fn header(self, bytes: &[u8]) -> Option<RecordHeader> {
        let bytes = bytes.get(..RECORD_HEADER_BYTES)?;
        if get_u32(bytes, 4) == 0 || get_u32(bytes, 0) != self.of_header(bytes) {
            return None;
        }
        Some(RecordHeader {
            payload_bytes: get_u32(bytes, 4),
            payload_crc: get_u32(bytes, 8),
            kind: Kind::of(bytes[12])?,
            position: get_u64(bytes, 16),
            rows: get_u32(bytes, 24),
        })
    }
}

impl RecordHeader {
    pub(super) fn is_sound(&self, payload: &[u8]) -> bool {
        payload.len() == self.payload_bytes as usize
            && crc32fast::hash(payload) == self.payload_crc
            && (self.kind != Kind::Rows || rows_of(self.rows, payload).is_some())
    }
}

/// Returns the rows of a payload, if their lengths add up.
pub(super) fn rows_of(rows: u32, payload: &[u8]) -> Option<RowsPayload<'_>> {
    let lengths = payload.get(..4 * rows as usize)?;
    let bytes = &payload[lengths.len()..];
    let sum: u64 = each_length(lengths).map(u64::from).sum();
    (rows > 0 && sum == bytes.len() as u64).then_some(RowsPayload { lengths, bytes })
}

pub(super) struct RowsPayload<'a> {
    lengths: &'a [u8],
    bytes: &'a [u8],
}

impl RowsPayload<'_> {
    /// Appends some of the rows, chosen by their number in the record, to `bytes` and `lengths`.
    pub(super) fn push_to(&self, rows: std::ops::Range<usize>, bytes: &mut Vec<u8>, lengths: &mut Vec<u32>) {
        let sum = |lengths: &[u8]| each_length(lengths).map(|length| length as usize).sum::<usize>();
        let start = sum(&self.lengths[..4 * rows.start]);
        let chosen = &self.lengths[4 * rows.start..4 * rows.end];
        bytes.extend_from_slice(&self.bytes[start..start + sum(chosen)]);
        lengths.extend(each_length(chosen));
    }
}

fn each_length(lengths: &[u8]) -> impl Iterator<Item = u32> + '_ {
    lengths.chunks_exact(4).map(|length| get_u32(length, 0))
}

impl Members {
    pub(super) fn push_to(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.id.0.to_le_bytes());
        out.extend_from_slice(&self.from.to_le_bytes());
        out.extend_from_slice(&self.to.to_le_bytes());
    }

    /// Reads all of them that stand one after the other. Returns `None` if one of them makes no sense.
    pub(super) fn read_all(bytes: &[u8]) -> Option<Vec<Members>> {
        let read = |bytes: &[u8]| {
            let members = Members { id: id_of(bytes)?, from: get_u64(bytes, 16), to: get_u64(bytes, 24) };
            (members.from < members.to).then_some(members)
        };
        let are_whole = !bytes.is_empty() && bytes.len().is_multiple_of(MEMBERS_BYTES);
        are_whole.then(|| bytes.chunks_exact(MEMBERS_BYTES).map(read).collect())?
    }
}

pub(super) fn id_of(bytes: &[u8]) -> Option<BatchId> {
    bytes.first_chunk().map(|bytes| BatchId(u128::from_le_bytes(*bytes)))
}

fn put_u32(out: &mut [u8], at: usize, value: u32) {
    out[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

fn put_u64(out: &mut [u8], at: usize, value: u64) {
    out[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

/// Reads a number at `at`. Callers have checked that the slice reaches that far; otherwise the result is 0.
fn get_u32(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

fn get_u64(bytes: &[u8], at: usize) -> u64 {
    bytes[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: SegmentHeader =
        SegmentHeader { number: 3, salt: 77, first_position: 12, previous_end: 640, bytes: 4096 };

    #[test]
    fn headers_are_read_back_and_no_changed_bit_passes() {
        let bytes = HEADER.to_bytes();
        assert_eq!(SegmentHeader::from_bytes(&bytes), Ok(HEADER));
        let record = RecordHeader { payload_bytes: 9, payload_crc: 5, kind: Kind::Rows, position: 1 << 40, rows: 2 };
        let checksums = Checksums::of(&HEADER);
        let record_bytes = checksums.header_bytes(record);
        assert_eq!(checksums.header(&record_bytes), Some(record));
        for bit in 0..8 * SEGMENT_HEADER_BYTES {
            let mut changed = bytes;
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(SegmentHeader::from_bytes(&changed).is_err(), "{bit}");
        }
        for bit in 0..8 * RECORD_HEADER_BYTES {
            let mut changed = record_bytes;
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(checksums.header(&changed), None, "{bit}");
        }
        assert_eq!(SegmentHeader::from_bytes(&[0; 64]), Err(HeaderError::Unwritten));
    }

    #[test]
    fn records_of_another_segment_are_none() {
        let record = RecordHeader { payload_bytes: 9, payload_crc: 5, kind: Kind::Done, position: 0, rows: 0 };
        let bytes = Checksums::of(&HEADER).header_bytes(record);
        assert_eq!(Checksums::of(&SegmentHeader { salt: 78, ..HEADER }).header(&bytes), None);
        assert_eq!(Checksums::of(&SegmentHeader { number: 4, ..HEADER }).header(&bytes), None);
    }

    #[test]
    fn rows_whose_lengths_do_not_add_up_are_none() {
        let payload = [1, 0, 0, 0, 2, 0, 0, 0, b'a', b'b', b'c'];
        let rows = rows_of(2, &payload).unwrap();
        let (mut bytes, mut lengths) = (Vec::new(), Vec::new());
        rows.push_to(1..2, &mut bytes, &mut lengths);
        assert_eq!((bytes.as_slice(), lengths.as_slice()), (&b"bc"[..], &[2][..]));
        assert!(rows_of(2, &payload[..10]).is_none());
        assert!(rows_of(1, &payload).is_none() && rows_of(0, &[]).is_none() && rows_of(9, &payload).is_none());
    }
}
