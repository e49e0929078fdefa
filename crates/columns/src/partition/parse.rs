//! Reads a partition key as `system.tables` shows it: ClickHouse's own formatting, so spaces and quotes are where it
//! puts them, and what is written otherwise is not understood.

use super::calendar::Unit;
use super::element::{Element, Function};

const MAX_LENGTH: usize = 4096;
const MAX_ELEMENTS: usize = 16;

pub(super) fn elements(expression: &str) -> Option<Vec<Element>> {
    if expression.len() > MAX_LENGTH {
        return None;
    }
    let inner = expression.strip_prefix("tuple").unwrap_or(expression);
    match inner.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')) {
        Some(inner) => split(inner)?.into_iter().map(element).collect(),
        None => Some(vec![element(expression)?]),
    }
}

fn element(text: &str) -> Option<Element> {
    if let Some(column) = identifier(text) {
        return Some(Element { column, function: Function::Value });
    }
    if let Some((column, divisor)) = text.rsplit_once(" % ") {
        return Some(Element { column: identifier(column)?, function: Function::Remainder(divisor_of(divisor)?) });
    }
    let (name, arguments) = text.strip_suffix(')')?.split_once('(')?;
    call(name, &split(arguments)?)
}

fn call(name: &str, arguments: &[&str]) -> Option<Element> {
    let (column, function) = match (name, arguments) {
        ("intDiv", [column, divisor]) => (column, Function::Quotient(divisor_of(divisor)?)),
        ("modulo" | "moduloLegacy", [column, divisor]) => (column, Function::Remainder(divisor_of(divisor)?)),
        ("CAST", [column, "'Date'" | "'Date32'"]) => (column, Function::calendar(Unit::Day)),
        ("toStartOfInterval", [column, interval]) => (column, Function::calendar(interval_unit(interval)?)),
        (_, [column]) => (column, Function::calendar(unit(name)?)),
        (_, [column, zone]) => {
            // The second argument of a week is its mode.
            let unit = unit(name).filter(|unit| *unit != Unit::WeekFromSunday)?;
            (column, Function::Calendar { unit, timezone: Some(quoted(zone)?) })
        }
        _ => return None,
    };
    Some(Element { column: identifier(column)?, function })
}

fn unit(function: &str) -> Option<Unit> {
    Some(match function {
        "toStartOfHour" => Unit::Hour,
        "toDate" | "toDate32" | "DATE" | "toStartOfDay" | "toYYYYMMDD" => Unit::Day,
        "toMonday" => Unit::WeekFromMonday,
        "toStartOfWeek" => Unit::WeekFromSunday,
        "toYYYYMM" | "toStartOfMonth" => Unit::Month,
        "toStartOfQuarter" => Unit::Quarter,
        "toYear" | "toStartOfYear" => Unit::Year,
        "toMonth" => Unit::MonthOfYear,
        "toDayOfMonth" => Unit::DayOfMonth,
        "toDayOfWeek" => Unit::DayOfWeek,
        _ => return None,
    })
}

fn interval_unit(interval: &str) -> Option<Unit> {
    Some(match interval {
        "toIntervalHour(1)" => Unit::Hour,
        "toIntervalDay(1)" => Unit::Day,
        "toIntervalWeek(1)" => Unit::WeekFromMonday,
        "toIntervalMonth(1)" => Unit::Month,
        "toIntervalQuarter(1)" => Unit::Quarter,
        "toIntervalYear(1)" => Unit::Year,
        _ => return None,
    })
}

fn divisor_of(text: &str) -> Option<i64> {
    text.parse().ok().filter(|divisor| *divisor > 0)
}

/// A text in quotes without anything that would have to be escaped.
fn quoted(text: &str) -> Option<String> {
    let inner = text.strip_prefix('\'')?.strip_suffix('\'')?;
    (!inner.contains(['\\', '\''])).then(|| inner.to_owned())
}

fn identifier(text: &str) -> Option<String> {
    if let Some(inner) = text.strip_prefix('`').and_then(|inner| inner.strip_suffix('`')) {
        return (!inner.is_empty() && !inner.contains(['`', '\\'])).then(|| inner.to_owned());
    }
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let starts_a_name = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    (starts_a_name && text.chars().all(is_word)).then(|| text.to_owned())
}

