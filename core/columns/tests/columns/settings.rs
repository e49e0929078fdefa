use windrow_columns::{read_json_each_row, NotParsedReason, ReadPlan, ReadSettings, SettingEffect, ZoneChange};

use crate::support::{columns, rows, settings};

fn read(settings: ReadSettings, column: &str, payload: &str) -> Result<Vec<String>, NotParsedReason> {
    let plan = ReadPlan::new(columns(&[column]), settings);
    rows(read_json_each_row, &plan, payload.as_bytes()).map_err(|not_parsed| not_parsed.reason)
}

fn with(name: &str, value: &str) -> ReadSettings {
    let mut settings = settings();
    assert_eq!(settings.set(name, value), SettingEffect::Applied, "{name} = {value}");
    settings
}

#[test]
fn unknown_fields_can_be_forbidden() {
    let payload = r#"{"a":1,"b":2}"#;
    assert_eq!(read(with("input_format_skip_unknown_fields", "1"), "a UInt8", payload), Ok(vec!["1".into()]));
    let forbidden = read(with("input_format_skip_unknown_fields", "0"), "a UInt8", payload);
    assert_eq!(forbidden, Err(NotParsedReason::UnknownField));
}

#[test]
fn null_can_be_forbidden_where_the_type_has_none() {
    let strict = || with("input_format_null_as_default", "0");
    assert_eq!(read(strict(), "a UInt8", r#"{"a":null}"#), Err(NotParsedReason::Null));
    assert_eq!(read(strict(), "a Array(UInt8)", r#"{"a":[null]}"#), Err(NotParsedReason::Null));
    assert_eq!(read(strict(), "a Nullable(UInt8)", r#"{"a":null}"#), Ok(vec!["NULL".into()]));
}

#[test]
fn basic_times_are_only_the_plain_spelling() {
    let basic = || with("date_time_input_format", "basic");
    let plain = r#"{"a":"2024-01-02 03:04:05"}"#;
    assert_eq!(read(basic(), "a DateTime", plain), Ok(vec!["1704164645".into()]));
    assert_eq!(read(basic(), "a DateTime64(1)", r#"{"a":"2024-01-02 03:04:05.5"}"#), Ok(vec!["17041646455".into()]));
    for text in ["2024-01-02T03:04:05", "2024-01-02 03:04:05Z", "2024-01-02", "1704164645", "2024-01-02 03:04:05.5"] {
        let payload = format!("{{\"a\":\"{text}\"}}");
        assert_eq!(read(basic(), "a DateTime", &payload), Err(NotParsedReason::Setting), "{text}");
        assert!(read(settings(), "a DateTime", &payload).is_ok(), "{text}");
    }
}

#[test]
fn times_without_a_zone_need_the_servers() {
    let payload = r#"{"a":"2024-01-02 03:04:05"}"#;
    assert_eq!(read(ReadSettings::default(), "a DateTime", payload), Err(NotParsedReason::TimeZone));
    assert_eq!(read(ReadSettings::default(), "a DateTime('UTC')", payload), Ok(vec!["1704164645".into()]));
    let mut tokyo = ReadSettings::default();
    tokyo.set_server_timezone("Asia/Tokyo");
    assert_eq!(read(tokyo, "a DateTime", payload), Ok(vec!["1704132245".into()]));
    assert_eq!(read(with("session_timezone", "Asia/Tokyo"), "a DateTime", payload), Err(NotParsedReason::TimeZone));
    assert_eq!(read(with("session_timezone", ""), "a DateTime", payload), Ok(vec!["1704164645".into()]));
}

#[test]
fn a_zone_can_be_told_by_the_server() {
    let payload = r#"{"a":"2024-01-02 03:04:05"}"#;
    let column = "a DateTime('Africa/Casablanca')";
    assert_eq!(read(settings(), column, payload), Err(NotParsedReason::TimeZone));
    let mut told = settings();
    told.set_zone("Africa/Casablanca", &[ZoneChange { utc_second: 0, offset_seconds: 3600 }], 4_000_000_000);
    assert_eq!(read(told, column, payload), Ok(vec!["1704161045".into()]));
}

#[test]
fn numbers_for_fine_times_depend_on_the_version() {
    let payload = r#"{"a":1704164645123}"#;
    let version = |major, minor| {
        let mut settings = settings();
        settings.set_server_version(major, minor);
        settings
    };
    let ticks = Ok(vec!["1704164645123".to_string()]);
    assert_eq!(read(version(26, 7), "a DateTime64(3)", payload), ticks);
    assert_eq!(read(version(24, 12), "a DateTime64(3)", payload), ticks);
    assert_eq!(read(version(26, 8), "a DateTime64(3)", payload), Err(NotParsedReason::Setting));
    assert_eq!(read(version(27, 1), "a DateTime64(3)", payload), Err(NotParsedReason::Setting));
    let mut raw = version(26, 9);
    raw.set("input_format_read_datetime_number_as_raw_value", "1");
    assert_eq!(read(raw, "a DateTime64(3)", payload), ticks);
}

#[test]
fn imprecise_floats_are_not_read() {
    let imprecise = || with("precise_float_parsing", "0");
    assert_eq!(read(imprecise(), "a Array(Float64)", r#"{"a":[1.5]}"#), Err(NotParsedReason::Setting));
    assert_eq!(read(imprecise(), "a UInt8", r#"{"a":1}"#), Ok(vec!["1".into()]));
}

#[test]
fn objects_may_be_nested_structures() {
    let read = |names: &[&str], payload: &str| {
        let plan = ReadPlan::new(columns(names), with("input_format_import_nested_json", "1"));
        rows(read_json_each_row, &plan, payload.as_bytes()).map_err(|not_parsed| not_parsed.reason)
    };
    let names = ["n.a Array(UInt8)", "n.b Array(String)", "x UInt8", "m.c.d UInt8"];
    let nested = r#"{"n":{"a":[1],"zz":{},"b":["x"]},"x":5,"m":{"c.d":7}}{"n.a":[2],"n":{"b":["y"]}}"#;
    assert_eq!(read(&names, nested), Ok(vec!["[1]|[x]|5|7".into(), "[2]|[y]|0|0".into()]));
    assert_eq!(read(&names, r#"{"n":null}"#), Err(NotParsedReason::Syntax));
    assert_eq!(read(&names, r#"{"N":{}}"#), Err(NotParsedReason::UnknownField));
    assert_eq!(read(&names, r#"{"n":{"A":[1]}}"#), Err(NotParsedReason::UnknownField));
    assert_eq!(read(&names, r#"{"n":{"a":[1],"a":[1]}}"#), Err(NotParsedReason::DuplicateField));
    assert_eq!(read(&["n UInt8", "n.a UInt8"], r#"{"n.a":1}"#), Err(NotParsedReason::Setting));
    assert_eq!(read(&["n Tuple(a UInt8)"], r#"{"n":{"a":1}}"#), Ok(vec!["(1)".into()]));
}

#[test]
fn strings_may_take_nothing_but_strings() {
    let cases = [
        ("input_format_json_read_numbers_as_strings", "-1.5"),
        ("input_format_json_read_bools_as_strings", "true"),
        ("input_format_json_read_arrays_as_strings", "[1]"),
        ("input_format_json_read_objects_as_strings", "{}"),
    ];
    for (name, forbidden) in cases {
        for (_, value) in cases {
            let payload = format!("{{\"a\":{value}}}");
            let expected = if value == forbidden { Err(NotParsedReason::Setting) } else { Ok(vec![value.to_string()]) };
            assert_eq!(read(with(name, "0"), "a String", &payload), expected, "{name}: {value}");
        }
    }
    let bools = || with("input_format_json_read_bools_as_numbers", "0");
    assert_eq!(read(bools(), "a UInt8", r#"{"a":true}"#), Err(NotParsedReason::Setting));
    assert_eq!(read(bools(), "a Bool", r#"{"a":true}"#), Ok(vec!["1".into()]));
}

#[test]
fn a_refused_setting_stays_refused() {
    let mut refused = settings();
    assert_eq!(refused.set("input_format_json_map_as_array_of_tuples", "1"), SettingEffect::NotParsed);
    assert_eq!(read(refused, "a UInt8", r#"{"a":1}"#), Err(NotParsedReason::Setting));
}
