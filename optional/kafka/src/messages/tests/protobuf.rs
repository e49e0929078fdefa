use fastrand::Rng;
use windrow_columns::{Block, ColumnSpec, ReadPlan};

use super::{column, defaulted, mapping, message, rows, settings};
use crate::messages::{
    MessageError, MessageFormat, MessagePlan, MessageReader, PlanError, SchemaSource, Source, Unread,
};

const SEED: u64 = 20_261_123;

const SCHEMA: &str = r#"
    // What the shop sends.
    syntax = "proto3";
    package shop.v1;
    import "google/protobuf/timestamp.proto";
    option go_package = "example.org/shop;shop";
    message Event {
        reserved 90, 100 to 200;
        reserved "gone";
        uint64 id = 1;
        string user = 2 [deprecated = true, (note) = { text: "a]" }];
        Place place = 3;
        repeated sint32 scores = 4;
        map<string, fixed32> counts = 5;
        optional double price = 6;
        .shop.v1.Kind kind = 7;
        repeated Place.Part parts = 8;
        google.protobuf.Timestamp elsewhere = 9;
        oneof what { bytes raw = 10; string eventTime = 11; }
        Event cause = 12;
        int64 seconds = 13;
    }
    message Place { message Part { string name = 1; bool open = 2; } string city = 1; Part part = 2; uint32 zip = 3; }
    enum Kind { option allow_alias = false; NONE = 0; BUY = 1 [deprecated = true]; SELL = 0x2; }
    service Shop { rpc Get(Event) returns (Place) { option x = "}"; } }
"#;

fn format(name: &str) -> MessageFormat {
    MessageFormat::new(name, SchemaSource { text: Some(SCHEMA), message: Some("shop.v1.Event") }).unwrap()
}

fn plan(name: &str, columns: Vec<ColumnSpec>, mapped: &[(&str, &str)]) -> MessagePlan {
    MessagePlan::new(format(name), columns, &mapping(mapped), settings()).unwrap_or_else(|error| panic!("{error}"))
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
    out
}

fn number(field: u64, value: u64) -> Vec<u8> {
    [varint(field << 3), varint(value)].concat()
}

fn bytes(field: u64, value: &[u8]) -> Vec<u8> {
    [varint(field << 3 | 2), varint(value.len() as u64), value.to_vec()].concat()
}

fn table() -> Vec<ColumnSpec> {
    vec![
        column("id", "UInt32"),
        column("user", "LowCardinality(String)"),
        column("place.city", "String"),
        column("PLACE_PART_NAME", "Nullable(String)"),
        column("zip", "UInt16"),
        column("scores", "Array(Int64)"),
        column("counts", "Map(String, UInt64)"),
        column("price", "Nullable(Float32)"),
        column("kind", "Enum8('NONE' = 5, 'BUY' = 6, 'SELL' = 7)"),
        column("kind_number", "String"),
        column("parts", "Array(Tuple(open UInt8, name String))"),
        column("raw", "FixedString(3)"),
        column("event_time", "Nullable(DateTime64(3, 'UTC'))"),
        column("seconds", "DateTime64(3, 'UTC')"),
        defaulted("unknown", "String"),
    ]
}

const MAPPED: &[(&str, &str)] = &[("zip", "place.zip"), ("kind_number", "_key"), ("event_time", "eventTime")];

fn full() -> Vec<u8> {
    let part = bytes(2, &bytes(1, b"p"));
    let place = [bytes(1, b"Paris"), number(3, 75000 % 65536), part].concat();
    [
        number(1, 7),
        bytes(2, b"ann"),
        bytes(3, &place),
        bytes(4, &[1, 2, 3]),
        number(4, 4),
        bytes(5, &[bytes(1, b"k"), vec![2 << 3 | 5, 9, 0, 0, 0]].concat()),
        [vec![6 << 3 | 1], 2.5f64.to_le_bytes().to_vec()].concat(),
        number(7, 2),
        bytes(8, &[bytes(1, b"a"), number(2, 1)].concat()),
        bytes(8, b""),
        bytes(9, b"\x08\x01"),
        bytes(10, b"xy"),
        bytes(11, b"2024-01-02 03:04:05.678"),
        bytes(12, &number(1, 99)),
        number(13, 1_700_000_000),
        number(77, 5),
    ]
    .concat()
}

