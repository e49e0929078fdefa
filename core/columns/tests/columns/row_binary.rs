//! RowBinary and its kin.

use windrow_columns::{Format, NotParsedReason, ReadPlan};

use crate::support::{plan, rows};

fn read(format: &str, plan: &ReadPlan, payload: &[u8]) -> Result<String, NotParsedReason> {
    let format = Format::named(format).expect("the format is read here");
    rows(format.read, plan, payload).map(|rows| rows.join(" ")).map_err(|not_parsed| not_parsed.reason)
}

/// Reads bytes into a column of a type.
fn single(type_text: &str, bytes: &[u8]) -> Result<String, NotParsedReason> {
    read("RowBinary", &plan(&[&format!("a {type_text}")]), bytes)
}

fn header(texts: &[&str]) -> Vec<u8> {
    texts.iter().flat_map(|text| [&[text.len() as u8], text.as_bytes()].concat()).collect()
}

#[test]
fn values_of_every_layout() {
    let cases: &[(&str, &[u8], &str)] = &[
        ("UInt16", &[1, 2, 3, 0], "513 3"),
        ("UInt16", &[1, 2, 3], "-"),
        ("String", b"\x02ab\x00", "ab "),
        ("String", b"\x02a", "-"),
        ("String", b"\x82\x00ab", "-"),
        ("String", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01a", "-"),
        ("FixedString(3)", b"abcdef", "abc def"),
        ("Bool", &[2, 0], "2 0"),
        ("Enum8('x' = 1)", &[7], "7"),
        ("Nullable(UInt8)", &[1, 0, 5, 2], "NULL 5 NULL"),
        ("LowCardinality(Nullable(String))", b"\x01\x00\x01x", "NULL x"),
        ("Array(UInt16)", &[2, 1, 0, 2, 0, 0], "[1,2] []"),
        ("Array(Array(String))", b"\x02\x01\x01x\x00", "[[x],[]]"),
        ("Array(UInt8)", &[5, 1], "-"),
        ("Array(String)", &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0], "-"),
        ("Array(UInt64)", &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0], "-"),
        ("Map(String, UInt8)", b"\x02\x01k\x01\x01l\x02", "[k:1,l:2]"),
        ("Tuple(UInt8, String)", b"\x05\x01x", "(5,x)"),
        ("Variant(String, UInt8)", b"\x00\x01x\x01\x05\xff", "x 5 NULL"),
        ("Variant(String, UInt8)", b"\x02\x01x", "-"),
        ("Nullable(Tuple(UInt8, String))", b"\x01\x00\x05\x01x", "NULL (5,x)"),
    ];
    for (type_text, bytes, expected) in cases {
        let outcome = single(type_text, bytes).unwrap_or("-".to_string());
        assert_eq!(&outcome, expected, "{bytes:?} into {type_text}");
    }
}

#[test]
fn rows_of_fixed_width_are_read_column_by_column() {
    let plan = plan(&["a UInt8", "b UInt16", "c UInt32", "d UInt64", "e UUID", "f UInt256", "g FixedString(3)"]);
    let row = |seed: u8| (0..66).map(|byte| byte ^ seed).collect::<Vec<u8>>();
    let both = read("RowBinary", &plan, &[row(1), row(2)].concat()).unwrap();
    let one_by_one = [row(1), row(2)].map(|row| read("RowBinary", &plan, &row).unwrap());
    assert_eq!(both, one_by_one.join(" "));
    assert!(one_by_one[0].starts_with("1|768|"), "{both}");
    assert_eq!(read("RowBinary", &plan, &row(1)[..65]), Err(NotParsedReason::Syntax));
    assert_eq!(read("RowBinary", &plan, &[row(1), vec![0]].concat()), Err(NotParsedReason::Syntax));
}

#[test]
fn what_nulls_take_is_bounded() {
    let plan = plan(&["a Nullable(FixedString(100000))"]);
    assert!(read("RowBinary", &plan, &[1; 10]).is_ok());
    assert_eq!(read("RowBinary", &plan, &[1; 100]), Err(NotParsedReason::Value));
}

