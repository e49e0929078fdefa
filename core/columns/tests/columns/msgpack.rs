//! MsgPack: the items that are stored as they are, for each type.

use windrow_columns::{Format, NotParsedReason, ReadPlan};

use crate::support::{columns, plan, rows, settings};

fn read(plan: &ReadPlan, payload: &[u8]) -> Result<String, NotParsedReason> {
    let format = Format::named("MsgPack").expect("the format is read here");
    rows(format.read, plan, payload).map(|rows| rows.join(" ")).map_err(|not_parsed| not_parsed.reason)
}

fn check(cases: &[(&str, &[u8], &str)]) {
    for (type_text, bytes, expected) in cases {
        let outcome = read(&plan(&[&format!("a {type_text}")]), bytes).unwrap_or("-".to_string());
        assert_eq!(&outcome, expected, "{bytes:x?} into {type_text}");
    }
}

#[test]
fn integers_that_fit() {
    check(&[
        ("UInt8", &[0, 0x7F, 0xCC, 200, 0xD0, 5, 0xC3, 0xC2], "0 127 200 5 1 0"),
        ("UInt8", &[0xCD, 1, 44], "-"),
        ("UInt8", &[0xFF], "-"),
        ("Int8", &[0xFF, 0xE0, 0xD0, 0x9C, 0xD1, 0xFF, 0x80], "-1 -32 -100 -128"),
        ("Int8", &[0xCC, 200], "-"),
        ("UInt16", &[0xCD, 1, 44], "300"),
        ("Int64", &[0xD3, 0x80, 0, 0, 0, 0, 0, 0, 0, 0xD2, 0xFF, 0xFF, 0xFF, 0xFE], "-9223372036854775808 -2"),
        ("UInt64", &[0xCF, 255, 255, 255, 255, 255, 255, 255, 255], "18446744073709551615"),
        ("Int64", &[0xCF, 255, 255, 255, 255, 255, 255, 255, 255], "-"),
        ("Bool", &[0xC3, 0xC2, 1], "1 0 1"),
        ("Bool", &[2], "-"),
        ("Date", &[0xCD, 0x47, 0x56], "18262"),
        ("Date32", &[0xFF], "-1"),
        ("DateTime('UTC')", &[0xCE, 0, 1, 0, 0], "65536"),
        ("DateTime64(3, 'UTC')", &[0xFF], "-1"),
        ("Decimal(9, 2)", &[5], "5"),
        ("IPv4", &[0xCE, 1, 2, 3, 4], "1.2.3.4"),
        ("Enum8('x' = 5)", &[5], "5"),
        ("UInt128", &[5], "-"),
        ("Float64", &[5], "-"),
        ("String", &[5], "-"),
        ("Time", &[5], "-"),
        ("IntervalSecond", &[5], "-"),
    ]);
}

#[test]
fn floats_of_the_very_width() {
    check(&[
        ("Float32", &[0xCA, 0x3F, 0xC0, 0, 0], "1.5"),
        ("Float64", &[0xCB, 0x3F, 0xF8, 0, 0, 0, 0, 0, 0], "1.5"),
        ("Float64", &[0xCA, 0x3F, 0xC0, 0, 0], "-"),
        ("Float32", &[0xCB, 0x3F, 0xF8, 0, 0, 0, 0, 0, 0], "-"),
        ("UInt8", &[0xCA, 0x3F, 0x80, 0, 0], "-"),
    ]);
}

