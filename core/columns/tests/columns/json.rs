use windrow_columns::{read_json_each_row, NotParsedReason};

use crate::support::{check, json_value, json_value_bytes, plan, rows};

#[test]
fn integers_are_taken_in_range_and_plain() {
    check(
        json_value,
        "UInt8",
        &[("0", "0"), ("255", "255"), ("\"7\"", "7"), ("true", "1"), ("false", "0"), ("null", "0")],
    );
    for refused in ["256", "-1", "-0", "+1", "01", "1.0", "1e2", "\"\"", "\" 1\"", "\"1 \"", "0x1", "\"true\"", "nul"] {
        assert!(json_value("UInt8", refused).is_err(), "{refused}");
    }
    check(
        json_value,
        "Int8",
        &[("-128", "-128"), ("127", "127"), ("128", "-"), ("-129", "-"), ("--1", "-"), ("-", "-")],
    );
    check(json_value, "Int64", &[("-9223372036854775808", "-9223372036854775808"), ("9223372036854775808", "-")]);
    check(json_value, "UInt64", &[("18446744073709551615", "18446744073709551615"), ("18446744073709551616", "-")]);
}

#[test]
fn wide_integers_are_taken_to_their_last_value() {
    let highest = "340282366920938463463374607431768211455";
    check(json_value, "UInt128", &[(highest, highest), ("340282366920938463463374607431768211456", "-"), ("-1", "-")]);
    let highest = "170141183460469231731687303715884105727";
    check(json_value, "Int128", &[(highest, highest), (&format!("-{highest}"), &format!("-{highest}"))]);
    let hex_one = format!("{:064x}", 1);
    let hex_minus_one = "f".repeat(64);
    check(json_value, "Int256", &[("1", &hex_one), ("\"-1\"", &hex_minus_one), ("-0", "-")]);
    let highest = "115792089237316195423570985008687907853269984665640564039457584007913129639935";
    check(json_value, "UInt256", &[(highest, &hex_minus_one), (&format!("{highest}0"), "-")]);
    let half = "57896044618658097711785492504343953926634992332820282019728792003956564819968";
    check(json_value, "Int256", &[(half, "-"), (&format!("-{half}"), &format!("8{}", "0".repeat(63)))]);
    let lowest = "-170141183460469231731687303715884105728";
    check(json_value, "Int128", &[(lowest, lowest), ("-170141183460469231731687303715884105729", "-")]);
}

#[test]
fn floats_are_rounded_correctly() {
    let cases = [
        ("1.5", "1.5"),
        ("\"-0.25\"", "-0.25"),
        ("-0", "-0.0"),
        ("0.1", "0.1"),
        ("1e5", "100000.0"),
        ("5e-324", "5e-324"),
        ("9007199254740993", "9007199254740992.0"),
        ("1.00000000000000011102230246251565", "1.0"),
        ("1.00000000000000011102230246251567", "1.0000000000000002"),
        ("true", "1.0"),
    ];
    check(json_value, "Float64", &cases);
    for refused in ["1e400", "nan", "inf", ".5", "1.", "+1", "01", "1e", "\"\"", "1_000"] {
        assert!(json_value("Float64", refused).is_err(), "{refused}");
    }
    check(json_value, "Float64", &[("\"nan\"", "NaN"), ("\"inf\"", "inf"), ("\"-inf\"", "-inf"), ("\"nano\"", "-")]);
    check(json_value, "Float32", &[("16777217", "16777216.0"), ("0.1", "0.1"), ("1e39", "-")]);
    // Rounding to a double first would go to the other neighbour.
    check(json_value, "Float32", &[("1.00000017881393432617187499", "1.0000001")]);
}

#[test]
fn any_double_comes_back_from_its_shortest_text() {
    let mut random = fastrand::Rng::with_seed(7);
    let plan = plan(&["a Float64"]);
    for _ in 0..20_000 {
        let value = f64::from_bits(random.u64(..));
        let value = if value.is_finite() { value } else { random.f64() };
        let payload = format!("{{\"a\":{value:?}}}");
        let read = rows(read_json_each_row, &plan, payload.as_bytes()).unwrap();
        assert_eq!(read, [format!("{value:?}")]);
    }
}

