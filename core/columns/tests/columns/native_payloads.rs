//! Native as clients send it.

use windrow_columns::{Format, NotParsedReason, ReadPlan};

use crate::support::{plan, rows};

struct Sent<'a> {
    name: &'a str,
    type_text: &'a str,
    data: Vec<u8>,
}

fn sent<'a>(name: &'a str, type_text: &'a str, data: &[u8]) -> Sent<'a> {
    Sent { name, type_text, data: data.to_vec() }
}

fn block(rows: u8, columns: &[Sent<'_>]) -> Vec<u8> {
    let mut bytes = vec![columns.len() as u8, rows];
    for Sent { name, type_text, data } in columns {
        for text in [name, type_text] {
            bytes.push(text.len() as u8);
            bytes.extend_from_slice(text.as_bytes());
        }
        bytes.extend_from_slice(data);
    }
    bytes
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Encodes a dictionary of strings with positions of a byte each, behind the version.
fn dictionary(keys: &[&str], positions: &[u8]) -> Vec<u8> {
    let keys_bytes = keys.iter().flat_map(|key| [&[key.len() as u8], key.as_bytes()].concat());
    let mut bytes = words(&[1 << 9 | 1 << 10, keys.len() as u64]);
    bytes.extend(keys_bytes);
    bytes.extend(words(&[positions.len() as u64]));
    bytes.extend_from_slice(positions);
    bytes
}

fn read(plan: &ReadPlan, payload: &[u8]) -> Result<String, NotParsedReason> {
    let format = Format::named("Native").expect("the format is read here");
    rows(format.read, plan, payload).map(|rows| rows.join(" ")).map_err(|not_parsed| not_parsed.reason)
}

/// Reads one column in one block.
fn single(wanted: &str, type_text: &str, rows: u8, data: &[u8]) -> Result<String, NotParsedReason> {
    read(&plan(&[&format!("a {wanted}")]), &block(rows, &[sent("a", type_text, data)]))
}

#[test]
fn columns_come_in_any_order_and_some_are_left_out() {
    let plan = plan(&["a UInt8", "b String", "n Nullable(UInt8)", "d= UInt8"]);
    let payload = block(2, &[sent("b", "String", b"\x01x\x00"), sent("a", "UInt8", &[1, 2])]);
    assert_eq!(read(&plan, &payload).unwrap(), "1|x|NULL 2||NULL");
    let two = [payload.clone(), block(1, &[sent("n", "Nullable(UInt8)", &[0, 7])])].concat();
    assert_eq!(read(&plan, &two).unwrap(), "1|x|NULL 2||NULL 0||7");
    let with_default = [payload.clone(), block(1, &[sent("d", "UInt8", &[7])])].concat();
    assert_eq!(read(&plan, &with_default), Err(NotParsedReason::MixedDefaults));
    let twice = block(1, &[sent("a", "UInt8", &[1]), sent("a", "UInt8", &[2])]);
    assert_eq!(read(&plan, &twice), Err(NotParsedReason::DuplicateField));
}

#[test]
fn an_enum_that_is_left_out_would_be_stored_as_zero() {
    let plan = plan(&["a UInt8", "e Enum8('x' = 1)"]);
    assert_eq!(read(&plan, &block(1, &[sent("a", "UInt8", &[1])])), Err(NotParsedReason::Value));
    assert_eq!(read(&plan, &block(0, &[sent("a", "UInt8", &[])])).unwrap(), "");
}

#[test]
fn what_is_left_out_is_bounded() {
    let plan = plan(&["a UInt8", "wide FixedString(100000)"]);
    assert!(read(&plan, &block(10, &[sent("a", "UInt8", &[0; 10])])).is_ok());
    assert_eq!(read(&plan, &block(100, &[sent("a", "UInt8", &[0; 100])])), Err(NotParsedReason::Value));
}

#[test]
fn unknown_columns_are_skipped_with_their_dictionaries() {
    let plan = plan(&["a UInt8"]);
    let unknown = [words(&[1]), dictionary(&["", "x"], &[1, 0])].concat();
    let columns = [sent("zz", "LowCardinality(String)", &unknown), sent("a", "UInt8", &[1, 2])];
    assert_eq!(read(&plan, &block(2, &columns)).unwrap(), "1 2");
    let resembling = block(1, &[sent("A", "UInt8", &[1]), sent("a", "UInt8", &[2])]);
    assert_eq!(read(&plan, &resembling), Err(NotParsedReason::UnknownField));
    let not_known = block(1, &[sent("zz", "Dynamic", &[1]), sent("a", "UInt8", &[2])]);
    assert_eq!(read(&plan, &not_known), Err(NotParsedReason::Value));
}

#[test]
fn blocks_of_no_rows_and_of_no_columns() {
    let plan = plan(&["a LowCardinality(String)"]);
    let one = block(1, &[sent("a", "LowCardinality(String)", &[words(&[1]), dictionary(&["x"], &[0])].concat())]);
    let none = block(0, &[sent("a", "LowCardinality(String)", &[])]);
    assert_eq!(read(&plan, &[none.clone(), one.clone(), none].concat()).unwrap(), "x");
    assert_eq!(read(&plan, b"").unwrap(), "");
    assert_eq!(read(&plan, &[one, b"\0\0".to_vec()].concat()), Err(NotParsedReason::Syntax));
    assert_eq!(read(&plan, b"\0\x05"), Err(NotParsedReason::Syntax));
}

#[test]
fn dictionaries_are_unfolded() {
    let positions = [1, 2, 0, 1];
    let data = [words(&[1]), dictionary(&["", "aa", "b"], &positions)].concat();
    assert_eq!(single("LowCardinality(String)", "LowCardinality(String)", 4, &data).unwrap(), "aa b  aa");
    assert_eq!(single("String", "LowCardinality(String)", 4, &data).unwrap(), "aa b  aa");
    let nullable = "LowCardinality(Nullable(String))";
    let data = [words(&[1]), dictionary(&["whatever", "", "b"], &positions)].concat();
    assert_eq!(single(nullable, nullable, 4, &data).unwrap(), " b NULL ");
    assert_eq!(single("LowCardinality(String)", nullable, 4, &data), Err(NotParsedReason::Null));
    let long = "x".repeat(100);
    let data = [words(&[1]), dictionary(&[&long, "y"], &[0, 1])].concat();
    assert_eq!(single("String", "LowCardinality(String)", 2, &data).unwrap(), format!("{long} y"));
}

#[test]
fn columns_are_sent_with_dictionaries_and_without() {
    let plan =
        plan(&["a LowCardinality(String)", "n LowCardinality(Nullable(String))", "z Array(LowCardinality(String))"]);
    let plain = [
        sent("a", "String", b"\x01x\x01y"),
        sent("n", "Nullable(String)", b"\x01\x00\x00\x01v"),
        sent("z", "Array(String)", &[words(&[1, 1]), b"\x01e".to_vec()].concat()),
    ];
    let plain = block(2, &plain);
    assert_eq!(read(&plan, &plain).unwrap(), "x|NULL|[e] y|v|[]");
    let folded = [words(&[1]), dictionary(&["", "f"], &[1])].concat();
    let mixed = [
        sent("a", "LowCardinality(String)", &folded),
        sent("n", "Nullable(String)", b"\x00\x01w"),
        sent("z", "Array(String)", &words(&[0])),
    ];
    let both = [plain, block(1, &mixed)].concat();
    assert_eq!(read(&plan, &both).unwrap(), "x|NULL|[e] y|v|[] f|w|[]");
}

#[test]
fn positions_are_of_every_width() {
    for (kind, position) in [vec![1], vec![1, 0], vec![1, 0, 0, 0], words(&[1])].into_iter().enumerate() {
        let flags = kind as u64 | 1 << 9;
        let data = [words(&[1, flags, 2]), b"\x01a\x01b".to_vec(), words(&[1]), position].concat();
        assert_eq!(single("LowCardinality(String)", "LowCardinality(String)", 1, &data).unwrap(), "b");
    }
}

#[test]
fn dictionaries_that_are_not_sound_are_left() {
    let good = dictionary(&["a", "b"], &[1]);
    let with = |version: u64, dictionary: &[u8]| {
        let data = [words(&[version]), dictionary.to_vec()].concat();
        single("LowCardinality(String)", "LowCardinality(String)", 1, &data)
    };
    assert_eq!(with(1, &good).unwrap(), "b");
    assert_eq!(with(2, &good), Err(NotParsedReason::Syntax));
    assert_eq!(with(1, &dictionary(&["a", "b"], &[2])), Err(NotParsedReason::Syntax));
    assert_eq!(with(1, &dictionary(&["a", "b"], &[0, 1])), Err(NotParsedReason::Syntax));
    for flags in [0, 1 << 8 | 1 << 9, 1 << 9 | 4, 1 << 9 | 1 << 20] {
        let bad = [&words(&[flags]), &good[8..]].concat();
        assert_eq!(with(1, &bad), Err(NotParsedReason::Syntax), "{flags:x}");
    }
    let huge = [words(&[1 << 9, u64::MAX]), vec![0; 40]].concat();
    assert_eq!(with(1, &huge), Err(NotParsedReason::Syntax));
}

#[test]
fn what_a_dictionary_unfolds_to_is_bounded() {
    let long = vec![b'x'; 1 << 20];
    let mut data = words(&[1, 1 << 9, 1]);
    data.extend_from_slice(b"\x80\x80\x40");
    data.extend_from_slice(&long);
    data.extend(words(&[200]));
    data.extend_from_slice(&[0; 200]);
    let mut payload = b"\x01\xc8\x01\x01a\x16LowCardinality(String)".to_vec();
    payload.extend_from_slice(&data);
    assert_eq!(read(&plan(&["a LowCardinality(String)"]), &payload), Err(NotParsedReason::Value));
}

#[test]
fn dictionaries_within_other_types_say_their_versions_first() {
    let map = "Map(LowCardinality(String), LowCardinality(String))";
    let keys = dictionary(&["", "k"], &[1, 0]);
    let values = dictionary(&["v", "w"], &[0, 1]);
    let data = [words(&[1, 1]), words(&[2, 2]), keys, values].concat();
    assert_eq!(single(map, map, 2, &data).unwrap(), "[k:v,:w] []");
    assert_eq!(single("Map(String, String)", map, 2, &data).unwrap(), "[k:v,:w] []");
    let empty = [words(&[1]), words(&[0, 0])].concat();
    let array = "Array(LowCardinality(String))";
    assert_eq!(single(array, array, 2, &empty).unwrap(), "[] []");
    assert_eq!(single(array, array, 2, &words(&[0, 0])), Err(NotParsedReason::Syntax));
}

#[test]
fn variants_say_how_their_discriminators_are_written() {
    let variant = "Variant(String, UInt8)";
    let values = b"\x01\xff\x00\x01\x01x\x05\x06";
    assert_eq!(single(variant, variant, 4, &[&words(&[0]), &values[..]].concat()).unwrap(), "5 NULL x 6");
    assert_eq!(single(variant, variant, 4, &[&words(&[1]), &values[..]].concat()), Err(NotParsedReason::Syntax));
    let unknown = [&words(&[0]), &b"\x02x"[..]].concat();
    assert_eq!(single(variant, variant, 1, &unknown), Err(NotParsedReason::Syntax));
}

#[test]
fn several_blocks_are_joined_at_every_depth() {
    let column = "Array(Map(String, Nullable(Tuple(UInt8, String))))";
    let plan = plan(&[&format!("a {column}")]);
    let one = |value: u8| {
        let data = [words(&[1]), words(&[1]), vec![1, b'k', 0, value, 1, b's']].concat();
        block(1, &[sent("a", column, &data)])
    };
    assert_eq!(read(&plan, &[one(1), one(2)].concat()).unwrap(), "[[k:(1,s)]] [[k:(2,s)]]");
}

#[test]
fn certain_conversions_are_made_and_others_left() {
    let cases: &[(&str, &str, &[u8], &str)] = &[
        ("Nullable(UInt8)", "UInt8", &[5, 6], "5 6"),
        ("UInt8", "Nullable(UInt8)", &[0, 0, 5, 6], "5 6"),
        ("UInt8", "Nullable(UInt8)", &[0, 1, 5, 6], "-"),
        ("UInt32", "UInt8", &[5, 255], "5 255"),
        ("Int32", "UInt8", &[5, 255], "5 255"),
        ("Int32", "Int8", &[5, 255], "5 -1"),
        ("UInt32", "Int8", &[5, 1], "-"),
        ("UInt8", "UInt16", &[5, 0, 6, 0], "-"),
        ("Nullable(Int16)", "LowCardinality(Nullable(Int8))", &[], "-"),
        ("Array(Nullable(UInt16))", "Array(UInt8)", &[1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 5, 6], "[5] [6]"),
        ("Tuple(x UInt8, y UInt16)", "Tuple(UInt8, UInt8)", &[1, 2, 3, 4], "(1,3) (2,4)"),
        ("Tuple(x UInt8, y UInt8)", "Tuple(y UInt8, x UInt8)", &[1, 2, 3, 4], "-"),
        ("Tuple(UInt8, UInt8)", "Tuple(UInt8)", &[1, 2], "-"),
        ("DateTime('Asia/Tokyo')", "DateTime('UTC')", &[1, 0, 0, 0, 2, 0, 0, 0], "1 2"),
        ("DateTime('UTC')", "DateTime('Asia/Tokio')", &[1, 0, 0, 0, 2, 0, 0, 0], "-"),
        ("DateTime64(3, 'UTC')", "DateTime64(6)", &[0; 16], "-"),
        ("Int8", "TINYINT", &[1, 2], "-"),
        ("Decimal(9, 2)", "Decimal32(2)", &[1, 0, 0, 0, 2, 0, 0, 0], "1 2"),
        ("Decimal(9, 2)", "Decimal(9, 3)", &[0; 8], "-"),
        ("Enum8('x' = 1)", "Enum8('x' = 2)", &[2, 2], "-"),
        ("Enum8('x' = 1)", "Int8", &[1, 1], "-"),
        ("String", "FixedString(1)", b"ab", "-"),
        ("SimpleAggregateFunction(max, UInt8)", "UInt8", &[1, 2], "1 2"),
        ("UInt8", "SimpleAggregateFunction(max, UInt8)", &[1, 2], "-"),
        ("UInt8", "SimpleAggregateFunction(nothing_known, UInt8)", &[1, 2], "-"),
        ("Map(String, UInt8)", "Map(Nullable(String), UInt8)", &[0; 16], "-"),
    ];
    for (wanted, type_text, data, expected) in cases {
        let outcome = single(wanted, type_text, 2, data).unwrap_or("-".to_string());
        assert_eq!(&outcome, expected, "{type_text} into {wanted}");
    }
}

#[test]
fn whatever_a_type_would_not_show_is_stored_as_it_came() {
    assert_eq!(single("Bool", "Bool", 2, &[2, 1]).unwrap(), "2 1");
    assert_eq!(single("Enum8('x' = 1)", "Enum8('x' = 1)", 1, &[7]).unwrap(), "7");
    assert_eq!(single("Date32", "Date32", 1, &[255, 255, 255, 127]).unwrap(), "2147483647");
    assert_eq!(single("String", "String", 1, b"\x02\xff\xfe").unwrap(), "\\xff\\xfe");
    assert_eq!(single("Nullable(UInt8)", "Nullable(UInt8)", 2, &[2, 0, 5, 6]), Err(NotParsedReason::Syntax));
    assert_eq!(single("String", "String", 1, b"\x81\x00x"), Err(NotParsedReason::Syntax));
}

#[test]
fn nested_columns_are_of_equal_length() {
    let plan = plan(&["n.a Array(UInt8)", "n.b Array(String)"]);
    let list = |count: u64, values: &[u8]| [&words(&[count]), values].concat();
    let whole = [sent("n.a", "Array(UInt8)", &list(1, &[5])), sent("n.b", "Array(String)", &list(1, b"\x01x"))];
    assert_eq!(read(&plan, &block(1, &whole)).unwrap(), "[5]|[x]");
    assert_eq!(read(&plan, &block(1, &whole[..1])), Err(NotParsedReason::Value));
}
