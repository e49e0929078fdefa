use windrow_columns::Present;

use super::{column, message, plan, rows};
use crate::messages::{Headers, Message, MessageReader, PlanError, Virtual};

#[test]
fn a_message_of_raw_bytes_is_a_row_with_its_virtual_columns() {
    let columns = vec![
        column("_topic", "LowCardinality(String)"),
        column("body", "String"),
        column("_partition", "UInt64"),
        column("_offset", "UInt64"),
        column("_timestamp", "Nullable(DateTime)"),
        column("_timestamp_ms", "Nullable(DateTime64(3))"),
        column("_key", "String"),
        column("_headers.name", "Array(String)"),
        column("_headers.value", "Array(String)"),
        column("trace", "Nullable(String)"),
        column("k", "Nullable(String)"),
        column("_raw_message", "String"),
    ];
    let plan = plan("RawBLOB", columns.clone(), &[("trace", "_headers.trace"), ("k", "_key")]);
    let mut reader = MessageReader::new(&plan, "events", 3);
    let headers =
        [(b"trace".to_vec(), Some(b"a".to_vec())), (b"x".to_vec(), None), (b"trace".to_vec(), Some(b"b".to_vec()))];
    let full = Message {
        offset: 7,
        timestamp_ms: 1_700_000_000_123,
        key: Some(b"key"),
        value: Some(b"\"one\""),
        headers: Headers::Kept(&headers),
    };
    assert_eq!(reader.read(&full), Ok(1));
    let bare = Message { offset: 9, timestamp_ms: -1, key: None, value: Some(b"two"), headers: Headers::default() };
    assert_eq!(reader.read(&bare), Ok(1));
    for tombstone in [None, Some(&b""[..])] {
        assert_eq!(reader.read(&Message { offset: 10, value: tombstone, ..bare }), Ok(0));
    }
    assert!(reader.bytes() > 100);
    let runs = reader.finish();
    let [run] = runs.as_slice() else { panic!("one run") };
    let expected = r#"
        {"_topic": "events", "body": "\"one\"", "_partition": 3, "_offset": 7, "_timestamp": "2023-11-14 22:13:20",
         "_timestamp_ms": "2023-11-14 22:13:20.123", "_key": "key", "_headers.name": ["trace", "x", "trace"],
         "_headers.value": ["a", "", "b"], "trace": "b", "k": "key", "_raw_message": "\"one\""}
        {"_topic": "events", "body": "two", "_partition": 3, "_offset": 9, "_timestamp": null, "_timestamp_ms": null, "_key": "",
         "_headers.name": [], "_headers.value": [], "trace": null, "k": null, "_raw_message": "two"}"#;
    assert_eq!(run.block, rows(&columns, expected));
    assert_eq!(run.present, Present::all(columns.len()));
    assert_eq!((run.first_offset, run.last_offset, run.messages, run.rows), (7, 9, 2, 2));
    assert_eq!((run.min_timestamp_ms, run.max_timestamp_ms), (Some(1_700_000_000_123), Some(1_700_000_000_123)));
}

#[test]
fn times_and_numbers_become_what_the_column_holds() {
    let columns = vec![
        column("body", "String"),
        column("day", "Date"),
        column("seconds", "UInt32"),
        column("ms", "Int64"),
        column("micros", "DateTime64(6, 'UTC')"),
        column("deciseconds", "DateTime64(1, 'UTC')"),
        column("offset", "Int128"),
    ];
    let mapped = [
        ("day", "_timestamp_ms"),
        ("seconds", "_timestamp"),
        ("ms", "_timestamp_ms"),
        ("micros", "_timestamp_ms"),
        ("deciseconds", "_timestamp_ms"),
        ("offset", "_offset"),
    ];
    let plan = plan("RawBLOB", columns.clone(), &mapped);
    let mut reader = MessageReader::new(&plan, "t", 0);
    assert_eq!(reader.read(&Message { timestamp_ms: 1_700_000_000_987, ..message(5, b"x") }), Ok(1));
    let expected = r#"{"body": "x", "day": "2023-11-14", "seconds": 1700000000, "ms": 1700000000987,
        "micros": "2023-11-14 22:13:20.987000", "deciseconds": "2023-11-14 22:13:20.9", "offset": 5}"#;
    assert_eq!(reader.finish()[0].block, rows(&columns, expected));
}

#[test]
fn a_type_that_does_not_hold_a_virtual_column_is_named() {
    for (type_text, source) in
        [("UInt8", "_offset"), ("UInt32", "_offset"), ("Date", "_key"), ("String", "_headers.name")]
    {
        let columns = vec![column("body", "String"), column("v", type_text)];
        let format = crate::messages::MessageFormat::new("RawBLOB", crate::messages::SchemaSource::default()).unwrap();
        let refused =
            crate::messages::MessagePlan::new(format, columns, &super::mapping(&[("v", source)]), super::settings());
        let error = refused.err().expect("it has no place there");
        let expected =
            PlanError::VirtualType { column: "v".into(), source: source.into(), type_name: type_text.into() };
        assert_eq!(error, expected);
        assert_eq!(error.to_string(), format!("{source} can't be put into column `v` of type {type_text}"));
    }
    assert_eq!(Virtual::named("_headers."), None);
    assert_eq!(Virtual::named("_other"), None);
}
