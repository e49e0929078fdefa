//! The rows of a block that share a partition.

use windrow_columns::{Block, ColumnSpec, DataType, DefaultKind, Format, PartitionKey, ReadPlan, ReadSettings};

use crate::support::{block_of, names_of, types_of};

const COLUMNS: [(&str, &str); 9] = [
    ("a", "Int64"),
    ("u", "UInt64"),
    ("s", "String"),
    ("l", "LowCardinality(Nullable(String))"),
    ("d", "Date"),
    ("w", "Date32"),
    ("t", "DateTime"),
    ("b", "DateTime64(3, 'Europe/Berlin')"),
    ("x", "Array(UInt8)"),
];

fn types() -> Vec<DataType> {
    types_of(&COLUMNS)
}

fn names() -> Vec<&'static str> {
    names_of(&COLUMNS)
}

fn block(rows: &[&str]) -> Block {
    block_of(&COLUMNS, rows)
}

/// Returns for each row the first one that shares its partition.
fn groups(expression: &str, rows: &[&str]) -> Option<Vec<usize>> {
    let keys = PartitionKey::parse(expression, "UTC")?.of_rows(&names(), &types(), &block(rows))?;
    Some(keys.iter().map(|key| keys.iter().position(|other| other == key).unwrap()).collect())
}

#[test]
fn values_tell_partitions_apart() {
    let rows = [r#"{"s":"x","l":"y"}"#, r#"{"s":"","l":null}"#, r#"{"s":"x","l":""}"#, r#"{"s":"xx","l":"y"}"#];
    assert_eq!(groups("s", &rows), Some(vec![0, 1, 0, 3]));
    assert_eq!(groups("l", &rows), Some(vec![0, 1, 2, 0]), "NULL is not ''");
    assert_eq!(groups("(s, l)", &rows), Some(vec![0, 1, 2, 3]));
}

#[test]
fn numbers_are_divided_as_clickhouse_does() {
    let rows = [r#"{"a":-1}"#, r#"{"a":1}"#, r#"{"a":-11}"#, r#"{"a":11}"#, r#"{"a":9}"#];
    assert_eq!(groups("intDiv(a, 10)", &rows), Some(vec![0, 0, 2, 3, 0]));
    assert_eq!(groups("a % 10", &rows), Some(vec![0, 1, 0, 1, 4]));
    assert_eq!(groups("u % 10", &[r#"{"u":18446744073709551615}"#]), None, "beyond what is reckoned with here");
    assert_eq!(groups("intDiv(s, 10)", &rows), None);
}

#[test]
fn days_and_moments_fall_into_units_of_the_calendar() {
    let rows = [
        r#"{"d":"2024-01-31","w":"1969-12-31","t":"2024-01-31 23:59:59","b":"2024-01-31 23:59:59.999"}"#,
        r#"{"d":"2024-02-01","w":"1970-01-01","t":"2024-02-01 00:00:00","b":"2024-02-01 00:00:00.000"}"#,
        r#"{"d":"2024-02-29","w":"1970-01-31","t":"2024-02-29 12:00:00","b":"2024-02-29 12:00:00.000"}"#,
        r#"{"d":"2025-02-01","w":"1970-02-01","t":"2025-02-01 00:00:00","b":"2025-02-01 00:00:00.000"}"#,
    ];
    for (column, unit) in [("d", "toYYYYMM"), ("t", "toStartOfMonth"), ("b", "toYYYYMM")] {
        assert_eq!(groups(&format!("{unit}({column})"), &rows), Some(vec![0, 1, 1, 3]), "{unit}({column})");
    }
    assert_eq!(groups("toYYYYMM(w)", &rows), Some(vec![0, 1, 1, 3]));
    assert_eq!(groups("toYear(d)", &rows), Some(vec![0, 0, 0, 3]));
    assert_eq!(groups("toMonth(d)", &rows), Some(vec![0, 1, 1, 1]));
    assert_eq!(groups("toDate(t)", &rows), Some(vec![0, 1, 2, 3]));
    // In Berlin the first moment is already the next day's.
    assert_eq!(groups("toYYYYMM(t, 'Europe/Berlin')", &rows), Some(vec![0, 0, 0, 3]));
    assert_eq!(groups("toDate(t, 'Europe/Berlin')", &rows), Some(vec![0, 0, 2, 3]));
    assert_eq!(groups("toYYYYMM(a)", &rows), None);
}

/// Tests numbers of any size: binary formats bring them for a moment or a day. A mistaken partition costs an
/// attempt, a panic the batch.
#[test]
fn the_ends_of_each_type_have_a_partition() {
    const UNITS: [&str; 14] = [
        "toStartOfHour(x)",
        "toDate(x)",
        "toMonday(x)",
        "toStartOfWeek(x)",
        "toYYYYMM(x)",
        "toStartOfQuarter(x)",
        "toYear(x)",
        "toMonth(x)",
        "toDayOfMonth(x)",
        "toDayOfWeek(x)",
        "toYYYYMM(x, 'Pacific/Kiritimati')",
        "toDate(x, 'America/Los_Angeles')",
        "intDiv(x, 9223372036854775807)",
        "x % 9223372036854775807",
    ];
    const TYPES: [(&str, usize); 17] = [
        ("Date", 2),
        ("Date32", 4),
        ("DateTime", 4),
        ("DateTime('Asia/Tokyo')", 4),
        ("DateTime64(0)", 8),
        ("DateTime64(0, 'Asia/Tokyo')", 8),
        ("DateTime64(0, 'America/New_York')", 8),
        ("DateTime64(3)", 8),
        ("DateTime64(9)", 8),
        ("Int8", 1),
        ("UInt8", 1),
        ("Int16", 2),
        ("UInt16", 2),
        ("Int32", 4),
        ("UInt32", 4),
        ("Int64", 8),
        ("UInt64", 8),
    ];
    let words = [0, 1, i64::MAX, i64::MIN, -1, i64::MAX - 1, i64::MIN + 1, i64::from(i32::MAX), i64::from(i32::MIN)];
    let format = Format::named("RowBinary").unwrap();
    let mut keyed = 0;
    for (name, width) in TYPES {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()[..width].to_vec()).collect();
        let types = [DataType::parse(name).unwrap()];
        let spec = ColumnSpec { name: "x".into(), data_type: types[0].clone(), default_kind: DefaultKind::None };
        let plan = ReadPlan::new(vec![spec], ReadSettings::default());
        let block = (format.read)(&bytes, &plan).unwrap().block;
        assert_eq!(block.rows(), words.len());
        for unit in UNITS {
            let key = PartitionKey::parse(unit, "Asia/Kathmandu").unwrap();
            keyed += usize::from(key.of_rows(&["x"], &types, &block).is_some());
        }
    }
    // The calendar's units of nine types, and both divisions of seven; a UInt64 may be too large for them.
    assert_eq!(keyed, 9 * 12 + 7 * 2);
}

#[test]
fn what_the_block_has_not_is_not_known() {
    let rows = [r#"{"a":1}"#];
    assert_eq!(groups("missing", &rows), None);
    assert_eq!(groups("x", &rows), None);
    assert_eq!(groups("toYYYYMM(t, 'Middle/Earth')", &rows), None);
    assert_eq!(groups("tuple()", &rows), None);
    assert_eq!(groups("", &rows), None);
}
