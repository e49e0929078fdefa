use windrow_columns::{read_values, NotParsedReason};

use crate::support::{check, plan, rows, sql_value};

#[test]
fn literals_of_every_kind() {
    check(
        sql_value,
        "UInt8",
        &[("1", "1"), ("'5'", "5"), ("255", "255"), ("NULL", "0"), ("default", "0"), ("256", "-")],
    );
    check(
        sql_value,
        "UInt8",
        &[("-1", "-"), ("+1", "-"), ("01", "-"), ("true", "-"), ("1.0", "-"), ("1+1", "-"), ("''", "-")],
    );
    check(sql_value, "Int64", &[("-5", "-5"), ("'-5'", "-5"), ("- 5", "-"), ("--5", "-")]);
    check(sql_value, "UInt128", &[("5", "5"), ("'5'", "-")]);
    check(sql_value, "Float64", &[("1.5", "1.5"), ("-1e5", "-100000.0"), ("'1.5'", "-"), ("nan", "-"), ("1e400", "-")]);
    check(sql_value, "Decimal(9, 3)", &[("1.5", "1500"), ("'1.5'", "-"), ("1e2", "100000")]);
    check(sql_value, "Bool", &[("true", "1"), ("False", "0"), ("1", "1"), ("0", "0"), ("2", "-"), ("'true'", "-")]);
    check(sql_value, "Date", &[("'2024-02-29'", "19782"), ("19782", "-")]);
    check(sql_value, "DateTime", &[("'2024-01-02 03:04:05'", "1704164645"), ("1704164645", "1704164645")]);
    check(sql_value, "DateTime64(3)", &[("'2024-01-02T03:04:05.5Z'", "1704164645500"), ("1704164645", "1704164645")]);
    check(sql_value, "UUID", &[("'61f0c404-5cb3-11e7-907b-a6006ad3dba0'", "61f0c4045cb311e7907ba6006ad3dba0")]);
    check(sql_value, "IPv4", &[("'1.2.3.4'", "1.2.3.4"), ("5", "-")]);
    check(sql_value, "IPv6", &[("'::1'", "::1")]);
    check(sql_value, "Enum8('a' = 1)", &[("'a'", "1"), ("1", "-"), ("NULL", "-"), ("DEFAULT", "-")]);
    check(sql_value, "FixedString(3)", &[("'ab'", r"ab\x00"), ("'abcd'", "-")]);
    check(sql_value, "Nullable(String)", &[("null", "NULL"), ("'NULL'", "NULL"), ("DEFAULT", "NULL")]);
}

#[test]
fn strings_have_two_ways_to_quote() {
    let cases = [
        ("'it''s'", r"it\'s"),
        (r"'it\'s'", r"it\'s"),
        ("''''", r"\'"),
        (r"'\n\t\r\0\a\b\v\f\e\\\x41\/\`'", r"\n\t\r\x00\x07\x08\x0b\x0c\x1b\\A/`"),
        ("'a\nb'", r"a\nb"),
        ("''", ""),
    ];
    check(sql_value, "String", &cases);
    for refused in
        [r"'\%'", r"'\q'", r"'\N'", r"'\x4'", r"'\xzz'", "\"x\"", "5", "'a' 'b'", "concat('a')", "$$a$$", "'a"]
    {
        assert!(sql_value("String", refused).is_err(), "{refused}");
    }
}

#[test]
fn nested_literals_are_only_what_the_fast_parser_takes() {
    check(
        sql_value,
        "Array(UInt8)",
        &[("[]", "[]"), ("[ 1 , NULL ]", "[1,0]"), ("['1']", "-"), ("[1,]", "-"), ("(1,2)", "-")],
    );
    check(sql_value, "Array(Bool)", &[("[true]", "[1]"), ("[1]", "-")]);
    check(sql_value, "Map(String, UInt8)", &[("{'a':1, 'b' : 2}", "[a:1,b:2]"), ("{}", "[]"), ("map('a',1)", "-")]);
    check(sql_value, "Tuple(UInt8, String)", &[("( 1 , 'a' )", "(1,a)"), ("(1)", "-"), ("(1,'a',)", "-")]);
    check(sql_value, "Tuple(a UInt8, b UInt8)", &[("(1,2)", "(1,2)"), ("{'a':1}", "-")]);
    check(sql_value, "Array(Tuple(UInt8, Nullable(Float64)))", &[("[(1,NULL),(2,0.5)]", "[(1,NULL),(2,0.5)]")]);
}

#[test]
fn rows_are_separated_by_little() {
    let plan = plan(&["a UInt8", "b String"]);
    let both = ["1|x".to_string(), "2|y".to_string()];
    for payload in [
        "(1,'x'),(2,'y')",
        "(1,'x')(2,'y')",
        " ( 1 , 'x' )\n,\n( 2,'y' ) , ",
        "(1,'x') (2,'y');",
        "(1,'x'),(2,'y'), ; \n",
    ] {
        assert_eq!(rows(read_values, &plan, payload.as_bytes()).unwrap(), both, "{payload:?}");
    }
    for payload in ["", " \n", ";"] {
        assert_eq!(rows(read_values, &plan, payload.as_bytes()).unwrap().len(), 0, "{payload:?}");
    }
    for payload in [
        "(1)",
        "(1,'x',2)",
        "(1,'x',)",
        "(1,'x'),,(2,'y')",
        ",(1,'x')",
        "(1,'x'); (2,'y')",
        "(1,'x'",
        "(1,/*c*/'x')",
        "-- c\n(1,'x')",
        "[(1,'x')]",
        "()",
    ] {
        assert!(rows(read_values, &plan, payload.as_bytes()).is_err(), "{payload:?}");
    }
}

#[test]
fn expressions_are_named_as_the_reason() {
    let plan = plan(&["a UInt8", "b String"]);
    let refused = rows(read_values, &plan, b"(1,'x'),(1,lower('X'))").unwrap_err();
    assert_eq!((refused.row, refused.reason), (1, NotParsedReason::Expression));
}
