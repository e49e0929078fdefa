//! CSV and TabSeparated: values, quotes and escapes, empty fields, headers, and payloads that are left to
//! ClickHouse.

use windrow_columns::{Format, NotParsedReason, ReadPlan, ReadSettings};

use crate::render::render_rows;
use crate::samples::{mutate, COLUMNS};
use crate::support::{check, columns, plan, rows, settings, Reader};

fn reader(format: &str) -> Reader {
    Format::named(format).unwrap_or_else(|| panic!("{format} is read")).read
}

fn value(format: &str, type_text: &str, field: &str) -> Result<String, NotParsedReason> {
    let plan = plan(&[&format!("name {type_text}")]);
    let mut rows = rows(reader(format), &plan, format!("{field}\n").as_bytes()).map_err(|found| found.reason)?;
    assert_eq!(rows.len(), 1, "{field}");
    Ok(rows.remove(0))
}

fn csv(type_text: &str, field: &str) -> Result<String, NotParsedReason> {
    value("CSV", type_text, field)
}

fn tsv(type_text: &str, field: &str) -> Result<String, NotParsedReason> {
    value("TSV", type_text, field)
}

fn raw(type_text: &str, field: &str) -> Result<String, NotParsedReason> {
    value("TSVRaw", type_text, field)
}

/// Checks the rows joined by `;`, or the reason, of payloads for
/// `a UInt8, s String, n Nullable(String), d= UInt8`.
fn check_rows(format: &str, settings: &ReadSettings, cases: &[(&str, &str)]) {
    let columns = columns(&["a UInt8", "s String", "n Nullable(String)", "d= UInt8"]);
    let plan = ReadPlan::new(columns, settings.clone());
    for (payload, expected) in cases {
        let outcome = match rows(reader(format), &plan, payload.as_bytes()) {
            Ok(rows) => rows.join(";"),
            Err(not_parsed) => not_parsed.reason.as_str().to_string(),
        };
        assert_eq!(&outcome, expected, "{payload:?} as {format}");
    }
}

fn with(name: &str, value: &str) -> ReadSettings {
    let mut settings = settings();
    settings.set(name, value);
    settings
}

#[test]
fn numbers() {
    let everywhere = [("1", "1"), ("-1", "-1"), ("127", "127"), ("128", "-"), ("1.0", "-"), ("1e3", "-"), ("a", "-")];
    for read in [csv, tsv, raw] {
        check(read, "Int8", &everywhere);
        check(read, "Int8", &[("1a", "-"), ("--1", "-"), ("-", "-"), ("\\N", "0")]);
        check(read, "UInt64", &[("18446744073709551615", "18446744073709551615"), ("18446744073709551616", "-")]);
        check(read, "Float64", &[("1.5", "1.5"), ("+1.5", "1.5"), ("01.50", "1.5"), (".5", "0.5"), ("1.", "1.0")]);
        check(
            read,
            "Float64",
            &[("nan", "NaN"), ("-inf", "-inf"), ("inf", "inf"), ("-0", "-0.0"), ("1e5", "100000.0")],
        );
        check(read, "Float64", &[("1e", "-"), ("0x10", "-"), ("1_000", "-"), ("1e400", "-"), ("-", "-")]);
        check(
            read,
            "Decimal(9, 2)",
            &[("1.5", "150"), ("+01.567", "156"), (".5", "50"), ("12345678", "-"), ("nan", "-")],
        );
    }
    check(csv, "Int8", &[("+1", "1"), ("007", "7"), ("-0", "0"), (" 1 ", "1"), ("\"1\"", "1"), ("\"-1\" ", "-1")]);
    check(csv, "Int8", &[("\" 1\"", "-"), ("\"1", "-"), ("'1'", "-"), ("+-1", "-"), ("\"\"", "-"), ("+", "-")]);
    for read in [tsv, raw] {
        check(read, "Int8", &[("+1", "-"), ("01", "-"), (" 1", "-"), ("1 ", "-"), ("\"1\"", "-")]);
    }
}