const FULL_ROW: &str = r#"{"id": 7, "user": "ann", "place.city": "Paris", "PLACE_PART_NAME": "p", "zip": 9464, "scores": [-1, 1, -2, 2],
    "counts": {"k": 9}, "price": 2.5, "kind": "SELL", "kind_number": "", "parts": [{"open": 1, "name": "a"}, {"open": 0, "name": ""}],
    "raw": "xy", "event_time": "2024-01-02 03:04:05.678", "seconds": "2023-11-14 22:13:20.000"}"#;
const EMPTY_ROW: &str = r#"{"id": 1, "price": null, "kind": "NONE", "event_time": null, "PLACE_PART_NAME": null}"#;

fn shown() -> Vec<ColumnSpec> {
    let mut columns = table();
    columns.pop();
    columns
}

#[test]
fn fields_become_columns_as_clickhouse_has_them() {
    let plan = plan("ProtobufSingle", table(), MAPPED);
    let sources = plan.explain();
    assert_eq!(sources[3].source, Source::Field("place.part.name".to_owned()));
    assert_eq!(sources[14].source, Source::Default);
    let mut reader = MessageReader::new(&plan, "t", 0);
    assert_eq!(reader.read(&message(1, &full())), Ok(1));
    assert_eq!(reader.read(&message(2, &number(1, 1))), Ok(1));
    assert_eq!(reader.read(&message(3, b"")), Ok(0));
    let runs = reader.finish();
    assert_eq!(runs[0].block, rows(&shown(), &format!("{FULL_ROW}{EMPTY_ROW}")));
    assert_eq!(runs[0].present.iter().collect::<Vec<_>>(), (0..14).collect::<Vec<_>>());
}

#[test]
fn a_simple_aggregate_function_takes_what_it_aggregates() {
    let columns = vec![
        column("id", "SimpleAggregateFunction(sum, UInt64)"),
        column("user", "SimpleAggregateFunction(anyLast, String)"),
        column("price", "SimpleAggregateFunction(anyLast, Nullable(Float64))"),
        column("scores", "SimpleAggregateFunction(groupArrayArray, Array(Int32))"),
    ];
    let plan = plan("ProtobufSingle", columns.clone(), &[]);
    let mut reader = MessageReader::new(&plan, "t", 0);
    let given = [
        number(1, 7),
        bytes(2, b"ann"),
        bytes(4, &[1, 2]),
        [varint(6 << 3 | 1), 2.5f64.to_le_bytes().to_vec()].concat(),
    ];
    assert_eq!(reader.read(&message(1, &given.concat())), Ok(1));
    assert_eq!(reader.read(&message(2, &number(1, 8))), Ok(1));
    let expected = r#"{"id":7,"user":"ann","price":2.5,"scores":[-1,1]}{"id":8,"user":"","price":null,"scores":[]}"#;
    assert_eq!(reader.finish()[0].block, rows(&columns, expected));
}

#[test]
fn many_rows_of_a_message_stand_behind_their_lengths() {
    let plan = plan("Protobuf", table(), MAPPED);
    let mut reader = MessageReader::new(&plan, "t", 0);
    let framed = |row: &[u8]| [varint(row.len() as u64), row.to_vec()].concat();
    let many = [framed(&full()), framed(&number(1, 1)), framed(&full())].concat();
    assert_eq!(reader.read(&message(1, &many)), Ok(3));
    // The second row is bad: nothing of the message stays.
    let bad = [framed(&full()), framed(&number(1, 1 << 33))].concat();
    let Err(Unread::Refused(error)) = reader.read(&message(2, &bad)) else { panic!("the id is too large") };
    assert_eq!((error.row, error.column.as_deref(), error.certain), (2, Some("id"), true));
    assert!(error.text.ends_with("(while reading the value of column `id` of type UInt32): (at row 2)"), "{error}");
    assert_eq!(reader.read(&message(3, &framed(&number(1, 1)))), Ok(1));
    let expected = format!("{FULL_ROW}{EMPTY_ROW}{FULL_ROW}{EMPTY_ROW}");
    assert_eq!(reader.finish()[0].block, rows(&shown(), &expected));
}

