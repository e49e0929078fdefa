//! Time, BFloat16, intervals, geometry, and types under other names.

use crate::support::{check, json_value, sql_value};

#[test]
fn times_of_day_go_far_in_both_directions() {
    check(json_value, "Time", &[("\"12:34:56\"", "45296"), ("\"1:02:03\"", "3723"), ("\"-999:59:59\"", "-3599999")]);
    check(json_value, "Time", &[("12", "12"), ("-5", "-5"), ("3600000", "-"), ("\"12\"", "-"), ("12.5", "-")]);
    check(json_value, "Time", &[("\"12:60:00\"", "-"), ("\"12:34\"", "-"), ("\"12:34:56.5\"", "-"), ("null", "0")]);
    check(json_value, "Time64(3)", &[("\"12:34:56.7891\"", "45296789"), ("\"-0:00:00.5\"", "-500"), ("12", "12")]);
    check(json_value, "Time64(3)", &[("\"999:59:59.999\"", "3599999999"), ("3599999999", "3599999999")]);
    check(json_value, "Time64(3)", &[("3600000000", "-"), ("-3600000000", "-"), ("\"1000:00:00\"", "-")]);
    check(json_value, "Map(Time, Array(Time64(0)))", &[("{\"0:00:01\":[\"0:00:02\"]}", "[1:[2]]")]);
    check(sql_value, "Time", &[("'12:34:56'", "45296"), ("12", "12"), ("12.5", "-"), ("'12'", "-")]);
    check(sql_value, "Array(Time64(2))", &[("['-12:34:56.78', 5]", "[-4529678,5]")]);
}

#[test]
fn half_floats_are_cut_not_rounded() {
    let cases =
        [("1", "1.0"), ("0.3", "0.29882813"), ("1.01171875", "1.0078125"), ("\"-1.5\"", "-1.5"), ("true", "1.0")];
    check(json_value, "BFloat16", &cases);
    check(json_value, "BFloat16", &[("1.0078124403953552246093749", "1.0"), ("1e39", "-"), ("\"-inf\"", "-inf")]);
    check(sql_value, "BFloat16", &[("0.3", "0.29882813"), ("1.0078124999999999", "1.0078125")]);
}

#[test]
fn intervals_are_integers() {
    let cases = [("1", "1"), ("\"-7\"", "-7"), ("9223372036854775808", "-"), ("1.5", "-"), ("null", "0")];
    check(json_value, "IntervalSecond", &cases);
    check(sql_value, "IntervalYear", &[("-5", "-5"), ("INTERVAL 1 YEAR", "-")]);
}

#[test]
fn other_names_mean_the_same_values() {
    check(json_value, "Point", &[("[1,\"2.5\"]", "(1.0,2.5)"), ("{\"x\":1}", "-")]);
    check(json_value, "Polygon", &[("[[[1,2],[3,4]],[]]", "[[(1.0,2.0),(3.0,4.0)],[]]")]);
    check(sql_value, "Ring", &[("[(1,2),(3,4)]", "[(1.0,2.0),(3.0,4.0)]")]);
    check(json_value, "Nested(a UInt8, b String)", &[("[{\"a\":1,\"b\":\"x\"},{}]", "[(1,x),(0,)]")]);
    check(json_value, "SimpleAggregateFunction(sum, UInt64)", &[("5", "5")]);
    check(json_value, "SimpleAggregateFunction(anyLast, Nullable(String))", &[("null", "NULL"), ("\"x\"", "x")]);
}

#[test]
fn a_tuple_may_be_null_as_a_whole() {
    let cases = [("null", "NULL"), ("{\"a\":1,\"b\":\"x\"}", "(1,x)"), ("{\"a\":null}", "(0,)")];
    check(json_value, "Nullable(Tuple(a UInt8, b String))", &cases);
    check(sql_value, "Nullable(Tuple(UInt8, String))", &[("NULL", "NULL"), ("(1,'a')", "(1,a)")]);
}

#[test]
fn of_a_variant_only_null_is_read_from_text() {
    check(json_value, "Variant(UInt8, String)", &[("null", "NULL"), ("1", "-"), ("\"a\"", "-")]);
    check(json_value, "Array(Variant(UInt8, Array(Geometry)))", &[("[null,null]", "[NULL,NULL]"), ("[]", "[]")]);
}