#[test]
fn an_integer_without_digits() {
    check(tsv, "Nullable(Int64)", &[("", "0")]);
    check(raw, "Int64", &[("", "-")]);
    let plan = plan(&["a UInt8", "b UInt8"]);
    assert!(rows(reader("TSV"), &plan, b"1\t\n").is_ok());
    assert!(rows(reader("TSV"), &plan, b"1\t").is_err(), "ClickHouse wants one more byte");
}

#[test]
fn words() {
    for read in [csv, tsv, raw] {
        check(read, "Bool", &[("true", "1"), ("False", "0"), ("1", "1"), ("T", "1"), ("no", "0"), ("ON", "1")]);
        check(
            read,
            "Bool",
            &[("enabled", "1"), ("disable", "0"), ("tru", "-"), ("2", "-"), ("10", "-"), ("\"1\"", "-")],
        );
        check(
            read,
            "Enum8('x' = -1, 'a b' = 2)",
            &[("x", "-1"), ("a b", "2"), ("z", "-"), ("2", "2"), ("-1", "-1"), ("1", "-"), ("02", "-"), ("\\N", "-")],
        );
        check(read, "Date", &[("2024-02-29", "19782"), ("2023-02-29", "-"), ("2024-2-9", "-"), ("19782", "-")]);
        check(read, "DateTime", &[("2024-01-02 03:04:05", "1704164645"), ("1704164645", "1704164645"), ("123", "-")]);
        check(read, "DateTime64(3)", &[("2024-01-02T03:04:05.5Z", "1704164645500"), ("1704164645", "1704164645000")]);
        check(
            read,
            "UUID",
            &[("61f0c404-5cb3-11e7-907b-a6006ad3dba0", "61f0c4045cb311e7907ba6006ad3dba0"), ("x", "-")],
        );
        check(read, "IPv4", &[("1.2.3.4", "1.2.3.4"), ("1.2.3", "-")]);
        check(read, "IPv6", &[("::1", "::1"), ("1.2.3.4", "::ffff:1.2.3.4")]);
        check(read, "FixedString(3)", &[("ab", "ab\\x00"), ("abcd", "-")]);
        check(read, "LowCardinality(Nullable(String))", &[("x", "x"), ("\\N", "NULL")]);
    }
    check(csv, "Date", &[("\"2024-02-29\"", "19782"), (" 2024-02-29 ", "19782"), ("\"2024-02-29 \"", "-")]);
    check(csv, "Bool", &[("true ", "-"), (" true", "1")]);
    check(csv, "Enum8('x' = -1)", &[("\"x\" ", "-1")]);
    check(tsv, "Date", &[("\"2024-02-29\"", "-"), ("2024-02-29 ", "-"), ("\\x32024-02-29", "-")]);
}

#[test]
fn texts() {
    check(csv, "String", &[("x", "x"), (" x y\t", "x y"), ("\" x \"", " x "), ("\"a\"\"b\"", "a\\\"b"), ("", "")]);
    check(
        csv,
        "String",
        &[("a\"b", "a\\\"b"), ("\"x\"y", "-"), ("\"x", "-"), ("'x'", "\\'x\\'"), ("x\\ty", "x\\\\ty")],
    );
    check(csv, "String", &[("\"a\r\nb\"", "a\\r\\nb"), ("a\rb", "-"), ("x\r", "x"), ("\"x\" \r", "x"), ("x\r\r", "-")]);
    check(
        csv,
        "Nullable(String)",
        &[("\\N", "NULL"), ("", "NULL"), ("\"\"", ""), ("\"\\N\"", "\\\\N"), ("NULL", "NULL")],
    );
    check(csv, "Nullable(String)", &[("\\Nx", "\\\\Nx"), ("\\N ", "\\\\N")]);
    check(
        tsv,
        "String",
        &[("x", "x"), (" x ", " x "), ("\"x\"", "\\\"x\\\""), ("a\\tb\\n\\\\", "a\\tb\\n\\\\"), ("", "")],
    );
    check(
        tsv,
        "String",
        &[("\\x41\\0\\'", "A\\x00\\'"), ("\\q", "\\\\q"), ("\\x4", "-"), ("a\\", "-"), ("a\\\t", "-")],
    );
    check(tsv, "String", &[("a\rb", "a\\rb"), ("a\r", "-"), ("a\\Nb", "ab")]);
    check(tsv, "Nullable(String)", &[("\\N", "NULL"), ("", ""), ("\\Nx", "x"), ("\\\\N", "\\\\N"), ("NULL", "NULL")]);
    check(raw, "String", &[("a\\tb\\", "a\\\\tb\\\\"), ("a\r", "-"), (" \"", " \\\"")]);
}

