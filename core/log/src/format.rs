//! The bytes of a segment: its header and its records. docs/internals/journal.md describes the same in words.

use std::fmt;

/// The alignment of a segment's header and of every record, in bytes: each offset is divisible by it.
pub(crate) const ALIGNMENT: usize = 8;
pub(crate) const SEGMENT_HEADER_BYTES: usize = 96;
pub(crate) const RECORD_HEADER_BYTES: usize = 24;
/// The largest segment, in bytes. Offsets in a segment are kept in 32 bits.
pub(crate) const MAX_SEGMENT_BYTES: u64 = 2 << 30;
/// The largest payload, in bytes. No insert is nearly as large, so a greater length shows that no record is
/// there.
pub(crate) const MAX_PAYLOAD_BYTES: usize = 1 << 30;

const MAGIC: [u8; 8] = *b"WINDROWL";
const VERSION: u32 = 1;
const NO_SEGMENT: u64 = u64::MAX;

/// The kind of records that hold a context. They belong to the log itself.
pub(crate) const KIND_CONTEXT: u8 = 0;
/// The kind of the last record of a log that was closed: all records before it are complete.
pub(crate) const KIND_CLOSED: u8 = 127;
const KIND_MASK: u8 = 0x7F;
const ENDS_GROUP: u8 = 0x80;
const MAX_CONTEXT: u32 = (1 << 24) - 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub(crate) number: u64,
    /// The first of the segments that this one has replaced; its own number if it was never rewritten.
    pub(crate) covers_from: u64,
    /// The segment before this one, and the number of its valid bytes.
    pub(crate) previous: Option<u64>,
    pub(crate) previous_bytes: u64,
    /// The lowest id that a record in the segment may have.
    pub(crate) first_id: u64,
    pub(crate) salt: u64,
    /// The number of valid bytes of this segment, if that was known when the header was written; else 0.
    pub(crate) sealed_bytes: u64,
    /// Room that was taken for the segment on the disk: a shorter file has lost something.
    pub(crate) file_bytes: u64,
}

/// The reason why bytes are no header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HeaderFault {
    /// The segment has another version of the format. `is_whole` is true if its checksum, which every version
    /// has in this place, is right. If not, the version itself may be damaged.
    Version {
        version: u32,
        is_whole: bool,
    },
    Damaged(&'static str),
}

impl fmt::Display for HeaderFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HeaderFault::Version { version, .. } => {
                write!(f, "it is of format version {version}, and this Windrow knows version {VERSION}")
            }
            HeaderFault::Damaged(why) => f.write_str(why),
        }
    }
}

impl SegmentHeader {
    pub(crate) fn encode(&self) -> [u8; SEGMENT_HEADER_BYTES] {
        let mut bytes = [0; SEGMENT_HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        let fields = [
            self.number,
            self.covers_from,
            self.previous.unwrap_or(NO_SEGMENT),
            self.previous_bytes,
            self.first_id,
            self.salt,
            self.sealed_bytes,
            self.file_bytes,
        ];
        for (field, place) in fields.iter().zip(bytes[16..].chunks_exact_mut(8)) {
            place.copy_from_slice(&field.to_le_bytes());
        }
        let checksum = checksum_of_header(&bytes);
        bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<SegmentHeader, HeaderFault> {
        let bytes: &[u8; SEGMENT_HEADER_BYTES] = bytes
            .get(..SEGMENT_HEADER_BYTES)
            .and_then(|bytes| bytes.try_into().ok())
            .ok_or(HeaderFault::Damaged("it is shorter than a segment's header"))?;
        if bytes[..8] != MAGIC {
            return Err(HeaderFault::Damaged("it does not begin as a segment does"));
        }
        let version = u32_at(bytes, 8);
        let is_whole = u32_at(bytes, 12) == checksum_of_header(bytes);
        if version != VERSION {
            return Err(HeaderFault::Version { version, is_whole });
        }
        if !is_whole {
            return Err(HeaderFault::Damaged("the checksum of its header is wrong"));
        }
        let field = |index: usize| u64_at(bytes, 16 + 8 * index);
        Ok(SegmentHeader {
            number: field(0),
            covers_from: field(1),
            previous: Some(field(2)).filter(|number| *number != NO_SEGMENT),
            previous_bytes: field(3),
            first_id: field(4),
            salt: field(5),
            sealed_bytes: field(6),
            file_bytes: field(7),
        })
    }

    pub(crate) fn checksums(&self) -> Checksums {
        Checksums::new(self.number, self.salt)
    }
}

fn checksum_of_header(bytes: &[u8; SEGMENT_HEADER_BYTES]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&bytes[..12]);
    hasher.update(&bytes[16..]);
    hasher.finalize()
}

/// Checksums of one segment's records. They begin with the segment's salt, so that a client who only chooses
/// payloads can't make one.
#[derive(Clone, Copy)]
pub(crate) struct Checksums {
    start: u32,
}

impl Checksums {
    fn new(number: u64, salt: u64) -> Checksums {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&number.to_le_bytes());
        hasher.update(&salt.to_le_bytes());
        Checksums { start: hasher.finalize() }
    }

