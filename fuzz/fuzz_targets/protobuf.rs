#![no_main]

#[path = "shared.rs"]
#[allow(dead_code)]
mod shared;

use std::sync::LazyLock;

use windrow_columns::{ColumnSpec, DataType, DefaultKind, Format, ReadPlan, ReadSettings};

const SCHEMA: &str = "syntax = \"proto3\"; message Row { message P { sint32 x = 1; double y = 2; } uint32 n = 1; \
    optional int64 i = 2; string s = 3; repeated uint32 list = 4; map<string, fixed32> m = 5; P p = 6; }";
const COLUMNS: &[(&str, &str)] = &[
    ("n", "UInt16"),
    ("i", "Nullable(Int64)"),
    ("s", "String"),
    ("list", "Array(UInt8)"),
    ("m", "Map(String, UInt32)"),
    ("p", "Tuple(x Int8, y Float64)"),
];

static ROWS: LazyLock<(&Format, ReadPlan)> = LazyLock::new(|| {
    let format = windrow_interchange::format("Protobuf").expect("the format is read here");
    let mut settings = ReadSettings::of(format);
    settings.set("format_schema", SCHEMA);
    settings.set("format_schema_source", "string");
    settings.set("format_schema_message_name", "Row");
    let column = |(name, type_text): &(&str, &str)| ColumnSpec {
        name: name.to_string(),
        data_type: DataType::parse(type_text).expect("the types above are known"),
        default_kind: DefaultKind::None,
    };
    (format, ReadPlan::new(COLUMNS.iter().map(column).collect(), settings))
});

libfuzzer_sys::fuzz_target!(|payload: &[u8]| {
    let (format, plan) = &*ROWS;
    shared::check((format.read)(payload, plan), plan)
});