#[test]
fn decimals_are_cut_off_at_their_scale() {
    let cases = [
        ("1", "1000"),
        ("-1.5", "-1500"),
        ("\"1.5\"", "1500"),
        ("1.2349", "1234"),
        ("-1.2349", "-1234"),
        ("999999.999", "999999999"),
        ("1000000", "-"),
        ("0.0005", "0"),
        ("-0.001", "-1"),
        ("1e2", "100000"),
        ("true", "-"),
    ];
    check(json_value, "Decimal(9, 3)", &cases);
    check(json_value, "Decimal(38, 10)", &[("1.0000000001", "10000000001")]);
    check(json_value, "Decimal(3, 3)", &[("0.5", "500"), ("1.5", "-")]);
    check(json_value, "Decimal(76, 1)", &[("-0.1", &"f".repeat(64))]);
}

#[test]
fn strings_take_strings_and_the_text_of_other_values() {
    let cases = [
        (r#""abc""#, "abc"),
        (r#""""#, ""),
        (r#""\"\\\/\b\f\n\r\t""#, r#"\"\\/\x08\x0c\n\r\t"#),
        (r#""\u0041\u00e9\u20ac\ud83d\ude00""#, r"A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"),
        (r#""\u0000""#, r"\x00"),
        ("1.50", "1.50"),
        ("-5", "-5"),
        ("true", "true"),
        ("[1, {\"a\" : null}]", r#"[1, {\"a\" : null}]"#),
        ("{}", "{}"),
        ("null", ""),
    ];
    check(json_value, "String", &cases);
    for refused in [r#""\a""#, r#""\x41""#, r#""\ud83d""#, r#""\ud83d\u0041""#, r#""\u00g0""#, r#""\u00"#, "'a'", "abc"]
    {
        assert!(json_value("String", refused).is_err(), "{refused}");
    }
    assert_eq!(json_value_bytes("String", b"\"\xff\xfe\n\0\""), Ok(r"\xff\xfe\n\x00".to_string()));
}

#[test]
fn quotes_and_escapes_are_found_wherever_they_stand() {
    for length in 0..100 {
        let plain = "x".repeat(length);
        check(json_value, "String", &[(&format!("\"{plain}\""), &plain)]);
        check(json_value, "String", &[(&format!("\"{plain}\\ny\""), &format!("{plain}\\ny"))]);
        // The high bit of a byte must not be taken for a quote.
        let bytes = [b"\"", vec![0xA2; length].as_slice(), b"\""].concat();
        assert_eq!(json_value_bytes("String", &bytes), Ok("\\xa2".repeat(length)));
    }
}

#[test]
fn fixed_strings_are_filled_up() {
    check(json_value, "FixedString(3)", &[("\"ab\"", r"ab\x00"), ("\"abc\"", "abc"), ("\"abcd\"", "-"), ("5", "-")]);
}

#[test]
fn bools_are_words_or_digits() {
    check(json_value, "Bool", &[("true", "1"), ("false", "0"), ("1", "1"), ("0", "0"), ("null", "0")]);
    check(json_value, "Bool", &[("2", "-"), ("10", "-"), ("\"true\"", "-"), ("True", "-")]);
}

#[test]
fn dates_exist_and_are_in_range() {
    check(json_value, "Date", &[("\"2024-02-29\"", "19782"), ("19782", "19782"), ("\"1970-01-01\"", "0")]);
    check(json_value, "Date", &[("\"2149-06-06\"", "65535"), ("\"2149-06-07\"", "-"), ("\"1969-12-31\"", "-")]);
    check(json_value, "Date", &[("\"2023-02-29\"", "-"), ("\"2024-1-2\"", "-"), ("65536", "-"), ("\"19000\"", "-")]);
    check(json_value, "Date32", &[("\"1900-01-01\"", "-25567"), ("\"2299-12-31\"", "120529"), ("-5", "-5")]);
    check(json_value, "Date32", &[("\"1899-12-31\"", "-"), ("\"2300-01-01\"", "-"), ("120530", "-")]);
}

#[test]
fn times_are_taken_in_the_spellings_that_are_certain() {
    let cases = [
        ("\"2024-01-02 03:04:05\"", "1704164645"),
        ("\"2024-01-02T03:04:05\"", "1704164645"),
        ("\"2024-01-02T03:04:05Z\"", "1704164645"),
        ("\"2024-01-02 03:04:05.999\"", "1704164645"),
        ("\"2024-01-02T05:04:05.1+02:00\"", "1704164645"),
        ("\"2024-01-01T21:34:05-0530\"", "1704164645"),
        ("\"2024-01-02\"", "1704153600"),
        ("1704164645", "1704164645"),
        ("\"1704164645\"", "1704164645"),
        ("0", "0"),
        ("4294967295", "4294967295"),
        ("\"2106-02-07 06:28:15\"", "4294967295"),
    ];
    check(json_value, "DateTime", &cases);
    check(json_value, "DateTime('UTC')", &cases);
    for refused in [
        "\"2106-02-07 06:28:16\"",
        "4294967296",
        "-1",
        "\"1969-12-31 23:59:59\"",
        "\"2024-02-30 00:00:00\"",
        "\"2024-01-02 24:00:00\"",
        "\"2024-01-02 23:59:60\"",
        "\"2024-01-02t03:04:05\"",
        "\"2024-01-02T03:04:05z\"",
        "\"2024-01-02 03:04:05 \"",
        "\"2024-01-02 03:04:05.\"",
        "\"2024-01-02 03:04:05.1234567890\"",
        "\"2024-01-02 03:04:05+15:00\"",
        "\"5\"",
        "\"\"",
        "1.5",
        r#""2024-01-02 03:04:0\u0035""#,
    ] {
        assert!(json_value("DateTime", refused).is_err(), "{refused}");
    }
}

#[test]
fn local_times_need_a_zone_that_has_them_once() {
    let berlin = "DateTime('Europe/Berlin')";
    check(json_value, berlin, &[("\"2024-07-02 05:04:05\"", "1719889445"), ("\"2024-07-02T03:04:05Z\"", "1719889445")]);
    assert_eq!(json_value(berlin, "\"2024-03-31 02:30:00\""), Err(NotParsedReason::TimeZone));
    assert_eq!(json_value(berlin, "\"2024-10-27 02:30:00\""), Err(NotParsedReason::TimeZone));
    check(json_value, "DateTime64(3, 'Europe/Berlin')", &[("\"2024-07-02 05:04:05.5\"", "1719889445500")]);
}

#[test]
fn fine_times_keep_the_digits_they_have_room_for() {
    let cases = [
        ("\"2024-01-02 03:04:05\"", "1704164645000"),
        ("\"2024-01-02T03:04:05.1\"", "1704164645100"),
        ("\"2024-01-02T03:04:05.123999Z\"", "1704164645123"),
        ("\"1969-12-31 23:59:59.5\"", "-500"),
        ("1704164645123", "1704164645123"),
        ("-5", "-5"),
        ("1704164645.5", "-"),
        ("\"1899-12-31 23:59:59\"", "-"),
        ("\"2300-01-01 00:00:00\"", "-"),
    ];
    check(json_value, "DateTime64(3, 'UTC')", &cases);
    check(
        json_value,
        "DateTime64(9)",
        &[("\"2262-04-11 23:47:16\"", "9223372036000000000"), ("\"2262-04-11 23:47:17\"", "-")],
    );
    check(json_value, "DateTime64(0)", &[("\"2024-01-02 03:04:05.9\"", "1704164645")]);
}

#[test]
fn addresses_and_uuids() {
    let uuid = "\"61F0c404-5cb3-11e7-907b-a6006ad3dba0\"";
    check(json_value, "UUID", &[(uuid, "61f0c4045cb311e7907ba6006ad3dba0")]);
    for refused in ["\"61f0c4045cb311e7907ba6006ad3dba0\"", "\"61f0c404-5cb3-11e7-907b-a6006ad3dbg0\"", "\"\"", "5"] {
        assert!(json_value("UUID", refused).is_err(), "{refused}");
    }
    check(json_value, "IPv4", &[("\"1.2.3.4\"", "1.2.3.4"), ("\"256.1.1.1\"", "-"), ("\"01.2.3.4\"", "-"), ("5", "-")]);
    check(json_value, "IPv6", &[("\"2001:DB8::1\"", "2001:db8::1"), ("\"1.2.3.4\"", "::ffff:1.2.3.4"), ("\"\"", "-")]);
}

#[test]
fn enums_go_by_name_or_number() {
    let letters = "Enum8('a' = 1, 'b\\'c' = -2, '3' = 4)";
    check(json_value, letters, &[("\"a\"", "1"), ("\"b'c\"", "-2"), ("-2", "-2"), ("\"3\"", "4"), ("4", "4")]);
    check(
        json_value,
        letters,
        &[("3", "-"), ("\"1\"", "-"), ("\"A\"", "-"), ("null", "-"), ("\"\"", "-"), ("-0", "-")],
    );
    check(json_value, "Enum16('x' = 300, 'y' = -300)", &[("\"x\"", "300"), ("-300", "-300")]);
}

#[test]
fn nested_values() {
    check(json_value, "Nullable(UInt8)", &[("null", "NULL"), ("5", "5"), ("\"null\"", "-")]);
    check(json_value, "LowCardinality(Nullable(String))", &[("null", "NULL"), ("\"x\"", "x")]);
    let cases = [("[]", "[]"), ("[ 1 ,\n2 ]", "[1,2]"), ("[null]", "[0]"), ("[1,]", "-"), ("[,]", "-"), ("[1 2]", "-")];
    check(json_value, "Array(UInt8)", &cases);
    check(json_value, "Array(UInt8)", &[("\"[1]\"", "-"), ("[1", "-"), ("5", "-"), ("{}", "-")]);
    check(json_value, "Array(Array(Nullable(String)))", &[("[[\"a\",null],[]]", "[[a,NULL],[]]")]);
    let cases =
        [("{}", "[]"), ("{ \"a\" : 1 , \"a\" : null }", "[a:1,a:0]"), ("{\"a\":1,}", "-"), ("{1:2}", "-"), ("[]", "-")];
    check(json_value, "Map(String, UInt8)", &cases);
    check(json_value, "Map(UInt8, Array(String))", &[("{\"1\":[\"x\"]}", "[1:[x]]"), ("{\"a\":[]}", "-")]);
    let cases = [("[1,\"a\"]", "(1,a)"), ("[ null , null ]", "(0,)"), ("[1]", "-"), ("[1,\"a\",2]", "-"), ("{}", "-")];
    check(json_value, "Tuple(UInt8, String)", &cases);
}

#[test]
fn named_tuples_are_objects() {
    let named = "Tuple(a UInt8, b Nullable(String))";
    let cases = [
        ("{\"b\":\"x\",\"a\":1}", "(1,x)"),
        ("{ \"a\" : 1 }", "(1,NULL)"),
        ("{}", "(0,NULL)"),
        ("{\"a\":1,\"zz\":{\"b\":[1,2]}}", "(1,NULL)"),
        ("{\"a\":1,\"a\":2}", "-"),
        ("{\"A\":1}", "-"),
        ("{\"\\u0061\":1}", "-"),
        ("[1,\"x\"]", "-"),
    ];
    check(json_value, named, &cases);
    check(json_value, "Tuple(a UInt8, e Enum8('x' = 1))", &[("{\"a\":1,\"e\":\"x\"}", "(1,1)"), ("{\"a\":1}", "-")]);
}

#[test]
fn rows_are_separated_in_many_ways() {
    let plan = plan(&["a UInt8"]);
    let both = ["1".to_string(), "2".to_string()];
    for payload in [
        "{\"a\":1}{\"a\":2}",
        "{\"a\":1}\n{\"a\":2}\n",
        " {\"a\":1} , {\"a\":2},\n",
        "{\"a\":1}\u{b}\u{c}\r\n\t{ \"a\" : 2 }",
        "[{\"a\":1},{\"a\":2}]",
        "\n[ {\"a\":1}\n,\n{\"a\":2} ] \n",
        "{\"a\":1}{\"a\":2};\n",
        "[{\"a\":1},{\"a\":2}] ;",
    ] {
        assert_eq!(rows(read_json_each_row, &plan, payload.as_bytes()).unwrap(), both, "{payload:?}");
    }
    for payload in ["", "\n ", "[]", " [ ] ", ";"] {
        assert_eq!(rows(read_json_each_row, &plan, payload.as_bytes()).unwrap().len(), 0, "{payload:?}");
    }
    for payload in [
        "{\"a\":1},,{\"a\":2}",
        ",{\"a\":1}",
        "[{\"a\":1},]",
        "[{\"a\":1}",
        "[",
        "{\"a\":1}]",
        "[{\"a\":1}]{\"a\":2}",
        "{\"a\":1};{\"a\":2}",
        "{\"a\":1},;",
        "[[{\"a\":1}]]",
        "{\"a\":1,}",
        "{,}",
        "{a:1}",
        "{\"a\" 1}",
        "{\"a\":1}x",
        "\0{\"a\":1}",
        "\u{feff}{\"a\":1}",
        "1",
    ] {
        assert!(rows(read_json_each_row, &plan, payload.as_bytes()).is_err(), "{payload:?}");
    }
}

#[test]
fn keys_come_in_any_order_and_only_exact() {
    let plan = plan(&["id UInt8", "name String", "a.b UInt8", "ID UInt8"]);
    let read = |payload: &str| rows(read_json_each_row, &plan, payload.as_bytes()).map_err(|error| error.reason);
    assert_eq!(read(r#"{"ID":4,"a.b":3,"name":"x","id":1}"#).unwrap(), ["1|x|3|4"]);
    assert_eq!(read(r#"{"name" : "x" , "id":1}{"id":2}"#).unwrap(), ["1|x|0|0", "2||0|0"]);
    assert_eq!(read(r#"{"id":1,"other":[1,{"deep":"}"}],"name":"x"}"#).unwrap(), ["1|x|0|0"]);
    assert_eq!(read(r#"{"id":1,"Name":"x"}"#), Err(NotParsedReason::UnknownField));
    assert_eq!(read(r#"{"id":1,"é":"x"}"#), Err(NotParsedReason::UnknownField));
    assert_eq!(read(r#"{"id":1,"n\u0061me":"x"}"#), Err(NotParsedReason::UnknownField));
    assert_eq!(read(r#"{"id":1,"name":"x","id":2}"#), Err(NotParsedReason::DuplicateField));
    assert_eq!(read(r#"{"id":1,"other":nope}"#), Err(NotParsedReason::Syntax));
    assert_eq!(read(r#"{"id":1,"other":[1,]}"#), Err(NotParsedReason::Syntax));
}

#[test]
fn the_order_of_keys_may_change_from_row_to_row() {
    let plan = plan(&["a UInt8", "b UInt8", "c UInt8"]);
    let mut random = fastrand::Rng::with_seed(11);
    let (mut payload, mut expected) = (String::new(), Vec::new());
    for _ in 0..500 {
        let values: Vec<u8> = (0..3).map(|_| random.u8(..)).collect();
        let mut members: Vec<String> =
            (0..3).map(|index| format!("\"{}\":{}", ["a", "b", "c"][index], values[index])).collect();
        members.push("\"unknown\":[1]".to_string());
        if random.u8(..4) == 0 {
            random.shuffle(&mut members);
        } else {
            members.rotate_left(2);
        }
        payload += &format!("{{{}}}", members.join(","));
        expected.push(values.iter().map(u8::to_string).collect::<Vec<_>>().join("|"));
    }
    assert_eq!(rows(read_json_each_row, &plan, payload.as_bytes()).unwrap(), expected);
}

#[test]
fn skipped_values_may_not_nest_without_end() {
    let plan = plan(&["id UInt8"]);
    let nested = |depth: usize| format!("{{\"x\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
    assert!(rows(read_json_each_row, &plan, nested(60).as_bytes()).is_ok());
    let deep = rows(read_json_each_row, &plan, nested(100_000).as_bytes());
    assert_eq!(deep.unwrap_err().reason, NotParsedReason::TooDeep);
}

#[test]
fn the_row_of_a_refused_value_is_told() {
    let plan = plan(&["a UInt8"]);
    let refused = rows(read_json_each_row, &plan, b"{\"a\":1}{\"a\":\"x\"}{\"a\":2}").unwrap_err();
    assert_eq!((refused.row, refused.reason), (1, NotParsedReason::Value));
    assert_eq!(refused.to_string(), "row 2 is left to ClickHouse (value)");
}

#[test]
fn more_than_64_columns() {
    let texts: Vec<String> =
        (0..130).map(|column| format!("c{column}{} UInt8", if column == 100 { "=" } else { "" })).collect();
    let plan = plan(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    let parsed = read_json_each_row(b"{\"c129\":7,\"c0\":3}", &plan).unwrap();
    assert_eq!(parsed.present.count(), 129);
    assert!(!parsed.present.contains(100));
    assert_eq!(parsed.block.columns(), 129);
    let row = rows(read_json_each_row, &plan, b"{\"c129\":7,\"c0\":3}").unwrap().remove(0);
    assert!(row.starts_with("3|0|") && row.ends_with("|0|7"), "{row}");
}
