//! An entry: rows as they lie in Redis. Version, number of rows, the length of each, their bytes. Numbers are
//! little-endian.

use crate::rows::Rows;

const VERSION: u8 = 1;
const HEAD_BYTES: usize = 5;

pub(super) fn to_bytes(rows: Rows<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEAD_BYTES + 4 * rows.count() + rows.bytes().len());
    out.push(VERSION);
    out.extend_from_slice(&(rows.count() as u32).to_le_bytes());
    for length in rows.lengths() {
        out.extend_from_slice(&length.to_le_bytes());
    }
    out.extend_from_slice(rows.bytes());
    out
}

/// The rows of an entry, checked: the lengths add up to the bytes.
#[derive(Debug, PartialEq)]
pub(super) struct Entry<'a> {
    pub(super) lengths: Vec<u32>,
    pub(super) bytes: &'a [u8],
}

/// Reads an entry that `to_bytes` has written. Returns `None` for other bytes.
pub(super) fn from_bytes(entry: &[u8]) -> Option<Entry<'_>> {
    let (&version, rest) = entry.split_first()?;
    let (count, rest) = rest.split_first_chunk::<4>()?;
    let table_bytes = (u32::from_le_bytes(*count) as usize).checked_mul(4)?;
    if version != VERSION || rest.len() < table_bytes {
        return None;
    }
    let (table, bytes) = rest.split_at(table_bytes);
    let lengths: Vec<u32> =
        table.chunks_exact(4).map(|part| u32::from_le_bytes([part[0], part[1], part[2], part[3]])).collect();
    let sum: u64 = lengths.iter().map(|&length| u64::from(length)).sum();
    (sum == bytes.len() as u64).then_some(Entry { lengths, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_back_and_nothing_else_is() {
        let bytes = to_bytes(Rows::new(b"abbccc", &[1, 2, 3]));
        assert_eq!(from_bytes(&bytes), Some(Entry { lengths: vec![1, 2, 3], bytes: b"abbccc" }));
        for end in 0..bytes.len() {
            assert_eq!(from_bytes(&bytes[..end]), None, "{end}");
        }
        let mut random = fastrand::Rng::with_seed(3);
        for _ in 0..10_000 {
            let mut changed = bytes.clone();
            changed[random.usize(..bytes.len())] = random.u8(..);
            let _ = from_bytes(&changed);
        }
    }
}
