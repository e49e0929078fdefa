//! The readers of bytes from outside, as a fuzzer calls them.

use super::read::read;
use super::record::Record;
use super::table::Table;
use crate::request::Payload;

const DESCRIBED: &str = r#"["a","UInt64","",""]
["b","Nullable(Int16)","",""]
["c","LowCardinality(Nullable(String))","DEFAULT","'x'"]
["d","Array(DateTime64(3, 'UTC'))","",""]
["e","Map(String, Tuple(Decimal(20, 3), Enum8('x' = 1)))","",""]
["f","JSON","",""]
["g","String","EPHEMERAL",""]"#;

/// Reads a payload. A batch that is taken keeps to the memory that it may have.
pub fn batch(payload: Payload, max_bytes: u64) {
    let table = Table::described(DESCRIBED).expect("it is a table");
    let Ok(read) = read(&table, payload, max_bytes) else { return };
    assert!(read.held_bytes <= max_bytes);
    assert_eq!(read.batch.block.rows() as u64, read.rows);
}

/// Reads a record. If it can be read, it is written and read unchanged.
pub fn record(kind: u8, payload: &[u8]) {
    let Some(record) = Record::decode(kind, payload) else { return };
    assert_eq!(Record::decode(kind, &record.encode()), Some(record));
}
