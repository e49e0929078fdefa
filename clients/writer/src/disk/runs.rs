//! Rows that were found in a dead writer's segments, in runs short enough to be looked through again.

use super::format::RecordHeader;
use super::groups::RecordLocation;

/// The most rows of a run; `RUN_BYTES` is its most bytes. The runs of a large log take little memory even so.
const RUN_ROWS: u64 = 1024;
const RUN_BYTES: u64 = 1 << 20;

/// Rows whose positions follow each other, in one segment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    pub(super) place: RecordLocation,
    pub(super) first: u64,
    pub(super) rows: u64,
    pub(super) bytes: u64,
}

impl Run {
    pub(super) fn end(&self) -> u64 {
        self.first + self.rows
    }
}

#[derive(Default)]
pub(super) struct Runs(pub(super) Vec<Run>);

impl Runs {
    pub(super) fn push(&mut self, place: RecordLocation, header: RecordHeader) {
        let rows = u64::from(header.rows);
        let bytes = u64::from(header.payload_bytes) - 4 * rows;
        let last = self.0.last_mut().filter(|last| {
            last.place.segment == place.segment
                && last.end() == header.position
                && last.rows + rows <= RUN_ROWS
                && last.bytes + bytes <= RUN_BYTES
        });
        match last {
            Some(last) => {
                last.rows += rows;
                last.bytes += bytes;
            }
            None => self.0.push(Run { place, first: header.position, rows, bytes }),
        }
    }
}
