//! JSON's other formats, and those of one String.

use windrow_columns::{Format, NotParsedReason, ReadPlan};

use crate::samples::mutate;
use crate::support::{plan, rows};

fn read_rows(format: &str, plan: &ReadPlan, payload: &str) -> Result<Vec<String>, NotParsedReason> {
    let format = Format::named(format).unwrap_or_else(|| panic!("{format} is a format"));
    rows(format.read, plan, payload.as_bytes()).map_err(|not_parsed| not_parsed.reason)
}

/// Asserts which rows are read: those behind `=>`, separated by spaces, or none at all for `-`.
fn check(format: &str, columns: &[&str], cases: &[(&str, &str)]) {
    let plan = plan(columns);
    for (payload, expected) in cases {
        let outcome = read_rows(format, &plan, payload).map_or("-".to_string(), |rows| rows.join(" "));
        assert_eq!(&outcome, expected, "{format}: {payload}");
    }
}

const AB: &[&str] = &["a UInt8", "b String"];

#[test]
fn rows_may_be_arrays() {
    let cases = [
        ("[1,\"x\"]", "1|x"),
        ("[1,\"x\"]\n[2,5]\n", "1|x 2|5"),
        ("[1,\"x\"],[2,\"y\"] ; ", "1|x 2|y"),
        (" [ 1 , \"x\" ] ", "1|x"),
        ("[null,null]", "0|"),
        ("", ""),
        ("[1]", "-"),
        ("[1,\"x\",3]", "-"),
        ("[]", "-"),
        ("[[1,\"x\"]]", "-"),
        ("[1,\"x\"];;", "-"),
        ("[1,\"x\"],;", "-"),
    ];
    check("JSONCompactEachRow", AB, &cases);
    check("JSONCompactEachRow", &["a UInt8", "b= UInt8"], &[("[1,null]", "1"), ("[1,null][1,2]", "-")]);
}

#[test]
fn a_header_names_the_fields() {
    let cases = [
        ("[\"a\",\"b\"][1,\"x\"]", "1|x"),
        ("[\"b\",\"a\"]\n[\"x\",1]", "1|x"),
        ("[\"b\"],[\"x\"],[\"y\"]", "0|x 0|y"),
        ("[\"b\",\"c\"][\"x\",[1,{}]]", "0|x"),
        ("[\"c\"][1]", "0|"),
        ("[\"b\"]", ""),
        ("[\"B\"][\"x\"]", "-"),
        ("[\"b\",\"b\"][\"x\",\"y\"]", "-"),
        ("[][]", "-"),
        ("[1][2]", "-"),
        ("", "-"),
    ];
    check("JSONCompactEachRowWithNames", AB, &cases);
    // A column that is left out is stored as zero here, which may be no value of an Enum.
    check("JSONCompactEachRowWithNames", &["a UInt8", "e Enum8('x' = 1)"], &[("[\"a\"][1]", "-")]);
    check("JSONCompactEachRowWithNames", &["a UInt8", "e= Enum8('x' = 1)"], &[("[\"a\"][1]", "1")]);
    let cases = [
        ("[\"b\",\"c\"][\"String\",\"Foo\"][\"x\",1]", "0|x"),
        ("[\"b\"][\"Nullable(String)\"][\"x\"]", "-"),
        ("[\"b\"][\"TEXT\"][\"x\"]", "-"),
        ("[\"b\"][\"String\",\"UInt8\"][\"x\"]", "-"),
        ("[\"a\",\"b\"][\"UInt8\"][\"x\"]", "-"),
    ];
    check("JSONCompactEachRowWithNamesAndTypes", AB, &cases);
    let point = [("[\"p\"][\"Point\"][[1,2]]", "(1.0,2.0)"), ("[\"p\"][\"Tuple(Float64, Float64)\"][[1,2]]", "-")];
    check("JSONCompactEachRowWithNamesAndTypes", &["p Point"], &point);
}

