//! The reading of a damaged segment: it takes all records that can be read, and says where the rest is.
//! Inspection and repair of a log use it.

use std::io;

use super::format::{SegmentHeader, SEGMENT_HEADER_BYTES};
use super::index::SharedFile;
use super::scan::{Found, RawRecord, Scan};

/// Bytes that should be records and aren't.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    pub offset: u64,
    pub bytes: u64,
    pub why: String,
}

pub(super) struct Salvaged {
    /// The end of the segment, as far as it can be told.
    pub(super) end: u64,
    pub(super) damages: Vec<Damage>,
    /// The offset of a group that was being written when the process ended. Nothing of it was acknowledged.
    pub(super) torn_at: Option<u64>,
}

/// Reads a segment. `end` is the segment's end, if a header says it; otherwise the segment may have a torn tail.
pub(super) fn salvage(
    file: &SharedFile,
    header: &SegmentHeader,
    end: Option<u64>,
    take: &mut dyn FnMut(&RawRecord<'_>),
) -> io::Result<Salvaged> {
    let file_bytes = file.len()?;
    let until = end.unwrap_or(file_bytes).min(file_bytes);
    let mut scan = Scan::new(file.clone(), header.checksums(), SEGMENT_HEADER_BYTES as u64, until);
    let mut salvaged = Salvaged { end: until, damages: Vec::new(), torn_at: None };
    let expected = end.unwrap_or(0).max(header.file_bytes);
    let (mut group, mut group_ended) = (0, true);
    loop {
        let offset = scan.offset;
        if scan.at_end() {
            break;
        }
        let why = match scan.next()? {
            Found::Record(record) => {
                (group, group_ended) = (record.header.group, record.header.ends_group);
                take(&record);
                continue;
            }
            Found::Nothing => "there is no record where one should be",
            Found::Bad(why) => why,
        };
        let torn_group = if group_ended { group + 1 } else { group };
        let later_than = if end.is_some() { 0 } else { torn_group };
        match scan.later_group(later_than)? {
            Some(later) => {
                salvaged.damages.push(Damage { offset, bytes: later - offset, why: why.to_owned() });
                scan.offset = later;
            }
            None if end.is_some() => {
                salvaged.damages.push(Damage { offset, bytes: until - offset, why: why.to_owned() });
                break;
            }
            None => {
                salvaged.torn_at = (!scan.rest_is_zero()?).then_some(offset);
                salvaged.end = offset;
                break;
            }
        }
    }
    if expected > file_bytes {
        let why = format!("the file has {file_bytes} bytes, and should have {expected}");
        salvaged.damages.push(Damage { offset: file_bytes, bytes: expected - file_bytes, why });
    }
    Ok(salvaged)
}