#[test]
fn names_come_in_any_order_and_some_are_left_out() {
    let plan = plan(&["a UInt8", "b String", "c Nullable(UInt8)", "d= UInt8"]);
    let with = |names: &[&str], values: &[u8]| {
        let payload = [vec![names.len() as u8], header(names), values.to_vec()].concat();
        read("RowBinaryWithNames", &plan, &payload)
    };
    assert_eq!(with(&["b", "a"], b"\x01x\x05\x00\x06").unwrap(), "5|x|NULL 6||NULL");
    assert_eq!(with(&["d"], b"\x05").unwrap(), "0||NULL|5");
    assert_eq!(with(&["a"], b"").unwrap(), "");
    assert_eq!(with(&["a", "zz"], b"\x05\x05"), Err(NotParsedReason::UnknownField));
    assert_eq!(with(&["A"], b"\x05"), Err(NotParsedReason::UnknownField));
    assert_eq!(with(&["a", "a"], b"\x05\x05"), Err(NotParsedReason::DuplicateField));
    assert_eq!(with(&[], b"\x05"), Err(NotParsedReason::Syntax));
    assert_eq!(read("RowBinaryWithNames", &plan, b"\xff\xff\x03\x01a"), Err(NotParsedReason::Syntax));
}

#[test]
fn an_enum_that_the_header_leaves_out_would_be_stored_as_zero() {
    let plan = plan(&["a UInt8", "e Enum8('x' = 1)"]);
    assert_eq!(read("RowBinaryWithNames", &plan, b"\x01\x01a\x05"), Err(NotParsedReason::Value));
}

#[test]
fn types_are_compared_by_their_text() {
    let plan = plan(&["a Decimal(9, 2)", "b LowCardinality(String)"]);
    let with = |texts: &[&str], values: &[u8]| {
        let payload = [vec![texts.len() as u8 / 2], header(texts), values.to_vec()].concat();
        read("RowBinaryWithNamesAndTypes", &plan, &payload)
    };
    let row = b"\x05\x00\x00\x00\x01x";
    assert_eq!(with(&["a", "b", "Decimal(9, 2)", "LowCardinality(String)"], row).unwrap(), "5|x");
    assert_eq!(with(&["a", "b", "Decimal(9,2)", "LowCardinality(String)"], row), Err(NotParsedReason::Value));
    assert_eq!(with(&["a", "b", "Decimal(9, 2)", "String"], row), Err(NotParsedReason::Value));
    let unknown = ["zz", "a", "Array(Nullable(String))", "Decimal(9, 2)"];
    assert_eq!(with(&unknown, b"\x02\x01\x00\x01x\x05\x00\x00\x00").unwrap(), "5|");
    assert_eq!(with(&["zz", "a", "Foo", "Decimal(9, 2)"], b""), Err(NotParsedReason::Value));
}

#[test]
fn unknown_columns_are_an_error_where_that_was_asked_for() {
    let mut settings = crate::support::settings();
    settings.set("input_format_skip_unknown_fields", "0");
    let plan = ReadPlan::new(crate::support::columns(&["a UInt8"]), settings);
    let payload = [vec![2], header(&["a", "zz", "UInt8", "UInt8"]), vec![1, 2]].concat();
    assert_eq!(read("RowBinaryWithNamesAndTypes", &plan, &payload), Err(NotParsedReason::UnknownField));
}

#[test]
fn a_byte_says_whether_a_value_is_left_out() {
    let plan = plan(&["a UInt8", "d= UInt8", "s Nullable(String)"]);
    let with_defaults = |payload: &[u8]| read("RowBinaryWithDefaults", &plan, payload);
    assert_eq!(with_defaults(b"\x00\x05\x01\x00\x00\x01x\x01\x02\x01").unwrap(), "5|x 0|NULL");
    assert_eq!(with_defaults(b"\x00\x05\x00\x07\x01").unwrap(), "5|7|NULL");
    assert_eq!(with_defaults(b"\x00\x05\x01\x01\x00\x06\x00\x07\x01"), Err(NotParsedReason::MixedDefaults));
    assert_eq!(with_defaults(b"\x00\x05\x01"), Err(NotParsedReason::Syntax));
    let names = [vec![2], header(&["zz", "a", "String", "UInt8"]), b"\x01\x00\x07\x00\x01x\x01".to_vec()].concat();
    let all = read("RowBinaryWithNamesAndTypesAndDefaults", &plan, &names);
    assert_eq!(all.unwrap(), "7|NULL 0|NULL");
}

#[test]
fn an_enum_left_out_by_its_byte_would_be_stored_as_zero() {
    let plan = plan(&["e Enum8('x' = 1)"]);
    assert_eq!(read("RowBinaryWithDefaults", &plan, b"\x01"), Err(NotParsedReason::Null));
    assert_eq!(read("RowBinaryWithDefaults", &plan, b"\x00\x01").unwrap(), "1");
}