#[test]
fn values_in_values() {
    let arrays = [("['a']", "[a]"), ("[]", "[]"), ("['a\\tb']", "[a\\tb]"), ("['a''b']", "[a\\'b]"), ("[a]", "-")];
    for read in [csv, tsv, raw] {
        check(read, "Array(String)", &arrays);
        check(read, "Map(String, UInt8)", &[("{'a' : 1}", "[a:1]"), ("{}", "[]"), ("{a:1}", "-")]);
        check(read, "Array(Nullable(UInt8))", &[("[NULL]", "[NULL]"), ("[1]x", "-"), ("[1", "-"), ("NULL", "-")]);
    }
    check(
        csv,
        "Array(UInt8)",
        &[("\"[1, 2]\"", "[1,2]"), ("[1,2]", "-"), ("", "[]"), ("\\N", "[]"), ("\" [1]\"", "-")],
    );
    check(csv, "Array(String)", &[("\"['a\"\"b']\"", "[a\\\"b]")]);
    check(tsv, "Array(UInt8)", &[("[1,2]", "[1,2]"), ("", "-"), ("\\N", "[]"), ("[1] ", "-")]);
    for read in [tsv, raw] {
        check(read, "Tuple(UInt8, String)", &[("(1,'a')", "(1,a)"), ("1,a", "-"), ("\\N", "(0,)")]);
    }
    check(
        csv,
        "Tuple(UInt8, String)",
        &[("1,a", "(1,a)"), ("1 , \"a,b\"", "(1,a,b)"), ("1,\\N", "(1,)"), ("1,a,", "(1,a)")],
    );
    check(csv, "Tuple(UInt8, String)", &[("\"(1,'a')\"", "-"), ("1", "-"), ("1,", "-"), ("", "(0,)"), ("1,a,b", "-")]);
}

#[test]
fn rows_of_csv() {
    check_rows(
        "CSV",
        &settings(),
        &[
            ("", ""),
            ("1,x,y,3\n4,z,,5\n", "1|x|y|3;4|z|NULL|5"),
            ("1,x,y,3", "1|x|y|3"),
            ("1,x,y,3\r\n4,x,y,5\r\n", "1|x|y|3;4|x|y|5"),
            ("1,x,y,3,\n4,x,y,5, \n", "1|x|y|3;4|x|y|5"),
            ("1,x,y,3,,\n", "syntax"),
            ("1,x,y\n", "syntax"),
            ("1,x,y,3\n\n", "syntax"),
            ("\n", "syntax"),
            ("1,x,y,3\n\r4,x,y,5\n", "syntax"),
            (",x,y,3\n", "0|x|y|3"),
            ("1,x,y,\n", "1|x|y"),
            ("1,x,y,\\N\n4,x,y,\n", "1|x|y;4|x|y"),
            ("1,x,y,\n4,x,y,5\n", "mixed_defaults"),
            ("1,x,y,3\n4,x,y,\n", "mixed_defaults"),
            ("1;x;y;3\n", "value"),
            ("\u{FEFF}1,x,y,3\n", "syntax"),
        ],
    );
    check_rows(
        "CSV",
        &with("format_csv_delimiter", ";"),
        &[("1;\"x;\";y,z;3\n", "1|x;|y,z|3"), ("1,x,y,3\n", "value")],
    );
    check_rows("CSV", &with("format_csv_null_representation", "NULL"), &[("1,\\N,NULL,3\n", "1|\\\\N|NULL|3")]);
    check_rows("CSV", &with("input_format_csv_empty_as_default", "0"), &[("1,,,3\n", "1|||3"), (",,,3\n", "value")]);
    check_rows("CSV", &with("input_format_null_as_default", "0"), &[("1,\\N,\\N,3\n", "null")]);
}

