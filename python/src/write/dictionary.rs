//! LowCardinality as ClickHouse's own dictionaries, which are sent only inside of a Variant: everywhere else ClickHouse
//! builds them out of plain values.

use std::collections::HashMap;

/// The version of keys and indices that ClickHouse writes and reads.
pub(super) const KEYS_VERSION: u64 = 1;
/// Keys come with the column, and it has no other dictionary.
const ADDITIONAL_KEYS: u64 = 1 << 9;
const UPDATES_DICTIONARY: u64 = 1 << 10;
const INDICES_OF_32_BITS: u64 = 2;

/// Distinct values in the order of their first occurrence.
#[derive(Default)]
pub(super) struct Dictionary {
    /// By the bytes that a value is written as.
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

    /// Nothing at all for no rows.
    pub(super) fn put_data(&self, out: &mut Vec<u8>) {
        if self.indices.is_empty() {
            return;
        }
        let flags = ADDITIONAL_KEYS | UPDATES_DICTIONARY | INDICES_OF_32_BITS;
        out.extend_from_slice(&flags.to_le_bytes());
        out.extend_from_slice(&(self.numbers.len() as u64).to_le_bytes());
        out.extend_from_slice(&self.keys);
        out.extend_from_slice(&(self.indices.len() as u64 / 4).to_le_bytes());
        out.extend_from_slice(&self.indices);
    }

    pub(super) fn bytes(&self) -> usize {
        self.keys.len() + self.indices.len() + 24
    }
}
