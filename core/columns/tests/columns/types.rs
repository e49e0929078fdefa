use windrow_columns::{DataType, TypeError};

use crate::support::data_type;

#[test]
fn types_are_printed_as_clickhouse_spells_them() {
    for text in [
        "UInt8",
        "Int256",
        "Float32",
        "Bool",
        "FixedString(16)",
        "DateTime",
        "DateTime('Europe/Berlin')",
        "DateTime64(6)",
        "DateTime64(3, 'UTC')",
        "Decimal(18, 4)",
        "UUID",
        "IPv4",
        "IPv6",
        "Enum8('b\\'c' = -2, 'a' = 1)",
        "Enum16('x' = -300, '' = 0, 'a\\n\\\\' = 300)",
        "Nullable(Float64)",
        "LowCardinality(Nullable(String))",
        "Array(Array(Nullable(Date32)))",
        "Map(LowCardinality(String), Array(UInt8))",
        "Tuple(UInt8, String)",
        "BFloat16",
        "Time",
        "Time64(6)",
        "IntervalNanosecond",
        "Array(IntervalYear)",
        "Point",
        "Array(MultiPolygon)",
        "Geometry",
        "Nullable(Point)",
        "Nullable(Tuple(a UInt8, b String))",
        "Nested(a UInt8, `b c` LowCardinality(String))",
        "SimpleAggregateFunction(sum, UInt64)",
        "SimpleAggregateFunction(groupUniqArrayArray(5), Array(UInt8))",
        "Variant(Array(UInt8), String, UInt8)",
        "Tuple(a UInt8, `b c` Tuple(x Date, `1y` Map(String, String)), `select` Bool, `d\\`e` UInt8)",
    ] {
        assert_eq!(data_type(text).to_string(), text);
    }
}

#[test]
fn other_spellings_mean_the_same() {
    for (text, canonical) in [
        ("Decimal32(3)", "Decimal(9, 3)"),
        ("Decimal64(3)", "Decimal(18, 3)"),
        ("Decimal128(3)", "Decimal(38, 3)"),
        ("Decimal256(3)", "Decimal(76, 3)"),
        ("Decimal(5)", "Decimal(5, 0)"),
        ("DateTime64", "DateTime64(3)"),
        ("Enum8('a'=1,'b'=-2)", "Enum8('b' = -2, 'a' = 1)"),
        ("Enum8('it''s'=1)", "Enum8('it\\'s' = 1)"),
        ("Time64", "Time64(3)"),
        ("Enum('b','a')", "Enum8('b' = 1, 'a' = 2)"),
        ("Enum('a' = 1, 'b' = 1000)", "Enum16('a' = 1, 'b' = 1000)"),
        ("Variant(UInt8, String, UInt8)", "Variant(String, UInt8)"),
        ("Nested(\n    a UInt8,\n    b String)", "Nested(a UInt8, b String)"),
        ("SimpleAggregateFunction( sum,UInt64 )", "SimpleAggregateFunction(sum, UInt64)"),
        (" Array( UInt8 ) ", "Array(UInt8)"),
        ("Tuple(\n    a UInt8,\n    b String)", "Tuple(a UInt8, b String)"),
    ] {
        assert_eq!(data_type(text).to_string(), canonical, "{text}");
    }
}

#[test]
fn low_cardinality_is_not_sent() {
    let text = "Tuple(a LowCardinality(String), b Map(LowCardinality(String), Array(LowCardinality(Nullable(UInt8)))))";
    assert_eq!(data_type(text).native_name(), "Tuple(a String, b Map(String, Array(Nullable(UInt8))))");
    let nested = "Nested(a LowCardinality(String), p Point)";
    assert_eq!(data_type(nested).native_name(), "Array(Tuple(a String, p Point))");
    let aggregated = "SimpleAggregateFunction(anyLast, LowCardinality(Nullable(String)))";
    assert_eq!(data_type(aggregated).native_name(), "Nullable(String)");
}

#[test]
fn unknown_and_malformed_types_are_told_apart() {
    for text in [
        "JSON",
        "Dynamic",
        "Variant(LowCardinality(String), UInt8)",
        "Variant(Nullable(UInt8), String)",
        "Variant(Nested(a UInt8), String)",
        "Nullable(Variant(UInt8, String))",
        "LowCardinality(Point)",
        "Nullable(Ring)",
        "AggregateFunction(sum, UInt8)",
        "Array(JSON)",
        "Nullable(Array(UInt8))",
        "Tuple()",
        "IntervalFortnight",
        "uint8",
    ] {
        assert!(matches!(DataType::parse(text), Err(TypeError::Unsupported(_))), "{text}: {:?}", DataType::parse(text));
    }
    for text in [
        "",
        "Array",
        "Array(",
        "Array(UInt8",
        "Array(UInt8))",
        "UInt8 UInt8",
        "FixedString(0)",
        "FixedString(99999999999)",
        "Decimal(77, 0)",
        "Decimal(5, 6)",
        "DateTime64(10)",
        "DateTime('UTC",
        "Enum8('a' = 128)",
        "Enum16('a' = 99999999999999999999)",
        "Enum8('a' = 1, 'b')",
        "Time64(10)",
        "Nested(UInt8)",
        "Nested(a UInt8, String)",
        "SimpleAggregateFunction(sum)",
        "Enum8()",
        "Map(String)",
        "Tuple(a UInt8, String)",
        "Tuple(a UInt8,)",
    ] {
        assert!(
            matches!(DataType::parse(text), Err(TypeError::Malformed { .. })),
            "{text}: {:?}",
            DataType::parse(text)
        );
    }
    let deep = "Array(".repeat(10_000) + "UInt8" + &")".repeat(10_000);
    assert_eq!(DataType::parse(&deep), Err(TypeError::TooDeep));
}