#[test]
fn rows_of_tsv() {
    for format in ["TSV", "TSVRaw"] {
        check_rows(
            format,
            &settings(),
            &[
                ("", ""),
                ("1\tx\ty\t3\n4\tz\t\\N\t5\n", "1|x|y|3;4|z|NULL|5"),
                ("1\tx\ty\t3", "1|x|y|3"),
                ("1\tx\ty\t3\r\n", "syntax"),
                ("1\tx\ty\t3\t\n", "syntax"),
                ("1\tx\ty\n", "syntax"),
                ("1\tx\ty\t3\nx\n", "value"),
                ("1\t\t\t3\n", "1|||3"),
                ("1\tx\ty\t\\N\n", "1|x|y"),
                ("\\N\t\\N\ty\t3\n", "0||y|3"),
                ("1\tx\ty\t\\N\n4\tx\ty\t5\n", "mixed_defaults"),
            ],
        );
        check_rows(format, &with("format_tsv_null_representation", "NULL"), &[("1\tNULL\tNULL\t3\n", "1||NULL|3")]);
        check_rows(format, &with("input_format_tsv_empty_as_default", "1"), &[("\t\t\t\n", "0||NULL")]);
    }
}

#[test]
fn settings_of_csv() {
    let plain = "1,x,y,3\n";
    check_rows("CSV", &with("format_csv_allow_single_quotes", "1"), &[("1,'x, ''y',z,'3'\n", "1|x, \\'y|z|3")]);
    let skip = with("input_format_csv_skip_first_lines", "2");
    check_rows(
        "CSV",
        &skip,
        &[(&format!("# x\n\"a\nb\"\n{plain}"), "1|x|y|3"), ("x", ""), ("a,b\n\ns\nx\n", "syntax")],
    );
    check_rows("CSVWithNames", &skip, &[("x\ny\ns,a\nz,1\n", "1|z|NULL")]);
    let ends = with("input_format_csv_skip_trailing_empty_lines", "1");
    check_rows("CSV", &ends, &[("1,x,y,3\n\n\r\n", "1|x|y|3"), ("\n", ""), ("1,x,y,3\n\n1,x,y,3\n", "syntax")]);
    let variable = with("input_format_csv_allow_variable_number_of_columns", "1");
    check_rows(
        "CSV",
        &variable,
        &[("1,x\n\n", "1|x|NULL;0||NULL"), ("1,x,y,3,4,5\n", "1|x|y|3"), ("1,x y\"\n", "1|x y\\\"|NULL")],
    );
    let whole = with("input_format_csv_deserialize_separate_columns_into_tuple", "0");
    let whole = ReadPlan::new(columns(&["t Tuple(UInt8, String)"]), whole);
    assert_eq!(rows(reader("CSV"), &whole, b"\"(1,'a')\"\n"), Ok(vec!["(1,a)".to_string()]));
    for (name, value) in
        [("format_csv_delimiter", " "), ("format_csv_delimiter", "ab"), ("format_csv_null_representation", "")]
    {
        check_rows("CSV", &with(name, value), &[(plain, "setting")]);
    }
}

#[test]
fn settings_of_tsv() {
    let skip = with("input_format_tsv_skip_first_lines", "1");
    check_rows("TSV", &skip, &[("#\\\n1\tx\ty\t3\n", "value"), ("#\\t\n1\tx\ty\t3\n", "1|x|y|3")]);
    let ends = with("input_format_tsv_skip_trailing_empty_lines", "1");
    check_rows("TSV", &ends, &[("1\tx\ty\t3\n\n\r\n", "1|x|y|3")]);
    let variable = with("input_format_tsv_allow_variable_number_of_columns", "1");
    check_rows("TSV", &variable, &[("1\tx\n\n", "1|x|NULL;0||NULL"), ("1\tx\ty\t3\t\n", "1|x|y|3")]);
    let windows = with("input_format_tsv_crlf_end_of_line", "1");
    check_rows("TSV", &windows, &[("1\tx\t\\N\t3\r\n4\tx\ty\t5\n", "1|x|NULL|3;4|x|y|5")]);
    check_rows("TSVWithNames", &windows, &[("a\ts\r\n1\tx\\r\r\n4\t\r\n", "1|x\\r|NULL;4||NULL")]);
    check_rows("TSVRaw", &windows, &[("1\tx\ty\t3\r\n", "syntax")]);
}