#[test]
fn values_may_stand_in_strings() {
    let cases = [
        (r#"{"a":"1","b":"x"}"#, "1|x"),
        (r#"[{"a":"1"},{"b":"\u0041"}]"#, "1| 0|A"),
        (r#"{"a":"NULL","b":"null"}"#, "0|"),
        (r#"{"a":"ᴺᵁᴸᴸ","b":"ᴺᵁᴸᴸ"}"#, "0|"),
        (r#"{"b":"NULLx"}"#, "0|NULLx"),
        (r#"{"c":[1]}"#, "0|"),
        (r#"{"a":1}"#, "-"),
        (r#"{"a":null}"#, "-"),
        (r#"{"a":""}"#, "-"),
        (r#"{"a":"1 "}"#, "-"),
        (r#"{"a":"300"}"#, "-"),
    ];
    check("JSONStringsEachRow", AB, &cases);
    let columns = [
        "n Nullable(Int8)",
        "r Array(Nullable(String))",
        "t Tuple(UInt8, Map(String, UInt8))",
        "f Float64",
        "k Bool",
        "d DateTime('UTC')",
        "s FixedString(2)",
    ];
    let cases = [
        (
            r#"["-5","['a',NULL,'it\\'s']","(1,{'k':2})","nan","true","1970-01-01 00:00:09","z"]"#,
            r"-5|[a,NULL,it\'s]|(1,[k:2])|NaN|1|9|z\x00",
        ),
        (r#"["NULL","[]","(0,{})","-inf","0","1970-01-01T00:00:09Z","zz"]"#, "NULL|[]|(0,[])|-inf|0|9|zz"),
        (r#"["1","[] ","(0,{})","1","1","1970-01-01 00:00:09",""]"#, "-"),
        (r#"["1","[\"a\"]","(0,{})","1","1","1970-01-01 00:00:09",""]"#, "-"),
        (r#"["1","[]","(0,{})","1","1","1970-01-01 00:00:09","zzz"]"#, "-"),
    ];
    check("JSONCompactStringsEachRow", &columns, &cases);
    check("JSONCompactStringsEachRowWithNames", AB, &[(r#"["b","q"]["x",[1]]"#, "0|x")]);
    check("JSONCompactStringsEachRowWithNamesAndTypes", AB, &[(r#"["b"]["String"]["x"]"#, "0|x")]);
}

#[test]
fn columns_have_equal_lengths() {
    let cases = [
        (r#"{"a":[1,2],"b":["x","y"]}"#, "1|x 2|y"),
        (r#"{"b":["x"]} {"a":[1],"c":[{"d":[1]}]}"#, "0|x 1|"),
        (" { \"a\" : [ 1 , null ] } ", "1| 0|"),
        (r#"{"a":[],"b":[]}"#, ""),
        ("{}", ""),
        ("", ""),
        (r#"{"c":[1]}"#, ""),
        (r#"{}{"a":[1]}"#, "-"),
        (r#"{"a":[1],"b":[]}"#, "-"),
        (r#"{"a":[1],"a":[2]}"#, "-"),
        (r#"{"A":[1]}"#, "-"),
        (r#"{"a":[1],"c":"x"}"#, "-"),
        (r#"{"a":[1]},{"a":[2]}"#, "-"),
        (r#"{"a":[1]};"#, "-"),
    ];
    check("JSONColumns", AB, &cases);
    let cases = [
        (r#"[[1,2],["x","y"]]"#, "1|x 2|y"),
        (r#"[[1]] [[2],["z"]]"#, "1| 2|z"),
        ("[]", ""),
        ("[[],[]]", ""),
        (r#"[[1],["x"],[1]]"#, "-"),
        (r#"[[1,2],["x"]]"#, "-"),
    ];
    check("JSONCompactColumns", AB, &cases);
}

#[test]
fn null_in_a_column_is_zero_even_with_a_default() {
    let columns = ["a= UInt8", "b String"];
    check("JSONColumns", &columns, &[(r#"{"a":[null,3],"b":["x","y"]}"#, "0|x 3|y"), (r#"{"b":["x"]}"#, "x")]);
    check("JSONColumns", &columns, &[(r#"{"b":["x"]}{"a":[1]}"#, "-"), (r#"{"a":[1]}{"b":["x"]}"#, "-")]);
    check("JSONColumns", &["a UInt8", "e Enum8('x' = 1)"], &[(r#"{"a":[1]}"#, "-"), (r#"{"e":[null]}"#, "-")]);
}

const META: &str = r#"{"meta":[{"name":"a","type":"UInt8"},{"type":"String","name":"b"}],"#;

#[test]
fn documents_have_meta_and_data() {
    let document = |rest: &str| format!("{META}{rest}");
    let (objects, arrays) = (r#""data":[{"b":"x"},{"a":2}],"rows":2}"#, r#""data":[[1,"x"],[2,"y"]]}"#);
    let cases = [
        (document(objects), "0|x 2|"),
        (document(r#""data":[], "statistics":{"elapsed":1.5}} ; "#), "-"),
        (document(r#""data":[], "statistics":{"elapsed":1.5}} "#), ""),
        (r#"{"a":1}{"b":"x"}"#.to_string(), "1| 0|x"),
        (r#"[{"a":1}]"#.to_string(), "1|"),
        (r#"{"data":[{"a":1}]}"#.to_string(), "0|"),
        (document(r#""x":1,"data":[]}"#), "-"),
        (document(r#""data":[]}{"a":1}"#), "-"),
        (document(r#""data":{"a":[1]}}"#), "-"),
        (r#"{"meta":[{"name":"a","type":"UInt16"}],"data":[]}"#.to_string(), "-"),
        (r#"{"meta":[{"name":"z","type":"Foo"}],"data":[]}"#.to_string(), "-"),
        (r#"{"meta":[{"name":"a"}],"data":[]}"#.to_string(), "-"),
    ];
    let cases: Vec<_> = cases.iter().map(|(payload, expected)| (payload.as_str(), *expected)).collect();
    check("JSON", AB, &cases);
    let cases = [
        (document(arrays), "1|x 2|y"),
        (r#"{"meta":[{"name":"b","type":"String"}],"data":[["x"]]}"#.to_string(), "0|x"),
        (r#"{"meta":[],"data":[[]]}"#.to_string(), "-"),
        (arrays.to_string(), "-"),
    ];
    let cases: Vec<_> = cases.iter().map(|(payload, expected)| (payload.as_str(), *expected)).collect();
    check("JSONCompact", AB, &cases);
    let columns = document(r#""data":{"a":[1],"b":["x"]},"rows":1}"#);
    check("JSONColumnsWithMetadata", AB, &[(&columns, "1|x"), (r#"{"data":{"a":[1]}}"#, "-")]);
}

#[test]
fn an_object_may_have_rows_for_members() {
    let cases = [
        (r#"{"r1":{"a":1},"r\"2":{"b":"x"}}"#, "1| 0|x"),
        ("{}", ""),
        ("", "-"),
        (r#"{"r":{"a":1}"#, "-"),
        (r#"{"r":{"a":1}};"#, "-"),
        (r#"{"r":[1]}"#, "-"),
    ];
    check("JSONObjectEachRow", AB, &cases);
}

#[test]
fn a_single_string_takes_pieces_of_the_payload() {
    let cases = [("a\nb", "a b"), ("a\r\n\nb\n", r"a\r  b"), ("", ""), (";", ";")];
    check("LineAsString", &["a String"], &cases);
    check("RawBLOB", &["a= String"], &[("a\nb", r"a\nb"), ("", "-")]);
    let cases = [
        (r#"{"a":1}"#, r#"{\"a\":1}"#),
        ("{} , {\"a\" : 1}\n{}", r#"{} {\"a\" : 1} {}"#),
        (" [ {} , {} ] ;", "{} {}"),
        ("[]", ""),
        ("[1]", "-"),
        ("1", "-"),
        ("{};{}", "-"),
    ];
    check("JSONAsString", &["a String"], &cases);
    for format in ["LineAsString", "RawBLOB", "JSONAsString"] {
        for columns in [&["a String", "b String"][..], &["a FixedString(2)"], &["a UInt8"]] {
            check(format, columns, &[("{}", "-")]);
        }
    }
}

/// Returns for every format a payload of two rows for `WIDE`.
fn samples() -> Vec<(&'static str, String)> {
    let arrays = r#"[1,"x\n",[null,"y"]][2,"z",[]]"#;
    let strings = r#"["1","x\n","[NULL,'y']"]["2","z","[]"]"#;
    let objects = r#"{"a":1,"b":"x\n","c":[null,"y"]},{"a":2,"b":"z","c":[]}"#;
    let columns = r#"{"a":[1,2],"b":["x\n","z"],"c":[[null,"y"],[]]}"#;
    let names = r#"["a","b","c"]"#;
    let types = r#"["UInt8","String","Array(Nullable(String))"]"#;
    let meta = META.replace("],", r#",{"name":"c","type":"Array(Nullable(String))"}],"data":"#);
    vec![
        ("JSONEachRow", objects.to_string()),
        ("JSONStringsEachRow", r#"{"a":"1","b":"x\n","c":"[NULL,'y']"}{"a":"2","b":"z"}"#.to_string()),
        ("JSONCompactEachRow", arrays.to_string()),
        ("JSONCompactEachRowWithNames", format!("{names}{arrays}")),
        ("JSONCompactEachRowWithNamesAndTypes", format!("{names}{types}{arrays}")),
        ("JSONCompactStringsEachRow", strings.to_string()),
        ("JSONCompactStringsEachRowWithNames", format!("{names}{strings}")),
        ("JSONCompactStringsEachRowWithNamesAndTypes", format!("{names}{types}{strings}")),
        ("JSONObjectEachRow", format!("{{\"r\":{}}}", objects.replace("},{", "},\"s\":{"))),
        ("JSONColumns", columns.to_string()),
        ("JSONCompactColumns", r#"[[1,2],["x\n","z"],[[null,"y"],[]]]"#.to_string()),
        ("JSONColumnsWithMetadata", format!("{meta}{columns},\"rows\":2}}")),
        ("JSON", format!("{meta}[{objects}],\"rows\":2}}")),
        ("JSONCompact", format!("{meta}[{}],\"rows\":2}}", arrays.replace("][2", "],[2"))),
    ]
}

const WIDE: &[&str] = &["a UInt8", "b String", "c Array(Nullable(String))"];

#[test]
fn a_payload_cut_off_has_whole_rows_or_none() {
    let plan = plan(WIDE);
    let whole = ["1|x\\n|[NULL,y]", "2|z|[]"];
    for (format, payload) in samples() {
        assert_eq!(read_rows(format, &plan, &payload).as_deref(), Ok(&whole.map(String::from)[..]), "{format}");
        for length in (0..payload.len()).filter(|length| payload.is_char_boundary(*length)) {
            if let Ok(rows) = read_rows(format, &plan, &payload[..length]) {
                assert_eq!(rows, whole[..rows.len()], "{format} cut at {length}");
                assert!(rows.len() < 2, "{format} cut at {length}");
            }
        }
    }
}

#[test]
fn mutated_payloads_of_any_format_do_no_harm() {
    let plan = plan(WIDE);
    for (format, payload) in samples() {
        let reader = Format::named(format).unwrap().read;
        let mut taken = 0;
        for seed in 0..3_000 {
            let mutated = mutate(payload.as_bytes(), &mut fastrand::Rng::with_seed(seed));
            let outcome = std::panic::catch_unwind(|| rows(reader, &plan, &mutated).is_ok());
            taken +=
                usize::from(outcome.unwrap_or_else(|_| panic!("{format}, seed {seed}: {}", mutated.escape_ascii())));
        }
        assert!((50..2_950).contains(&taken), "{format}: {taken} of 3,000 mutations were read");
    }
}
