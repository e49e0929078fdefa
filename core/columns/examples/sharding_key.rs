//! Says where ClickHouse's Distributed would store rows, for a test that compares it with a real one:
//! `sharding_key TIMEZONE WEIGHTS KEY...`, with a Native block on standard input. For each key it prints a line with the
//! shard of each row, counted from 1, or `-` where it is not understood.

use std::io::Read;

use windrow_columns::{decode_native, NativeLimits, ShardingKey};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [timezone, weights, keys @ ..] = &arguments[..] else { panic!("sharding_key TIMEZONE WEIGHTS KEY...") };
    let weights: Vec<u32> = weights.split(',').map(|weight| weight.parse().expect("a weight")).collect();
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes).expect("a block");
    let limits = NativeLimits::default();
    let native = decode_native(&bytes, limits).expect("a Native block");
    for key in keys {
        let shards = ShardingKey::parse(key, timezone)
            .and_then(|key| key.shards_of_rows(&native.names, &native.types, &native.block, &weights, 0));
        let shown =
            shards.map(|shards| shards.iter().map(|shard| (shard + 1).to_string()).collect::<Vec<_>>().join(","));
        println!("{}", shown.unwrap_or_else(|| "-".into()));
    }
}
