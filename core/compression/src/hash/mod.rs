//! Hash functions that ClickHouse will not change: those of its compressed blocks, and those of rows that
//! choose a shard.
//!
//! All of them are pure functions on bytes and numbers. Tests check against ClickHouse's own output that they
//! give the same hashes (`core/compression/tests/golden`, `tests/cluster/test_sharding_keys.py`).

mod city;
mod murmur;
mod number;
mod sip;

pub use city::{cityhash128, cityhash64, combine_cityhash64};
pub use murmur::murmurhash3_64;
pub use number::{int_hash32, int_hash64};
pub use sip::siphash64;

/// Returns ClickHouse's `xxHash32` of one value.
pub fn xxhash32(input: &[u8]) -> u32 {
    twox_hash::XxHash32::oneshot(0, input)
}

/// Returns ClickHouse's `xxHash64` of one value.
pub fn xxhash64(input: &[u8]) -> u64 {
    twox_hash::XxHash64::oneshot(0, input)
}

/// Returns ClickHouse's `xxh3` of one value.
pub fn xxh3(input: &[u8]) -> u64 {
    twox_hash::XxHash3_64::oneshot(input)
}
