use windrow_columns::{read_json_each_row, read_values, DefaultKind, NotParsedReason, ReadPlan};

use crate::support::{columns, plan, rows, settings, Reader};

fn outcome(reader: Reader, plan: &ReadPlan, payload: &str) -> Result<(Vec<usize>, Vec<String>), NotParsedReason> {
    let parsed = reader(payload.as_bytes(), plan).map_err(|not_parsed| not_parsed.reason)?;
    let rows = rows(reader, plan, payload.as_bytes()).map_err(|not_parsed| not_parsed.reason)?;
    Ok((parsed.present.iter().collect(), rows))
}

#[test]
fn a_column_that_nobody_gives_is_left_to_its_default_expression() {
    let plan = plan(&["a UInt8", "b= UInt8", "c= Nullable(UInt8)", "d String"]);
    let json = |payload: &str| outcome(read_json_each_row, &plan, payload);
    assert_eq!(json(r#"{"a":1}{"a":2,"d":"x"}"#), Ok((vec![0, 3], vec!["1|".into(), "2|x".into()])));
    assert_eq!(json(r#"{"a":1,"b":5}"#), Ok((vec![0, 1, 3], vec!["1|5|".into()])));
    // NULL is a value for the one and a wish for the default for the other.
    assert_eq!(json(r#"{"a":1,"b":null,"c":null}"#), Ok((vec![0, 2, 3], vec!["1|NULL|".into()])));
    assert_eq!(json(""), Ok((vec![0, 1, 2, 3], vec![])));
    let values = |payload: &str| outcome(read_values, &plan, payload);
    assert_eq!(values("(1,DEFAULT,default,'x')"), Ok((vec![0, 3], vec!["1|x".into()])));
    assert_eq!(values("(1,NULL,NULL,NULL)"), Ok((vec![0, 2, 3], vec!["1|NULL|".into()])));
}

#[test]
fn rows_that_disagree_are_left_to_clickhouse() {
    let plan = plan(&["a UInt8", "b= UInt8"]);
    for payload in [r#"{"a":1}{"b":2}"#, r#"{"b":2}{"a":1}"#, r#"{"b":2}{"b":null}"#, r#"{"b":null}{"b":2}"#] {
        assert_eq!(outcome(read_json_each_row, &plan, payload), Err(NotParsedReason::MixedDefaults), "{payload}");
    }
    for payload in ["(1,DEFAULT),(1,2)", "(1,2),(1,DEFAULT)", "(1,NULL),(1,2)"] {
        assert_eq!(outcome(read_values, &plan, payload), Err(NotParsedReason::MixedDefaults), "{payload}");
    }
    assert_eq!(outcome(read_values, &plan, "(1,DEFAULT),(1,NULL)"), Ok((vec![0], vec!["1".into(), "1".into()])));
}

#[test]
fn types_have_their_own_defaults() {
    let columns = [
        "x UInt8",
        "i Int256",
        "f Float64",
        "s String",
        "fs FixedString(2)",
        "d Date",
        "d32 Date32",
        "dt DateTime",
        "u UUID",
        "ip IPv6",
        "e Enum8('b' = 5, 'a' = 2)",
        "n Nullable(Enum8('b' = 5))",
        "arr Array(UInt8)",
        "m Map(String, UInt8)",
        "t Tuple(p UInt8, q Enum16('z' = 5, 'w' = 3))",
        "lc LowCardinality(String)",
    ];
    let expected = format!("1|{}|0.0||\\x00\\x00|0|0|0|{}|::|2|NULL|[]|[]|(0,3)|", "0".repeat(64), "0".repeat(32));
    let (_, rows) = outcome(read_json_each_row, &plan(&columns), r#"{"x":1}"#).unwrap();
    assert_eq!(rows, [expected]);
}

#[test]
fn nested_columns_have_arrays_of_one_length() {
    let nested = plan(&["id UInt8", "n.a Array(UInt8)", "n.b Array(String)", "m.a Array(UInt8)", "n.c String"]);
    let json = |payload: &str| outcome(read_json_each_row, &nested, payload).map(|(_, rows)| rows);
    assert_eq!(json(r#"{"id":1,"n.a":[1,2],"n.b":["x","y"],"m.a":[1]}"#).unwrap(), ["1|[1,2]|[x,y]|[1]|"]);
    assert_eq!(json(r#"{"id":1}"#).unwrap(), ["1|[]|[]|[]|"]);
    assert_eq!(json(r#"{"id":1,"n.a":[1,2]}"#), Err(NotParsedReason::Value));
    assert_eq!(json(r#"{"n.a":[1],"n.b":["x"]}{"n.a":[1,2],"n.b":[]}"#), Err(NotParsedReason::Value));
}

#[test]
fn columns_that_are_computed_are_not_read() {
    for kind in [DefaultKind::Materialized, DefaultKind::Alias, DefaultKind::Ephemeral] {
        let mut columns = columns(&["a UInt8", "b UInt8"]);
        columns[1].default_kind = kind;
        let plan = ReadPlan::new(columns, settings());
        assert_eq!(outcome(read_json_each_row, &plan, r#"{"a":1}"#), Err(NotParsedReason::ColumnKind));
        assert_eq!(outcome(read_values, &plan, ""), Err(NotParsedReason::ColumnKind));
    }
}

#[test]
fn a_plan_needs_columns_that_can_be_told_apart() {
    for columns in [columns(&[]), columns(&["a UInt8", "a UInt8"])] {
        let plan = ReadPlan::new(columns, settings());
        assert_eq!(outcome(read_json_each_row, &plan, ""), Err(NotParsedReason::ColumnKind));
    }
}

#[test]
fn what_is_left_out_is_bounded() {
    let wide = plan(&["a UInt8", "wide FixedString(100000)"]);
    assert!(read_json_each_row("{}".repeat(10).as_bytes(), &wide).is_ok());
    assert!(read_json_each_row("{}".repeat(11).as_bytes(), &wide).is_err());
    let columns: Vec<String> = (0..500).map(|at| format!("c{at} Int64")).collect();
    let many = plan(&columns.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(read_json_each_row("{}\n".repeat(200).as_bytes(), &many).is_ok());
    assert!(read_json_each_row("{}\n".repeat(15_000).as_bytes(), &many).is_err());
    assert!(read_json_each_row(format!("{{}}{}\n", " ".repeat(250)).repeat(1_500).as_bytes(), &many).is_ok());
}
