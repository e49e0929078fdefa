#![no_main]
//! Reads records of the append state log, of any bytes.

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((kind, payload)) = bytes.split_first() else { return };
    windrow_append::fuzzing::record(*kind, payload);
});
