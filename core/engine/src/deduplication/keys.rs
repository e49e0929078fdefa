//! Keys that an insert is known by when it comes again, and their form in records.
//!
//! The encoding, in little-endian: a version (1), the table, the key, how many entries the table's
//! deduplication index keeps and for how many microseconds (0: for ever), the number of partitions and the
//! partitions. No partitions stand for the table as a whole.

use std::fmt;

use crate::sink::{BatchId, Destination};

use super::claim::{Claim, ClaimHandle};

const VERSION: u8 = 1;
const FIXED_BYTES: usize = 1 + 16 + 16 + 8 + 8 + 4;

/// Bounds on how much of a table is remembered, as ClickHouse's settings of the table say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeduplicationBounds {
    /// Number of entries. An insert counts once for each partition that it has rows for.
    pub entries: u64,
    pub age_micros: Option<u64>,
}

impl DeduplicationBounds {
    /// Bounds for tables that have no window of their owner: ClickHouse's own defaults for replicated tables.
    pub const DEFAULT: DeduplicationBounds = DeduplicationBounds { entries: 10_000, age_micros: Some(3_600_000_000) };
}

/// The keys that an insert is known by: a hash of its token, or of its rows.
pub struct DedupKeys {
    /// The table: its UUID, or a hash of its name where it has none.
    pub table: u128,
    pub key: u128,
    /// Partitions that the insert has rows for, each once. The list is empty if the table has no partitions,
    /// or nobody can tell.
    pub partitions: Vec<u64>,
    pub bounds: DeduplicationBounds,
    /// The claim, which the one insert holds that goes on its way under these keys.
    pub(super) claim: Option<Claim>,
}

impl DedupKeys {
    pub fn new(table: u128, key: u128, partitions: Vec<u64>, bounds: DeduplicationBounds) -> DedupKeys {
        DedupKeys { table, key, partitions, bounds, claim: None }
    }

    /// Returns the keys of an insert that Windrow itself sends again. They are kept for longer than any
    /// attempt to send it lasts.
    pub fn of_dead_letter(key: u128, destination: &Destination) -> DedupKeys {
        let bounds = DeduplicationBounds { entries: 1_000_000, age_micros: None };
        let table = table_by_name(&destination.database, &destination.table);
        DedupKeys::new(table, key, Vec::new(), bounds)
    }

    /// Returns the keys of the rows that go to one shard, in these partitions. Each shard's part is stored,
    /// and known again, by itself. `cut` tells how the rows were cut.
    pub fn of_shard(&self, cut: u64, shard: u32, partitions: Vec<u64>) -> DedupKeys {
        let key = BatchId(self.key).derived(cut.to_le_bytes().into_iter().chain(shard.to_le_bytes())).0;
        DedupKeys { table: self.table, key, partitions, bounds: self.bounds, claim: None }
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(FIXED_BYTES + 8 * self.partitions.len());
        bytes.push(VERSION);
        bytes.extend_from_slice(&self.table.to_le_bytes());
        bytes.extend_from_slice(&self.key.to_le_bytes());
        bytes.extend_from_slice(&self.bounds.entries.to_le_bytes());
        bytes.extend_from_slice(&self.bounds.age_micros.unwrap_or(0).to_le_bytes());
        bytes.extend_from_slice(&(self.partitions.len() as u32).to_le_bytes());
        self.partitions.iter().for_each(|partition| bytes.extend_from_slice(&partition.to_le_bytes()));
        bytes
    }

    /// Reads keys from bytes. Returns `None` if these are no keys, or of a version that is not known here.
    pub fn decode(bytes: &[u8]) -> Option<DedupKeys> {
        let (&version, rest) = bytes.split_first()?;
        let (table, rest) = rest.split_first_chunk()?;
        let (key, rest) = rest.split_first_chunk()?;
        let (entries, rest) = rest.split_first_chunk()?;
        let (age_micros, rest) = rest.split_first_chunk()?;
        let (partitions, rest) = rest.split_first_chunk()?;
        if version != VERSION || rest.len() as u64 != 8 * u64::from(u32::from_le_bytes(*partitions)) {
            return None;
        }
        let age_micros = Some(u64::from_le_bytes(*age_micros)).filter(|&age| age > 0);
        let bounds = DeduplicationBounds { entries: u64::from_le_bytes(*entries), age_micros };
        let partitions = rest.chunks_exact(8).filter_map(|chunk| Some(u64::from_le_bytes(chunk.try_into().ok()?)));
        Some(DedupKeys::new(u128::from_le_bytes(*table), u128::from_le_bytes(*key), partitions.collect(), bounds))
    }

    /// Returns a handle to tell later that the insert can't be lost any more, when these keys are on their
    /// way with it.
    pub fn handle(&self) -> Option<ClaimHandle> {
        self.claim.as_ref().map(Claim::handle)
    }

    /// Leaves the keys taken, since the insert is kept elsewhere for now, and comes back from there.
    /// (Otherwise they are free again when this value is dropped.)
    pub fn park(&mut self) {
        if let Some(claim) = self.claim.take() {
            claim.park();
        }
    }
}

/// Clones the keys without the claim, which only one value can have.
impl Clone for DedupKeys {
    fn clone(&self) -> DedupKeys {
        DedupKeys::new(self.table, self.key, self.partitions.clone(), self.bounds)
    }
}

impl PartialEq for DedupKeys {
    fn eq(&self, other: &DedupKeys) -> bool {
        let parts = |keys: &DedupKeys| (keys.table, keys.key, keys.bounds);
        parts(self) == parts(other) && self.partitions == other.partitions
    }
}

impl Eq for DedupKeys {}

impl fmt::Debug for DedupKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DedupKeys { table, key, partitions, .. } = self;
        write!(f, "DedupKeys({table:032x}, {key:032x}, {partitions:?})")
    }
}

/// Returns the id of a table without a UUID: FNV-1a, with a zero byte between the names, since no name has
/// one.
pub fn table_by_name(database: &str, table: &str) -> u128 {
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013B;
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    let bytes = database.bytes().chain([0]).chain(table.bytes());
    bytes.fold(BASIS, |hash, byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_encoded_is_decoded_and_nothing_else() {
        for partitions in [vec![], vec![7], vec![1, u64::MAX, 3]] {
            for age_micros in [None, Some(5)] {
                let keys =
                    DedupKeys::new(1 << 100, 9, partitions.clone(), DeduplicationBounds { entries: 3, age_micros });
                let bytes = keys.encode();
                assert_eq!(DedupKeys::decode(&bytes).as_ref(), Some(&keys));
                for length in 0..bytes.len() {
                    assert_eq!(DedupKeys::decode(&bytes[..length]), None, "cut after {length}");
                }
                assert_eq!(DedupKeys::decode(&[&bytes[..], &[0]].concat()), None);
            }
        }
        let mut other_version = DedupKeys::new(1, 2, vec![], DeduplicationBounds::DEFAULT).encode();
        other_version[0] = 2;
        assert_eq!(DedupKeys::decode(&other_version), None);
    }

    #[test]
    fn random_bytes_do_no_harm() {
        let mut random = fastrand::Rng::with_seed(1);
        let bytes = DedupKeys::new(1, 2, vec![3, 4], DeduplicationBounds::DEFAULT).encode();
        for _ in 0..10_000 {
            let mut changed = bytes.clone();
            let at = random.usize(..changed.len());
            changed[at] = random.u8(..);
            DedupKeys::decode(&changed);
        }
    }

    #[test]
    fn names_that_run_together_differ() {
        assert_ne!(table_by_name("a", "bc"), table_by_name("ab", "c"));
    }
}