/// Returns columns for lists of messages and a map, in the form that ClickHouse calls Nested.
fn nested() -> Vec<ColumnSpec> {
    vec![
        column("id", "UInt32"),
        column("parts.name", "Array(String)"),
        column("counts.keys", "Array(LowCardinality(String))"),
        column("PARTS_OPEN", "Array(Nullable(UInt8))"),
        column("counts.value", "Array(UInt64)"),
    ]
}

const NESTED_ROW: &str =
    r#"{"id": 7, "parts.name": ["a", ""], "PARTS_OPEN": [1, null], "counts.keys": ["k"], "counts.value": [9]}"#;

#[test]
fn lists_of_messages_become_the_columns_of_a_nested() {
    let plan = plan("ProtobufSingle", nested(), &[]);
    let mut reader = MessageReader::new(&plan, "t", 0);
    for at in 0..100 {
        assert_eq!(reader.read(&message(at, &full())), Ok(1));
        assert_eq!(reader.read(&message(at, &number(1, 1))), Ok(1));
        // The second element is cut off.
        assert!(reader.read(&message(at, &[full(), bytes(8, b"\x0A\x05x")].concat())).is_err());
    }
    let empty = r#"{"id": 1, "parts.name": [], "PARTS_OPEN": [], "counts.keys": [], "counts.value": []}"#;
    assert_eq!(reader.finish()[0].block, rows(&nested(), &format!("{NESTED_ROW}{empty}").repeat(100)));
    let unused = plan.unused_fields().unwrap();
    assert!(!unused.iter().any(|field| field.starts_with("parts") || field.starts_with("counts")), "{unused:?}");
}

#[test]
fn lists_may_lie_in_lists() {
    let schema = r#"syntax = "proto3";
        message R { repeated L l = 1; Q q = 2; }
        message L { repeated M m = 1; D d = 2; repeated sint32 n = 3; oneof o { string a = 4; D b = 5; } map<string, M> p = 6; }
        message M { int32 x = 1; } message D { string y = 1; } message Q { repeated M m = 1; }"#;
    let columns = vec![
        column("l.m.x", "Array(Array(Int32))"),
        column("l.d.y", "Array(String)"),
        column("l.n", "Array(Array(Int32))"),
        column("l.a", "Array(Nullable(String))"),
        column("l.b.y", "Array(String)"),
        column("l.p.key", "Array(Array(String))"),
        column("l.p.value.x", "Array(Array(Int8))"),
        column("q.m", "Array(Tuple(x Int32))"),
    ];
    let format = MessageFormat::new("ProtobufSingle", SchemaSource { text: Some(schema), message: Some("R") }).unwrap();
    let plan = MessagePlan::new(format, columns.clone(), &mapping(&[]), settings()).unwrap();
    let mut reader = MessageReader::new(&plan, "t", 0);
    let m = |x| number(1, x);
    let pair = [bytes(1, b"k"), bytes(2, &m(4))].concat();
    let l = [
        bytes(1, &m(1)),
        bytes(1, &m(2)),
        bytes(2, &bytes(1, b"y")),
        bytes(3, &[2, 4]),
        bytes(4, b"a"),
        bytes(6, &pair),
    ];
    let other = [bytes(3, &[6]), bytes(5, &bytes(1, b"b")), bytes(6, b""), bytes(6, &pair)];
    let q = bytes(2, &[bytes(1, &m(8)), bytes(1, b"")].concat());
    let value = [bytes(1, &l.concat()), bytes(1, &other.concat()), bytes(1, b""), q].concat();
    for _ in 0..70 {
        assert_eq!(reader.read(&message(0, &value)), Ok(1));
        assert!(reader.read(&message(0, &value[..value.len() - 4])).is_err());
    }
    let row = r#"{"l.m.x": [[1, 2], [], []], "l.d.y": ["y", "", ""], "l.n": [[1, 2], [3], []], "l.a": ["a", null, null],
        "l.b.y": ["", "b", ""], "l.p.key": [["k"], ["", "k"], []], "l.p.value.x": [[4], [0, 4], []], "q.m": [{"x": 8}, {"x": 0}]}"#;
    assert_eq!(reader.finish()[0].block, rows(&columns, &row.repeat(70)));
}

