//! Reads a partition key as `system.tables` shows it.

use super::element::{Element, Function};
use crate::calendar::Unit;
use crate::expression::Expression;

const MAX_ELEMENTS: usize = 16;

pub(super) fn elements(expression: &str) -> Option<Vec<Element>> {
    let elements = match Expression::parse(expression)? {
        Expression::Tuple(elements) => elements,
        Expression::Call { function, arguments } if function == "tuple" => arguments,
        element => vec![element],
    };
    (elements.len() <= MAX_ELEMENTS).then_some(())?;
    elements.iter().map(element).collect()
}

fn element(expression: &Expression) -> Option<Element> {
    match expression {
        Expression::Column(column) => Some(Element { column: column.clone(), function: Function::Value }),
        Expression::Call { function, arguments } => call(function, arguments),
        _ => None,
    }
}

fn call(name: &str, arguments: &[Expression]) -> Option<Element> {
    let [Expression::Column(column), others @ ..] = arguments else { return None };
    let function = match (name, others) {
        ("intDiv", [divisor]) => Function::Quotient(divisor_of(divisor)?),
        ("modulo" | "moduloLegacy", [divisor]) => Function::Remainder(divisor_of(divisor)?),
        ("CAST", [Expression::Text(to)]) if to == "Date" || to == "Date32" => Function::calendar(Unit::Day),
        ("toStartOfInterval", [interval]) => Function::calendar(interval_unit(interval)?),
        (_, []) => Function::calendar(unit(name)?),
        (_, [Expression::Text(zone)]) => {
            // The second argument of a week is its mode.
            let unit = unit(name).filter(|unit| *unit != Unit::WeekFromSunday)?;
            Function::Calendar { unit, timezone: Some(zone.clone()) }
        }
        _ => return None,
    };
    Some(Element { column: column.clone(), function })
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

fn interval_unit(interval: &Expression) -> Option<Unit> {
    let Expression::Call { function, arguments } = interval else { return None };
    (arguments[..] == [Expression::Number(1)]).then_some(())?;
    Some(match function.as_str() {
        "toIntervalHour" => Unit::Hour,
        "toIntervalDay" => Unit::Day,
        "toIntervalWeek" => Unit::WeekFromMonday,
        "toIntervalMonth" => Unit::Month,
        "toIntervalQuarter" => Unit::Quarter,
        "toIntervalYear" => Unit::Year,
        _ => return None,
    })
}

fn divisor_of(expression: &Expression) -> Option<i64> {
    let Expression::Number(number) = expression else { return None };
    i64::try_from(*number).ok().filter(|divisor| *divisor > 0)
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
