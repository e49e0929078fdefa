//! A plan with every type, and the check for every payload that a reader accepts.

use windrow_columns::{
    decode_native, ColumnSpec, DataType, DefaultKind, Format, NativeLimits, NotParsed, Parsed, ReadPlan, ReadSettings,
};

const COLUMNS: &[(&str, &str)] = &[
    ("a", "UInt64"),
    ("b", "Int256"),
    ("c", "Float64"),
    ("d", "Bool"),
    ("e", "String"),
    ("f", "FixedString(4)"),
    ("g", "Date"),
    ("h", "Date32"),
    ("i", "DateTime('Europe/Berlin')"),
    ("j", "DateTime64(3, 'UTC')"),
    ("k", "Decimal(20, 3)"),
    ("l", "UUID"),
    ("m", "IPv4"),
    ("n", "IPv6"),
    ("o", "Enum8('x' = -1, 'y' = 2)"),
    ("p", "Nullable(Int16)"),
    ("q", "LowCardinality(Nullable(String))"),
    ("r", "Array(Array(Nullable(String)))"),
    ("s", "Map(String, Array(Float32))"),
    ("t", "Tuple(a UInt8, b Tuple(UInt128, String))"),
];

/// Makes a whole fuzz target: payloads of one format are read into a table of every type.
#[macro_export]
macro_rules! fuzz_format {
    ($name:literal) => {
        static FORMAT: std::sync::LazyLock<(&windrow_columns::Format, windrow_columns::ReadPlan)> =
            std::sync::LazyLock::new(|| {
                let format = windrow_columns::Format::named($name)
                    .or_else(|| windrow_interchange::format($name))
                    .expect("the format is read here");
                (format, shared::plan(format))
            });
        libfuzzer_sys::fuzz_target!(|payload: &[u8]| {
            let (format, plan) = &*FORMAT;
            shared::check((format.read)(payload, plan), plan)
        });
    };
}

pub fn plan(format: &Format) -> ReadPlan {
    let column = |(name, type_text): &(&str, &str)| ColumnSpec {
        name: name.to_string(),
        data_type: DataType::parse(type_text).expect("the types above are known"),
        default_kind: DefaultKind::None,
    };
    ReadPlan::new(COLUMNS.iter().map(column).collect(), ReadSettings::of(format))
}

/// Checks that a block that was read is the same after encoding and decoding.
pub fn check(outcome: Result<Parsed, NotParsed>, plan: &ReadPlan) {
    let Ok(parsed) = outcome else { return };
    let names: Vec<&str> = plan.columns().iter().map(|column| column.name.as_str()).collect();
    let types: Vec<DataType> = plan.columns().iter().map(|column| column.data_type.clone()).collect();
    let native = parsed.block.encode_native(&names, &types);
    let decoded = decode_native(&native, NativeLimits::default()).expect("what was encoded can be decoded");
    assert_eq!(decoded.block, parsed.block);
}