#[test]
fn headers() {
    for (format, separator) in [("CSVWithNames", ","), ("TSVWithNames", "\t"), ("TSVRawWithNames", "\t")] {
        let cases = [
            ("a,s,n,d\n1,x,y,3\n", "1|x|y|3"),
            ("d,n,s,a\n3,y,x,1\n", "1|x|y|3"),
            ("\u{FEFF}s,a\nx,1\n", "1|x|NULL"),
            ("s,other,a\nx,[]{}'\"\\N,1\n", "1|x|NULL"),
            ("a,s,n,d\n", ""),
            ("a,s,n,d", ""),
            ("A,s,n,d\n1,x,y,3\n", "unknown_field"),
            ("a,s,s,d\n1,x,y,3\n", "duplicate_field"),
            ("a,s\n1\n", "syntax"),
            ("a,s\n1,x,2\n", "syntax"),
        ];
        for (payload, expected) in cases {
            check_rows(format, &settings(), &[(&payload.replace(',', separator), expected)]);
        }
        // The column is filled up with zeros then, which need be no value of the Enum.
        let plan = plan(&["a UInt8", "e Enum8('x' = 1)"]);
        let outcome = rows(reader(format), &plan, b"a\n1\n").map_err(|found| found.reason);
        assert_eq!(outcome, Err(NotParsedReason::Null));
        let strict = with("input_format_skip_unknown_fields", "0");
        check_rows(format, &strict, &[(&"s,other,a\nx,1,1\n".replace(',', separator), "unknown_field")]);
        let typed = format!("{format}AndTypes");
        let cases = [
            ("a,s,n,d\nUInt8,String,Nullable(String),UInt8\n1,x,y,3\n", "1|x|y|3"),
            ("s,other,a\nString,Whatever,UInt8\nx,?,1\n", "1|x|NULL"),
            ("a,s\nUInt16,String\n1,x\n", "value"),
            ("a,s\nUInt8\n1,x\n", "syntax"),
            ("a,s\nUInt8,String,String\n1,x\n", "syntax"),
        ];
        for (payload, expected) in cases {
            check_rows(&typed, &settings(), &[(&payload.replace(',', separator), expected)]);
        }
    }
}

#[test]
fn a_first_row_of_names_is_a_header() {
    for (format, separator) in [("CSV", ","), ("TSV", "\t"), ("TSVRaw", "\t")] {
        let cases = [
            ("a,s,n,d\n1,x,y,3\n", "1|x|y|3"),
            ("d,n,other,s,a\n3,y,?,x,1\n", "1|x|y|3"),
            ("s,a\nx,1\n", "1|x|NULL"),
            ("a,s,n,d\n", ""),
            ("a,s,s\n1,x,y\n", "duplicate_field"),
            ("s,n\ntext,text\n", "syntax"),
            ("s,n\nString,Nullable(String)\nx,y\n", "syntax"),
            ("s\nx\n", "syntax"),
        ];
        for (payload, expected) in cases {
            check_rows(format, &settings(), &[(&payload.replace(',', separator), expected)]);
        }
        let name = format!("input_format_{}_detect_header", if format == "CSV" { "csv" } else { "tsv" });
        let found = plan(&["s String", "n String"]);
        let kept = ReadPlan::new(columns(&["s String", "n String"]), with(&name, "0"));
        let payload = "s,n\n1,2\n".replace(',', separator);
        assert_eq!(rows(reader(format), &found, payload.as_bytes()), Ok(vec!["1|2".to_string()]));
        assert_eq!(rows(reader(format), &kept, payload.as_bytes()), Ok(vec!["s|n".to_string(), "1|2".to_string()]));
    }
}

