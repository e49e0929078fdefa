//! Conversion to `QBit`: vectors whose numbers are sent bit by bit, the highest bit of all of them first.

use super::number::{float32_of, float_of};
use super::parts::Items;
use super::problem::Problem;
use super::value::Value;

/// The shape of a vector: how many numbers it has, and their width.
pub(super) struct QBitShape {
    pub(super) dimension: usize,
    /// The bits of a number: 16, 32 or 64.
    pub(super) bits: usize,
}

/// The bits of vectors: a plane for each bit of a number; each row has a bit of every number in it.
pub(super) struct BitPlanes {
    planes: Vec<Vec<u8>>,
}

impl BitPlanes {
    pub(super) fn new(shape: &QBitShape) -> Self {
        BitPlanes { planes: vec![Vec::new(); shape.bits] }
    }

    pub(super) fn push(&mut self, shape: &QBitShape, value: Value<'_>) -> Result<(), Problem> {
        let items = Items::of(value)?;
        if items.len() != shape.dimension {
            return Err(Problem::said(format!("{} numbers, not {}", shape.dimension, items.len())));
        }
        let start = self.planes[0].len();
        self.push_zeros(shape);
        let width = shape.dimension.div_ceil(8);
        for index in 0..shape.dimension {
            let word = word_of(items.get(index)?, shape.bits)?;
            // The first number is the lowest bit of the last byte.
            let byte = start + width - 1 - index / 8;
            for (plane, bytes) in self.planes.iter_mut().enumerate() {
                let bit = (word >> (shape.bits - 1 - plane)) as u8 & 1;
                bytes[byte] |= bit << (index % 8);
            }
        }
        Ok(())
    }

    pub(super) fn push_zeros(&mut self, shape: &QBitShape) {
        for plane in &mut self.planes {
            plane.resize(plane.len() + shape.dimension.div_ceil(8), 0);
        }
    }

    pub(super) fn put_data(&self, out: &mut Vec<u8>) {
        self.planes.iter().for_each(|plane| out.extend_from_slice(plane));
    }

    pub(super) fn bytes(&self) -> usize {
        self.planes.iter().map(Vec::len).sum()
    }
}

/// Returns a number's bits.
pub(super) fn word_of(value: Value<'_>, bits: usize) -> Result<u64, Problem> {
    Ok(match bits {
        64 => float_of(value)?.to_bits(),
        32 => float32_of(value)?.to_bits().into(),
        _ => (float32_of(value)?.to_bits() >> 16).into(),
    })
}