/// Cuts a list at the commas that are in no parentheses and no quotes.
fn split(list: &str) -> Option<Vec<&str>> {
    if list.is_empty() {
        return Some(Vec::new());
    }
    let (mut parts, mut start, mut depth, mut quote) = (Vec::new(), 0, 0u32, None);
    for (at, byte) in list.bytes().enumerate() {
        match (quote, byte) {
            (_, b'\\') => return None,
            (Some(open), _) => quote = Some(open).filter(|_| byte != open),
            (None, b'\'' | b'`') => quote = Some(byte),
            (None, b'(') => depth += 1,
            (None, b')') => depth = depth.checked_sub(1)?,
            (None, b',') if depth == 0 => {
                parts.push(list[start..at].trim_start());
                start = at + 1;
            }
            (None, _) => {}
        }
    }
    parts.push(list[start..].trim_start());
    (depth == 0 && quote.is_none() && parts.len() <= MAX_ELEMENTS).then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(column: &str) -> Element {
        Element { column: column.into(), function: Function::Value }
    }

    fn calendar(column: &str, unit: Unit) -> Element {
        Element { column: column.into(), function: Function::calendar(unit) }
    }

    #[test]
    fn common_keys_are_understood() {
        for (text, expected) in [
            ("toYYYYMM(ts)", vec![calendar("ts", Unit::Month)]),
            ("(a, toYYYYMM(ts))", vec![value("a"), calendar("ts", Unit::Month)]),
            ("tuple(a)", vec![value("a")]),
            ("(a)", vec![value("a")]),
            ("`odd, name`", vec![value("odd, name")]),
            ("(`odd, name`, toMonday(ts))", vec![value("odd, name"), calendar("ts", Unit::WeekFromMonday)]),
            ("a % 10", vec![Element { column: "a".into(), function: Function::Remainder(10) }]),
            ("intDiv(a, 8)", vec![Element { column: "a".into(), function: Function::Quotient(8) }]),
            ("toStartOfInterval(ts, toIntervalDay(1))", vec![calendar("ts", Unit::Day)]),
            ("CAST(ts, 'Date')", vec![calendar("ts", Unit::Day)]),
        ] {
            assert_eq!(elements(text), Some(expected), "{text}");
        }
        let tokyo = Function::Calendar { unit: Unit::Month, timezone: Some("Asia/Tokyo".into()) };
        let key = elements("toYYYYMM(ts, 'Asia/Tokyo')");
        assert_eq!(key, Some(vec![Element { column: "ts".into(), function: tokyo }]));
        assert_eq!(elements("tuple()"), Some(vec![]));
    }

    #[test]
    fn other_keys_are_not_guessed() {
        for text in [
            "",
            "a * 2",
            "a % 0",
            "a % b",
            "intDiv(a, -1)",
            "cityHash64(s) % 16",
            "toStartOfWeek(ts, 1)",
            "lower(s)",
            "toStartOfInterval(ts, toIntervalDay(2))",
            "(a, b * 2)",
            "`a",
            "a`",
            "toYYYYMM(toDateTime(a))",
            "(a",
            "a)",
            "((a, b), c)",
            "-a",
            "7",
            "a, b",
            "t.a",
            "toYYYYMM(ts, 'x\\'y')",
            "toYYYYMM()",
            "()()",
        ] {
            assert_eq!(elements(text), None, "{text}");
        }
        assert_eq!(elements(&"a".repeat(5000)), None);
    }

    #[test]
    fn no_cut_of_a_key_is_a_danger() {
        let whole =
            "(`a, b`, toYYYYMM(ts, 'Asia/Tokyo'), intDiv(c, 8), d % 4, toStartOfInterval(ts, toIntervalDay(1)))";
        assert!(elements(whole).is_some());
        for at in 1..whole.len() {
            assert_eq!(elements(&whole[..at]), None, "{}", &whole[..at]);
            elements(&whole[at..]);
        }
    }
}
