#![no_main]

use libfuzzer_sys::fuzz_target;
use windrow_columns::{decode_native, NativeLimits};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(decoded) = decode_native(bytes, NativeLimits::default()) {
        let again = decoded.block.encode_native(&decoded.names, &decoded.types);
        let decoded_again = decode_native(&again, NativeLimits::default()).expect("what was encoded can be decoded");
        assert_eq!(decoded_again.block, decoded.block);
    }
});
