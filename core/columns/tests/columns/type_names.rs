//! Names of types that come back as they were read, and some that are no types.

use windrow_columns::{CustomType, DataType, TypeError};

#[test]
fn names_come_back_as_they_were() {
    for name in [
        "UInt8",
        "DateTime64(3, 'Europe/Berlin')",
        "Decimal(76, 5)",
        "Enum8('a' = 1, 'b\\'c\\n\\\\' = 2)",
        "LowCardinality(Nullable(FixedString(3)))",
        "Map(LowCardinality(String), Array(Tuple(UInt8, Nullable(String))))",
        "Tuple(a UInt8, `b c` String, `d.e` Array(String), array UInt8)",
        "Tuple()",
        "Nested(a UInt8, b Nested(c String))",
        "Variant(Array(LowCardinality(String)), LowCardinality(String), UInt8)",
        "Array(Nothing)",
        "Nullable(Nothing)",
        "Dynamic",
        "Array(Dynamic(max_types=2))",
        "JSON",
        "JSON(max_dynamic_types=16, max_dynamic_paths=0)",
        "JSON(max_dynamic_paths=1, `a b` UInt16, `b.c` LowCardinality(String), m Array(LowCardinality(String)), `q\\`q.x` UInt8, z UInt8, SKIP `foo.bar`, \
         SKIP REGEXP 'a(,b)')",
        "JSON(SKIP a, SKIP REGEXP)",
        "JSON(SKIP UInt8)",
        "QBit(BFloat16, 3)",
        "Nullable(Point)",
        "Geometry",
        "SimpleAggregateFunction(groupArrayArray(5), Array(UInt64))",
        "IntervalDay",
    ] {
        assert_eq!(DataType::parse_result(name).unwrap_or_else(|error| panic!("{name}: {error}")).to_string(), name);
    }
}

#[test]
fn paths_of_json_are_found_among_its_arguments() {
    let parsed = DataType::parse_result(
        "JSON(max_dynamic_paths=1, SKIP b, z UInt8, `a.b` String, SKIP REGEXP 'x UInt8', SKIP UInt8)",
    );
    let Ok(DataType::Custom(CustomType { inner, .. })) = parsed else { panic!("an alias of JSON") };
    let DataType::Json { typed_paths } = *inner else { panic!("a JSON") };
    let names: Vec<_> = typed_paths.iter().map(|(path, of)| format!("{path} {of}")).collect();
    assert_eq!(names, ["SKIP UInt8", "a.b String", "z UInt8"]);
}

#[test]
fn states_are_known_where_they_are_only_passed_on() {
    for (name, function, arguments) in [
        ("AggregateFunction(quantiles(0.5, 0.9), UInt64)", Some("quantiles"), 1),
        ("AggregateFunction(count)", Some("count"), 0),
        ("AggregateFunction(argMaxIf, Array(AggregateFunction(sum, UInt8)), String, UInt8)", Some("argMaxIf"), 3),
        ("AggregateFunction(1, sumMap, Array(UInt8), Array(UInt64))", None, 2),
    ] {
        let parsed = DataType::parse_passing(name).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(parsed.to_string(), name);
        let DataType::AggregateFunction(states) = parsed else { panic!("{name}") };
        assert_eq!((states.name.as_deref(), states.arguments.len()), (function, arguments), "{name}");
        assert!(DataType::parse(name).is_err() && DataType::parse_result(name).is_err());
    }
    for name in ["AggregateFunction", "AggregateFunction()", "AggregateFunction(sum, UInt8", "AggregateFunction(1)"] {
        assert!(DataType::parse_passing(name).is_err(), "{name}");
    }
}

#[test]
fn what_is_no_type_is_told() {
    for name in [
        "",
        "Array",
        "Array(",
        "Array(UInt8",
        "Array(UInt8))",
        "Tuple(a UInt8, String)",
        "Map(String)",
        "QBit(Float32, 0)",
        "Enum8('a)",
    ] {
        assert!(
            matches!(DataType::parse_result(name), Err(TypeError::Malformed { .. })),
            "{name}: {:?}",
            DataType::parse_result(name)
        );
    }
    for name in [
        "AggregateFunction(quantiles(0.5, 0.9), UInt64)",
        "Array(AggregateFunction(sum, UInt8))",
        "LowCardinality(Array(UInt8))",
        "uint8",
    ] {
        assert!(
            matches!(DataType::parse_result(name), Err(TypeError::Unreadable(_))),
            "{name}: {:?}",
            DataType::parse_result(name)
        );
    }
}
