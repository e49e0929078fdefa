//! Evaluates a sharding key on a block. `None` anywhere means that it isn't sure what ClickHouse would make
//! of the key.

use super::hash::Algorithm;
use super::integer::Integer;
use super::key::{DatePart, Node};
use super::values::Values;
use crate::block::Block;
use crate::calendar::{Date, DAY_SECONDS};
use crate::types::DataType;
use crate::view::Layout;

pub(super) struct Input<'a, N> {
    pub(super) names: &'a [N],
    pub(super) types: &'a [DataType],
    pub(super) block: &'a Block,
    pub(super) server_timezone: &'a str,
}

/// The days of a Date32: from 1900 to 2299. For other numbers ClickHouse takes the nearest day, or none.
const DATE32_DAYS: std::ops::RangeInclusive<i64> = -25_567..=120_529;

impl<'a, N: AsRef<str>> Input<'a, N> {
    pub(super) fn evaluate(&self, node: &'a Node) -> Option<Values<'a>> {
        Some(match node {
            Node::Column(name) => self.column(name)?,
            Node::Number(number) => {
                Values::Numbers(Integer::of_literal(*number), vec![*number as u64; self.block.rows()])
            }
            Node::Text(text) => Values::Text(text),
            Node::Tuple(elements) => Values::Tuple(self.evaluate_all(elements)?),
            Node::Hash(algorithm, arguments) => self.hash(*algorithm, arguments)?,
            Node::IntHash32(inner) => {
                let hashes = self.hashable_numbers(inner)?.into_iter().map(windrow_compression::hash::int_hash32);
                Values::Numbers(Integer::unsigned(4), hashes.map(u64::from).collect())
            }
            Node::IntHash64(inner) => {
                let hashes = self.hashable_numbers(inner)?.into_iter().map(windrow_compression::hash::int_hash64);
                Values::Numbers(Integer::unsigned(8), hashes.collect())
            }
            Node::Operation(operation, operands) => {
                let [one, other] = &**operands;
                let (one, mut numbers) = self.evaluate(one)?.into_numbers()?;
                let (other, others) = self.evaluate(other)?.into_numbers()?;
                let result = operation.result(one, other);
                for (number, other) in numbers.iter_mut().zip(others) {
                    *number = result.wrap(operation.apply(*number, other));
                }
                Values::Numbers(result, numbers)
            }
            Node::Negate(inner) => {
                let (integer, mut numbers) = self.evaluate(inner)?.into_numbers()?;
                let result = match integer.is_signed {
                    true => integer,
                    false => Integer { is_signed: true, ..integer.wider() },
                };
                numbers.iter_mut().for_each(|number| *number = result.wrap(number.wrapping_neg()));
                Values::Numbers(result, numbers)
            }
            Node::Division(division, inner, divisor) => {
                let (integer, mut numbers) = self.evaluate(inner)?.into_numbers()?;
                let result = division.result(integer, *divisor)?;
                numbers.iter_mut().for_each(|number| *number = division.apply(integer, *number, *divisor));
                Values::Numbers(result, numbers)
            }
            Node::Number64(integer, inner) => {
                let (_, mut numbers) = self.not_of(inner, |of| *of == DataType::Ipv4)?.into_stored()?;
                numbers.iter_mut().for_each(|number| *number = integer.wrap(*number));
                Values::Numbers(*integer, numbers)
            }
            Node::Decimal(inner) => self.texts(inner)?,
            Node::Calendar { part, moment, timezone } => self.date_part(*part, moment, timezone.as_deref())?,
            Node::UnixTime(inner) => match self.evaluate(inner)? {
                Values::Fixed { data_type: DataType::DateTime { .. }, data, .. } => {
                    Values::Numbers(Integer::unsigned(4), Integer::unsigned(4).decode(data))
                }
                _ => return None,
            },
        })
    }

    fn evaluate_all(&self, nodes: &'a [Node]) -> Option<Vec<Values<'a>>> {
        nodes.iter().map(|node| self.evaluate(node)).collect()
    }

    fn column(&self, name: &str) -> Option<Values<'a>> {
        let at = self.names.iter().position(|known| known.as_ref() == name)?;
        let data_type = match self.types.get(at)? {
            DataType::LowCardinality(inner) => inner,
            plain => plain,
        };
        Some(match self.block.column(at)?.layout() {
            Layout::Fixed { width, data } if data_type.fixed_width() == Some(width) => {
                Values::Fixed { data_type, width, data }
            }
            Layout::Strings(strings) if *data_type == DataType::String => Values::Strings(strings),
            _ => return None,
        })
    }

    fn hash(&self, algorithm: Algorithm, arguments: &'a [Node]) -> Option<Values<'a>> {
        let mut hashes = vec![0; self.block.rows()];
        let mut is_first = true;
        for argument in arguments {
            algorithm.mix(&self.evaluate(argument)?, &mut hashes, &mut is_first)?;
        }
        Some(Values::Numbers(algorithm.result(), hashes))
    }

    /// Returns the numbers that `intHash32` and `intHash64` take. An Enum is none of them.
    fn hashable_numbers(&self, node: &'a Node) -> Option<Vec<u64>> {
        let values = self.not_of(node, |of| matches!(of, DataType::Enum8(_) | DataType::Enum16(_)))?;
        Some(values.into_stored()?.1)
    }

    /// Returns values that are not a column's of some types.
    fn not_of(&self, node: &'a Node, without: impl Fn(&DataType) -> bool) -> Option<Values<'a>> {
        self.evaluate(node).filter(|values| !matches!(values, Values::Fixed { data_type, .. } if without(data_type)))
    }

    /// Returns the values as texts. Bool is not understood, since its text is another one.
    fn texts(&self, node: &'a Node) -> Option<Values<'a>> {
        let (integer, numbers) = match self.not_of(node, |of| *of == DataType::Bool)? {
            strings @ Values::Strings(_) => return Some(strings),
            values => values.into_numbers()?,
        };
        let text = |number: &u64| match integer.is_signed {
            true => (*number as i64).to_string(),
            false => number.to_string(),
        };
        Some(Values::Texts(numbers.iter().map(text).collect()))
    }

    fn date_part(&self, part: DatePart, moment: &'a Node, timezone: Option<&str>) -> Option<Values<'a>> {
        let mut days = self.days(moment, timezone)?;
        if part == DatePart::Date {
            return Some(Values::Dates(
                days.into_iter().map(|day| u16::try_from(day).ok().map(u64::from)).collect::<Option<_>>()?,
            ));
        }
        let bytes = match part {
            DatePart::Date | DatePart::YearMonthDay | DatePart::YearMonth => 4,
            DatePart::Year => 2,
            DatePart::Month | DatePart::DayOfMonth => 1,
        };
        for day in &mut days {
            let Date { year, month, day: of_month } = Date::of(*day);
            *day = match part {
                DatePart::Date | DatePart::YearMonthDay => year * 10_000 + (month + 1) * 100 + of_month,
                DatePart::YearMonth => year * 100 + month + 1,
                DatePart::Year => year,
                DatePart::Month => month + 1,
                DatePart::DayOfMonth => of_month,
            };
        }
        Some(Values::Numbers(Integer::unsigned(bytes), days.into_iter().map(|number| number as u64).collect()))
    }

    /// Returns the days of dates or moments, since 1970.
    fn days(&self, node: &'a Node, timezone: Option<&str>) -> Option<Vec<i64>> {
        let values = self.evaluate(node)?;
        let own_timezone = match &values {
            Values::Fixed { data_type: DataType::DateTime { timezone }, .. } => Some(timezone.as_deref()),
            Values::Fixed { data_type: DataType::Date | DataType::Date32, .. } | Values::Dates(_) => None,
            _ => return None,
        };
        let numbers = values.into_stored()?.1.into_iter().map(|number| number as i64);
        match own_timezone {
            Some(own) => is_utc(timezone.or(own).unwrap_or(self.server_timezone))
                .then(|| numbers.map(|moment| moment.div_euclid(DAY_SECONDS)).collect()),
            // Dates know no time zone. What ClickHouse does with one was not tried.
            None if timezone.is_some() => None,
            None => numbers.map(|day| DATE32_DAYS.contains(&day).then_some(day)).collect(),
        }
    }
}

/// Says whether a zone is UTC. The server may have other rules for other zones than are known here.
fn is_utc(timezone: &str) -> bool {
    matches!(timezone, "UTC" | "Etc/UTC" | "UCT" | "Etc/UCT" | "GMT" | "Etc/GMT")
}