#[test]
fn rows_of_tskv() {
    check_rows(
        "TSKV",
        &settings(),
        &[
            ("", ""),
            ("a=1\ts=x=\\t\tn=\td=3\n", "1|x=\\t||3"),
            ("n=\\N\ta=\\N\n\nother=[\ts=\n", "0||NULL;0||NULL;0||NULL"),
            ("\u{FEFF}s=x\n", "0|x|NULL"),
            ("a=1", "syntax"),
            ("a=1\t\n", "syntax"),
            ("tskv\ta=1\n", "syntax"),
            ("\u{feff}", "syntax"),
            ("a=1\ta=2\n", "duplicate_field"),
            ("A=1\n", "unknown_field"),
            ("\\x61=1\n", "syntax"),
            ("a=x\n", "value"),
            ("s=x\r\n", "syntax"),
            ("s=x\nd=1\n", "mixed_defaults"),
        ],
    );
    check_rows("TSKV", &with("input_format_tsv_empty_as_default", "1"), &[("s=x\n", "setting")]);
    check_rows("TSKV", &with("input_format_skip_unknown_fields", "0"), &[("s=x\tz=1\n", "unknown_field")]);
}

const CSV_ROW: &str = "1,-8,\"12\",1.5e-3,nan,yes,\"a\"\"é,\nb\",ab,2024-02-29,\"1900-01-01\",2024-07-02 03:04:05,\
2024-01-02T03:04:05.123Z,-12.5,61f0c404-5cb3-11e7-907b-a6006ad3dba0,1.2.3.4,2001:db8::1,x,\\N,low,\
\"[['a',NULL],[]]\",\"{'k':[1,2],'l':[]}\",1,7,seven,3\n";
const TSV_ROW: &str = "1\t-8\t12\t1.5e-3\tnan\tyes\ta\\t\\x41\\\\b\tab\t2024-02-29\t1900-01-01\t2024-07-02 03:04:05\t\
2024-01-02T03:04:05.123Z\t-12.5\t61f0c404-5cb3-11e7-907b-a6006ad3dba0\t1.2.3.4\t2001:db8::1\tx\t\\N\tlow\t\
[['a',NULL],[]]\t{'k':[1,2],'l':[]}\t(1,(7,'seven'))\t3\n";

#[test]
fn every_truncation_is_whole_rows_or_refused() {
    let tskv = tskv_row();
    for (format, row) in [("CSV", CSV_ROW), ("TSV", TSV_ROW), ("TSVRaw", TSV_ROW), ("TSKV", &tskv)] {
        let plan = plan(COLUMNS);
        let payload = row.repeat(2);
        let whole = rows(reader(format), &plan, payload.as_bytes()).unwrap_or_else(|found| panic!("{format}: {found}"));
        assert_eq!(whole.len(), 2);
        for length in 0..payload.len() {
            let Ok(read) = rows(reader(format), &plan, &payload.as_bytes()[..length]) else { continue };
            // An empty last field of CSV stands for the default.
            if format == "CSV" && payload[..length].ends_with(',') {
                assert_eq!(read.len(), 1);
                continue;
            }
            assert_eq!(read, whole[..read.len()], "{length}");
        }
    }
}

/// Returns the row in TSKV.
fn tskv_row() -> String {
    let names = COLUMNS.iter().map(|column| column.split([' ', '=']).next().expect("a column has a name"));
    names.zip(TSV_ROW.split('\t')).map(|(name, field)| format!("{name}={field}")).collect::<Vec<_>>().join("\t")
}

#[test]
fn mutations_do_no_harm() {
    let tskv = tskv_row();
    for (format, row) in [("CSV", CSV_ROW), ("TSV", TSV_ROW), ("TSVRaw", TSV_ROW), ("TSKV", &tskv)] {
        let plan = plan(COLUMNS);
        let (read, payload) = (reader(format), row.repeat(2));
        let mut taken = 0;
        for seed in 0..10_000 {
            let mutated = mutate(payload.as_bytes(), &mut fastrand::Rng::with_seed(seed));
            let outcome = std::panic::catch_unwind(|| {
                read(&mutated, &plan).map(|parsed| assert_eq!(render_rows(&parsed, &plan).len(), parsed.block.rows()))
            });
            let outcome = outcome.unwrap_or_else(|_| panic!("{format}, seed {seed}: {mutated:?}"));
            taken += usize::from(outcome.is_ok());
        }
        assert!((100..9_000).contains(&taken), "{taken} of 10,000 mutations were read as {format}");
    }
}
