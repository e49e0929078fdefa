//! Where the rows of an `Array` or a `Map` end among the elements.

use super::error::Problem;
use super::input::{make_room, Input, Progress};

#[derive(Default)]
pub(super) struct OffsetsReader {
    rows: usize,
    offsets: Vec<i32>,
}

impl OffsetsReader {
    pub(super) fn begin(&mut self, rows: usize) {
        self.rows = rows;
        self.offsets = vec![0];
    }

    pub(super) fn read(&mut self, input: &mut Input<'_>) -> Result<Progress, Problem> {
        let missing = self.rows + 1 - self.offsets.len();
        let whole = missing.min(input.rest().len() / 8);
        make_room(&mut self.offsets, whole, missing);
        let mut last = self.elements() as u64;
        let mut sound = true;
        self.offsets.extend(input.up_to(whole * 8).chunks_exact(8).map(|bytes| {
            let offset = u64::from_le_bytes(bytes.try_into().expect("chunks of 8 bytes"));
            sound &= offset >= last;
            last = offset;
            offset as i32
        }));
        // They only grow, so if the last one fits then all of them do.
        match (sound, last <= i32::MAX as u64) {
            (true, true) if whole == missing => Ok(Progress::Done),
            (true, true) => Ok(Progress::Waiting),
            (true, false) => Err(Problem::TooLarge("the arrays")),
            (false, _) => Err(Problem::Malformed("an array that ends before it begins")),
        }
    }

    /// Elements up to the last row that was read.
    pub(super) fn elements(&self) -> usize {
        self.offsets.last().map_or(0, |last| *last as usize)
    }

    pub(super) fn take(&mut self) -> Vec<i32> {
        std::mem::take(&mut self.offsets)
    }
}
