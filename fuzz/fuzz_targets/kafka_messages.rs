#![no_main]

//! Reads messages of one format, one after the other, into a table of many types. Whatever came before, a
//! message gives the same as alone, or leaves nothing behind. The first byte chooses the format, the second
//! is the byte value at which messages are cut.

use std::sync::LazyLock;

use windrow_columns::{decode_native, Block, ColumnSpec, DataType, DefaultKind, NativeLimits, ReadSettings};
use windrow_kafka::messages::{
    Headers, Mapping, Message, MessageFormat, MessagePlan, MessageReader, Run, SchemaSource,
};

const PROTOBUF: &str = "syntax = \"proto3\"; message Row { uint32 n = 1; string s = 2; repeated sint64 list = 3; \
    map<string, fixed32> m = 4; In e = 5; K k = 6; optional double d = 7; string t = 8; message In { string x = 1; repeated In2 y = 2; } \
    message In2 { int32 z = 1; } enum K { A = 0; B = 1; } }";
const AVRO: &str = r#"{"type": "record", "name": "Row", "fields": [{"name": "n", "type": "int"}, {"name": "s", "type": ["null", "string"]},
    {"name": "list", "type": {"type": "array", "items": "long"}}, {"name": "m", "type": {"type": "map", "values": "int"}},
    {"name": "e", "type": ["null", {"type": "record", "name": "In", "fields": [{"name": "x", "type": "string"}]}]},
    {"name": "z", "type": ["int", "null", {"type": "array", "items": "In"}]}]}"#;
const FORMATS: &[&str] = &[
    "JSONEachRow",
    "Protobuf",
    "ProtobufSingle",
    "AvroConfluent",
    "Avro",
    "CSV",
    "CSVWithNames",
    "TabSeparated",
    "TSKV",
    "RowBinary",
    "MsgPack",
    "JSONAsString",
    "LineAsString",
    "RawBLOB",
];
const COLUMNS: &[(&str, &str)] = &[
    ("n", "UInt16"),
    ("s", "Nullable(String)"),
    ("list", "Array(Int32)"),
    ("m", "Map(String, UInt32)"),
    ("e.x", "LowCardinality(String)"),
    ("k", "Enum8('A' = 1, 'B' = 2)"),
    ("d", "Nullable(Float32)"),
    ("t", "DateTime64(3, 'UTC')"),
    ("_offset", "UInt64"),
    ("_key", "Nullable(String)"),
];

static PLANS: LazyLock<Vec<MessagePlan>> = LazyLock::new(|| FORMATS.iter().map(|name| plan(name)).collect());

fn plan(name: &str) -> MessagePlan {
    let is_text = matches!(name, "JSONAsString" | "LineAsString" | "RawBLOB");
    let column = |(name, type_text): &(&str, &str)| ColumnSpec {
        name: name.to_string(),
        data_type: DataType::parse(type_text).expect("the types above are known"),
        default_kind: if *name == "d" { DefaultKind::Default } else { DefaultKind::None },
    };
    let columns = match is_text {
        true => [("s", "String")].iter().chain(&COLUMNS[8..]).map(column).collect(),
        false => COLUMNS.iter().map(column).collect(),
    };
    let format =
        MessageFormat::new(name, SchemaSource { text: Some(PROTOBUF), message: Some("Row") }).expect("a format");
    let plan =
        MessagePlan::new(format, columns, &Mapping::default(), ReadSettings::default()).expect("it fits the table");
    plan.add_schema(0, AVRO).expect("it fits the table");
    plan
}

fn blocks(runs: Vec<Run>) -> Vec<(Vec<usize>, Block)> {
    let mut joined: Vec<(Vec<usize>, Block)> = Vec::new();
    for run in runs {
        let present: Vec<usize> = run.present.iter().collect();
        match joined.last_mut() {
            Some((known, block)) if *known == present => block.append(&run.block),
            _ => joined.push((present, run.block)),
        }
    }
    joined
}

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let [format, cut, payload @ ..] = input else { return };
    let plan = &PLANS[usize::from(*format) % FORMATS.len()];
    let mut reader = MessageReader::new(plan, "topic", 1);
    let mut alone = Vec::new();
    for (offset, value) in payload.split(|byte| byte == cut).enumerate() {
        let message = Message {
            offset: offset as i64,
            timestamp_ms: 1,
            key: (offset % 2 == 0).then_some(b"key"),
            value: Some(value),
            headers: Headers::default(),
        };
        let mut by_itself = MessageReader::new(plan, "topic", 1);
        assert_eq!(reader.read(&message), by_itself.read(&message));
        alone.extend(by_itself.finish());
    }
    let together = blocks(reader.finish());
    assert_eq!(together, blocks(alone));
    for (present, block) in together {
        let names: Vec<&str> = present.iter().map(|index| plan.written()[*index].name.as_str()).collect();
        let types: Vec<DataType> = present.iter().map(|index| plan.written()[*index].data_type.clone()).collect();
        let native = block.encode_native(&names, &types);
        let decoded = decode_native(&native, NativeLimits::default()).expect("what was encoded can be decoded");
        assert_eq!(decoded.block, block);
    }
});
