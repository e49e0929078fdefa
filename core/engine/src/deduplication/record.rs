//! The records of the deduplication index's log, in little-endian.
//!
//! Kind 1 says that inserts of one table are stored. It has a version (1), the time (microseconds since
//! 1970), the table, the bounds of its deduplication index (entries, microseconds or 0), the number of
//! inserts, and for each its key, the number of its partitions, the partitions. Kind 2 says that the rows of
//! a table are gone. It has a version (1), the table.

use super::keys::{DedupKeys, DeduplicationBounds};

pub(super) const STORED: u8 = 1;
pub(super) const FORGOTTEN: u8 = 2;
const VERSION: u8 = 1;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Record {
    Stored { at_micros: u64, inserts: Vec<DedupKeys> },
    Forgotten { table: u128 },
}

/// Encodes that inserts are stored, all of which are of one table.
pub(super) fn encode_stored(at_micros: u64, inserts: &[DedupKeys]) -> Vec<u8> {
    let Some(first) = inserts.first() else { return Vec::new() };
    let mut bytes = vec![VERSION];
    bytes.extend_from_slice(&at_micros.to_le_bytes());
    bytes.extend_from_slice(&first.table.to_le_bytes());
    bytes.extend_from_slice(&first.bounds.entries.to_le_bytes());
    bytes.extend_from_slice(&first.bounds.age_micros.unwrap_or(0).to_le_bytes());
    bytes.extend_from_slice(&(inserts.len() as u32).to_le_bytes());
    for insert in inserts {
        bytes.extend_from_slice(&insert.key.to_le_bytes());
        bytes.extend_from_slice(&(insert.partitions.len() as u32).to_le_bytes());
        insert.partitions.iter().for_each(|partition| bytes.extend_from_slice(&partition.to_le_bytes()));
    }
    bytes
}

pub(super) fn encode_forgotten(table: u128) -> Vec<u8> {
    [&[VERSION][..], &table.to_le_bytes()].concat()
}

/// Decodes a record. Returns `None` if it is no record that is known here.
pub(super) fn decode(kind: u8, payload: &[u8]) -> Option<Record> {
    let mut input = Input(payload);
    if input.u8()? != VERSION {
        return None;
    }
    let record = match kind {
        STORED => stored(&mut input)?,
        FORGOTTEN => Record::Forgotten { table: input.u128()? },
        _ => return None,
    };
    input.0.is_empty().then_some(record)
}

fn stored(input: &mut Input) -> Option<Record> {
    let (at_micros, table) = (input.u64()?, input.u128()?);
    let bounds = DeduplicationBounds { entries: input.u64()?, age_micros: Some(input.u64()?).filter(|&age| age > 0) };
    let count = input.u32()?;
    let mut inserts = Vec::new();
    for _ in 0..count {
        let key = input.u128()?;
        let partitions = input.u32()?;
        if u64::from(partitions) * 8 > input.0.len() as u64 {
            return None;
        }
        let partitions = (0..partitions).map(|_| input.u64()).collect::<Option<_>>()?;
        inserts.push(DedupKeys::new(table, key, partitions, bounds));
    }
    Some(Record::Stored { at_micros, inserts })
}

struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take().map(|[byte]| byte)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn u128(&mut self) -> Option<u128> {
        self.take().map(u128::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<(u8, Vec<u8>, Record)> {
        let bounds = DeduplicationBounds { entries: 7, age_micros: None };
        let keys = |key, partitions: &[u64]| DedupKeys::new(9, key, partitions.to_vec(), bounds);
        let inserts = vec![keys(1, &[]), keys(2, &[3, 4]), keys(3, &[5])];
        vec![
            (STORED, encode_stored(11, &inserts), Record::Stored { at_micros: 11, inserts }),
            (FORGOTTEN, encode_forgotten(1 << 90), Record::Forgotten { table: 1 << 90 }),
        ]
    }

    #[test]
    fn what_was_encoded_is_decoded_and_nothing_else() {
        for (kind, bytes, record) in samples() {
            assert_eq!(decode(kind, &bytes), Some(record));
            for length in 0..bytes.len() {
                assert_eq!(decode(kind, &bytes[..length]), None, "kind {kind} cut after {length}");
            }
            assert_eq!(decode(kind, &[&bytes[..], &[0]].concat()), None);
            assert_eq!(decode(3, &bytes), None);
        }
    }

    #[test]
    fn random_changes_do_no_harm() {
        let mut random = fastrand::Rng::with_seed(2);
        for (kind, bytes, _) in samples() {
            for _ in 0..20_000 {
                let mut changed = bytes.clone();
                for _ in 0..random.usize(1..4) {
                    let at = random.usize(..changed.len());
                    changed[at] = random.u8(..);
                }
                decode(kind, &changed);
            }
        }
    }
}
