#![no_main]
//! Reads a partition's answer of any bytes (checksums are not checked here): offsets of records grow, and
//! stay within the bounds of their batch.

use libfuzzer_sys::fuzz_target;
use windrow_kafka::{Batches, Decompressor};

fuzz_target!(|bytes: &[u8]| {
    let mut decompressor = Decompressor::new(1 << 20);
    for batch in Batches::new(bytes.to_vec().into()) {
        let Ok(batch) = batch else { return };
        let Ok(records) = decompressor.records(&batch) else { continue };
        let mut next = batch.base_offset;
        for record in records {
            let Ok(record) = record else { break };
            assert!(record.offset >= next && record.offset <= batch.last_offset);
            assert_eq!(record.headers.iter().count(), record.headers.len());
            next = record.offset + 1;
        }
    }
});
