//! The ends of the rows of an `Array` or a `Map` among the elements.

use super::error::Problem;
use super::input::{make_room, Input, Progress};

const MAX_ELEMENTS: u64 = i32::MAX as u64;

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
        let first = self.elements() as u64;
        let (mut last, mut sound) = (first, true);
        let coming = input.up_to(whole * 8).chunks_exact(8);
        let coming = coming.map(|bytes| u64::from_le_bytes(bytes.try_into().expect("chunks of 8 bytes")));
        self.offsets.extend(coming.clone().map(|offset| {
            sound &= offset >= last;
            last = offset;
            offset as i32
        }));
        // They only grow, so if the last one fits then all of them do.
        if !sound || last > MAX_ELEMENTS {
            return Err(first_problem(first, coming));
        }
        Ok(if whole == missing { Progress::Done } else { Progress::Waiting })
    }

    /// Returns the number of elements up to the last row that was read.
    pub(super) fn elements(&self) -> usize {
        self.offsets.last().map_or(0, |last| *last as usize)
    }

    pub(super) fn take(&mut self) -> Vec<i32> {
        std::mem::take(&mut self.offsets)
    }
}

/// Returns the first problem, which is the same one however the bytes were cut.
fn first_problem(mut last: u64, offsets: impl Iterator<Item = u64>) -> Problem {
    for offset in offsets {
        if offset < last {
            break;
        }
        if offset > MAX_ELEMENTS {
            return Problem::TooLarge("the arrays");
        }
        last = offset;
    }
    Problem::Malformed("an array that ends before it begins")
}