    /// Returns a record's checksum. `rest` is the record behind the checksum, without the padding.
    fn of(self, rest: &[u8]) -> u32 {
        let mut hasher = crc32fast::Hasher::new_with_initial(self.start);
        hasher.update(rest);
        hasher.finalize()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordHeader {
    checksum: u32,
    pub(crate) payload_bytes: usize,
    /// The record's id; 0 for a record of the log itself.
    pub(crate) id: u64,
    /// The group that the record was written with, counted from 1 in each segment.
    pub(crate) group: u32,
    pub(crate) kind: u8,
    pub(crate) ends_group: bool,
    /// The number of the record's context among those that stand before it in the segment, counted from 1; 0
    /// for none.
    pub(crate) context: u32,
}

impl RecordHeader {
    /// Decodes a record's header. Returns `None` where no record begins with these bytes.
    pub(crate) fn decode(bytes: &[u8]) -> Option<RecordHeader> {
        let bytes: &[u8; RECORD_HEADER_BYTES] = bytes.get(..RECORD_HEADER_BYTES)?.try_into().ok()?;
        let last = u32_at(bytes, 20);
        let header = RecordHeader {
            checksum: u32_at(bytes, 0),
            payload_bytes: u32_at(bytes, 4) as usize,
            id: u64_at(bytes, 8),
            group: u32_at(bytes, 16),
            kind: last as u8 & KIND_MASK,
            ends_group: last as u8 & ENDS_GROUP != 0,
            context: last >> 8,
        };
        (header.payload_bytes <= MAX_PAYLOAD_BYTES && header.group > 0).then_some(header)
    }

    /// Returns the record's bytes, with header and padding.
    pub(crate) fn record_bytes(&self) -> usize {
        record_bytes(self.payload_bytes)
    }

    /// Says whether the checksum is right. `record` holds the header and at least the payload.
    pub(crate) fn is_sound(&self, record: &[u8], checksums: Checksums) -> bool {
        let end = RECORD_HEADER_BYTES + self.payload_bytes;
        record.get(4..end).is_some_and(|rest| checksums.of(rest) == self.checksum)
    }
}

/// Returns the bytes that a payload of this length takes in a segment.
pub(crate) fn record_bytes(payload_bytes: usize) -> usize {
    (RECORD_HEADER_BYTES + payload_bytes).next_multiple_of(ALIGNMENT)
}

pub(crate) struct NewRecord<'a> {
    pub(crate) id: u64,
    pub(crate) group: u32,
    pub(crate) kind: u8,
    pub(crate) ends_group: bool,
    pub(crate) context: u32,
    pub(crate) payload: &'a [u8],
}

impl NewRecord<'_> {
    pub(crate) fn write(&self, checksums: Checksums, out: &mut Vec<u8>) {
        debug_assert!(self.payload.len() <= MAX_PAYLOAD_BYTES && self.context <= MAX_CONTEXT);
        let start = out.len();
        out.reserve(record_bytes(self.payload.len()));
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&(self.payload.len() as u32).to_le_bytes());
        out.extend_from_slice(&self.id.to_le_bytes());
        out.extend_from_slice(&self.group.to_le_bytes());
        let kind = self.kind | if self.ends_group { ENDS_GROUP } else { 0 };
        out.extend_from_slice(&(self.context << 8 | u32::from(kind)).to_le_bytes());
        out.extend_from_slice(self.payload);
        let checksum = checksums.of(&out[start + 4..]);
        out[start..start + 4].copy_from_slice(&checksum.to_le_bytes());
        out.resize(start + record_bytes(self.payload.len()), 0);
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: SegmentHeader = SegmentHeader {
        number: 7,
        covers_from: 5,
        previous: Some(4),
        previous_bytes: 4096,
        first_id: 99,
        salt: 0x1234_5678_9abc_def0,
        sealed_bytes: 0,
        file_bytes: 1 << 20,
    };

    #[test]
    fn headers_come_back_and_no_change_of_them_does() {
        let bytes = HEADER.encode();
        assert_eq!(SegmentHeader::decode(&bytes), Ok(HEADER));
        for at in 0..bytes.len() * 8 {
            let mut changed = bytes;
            changed[at / 8] ^= 1 << (at % 8);
            assert!(SegmentHeader::decode(&changed).is_err(), "bit {at}");
        }
        (0..bytes.len()).for_each(|end| assert!(SegmentHeader::decode(&bytes[..end]).is_err()));
        let first = SegmentHeader { previous: None, ..HEADER };
        assert_eq!(SegmentHeader::decode(&first.encode()), Ok(first));
    }

    #[test]
    fn records_come_back_and_no_change_of_them_does() {
        let checksums = HEADER.checksums();
        let mut bytes = Vec::new();
        let record = NewRecord { id: 3, group: 2, kind: 5, ends_group: false, context: 77, payload: b"payload" };
        record.write(checksums, &mut bytes);
        assert_eq!(bytes.len(), 32);
        let header = RecordHeader::decode(&bytes).unwrap();
        assert!(header.is_sound(&bytes, checksums));
        assert_eq!((header.id, header.group, header.kind, header.context), (3, 2, 5, 77));
        for at in 0..31 * 8 {
            let mut changed = bytes.clone();
            changed[at / 8] ^= 1 << (at % 8);
            let sound = RecordHeader::decode(&changed).is_some_and(|header| header.is_sound(&changed, checksums));
            assert!(!sound, "bit {at}");
        }
    }

    #[test]
    fn a_record_of_another_segment_is_none_of_this_one() {
        let mut bytes = Vec::new();
        NewRecord { id: 3, group: 2, kind: 5, ends_group: true, context: 0, payload: b"" }
            .write(HEADER.checksums(), &mut bytes);
        let other = SegmentHeader { salt: 1, ..HEADER }.checksums();
        assert!(!RecordHeader::decode(&bytes).unwrap().is_sound(&bytes, other));
    }
}