#[test]
fn texts_and_bytes() {
    let sixteen: Vec<u8> = (0..16).collect();
    let binary = [&[0xC4, 16], &sixteen[..]].concat();
    let extension = |kind: u8| [&[0xD8, kind], &sixteen[..]].concat();
    let text = b"\xd9\x2461f0c404-5cb3-11e7-907b-a6006ad3dba0";
    check(&[
        (
            "String",
            b"\xa1x\xd9\x01y\xda\x00\x01z\xdb\x00\x00\x00\x00\xc4\x01a\xc5\x00\x01b\xc6\x00\x00\x00\x01c",
            "x y z  a b c",
        ),
        ("FixedString(3)", b"\xa1x\xa3abc", "x\\x00\\x00 abc"),
        ("FixedString(3)", b"\xa4abcd", "-"),
        ("UUID", &extension(2), "000102030405060708090a0b0c0d0e0f"),
        ("UUID", &extension(3), "-"),
        ("UUID", &binary, "07060504030201000f0e0d0c0b0a0908"),
        ("UUID", text, "61f0c4045cb311e7907ba6006ad3dba0"),
        ("UUID", b"\xa3abc", "-"),
        ("IPv6", &binary, "1:203:405:607:809:a0b:c0d:e0f"),
        ("UInt128", &binary, "20011376718272490338853433276725592320"),
        ("Decimal(38, 2)", &binary, "20011376718272490338853433276725592320"),
        ("UInt256", &binary, "-"),
        ("UInt64", b"\xc4\x08abcdefgh", "-"),
        ("IPv6", b"\xa3::1", "-"),
        ("Date", b"\xaa2020-01-01", "-"),
        ("String", &extension(2), "-"),
        ("String", b"\xa2x", "-"),
        ("String", b"\xdb\xff\xff\xff\xffx", "-"),
        ("String", b"\xc1", "-"),
    ]);
}

#[test]
fn lists_maps_and_tuples() {
    check(&[
        ("Array(UInt8)", b"\x92\x01\x02\x90\xdc\x00\x01\x03\xdd\x00\x00\x00\x01\x04", "[1,2] [] [3] [4]"),
        ("Array(Array(String))", b"\x92\x91\xa1x\x90", "[[x],[]]"),
        ("Array(UInt8)", b"\x81\x01\x02", "-"),
        ("Array(String)", b"\xdd\xff\xff\xff\xff\xa0", "-"),
        ("Map(String, UInt8)", b"\x82\xa1k\x01\xa1l\x02\x80\xde\x00\x01\xa0\x03", "[k:1,l:2] [] [:3]"),
        ("Map(String, UInt8)", b"\x91\xa1k", "-"),
        ("Map(String, Map(String, UInt8))", b"\x81\xa1k\x81\xa1l\x02", "[k:[l:2]]"),
        ("Tuple(UInt8, String)", b"\x92\x01\xa1x", "(1,x)"),
        ("Tuple(UInt8, String)", b"\x91\x01", "-"),
        ("Tuple(UInt8, String)", b"\x93\x01\xa1x\x02", "-"),
        ("Array(Tuple(UInt8, Nullable(String)))", b"\x92\x92\x01\xa1x\x92\x02\xc0", "[(1,x),(2,NULL)]"),
    ]);
}

#[test]
fn nil_is_null_or_a_default() {
    check(&[
        ("Nullable(UInt8)", b"\xc0\x05", "NULL 5"),
        ("LowCardinality(Nullable(String))", b"\xc0\xa1x", "NULL x"),
        ("UInt8", b"\xc0", "0"),
        ("Array(UInt8)", b"\x91\xc0\xc0", "[0] []"),
        ("Tuple(UInt8, String)", b"\x92\xc0\xc0", "(0,)"),
        ("Enum8('x' = 1)", b"\xc0", "-"),
        ("Array(Variant(String, UInt8))", b"\x91\xc0", "-"),
    ]);
    let with_default = plan(&["a UInt8", "d= UInt8"]);
    assert_eq!(read(&with_default, b"\x01\xc0\x02\xc0").unwrap(), "1 2");
    assert_eq!(read(&with_default, b"\x01\xc0\x02\x03"), Err(NotParsedReason::MixedDefaults));
    let mut strict = settings();
    strict.set("input_format_null_as_default", "0");
    let strict = ReadPlan::new(columns(&["a Array(UInt8)"]), strict);
    assert_eq!(read(&strict, b"\x91\xc0"), Err(NotParsedReason::Null));
    assert_eq!(read(&strict, b"\xc0"), Err(NotParsedReason::Null));
}

#[test]
fn a_row_is_as_many_items_as_there_are_columns() {
    let plan = plan(&["a UInt8", "b String"]);
    assert_eq!(read(&plan, b"\x01\xa1x\x02\xa1y").unwrap(), "1|x 2|y");
    assert_eq!(read(&plan, b"").unwrap(), "");
    for incomplete in [&b"\x01"[..], b"\x01\xa1x\x02", b"\x01\xa1x\n"] {
        assert_eq!(read(&plan, incomplete), Err(NotParsedReason::Syntax), "{incomplete:?}");
    }
    assert_eq!(read(&plan, b"\x92\x01\xa1x"), Err(NotParsedReason::Value));
}
