#![no_main]
//! Reads metadata of any text beside a committed offset: metadata that is accepted as a batch's record can be
//! written again, and is the same then.

use libfuzzer_sys::fuzz_target;
use windrow_kafka::pipeline::BatchRecord;

fuzz_target!(|text: &str| {
    for text in [text.to_owned(), format!("windrow:{text}")] {
        let Ok(record) = BatchRecord::decode(&text) else { continue };
        if let Ok(written) = record.encode() {
            assert_eq!(BatchRecord::decode(&written).as_ref(), Ok(&record));
        }
    }
});
