//! `String` columns: a length and as many bytes, row after row.

use super::error::Problem;
use super::input::{make_room, Input, Progress};
use crate::column::Column;

/// The length from which strings are no short ones. A short string has a length of one byte, and is copied in
/// steps of 16 bytes, whatever its exact length.
const SHORT: usize = 0x80;
/// Bytes that the fast path needs on both sides: for the length, and for the last step that may run over the
/// string's end.
const MARGIN: usize = SHORT + 16;
const MAX_BYTES: usize = i32::MAX as usize;

#[derive(Default)]
pub(super) struct StringsReader {
    rows: usize,
    offsets: Vec<i32>,
    data: Vec<u8>,
    /// Bytes that the last string of `data` still lacks.
    missing: usize,
}

impl StringsReader {
    pub(super) fn begin(&mut self, rows: usize) {
        self.rows = rows;
        self.offsets = vec![0];
    }

    pub(super) fn read(&mut self, input: &mut Input<'_>) -> Result<Progress, Problem> {
        loop {
            self.rest_of_string(input);
            if self.missing > 0 {
                return Ok(Progress::Waiting);
            }
            self.short_strings(input);
            if self.rows_left() == 0 {
                return Ok(Progress::Done);
            }
            let Some(length) = input.varint()? else { return Ok(Progress::Waiting) };
            self.begin_string(length)?;
        }
    }

    pub(super) fn take(&mut self) -> Column {
        Column::Strings { offsets: std::mem::take(&mut self.offsets), data: std::mem::take(&mut self.data) }
    }

    fn rows_left(&self) -> usize {
        self.rows + 1 - self.offsets.len()
    }

    fn begin_string(&mut self, length: u64) -> Result<(), Problem> {
        let end = usize::try_from(length).ok().and_then(|length| length.checked_add(self.data.len()));
        let end = end.filter(|end| *end <= MAX_BYTES).ok_or(Problem::TooLarge("the strings"))?;
        let announced = self.rows_left();
        make_room(&mut self.offsets, 1, announced);
        self.missing = end - self.data.len();
        self.offsets.push(end as i32);
        Ok(())
    }

    fn rest_of_string(&mut self, input: &mut Input<'_>) {
        let coming = input.up_to(self.missing);
        self.data.extend_from_slice(coming);
        self.missing -= coming.len();
    }

    /// Reads as many short strings as there are in a row, as long as no copy can run over the end of either
    /// side.
    fn short_strings(&mut self, input: &mut Input<'_>) {
        while self.rows_left() > 0 && input.rest().len() > MARGIN && input.rest()[0] < SHORT as u8 {
            let rows = self.rows_left().min(input.rest().len());
            let announced = self.rows_left();
            make_room(&mut self.offsets, rows.min(4096), announced);
            self.make_room_for_data(input.rest().len());
            if self.run_of_short_strings(input) == 0 {
                return;
            }
        }
    }

    /// Makes room for the rest of the column if it goes on as it did, and for no more than twice the bytes
    /// that came.
    fn make_room_for_data(&mut self, coming: usize) {
        if self.data.capacity() - self.data.len() > 8 * MARGIN {
            return;
        }
        let done = self.offsets.len() - 1;
        let guess = match done {
            0..256 => 16 * self.rows_left().min(1024),
            _ => (self.data.len() / done + 1).saturating_mul(self.rows_left()),
        };
        self.data.reserve(guess.min(coming) + 16 * MARGIN);
    }

    fn run_of_short_strings(&mut self, input: &mut Input<'_>) -> usize {
        let source = input.rest();
        let room = self.data.capacity().min(MAX_BYTES).saturating_sub(self.data.len());
        let rows = self.rows_left().min(self.offsets.capacity() - self.offsets.len());
        let (mut read, mut written, mut row) = (0, 0, 0);
        let first_offset = self.data.len();
        let data = self.data.spare_capacity_mut().as_mut_ptr().cast::<u8>();
        let offsets = self.offsets.spare_capacity_mut();
        while row < rows && source.len() - read > MARGIN && room - written.min(room) > MARGIN {
            let length = usize::from(source[read]);
            if length >= SHORT {
                break;
            }
            // SAFETY: `length` is less than SHORT, so the last of the steps of 16 bytes ends less than MARGIN bytes
            // behind the length's byte; the loop's condition says that so many are there to read and as many, in the
            // vector's spare capacity, to write. The two are different allocations.
            unsafe {
                let from = source.as_ptr().add(read + 1);
                let to = data.add(written);
                std::ptr::copy_nonoverlapping(from, to, 16);
                let mut copied = 16;
                while copied < length {
                    std::ptr::copy_nonoverlapping(from.add(copied), to.add(copied), 16);
                    copied += 16;
                }
            }
            read += 1 + length;
            written += length;
            offsets[row].write((first_offset + written) as i32);
            row += 1;
        }
        // SAFETY: `written` bytes and `row` offsets were initialised above, inside the capacities.
        unsafe {
            self.data.set_len(first_offset + written);
            self.offsets.set_len(self.offsets.len() + row);
        }
        input.at += read;
        row
    }
}
