#![no_main]
//! Reads batches of appends, of any bytes, in both forms and for both stores: a batch that is accepted stays
//! within the memory that it may take.

use std::sync::Once;

use libfuzzer_sys::fuzz_target;
use windrow_append::{fuzzing, Payload};

const MAX_BYTES: u64 = 1 << 20;

/// A guard that sets the panic hook once. Arrow's decoder has assertions instead of some errors, and DuckDB's
/// side catches them. libFuzzer would end at each of them; a panic that nobody catches ends it all the same.
static CATCHES_PANICS: Once = Once::new();

fuzz_target!(|bytes: &[u8]| {
    CATCHES_PANICS.call_once(|| std::panic::set_hook(Box::new(|_| {})));
    let Some((choice, body)) = bytes.split_first() else { return };
    let body = body.to_vec().into();
    let payload = if choice & 1 == 0 { Payload::ArrowStream(body) } else { Payload::Native(body) };
    match choice & 2 {
        0 => fuzzing::batch_for_clickhouse(payload, MAX_BYTES),
        _ => fuzzing::batch_for_duckdb(payload, MAX_BYTES),
    }
});
