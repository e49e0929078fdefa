//! Reads a sharding key into the tree that is evaluated.

use super::arithmetic::{Division, Operation};
use super::hash::Algorithm;
use super::integer::Integer;
use super::Kind;
use crate::expression::Expression;
use crate::types::DataType;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Node {
    Column(String),
    Number(i128),
    Text(String),
    Tuple(Vec<Node>),
    Hash(Algorithm, Vec<Node>),
    IntHash32(Box<Node>),
    IntHash64(Box<Node>),
    Operation(Operation, Box<[Node; 2]>),
    Negate(Box<Node>),
    /// A division by a number that is not 0.
    Division(Division, Box<Node>, u64),
    Number64(Integer, Box<Node>),
    Decimal(Box<Node>),
    Calendar {
        part: DatePart,
        moment: Box<Node>,
        timezone: Option<String>,
    },
    UnixTime(Box<Node>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum DatePart {
    Date,
    YearMonthDay,
    YearMonth,
    Year,
    Month,
    DayOfMonth,
}

pub(super) fn parse(expression: &str) -> Option<Kind> {
    let expression = Expression::parse(expression)?;
    if let Expression::Call { function, arguments } = &expression {
        // The argument is there to tell two calls apart.
        let is_random = matches!(function.as_str(), "rand" | "rand32" | "rand64");
        if is_random && matches!(arguments[..], [] | [Expression::Column(_) | Expression::Number(_)]) {
            return Some(Kind::Random);
        }
    }
    let node = node(&expression)?;
    let mut columns = Vec::new();
    node.note_columns(&mut columns);
    (!columns.is_empty()).then_some(Kind::Of(node))
}

fn node(expression: &Expression) -> Option<Node> {
    Some(match expression {
        Expression::Column(name) => Node::Column(name.clone()),
        Expression::Number(number) => Node::Number(*number),
        Expression::Text(text) => Node::Text(text.clone()),
        Expression::Tuple(elements) => Node::Tuple(nodes(elements)?),
        Expression::Call { function, arguments } => call(function, arguments)?,
    })
}

fn nodes(expressions: &[Expression]) -> Option<Vec<Node>> {
    expressions.iter().map(node).collect()
}

fn call(function: &str, arguments: &[Expression]) -> Option<Node> {
    if arguments.is_empty() {
        return None;
    }
    if function == "tuple" {
        return Some(Node::Tuple(nodes(arguments)?));
    }
    if let Some(algorithm) = Algorithm::of_function(function) {
        return Some(Node::Hash(algorithm, nodes(arguments)?));
    }
    if let Some(operation) = Operation::of_function(function) {
        let operands: Box<[Node; 2]> = Box::new(nodes(arguments)?.try_into().ok()?);
        return Some(Node::Operation(operation, operands));
    }
    let [first, others @ ..] = arguments else { return None };
    let first = Box::new(node(first)?);
    if let Some(part) = date_part(function) {
        let timezone = match others {
            [] => None,
            [Expression::Text(timezone)] => Some(timezone.clone()),
            _ => return None,
        };
        return Some(Node::Calendar { part, moment: first, timezone });
    }
    if let Some(division) = Division::of_function(function) {
        let [Expression::Number(divisor)] = others else { return None };
        let divisor = u64::try_from(*divisor).ok().filter(|divisor| *divisor > 0)?;
        return Some(Node::Division(division, first, divisor));
    }
    Some(match (function, others) {
        ("intHash32", []) => Node::IntHash32(first),
        ("intHash64", []) => Node::IntHash64(first),
        ("negate", []) => Node::Negate(first),
        ("toString", []) => Node::Decimal(first),
        ("toUnixTimestamp", []) => Node::UnixTime(first),
        ("CAST", [Expression::Text(to)]) => Node::Number64(integer(to)?, first),
        (_, []) => Node::Number64(integer(function.strip_prefix("to")?)?, first),
        _ => return None,
    })
}

/// Returns the integer type of a name: `UInt8` and so on, by no other names.
fn integer(name: &str) -> Option<Integer> {
    use DataType::*;
    [UInt8, UInt16, UInt32, UInt64, Int8, Int16, Int32, Int64]
        .into_iter()
        .find(|data_type| data_type.to_string() == name)
        .and_then(|data_type| Integer::stored(&data_type))
}

fn date_part(function: &str) -> Option<DatePart> {
    Some(match function {
        "toDate" => DatePart::Date,
        "toYYYYMMDD" => DatePart::YearMonthDay,
        "toYYYYMM" => DatePart::YearMonth,
        "toYear" => DatePart::Year,
        "toMonth" => DatePart::Month,
        "toDayOfMonth" => DatePart::DayOfMonth,
        _ => return None,
    })
}

impl Node {
    pub(super) fn note_columns<'a>(&'a self, names: &mut Vec<&'a str>) {
        match self {
            Node::Column(name) => names.push(name),
            Node::Number(_) | Node::Text(_) => {}
            Node::Tuple(inner) | Node::Hash(_, inner) => inner.iter().for_each(|node| node.note_columns(names)),
            Node::Operation(_, operands) => operands.iter().for_each(|node| node.note_columns(names)),
            Node::IntHash32(inner)
            | Node::IntHash64(inner)
            | Node::Negate(inner)
            | Node::Division(_, inner, _)
            | Node::Number64(_, inner)
            | Node::Decimal(inner)
            | Node::Calendar { moment: inner, .. }
            | Node::UnixTime(inner) => inner.note_columns(names),
        }
    }
}