#[test]
fn of_many_messages_into_one_value_clickhouse_chooses() {
    let plan = plan("ProtobufSingle", vec![column("id", "UInt8"), column("parts.name", "String")], &[]);
    let mut reader = MessageReader::new(&plan, "t", 0);
    let one = bytes(8, &bytes(1, b"x"));
    assert_eq!(reader.read(&message(0, &one)), Ok(1));
    let Err(Unread::Refused(error)) = reader.read(&message(0, &[one.clone(), one].concat())) else { panic!("two") };
    assert!(!error.certain && plan.question().is_none(), "the schema imports another, so that nobody can be asked");
    assert_eq!(reader.finish()[0].rows, 1);
}

#[test]
fn a_column_that_lies_in_what_is_not_known_is_told() {
    for name in ["elsewhere.seconds", "cause.id", "cause.place.city"] {
        let columns = vec![column("id", "UInt8"), column(name, "Int64")];
        let error = MessagePlan::new(format("Protobuf"), columns.clone(), &mapping(&[]), settings()).err().unwrap();
        let outer = name.split('.').next().unwrap();
        assert!(error.to_string().contains(&format!("may be a field of {outer}")), "{error}");
        plan("Protobuf", columns, &[(name, "")]);
    }
    plan(
        "Protobuf",
        vec![column("id", "UInt8"), column("elsewhere_seconds", "Int64"), column("place.x", "Int64")],
        &[],
    );
}

#[test]
fn fields_that_no_column_takes_are_told() {
    let tuple = "Array(Tuple(name String))";
    let columns = vec![column("id", "UInt8"), column("parts", tuple), column("place.city", "String")];
    let unused = plan("Protobuf", columns, &[]).unused_fields().unwrap();
    let expected = [
        "user",
        "place.part",
        "place.zip",
        "scores",
        "counts",
        "price",
        "kind",
        "parts.open",
        "elsewhere",
        "raw",
        "eventTime",
        "cause",
        "seconds",
    ];
    assert_eq!(unused, expected);
}

#[test]
fn what_cannot_be_read_leaves_nothing_behind() {
    for (table, mapped, shown, full_row) in
        [(table(), MAPPED, shown(), FULL_ROW), (nested(), &[][..], nested(), NESTED_ROW)]
    {
        leaves_nothing_behind(table, mapped, &shown, full_row);
    }
}

