//! Tests with whole files: each has the same rows, in another format, codec, encoding or layout.

use crate::support::{expected_native, format, payloads, read, table};

#[test]
fn every_file_gives_the_rows_that_clickhouse_stored() {
    let payloads = payloads();
    assert!(payloads.len() > 15, "{} payloads", payloads.len());
    for payload in &payloads {
        let plan = table(payload.format);
        assert_eq!(read(payload, &plan), Ok(expected_native()), "{}", payload.name);
    }
}

#[test]
fn formats_are_known_by_their_names() {
    for name in ["arrow", "ARROWSTREAM", "Parquet", "Avro", "Protobuf", "protobufsingle"] {
        assert!(format(name).is_named(name));
    }
    assert!(windrow_interchange::format("ORC").is_none());
    for format in windrow_interchange::formats() {
        assert!(windrow_columns::Format::named(format.name).is_none(), "{} is in one table only", format.name);
    }
}
