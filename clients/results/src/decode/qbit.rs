//! `QBit` columns: the highest bit of all numbers of all rows, then the next one, and so on. Here the numbers are put
//! together again.

use super::error::Problem;
use super::input::{Gathered, Input, Progress};
use crate::column::Column;

pub(super) struct QBitReader {
    dimension: usize,
    /// Bytes of one number.
    width: usize,
    rows: usize,
    planes: Gathered,
}

impl QBitReader {
    pub(super) fn new(dimension: usize, width: usize) -> Self {
        QBitReader { dimension, width, rows: 0, planes: Gathered::default() }
    }

    /// Returns the number of bytes that have one bit of all numbers of a row.
    fn stride(&self) -> usize {
        self.dimension.div_ceil(8)
    }

    pub(super) fn begin(&mut self, rows: usize) {
        self.rows = rows;
        self.planes.begin(rows.saturating_mul(self.stride() * self.width * 8));
    }

    pub(super) fn read(&mut self, input: &mut Input<'_>) -> Result<Progress, Problem> {
        if self.rows * self.dimension > i32::MAX as usize {
            return Err(Problem::TooLarge("the vectors"));
        }
        Ok(self.planes.read(input))
    }

    pub(super) fn take(&mut self) -> Column {
        let planes = self.planes.take();
        let (rows, stride, width) = (self.rows, self.stride(), self.width);
        let mut data = vec![0_u8; rows * self.dimension * width];
        for (index, number) in data.chunks_exact_mut(width).enumerate() {
            let (row, element) = (index / self.dimension, index % self.dimension);
            // The first element is the lowest bit of the last byte.
            let place = row * stride + stride - 1 - element / 8;
            for bit in 0..width * 8 {
                let set = planes[(width * 8 - 1 - bit) * rows * stride + place] >> (element % 8) & 1;
                number[bit / 8] |= set << (bit % 8);
            }
        }
        let offsets = (0..=rows).map(|row| (row * self.dimension) as i32).collect();
        Column::Array { offsets, inner: Box::new(Column::Fixed { width, data }) }
    }
}
