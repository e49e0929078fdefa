#![no_main]
//! Batches of appends, of any bytes, in both forms and for both stores: what is taken keeps to what it may have in memory.

use libfuzzer_sys::fuzz_target;
use windrow_append::{fuzzing, Payload};

const MAX_BYTES: u64 = 1 << 20;

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, body)) = bytes.split_first() else { return };
    let body = body.to_vec().into();
    let payload = if choice & 1 == 0 { Payload::ArrowStream(body) } else { Payload::Native(body) };
    match choice & 2 {
        0 => fuzzing::batch_for_clickhouse(payload, MAX_BYTES),
        _ => fuzzing::batch_for_duckdb(payload, MAX_BYTES),
    }
});
