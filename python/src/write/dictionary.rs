//! The dictionaries of LowCardinality, which are sent only inside of a Variant: everywhere else ClickHouse
//! builds them out of plain values.

use std::collections::HashMap;

use windrow_columns::wire::DICTIONARY_OF_32_BITS;

/// Distinct values in the order of their first occurrence.
#[derive(Default)]
pub(super) struct Dictionary {
    /// The number of each value, by the bytes that it is written as.
    numbers: HashMap<Box<[u8]>, u32>,
    keys: Vec<u8>,
    indices: Vec<u8>,
}

impl Dictionary {
    /// Appends a value, given as it is written.
    pub(super) fn push(&mut self, written: &[u8]) {
        let next = self.numbers.len() as u32;
        let number = match self.numbers.get(written) {
            Some(number) => *number,
            None => {
                self.numbers.insert(written.into(), next);
                self.keys.extend_from_slice(written);
                next
            }
        };
        self.indices.extend_from_slice(&number.to_le_bytes());
    }

    /// Appends the dictionary and its indices; nothing at all for no rows.
    pub(super) fn put_data(&self, out: &mut Vec<u8>) {
        if self.indices.is_empty() {
            return;
        }
        out.extend_from_slice(&DICTIONARY_OF_32_BITS.to_le_bytes());
        out.extend_from_slice(&(self.numbers.len() as u64).to_le_bytes());
        out.extend_from_slice(&self.keys);
        out.extend_from_slice(&(self.indices.len() as u64 / 4).to_le_bytes());
        out.extend_from_slice(&self.indices);
    }

    pub(super) fn bytes(&self) -> usize {
        self.keys.len() + self.indices.len() + 24
    }
}
