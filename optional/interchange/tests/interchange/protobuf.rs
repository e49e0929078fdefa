//! Tests with messages of a schema that the insert brings.

use windrow_columns::{NotParsedReason, ReadPlan};

use crate::support::{format, native, plan};

const SCHEMA: &str = r#"
syntax = "proto3"; // the language
enum Level { low = 0; high = 5; }
message Row {
    message Point { sint32 x = 1; double y = 2; }
    uint32 n = 1;
    optional int64 i = 2; /* may be left out */
    string s = 3;
    Level level = 4;
    repeated uint32 list = 5;
    map<string, fixed32> m = 6;
    Point p = 7;
    bool unused = 9;
}"#;

const COLUMNS: &[(&str, &str)] = &[
    ("n", "UInt16"),
    ("i", "Nullable(Int64)"),
    ("s", "LowCardinality(String)"),
    ("level", "Enum8('high' = 1, 'low' = 2)"),
    ("list", "Array(UInt8)"),
    ("m", "Map(String, UInt32)"),
    ("p", "Tuple(y Float64, x Int8)"),
];

/// A message that has all fields.
const FULL: &[u8] = b"\x08\x07\x10\x09\x1A\x02ab\x20\x05\x2A\x02\x01\x02\x28\x03\
    \x32\x08\x0A\x01k\x15\x04\0\0\0\x3A\x0B\x08\x03\x11\0\0\0\0\0\0\xF8\x3F\x48\x01";

fn rows(schema: &str, message: &str) -> ReadPlan {
    let settings =
        [("format_schema", schema), ("format_schema_source", "string"), ("format_schema_message_name", message)];
    plan(format("Protobuf"), COLUMNS, &settings)
}

fn delimited(messages: &[&[u8]]) -> Vec<u8> {
    messages.iter().flat_map(|message| [&[message.len() as u8], *message].concat()).collect()
}

fn reason(schema: &str, payload: &[u8]) -> Option<NotParsedReason> {
    (format("Protobuf").read)(payload, &rows(schema, "Row")).err().map(|not_parsed| not_parsed.reason)
}

#[test]
fn fields_are_values_and_what_is_not_there_is_a_default() {
    let plan = rows(SCHEMA, "Row");
    let parsed = (format("Protobuf").read)(&delimited(&[FULL, b""]), &plan).unwrap();
    let native = native(&parsed, &plan);
    let column = |name: &str, data_type: &str, values: &[u8]| {
        let head = [&[name.len() as u8], name.as_bytes(), &[data_type.len() as u8], data_type.as_bytes()].concat();
        [&head[..], values].concat()
    };
    let expected = [
        vec![7, 2],
        column("n", "UInt16", b"\x07\0\0\0"),
        column("i", "Nullable(Int64)", b"\0\x01\x09\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
    ]
    .concat();
    assert_eq!(native[..expected.len()], expected);
    let tail = column("list", "Array(UInt8)", b"\x03\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\x01\x02\x03");
    assert!(native.windows(tail.len()).any(|window| window == tail));
    let tail = column("m", "Map(String, UInt32)", b"\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x01k\x04\0\0\0");
    assert!(native.windows(tail.len()).any(|window| window == tail));
    assert!(native.ends_with(b"\0\0\0\0\0\0\xF8\x3F\0\0\0\0\0\0\0\0\xFE\0"));

    let single = (format("ProtobufSingle").read)(FULL, &plan).unwrap();
    assert_eq!(single.block.rows(), 1);
}

#[test]
fn what_clickhouse_reads_in_its_own_way_is_left_to_it() {
    let cases: &[(&str, &[u8])] = &[
        ("a field twice", b"\x04\x08\x07\x08\x08"),
        ("another wire type", b"\x03\x0A\x01a"),
        ("out of the column's range", b"\x04\x08\xFF\xFF\x7F"),
        ("an unknown name of an Enum", b"\x02\x20\x07"),
        ("a group", b"\x02\x0B\x0C"),
        ("cut off", b"\x05\x08\x07"),
        ("number zero", b"\x02\0\0"),
    ];
    for (what, payload) in cases {
        assert!(reason(SCHEMA, payload).is_some(), "{what}");
    }
    assert_eq!(reason(SCHEMA, b"\x02\x08\x07"), None);
    assert!((format("ProtobufSingle").read)(b"", &rows(SCHEMA, "Row")).is_err());
}

#[test]
fn schemas_are_read_in_their_plain_form_only() {
    for (from, to) in [
        ("proto3", "proto2"),
        ("syntax", "import \"x.proto\"; syntax"),
        ("uint32 n = 1;", "uint32 n = 1; uint32 N = 10;"),
        ("uint32 n = 1;", "uint32 n = 0;"),
        ("uint32 n = 1;", "uint32 n = 2;"),
        ("uint32 n = 1;", "Missing n = 1;"),
        ("low = 0", "low = 1"),
        ("}\"#", ""),
        ("bool unused = 9;", "bool unused = 19000;"),
        ("message Row", "message Other"),
    ] {
        let changed = SCHEMA.replacen(from, to, 1);
        if changed != SCHEMA {
            assert_eq!(reason(&changed, b"\x02\x08\x07"), Some(NotParsedReason::Setting), "{to}");
        }
    }
    for (from, to) in [
        ("uint32 n = 1;", "uint32 n = 1 [deprecated = true];"),
        ("message Row", "package p; option java_package = \"x\"; message Row"),
        ("uint32 n = 1;", "reserved 77 to 99; uint32 n = 1;"),
    ] {
        assert_eq!(reason(&SCHEMA.replacen(from, to, 1), b"\x02\x08\x07"), None, "{to}");
    }
    let with_file = plan(format("Protobuf"), COLUMNS, &[("format_schema", "rows:Row")]);
    assert!((format("Protobuf").read)(b"\x02\x08\x07", &with_file).is_err());
    for length in 0..SCHEMA.len() - 1 {
        assert!(reason(&SCHEMA[..length], b"\x02\x08\x07").is_some(), "cut at {length}");
    }
}

#[test]
fn cut_and_changed_messages_do_no_harm() {
    let plan = rows(SCHEMA, "Row");
    let whole = delimited(&[FULL, FULL]);
    for length in 0..whole.len() {
        let cut = (format("Protobuf").read)(&whole[..length], &plan);
        assert_eq!(cut.is_ok(), length == 0 || length == whole.len() / 2, "cut at {length}");
    }
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..20_000 {
        let mut changed = whole.clone();
        for _ in 0..random.usize(1..4) {
            let at = random.usize(0..changed.len());
            changed[at] = random.u8(..);
        }
        if let Ok(parsed) = (format("Protobuf").read)(&changed, &plan) {
            assert!(parsed.block.rows() <= changed.len());
        }
    }
}