fn leaves_nothing_behind(table: Vec<ColumnSpec>, mapped: &[(&str, &str)], shown: &[ColumnSpec], full_row: &str) {
    let plan = plan("ProtobufSingle", table, mapped);
    let mut rng = Rng::with_seed(SEED);
    let (mut reader, mut expected, mut refused) = (MessageReader::new(&plan, "t", 0), String::new(), 0);
    for offset in 0..3000 {
        let whole = full();
        let mut value = whole.clone();
        match rng.u8(..4) {
            0 => value.truncate(rng.usize(1..value.len())),
            1 | 2 => {
                let at = rng.usize(..value.len());
                value[at] = rng.u8(..);
            }
            _ => {}
        }
        let mut alone = MessageReader::new(&plan, "t", 0);
        let outcome = alone.read(&message(offset, &value));
        assert_eq!(reader.read(&message(offset, &value)), outcome, "{offset}, seed {SEED}");
        match outcome {
            Ok(_) if value == whole => expected.push_str(full_row),
            Ok(_) => {
                // Another row than the usual one: begin anew.
                let block = alone.finish().remove(0).block;
                let mut all = rows(shown, &expected);
                all.append(&block);
                assert_eq!(reader.finish()[0].block, all, "{offset}, seed {SEED}");
                (reader, expected) = (MessageReader::new(&plan, "t", 0), String::new());
            }
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 300, "{refused}");
    match reader.finish().first() {
        Some(read) => assert_eq!(read.block, rows(shown, &expected)),
        None => assert_eq!(expected, ""),
    }
}

#[test]
fn messages_may_be_cut_at_every_byte() {
    let framed = [varint(full().len() as u64), full()].concat();
    for (name, value) in [("ProtobufSingle", full()), ("Protobuf", framed)] {
        let plan = plan(name, table(), MAPPED);
        let mut reader = MessageReader::new(&plan, "t", 0);
        let mut read = 0;
        for length in 1..value.len() {
            match reader.read(&message(length as i64, &value[..length])) {
                Ok(_) => read += 1,
                Err(Unread::Refused(MessageError { certain, .. })) => assert!(certain, "{length} of {name}"),
                Err(other) => panic!("{other}"),
            }
        }
        // Between two fields a message without a length can end.
        assert_eq!(read, if name == "Protobuf" { 0 } else { 15 });
        assert_eq!(reader.finish().iter().map(|run| run.rows).sum::<usize>(), read);
    }
}

#[test]
fn doubt_is_told_from_what_clickhouse_refuses_too() {
    let columns = vec![
        column("id", "UInt8"),
        column("user", "UInt16"),
        column("raw", "FixedString(2)"),
        column("seconds", "Bool"),
        column("kind", "String"),
    ];
    let plan = plan("ProtobufSingle", columns.clone(), &[]);
    let mut reader = MessageReader::new(&plan, "t", 0);
    let user = bytes(2, b"5");
    for (value, column, certain) in [
        (number(1, 300), Some("id"), true),
        (bytes(10, b"abc"), Some("raw"), true),
        (number(7, 9), Some("kind"), true),
        (bytes(2, b" 5"), Some("user"), false),
        (number(13, 2), Some("seconds"), false),
        (bytes(1, b"x"), Some("id"), false),
        ([number(1, 1), number(1, 2)].concat(), Some("id"), false),
        (vec![0x1B, 0x1C], None, false),
        (b"hello".to_vec(), Some("seconds"), false),
        (vec![0x08], Some("id"), true),
        (vec![0x08, 0x80], Some("id"), true),
        (vec![0xF5, 0x06, 1], None, true),
    ] {
        let value = if column == Some("user") { value } else { [user.clone(), value].concat() };
        let Err(Unread::Refused(error)) = reader.read(&message(0, &value)) else { panic!("{value:?}") };
        assert_eq!((error.column.as_deref(), error.certain), (column, certain), "{value:?}: {error}");
    }
    // ClickHouse finds no number in an empty text.
    assert!(reader.read(&message(0, &number(1, 1))).is_err());
    assert_eq!(reader.read(&message(0, &user)), Ok(1));
    assert_eq!(reader.finish()[0].block, rows(&columns, r#"{"user": 5, "kind": "NONE"}"#));
}

#[test]
fn arrays_of_a_nested_structure_are_of_one_length() {
    let columns = vec![column("n.a", "Array(Int32)"), column("n.b", "Array(Tuple(name String))")];
    let plan = plan("ProtobufSingle", columns.clone(), &[("n.a", "scores"), ("n.b", "parts")]);
    let mut reader = MessageReader::new(&plan, "t", 0);
    let one = [bytes(4, &[2]), bytes(8, &bytes(1, b"x"))].concat();
    for _ in 0..3 {
        assert_eq!(reader.read(&message(0, &one)), Ok(1));
        assert!(reader.read(&message(0, &bytes(4, &[2, 4]))).is_err());
        assert!(reader.read(&message(0, &bytes(8, b""))).is_err());
        assert_eq!(reader.read(&message(0, &number(1, 1))), Ok(1));
    }
    let row = r#"{"n.a": [1], "n.b": [{"name": "x"}]}{"n.a": [], "n.b": []}"#;
    assert_eq!(reader.finish()[0].block, rows(&columns, &row.repeat(3)));
}

#[test]
fn rows_are_those_of_inserts_over_http() {
    let schema =
        "syntax = \"proto3\"; message R { uint32 n = 1; string s = 2; repeated int64 l = 3; map<string, bool> m = 4; }";
    let columns = vec![
        column("n", "UInt64"),
        column("s", "Nullable(String)"),
        column("l", "Array(Int16)"),
        column("m", "Map(String, UInt8)"),
    ];
    let mut with_schema = settings();
    with_schema.set("format_schema", schema);
    with_schema.set("format_schema_source", "string");
    with_schema.set("format_schema_message_name", "R");
    let http = ReadPlan::new(columns.clone(), with_schema);
    let format = MessageFormat::new("Protobuf", SchemaSource { text: Some(schema), message: None }).unwrap();
    let plan = MessagePlan::new(format, columns.clone(), &mapping(&[]), settings()).unwrap();
    let mut reader = MessageReader::new(&plan, "t", 0);
    let mut expected = Block::empty(columns.iter().map(|column| &column.data_type));
    let mut rng = Rng::with_seed(SEED);
    for offset in 0..500 {
        let mut payload = Vec::new();
        for _ in 0..rng.usize(1..4) {
            let mut row = Vec::new();
            if rng.bool() {
                row.extend(number(1, rng.u64(..1 << 33)));
            }
            if rng.bool() {
                row.extend(bytes(2, "x".repeat(rng.usize(..300)).as_bytes()));
            }
            (0..rng.usize(..3)).for_each(|_| row.extend(number(3, rng.u64(..40_000))));
            (0..rng.usize(..3)).for_each(|_| row.extend(bytes(4, &[bytes(1, b"k"), number(2, rng.u64(..2))].concat())));
            payload.extend(varint(row.len() as u64));
            payload.extend(row);
        }
        let read = reader.read(&message(offset, &payload));
        match (windrow_interchange::format("Protobuf").unwrap().read)(&payload, &http) {
            Ok(parsed) => {
                assert_eq!(read, Ok(parsed.block.rows() as u32), "{offset}, seed {SEED}");
                expected.append(&parsed.block);
            }
            Err(_) => assert!(read.is_err(), "{offset}, seed {SEED}"),
        }
    }
    assert!(expected.rows() > 100);
    assert_eq!(reader.finish()[0].block, expected);
}

#[test]
fn schemas_that_do_not_fit_are_told_so() {
    let read = |text: &str, name: Option<&str>| {
        MessageFormat::new("Protobuf", SchemaSource { text: Some(text), message: name })
    };
    let error = |outcome: Result<MessageFormat, PlanError>| outcome.expect_err("it does not fit").to_string();
    assert!(MessageFormat::new("Protobuf", SchemaSource::default()).is_err());
    assert!(error(read("syntax = \"proto2\"; message R { required int32 n = 1; }", None)).contains("only proto3"));
    assert!(error(read("syntax = \"proto3\"; message R { int32 n = 0; }", None)).contains("around"));
    assert!(error(read(SCHEMA, None)).contains("Event, Place"));
    assert!(error(read(SCHEMA, Some("Other"))).contains("no message Other"));
    assert!(read(SCHEMA, Some("Event")).is_ok());
    let wrong = |columns: Vec<ColumnSpec>, mapped: &[(&str, &str)]| {
        MessagePlan::new(format("Protobuf"), columns, &mapping(mapped), settings())
            .err()
            .expect("it does not fit")
            .to_string()
    };
    assert!(wrong(vec![column("a", "String")], &[]).contains("no column"));
    assert!(wrong(vec![column("a", "String")], &[("a", "place.street")]).contains("place.street"));
    assert!(
        wrong(vec![column("price", "IPv4")], &[]).contains("price (double) can't be read into a column of type IPv4")
    );
    let twice = vec![column("place", "Tuple(city String)"), column("place.zip", "UInt8")];
    assert!(wrong(twice, &[]).contains("both as a whole"));
    let shared = vec![column("id", "UInt8"), column("ID", "UInt8")];
    assert!(wrong(shared, &[]).contains("take the same field `id`"));
}
