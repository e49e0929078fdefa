#![no_main]
//! Evaluates sharding keys and partition keys of any text on rows of many types: no panic, and the shard
//! always exists.

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use windrow_columns::{decode_native, NativeBlock, NativeLimits, PartitionKey, ShardingKey};

/// Two rows of `a UInt64`, `i Int8`, `s String`, `d Date`, `w Date32`, `t DateTime`, `n Nullable(UInt8)`.
const ROWS: &[u8] = b"\x07\x02\x01a\x06UInt64\xff\xff\xff\xff\xff\xff\xff\xff\x07\0\0\0\0\0\0\0\x01i\x04Int8\x80\x7f\
\x01s\x06String\x00\x03abc\x01d\x04Date\xff\xff\0\0\x01w\x06Date32\xff\xff\xff\x7f\0\0\0\x80\
\x01t\x08DateTime\xff\xff\xff\xff\0\0\0\0\x01n\x0fNullable(UInt8)\x01\0\0\x07";
const WEIGHTS: [u32; 4] = [3, 0, 1, 7];

static BLOCK: LazyLock<NativeBlock> =
    LazyLock::new(|| decode_native(ROWS, NativeLimits::default()).expect("a Native block"));

fuzz_target!(|text: &str| {
    let NativeBlock { names, types, block, .. } = &*BLOCK;
    if let Some(key) = PartitionKey::parse(text, "UTC") {
        key.of_rows(names, types, block);
    }
    let Some(key) = ShardingKey::parse(text, "UTC") else { return };
    assert_eq!(ShardingKey::parse(key.expression(), "UTC").as_ref(), Some(&key));
    if let Some(shards) = key.shards_of_rows(names, types, block, &WEIGHTS, 5) {
        assert_eq!(shards.len(), block.rows());
        assert!(shards.iter().all(|shard| WEIGHTS[*shard as usize] > 0));
    }
});
