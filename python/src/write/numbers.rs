//! Columns out of arrays of numbers, without a Python object per value.

use std::ops::Range;

use super::array::{Element, Number, NumberArray};
use super::calendar::{TimeUnit, SECONDS_PER_DAY};
use super::column::Column;
use super::moment::too_many_digits;
use super::number::put_checked;
use super::plan::{Node, Scalar};
use super::problem::Problem;

/// The number that stands for NumPy's "not a time".
const NAT: i128 = i64::MIN as i128;

/// Numbers of a column, some of them perhaps missing.
pub(super) struct Numbers<'py> {
    pub(super) values: NumberArray<'py>,
    /// True where there is no value.
    pub(super) mask: Option<NumberArray<'py>>,
    /// True for the rules of pandas and Arrow, as clickhouse-connect has them: a NaN is a missing value, and
    /// floats are rounded for integer columns. NumPy's own arrays are of values only, and cut.
    pub(super) is_frame: bool,
}

/// The outcome for one element.
enum Outcome {
    Put,
    Missing,
}

impl Numbers<'_> {
    /// Says whether such elements are written to such a column here; else they are made to Python objects first.
    pub(super) fn suit(&self, node: &Node) -> bool {
        let scalar = match node {
            Node::Scalar(scalar) => scalar,
            Node::Nullable(inner) => match inner.as_ref() {
                Node::Scalar(scalar) => scalar,
                _ => return false,
            },
            _ => return false,
        };
        use Scalar as S;
        match self.values.element {
            Element::Moment(_) => {
                matches!(scalar, S::Date | S::Date32 | S::DateTime { .. } | S::DateTime64 { .. })
            }
            Element::Duration(_) => matches!(scalar, S::Time | S::Time64 { .. }),
            Element::Bool if self.mask.is_some() && self.is_frame => {
                matches!(node, Node::Nullable(_)) && is_number(scalar)
            }
            _ => is_number(scalar),
        }
    }

    /// Appends elements `range` of the column; the array begins with element `offset`. Fails with the row
    /// that failed.
    pub(super) fn push(
        &self,
        node: &Node,
        column: &mut Column,
        range: Range<usize>,
        offset: usize,
    ) -> Result<(), (usize, Problem)> {
        match (node, column) {
            (Node::Scalar(scalar), Column::Values(out)) => {
                if let Some(bytes) = self.same_bytes(scalar, &range, offset) {
                    out.extend_from_slice(bytes);
                    return Ok(());
                }
                for row in range {
                    let put = self.put(scalar, false, row - offset, out);
                    match put.map_err(|problem| (row, problem))? {
                        Outcome::Put => {}
                        Outcome::Missing => put_missing(scalar, out).map_err(|problem| (row, problem))?,
                    }
                }
                Ok(())
            }
            (Node::Nullable(inner_node), Column::Nullable { nulls, inner }) => {
                let (Node::Scalar(scalar), Column::Values(out)) = (inner_node.as_ref(), inner.as_mut()) else {
                    unreachable!("`suit` was asked");
                };
                for row in range {
                    let put = self.put(scalar, true, row - offset, out).map_err(|problem| (row, problem))?;
                    nulls.push(u8::from(matches!(put, Outcome::Missing)));
                    if matches!(put, Outcome::Missing) {
                        scalar.put_default(out);
                    }
                }
                Ok(())
            }
            _ => unreachable!("`suit` was asked"),
        }
    }

    /// Returns the elements themselves, where the array has them just as ClickHouse wants them.
    fn same_bytes(&self, scalar: &Scalar, range: &Range<usize>, offset: usize) -> Option<&[u8]> {
        let same = match scalar {
            Scalar::Int { bytes: 1, signed: true } => Element::Int8,
            Scalar::Int { bytes: 2, signed: true } => Element::Int16,
            Scalar::Int { bytes: 4, signed: true } => Element::Int32,
            Scalar::Int { bytes: 8, signed: true } => Element::Int64,
            Scalar::Int { bytes: 1, .. } => Element::UInt8,
            Scalar::Int { bytes: 2, .. } => Element::UInt16,
            Scalar::Int { bytes: 4, .. } => Element::UInt32,
            Scalar::Int { .. } => Element::UInt64,
            Scalar::Float32 => Element::Float32,
            Scalar::Float64 => Element::Float64,
            _ => return None,
        };
        if same != self.values.element || self.mask.is_some() {
            return None;
        }
        self.values.contiguous(range.start - offset, range.len())
    }

    #[inline]
    fn put(&self, scalar: &Scalar, nullable: bool, index: usize, out: &mut Vec<u8>) -> Result<Outcome, Problem> {
        if let Some(mask) = &self.mask {
            if matches!(mask.get(index), Number::Int(1)) {
                return Ok(Outcome::Missing);
            }
        }
        match (self.values.element, self.values.get(index)) {
            (Element::Moment(_) | Element::Duration(_), Number::Int(NAT)) => return Ok(Outcome::Missing),
            (Element::Moment(unit), Number::Int(count)) => put_moment(scalar, unit, count as i64, out)?,
            (Element::Duration(unit), Number::Int(count)) => put_duration(scalar, unit, count as i64, out)?,
            (_, Number::Int(number)) => put_int(scalar, number, out)?,
            (_, Number::Float(number)) => {
                if number.is_nan() && nullable && self.is_frame {
                    return Ok(Outcome::Missing);
                }
                put_float(scalar, number, self.is_frame, out)?;
            }
        }
        Ok(Outcome::Put)
    }
}

fn is_number(scalar: &Scalar) -> bool {
    matches!(scalar, Scalar::Int { .. } | Scalar::Float32 | Scalar::Float64 | Scalar::BFloat16 | Scalar::Bool)
}

/// Writes pandas' missing numbers in columns that have none: zero, or not a number.
fn put_missing(scalar: &Scalar, out: &mut Vec<u8>) -> Result<(), Problem> {
    match scalar {
        Scalar::Int { bytes, .. } => out.resize(out.len() + bytes, 0),
        Scalar::Float32 | Scalar::Float64 | Scalar::BFloat16 => put_float(scalar, f64::NAN, true, out)?,
        _ => return Err(Problem::none()),
    }
    Ok(())
}

#[inline]
fn put_int(scalar: &Scalar, number: i128, out: &mut Vec<u8>) -> Result<(), Problem> {
    match scalar {
        Scalar::Int { bytes, signed } => put_checked(number, *bytes, *signed, out),
        other => put_float(other, number as f64, false, out),
    }
}

#[inline]
fn put_float(scalar: &Scalar, number: f64, rounds: bool, out: &mut Vec<u8>) -> Result<(), Problem> {
    match scalar {
        Scalar::Int { bytes, signed } => {
            let whole = match () {
                () if !number.is_finite() => 0.0,
                () if rounds => number.round_ties_even(),
                () => number.trunc(),
            };
            // Beyond i128 the cast ends at its limits, which no column holds either.
            return put_checked(whole as i128, *bytes, *signed, out);
        }
        Scalar::Bool => out.push(u8::from(number != 0.0)),
        Scalar::Float64 => out.extend_from_slice(&number.to_le_bytes()),
        Scalar::Float32 => out.extend_from_slice(&narrow(number)?.to_le_bytes()),
        _ => out.extend_from_slice(&narrow(number)?.to_le_bytes()[2..]),
    }
    Ok(())
}

fn narrow(number: f64) -> Result<f32, Problem> {
    let narrow = number as f32;
    match narrow.is_infinite() && number.is_finite() {
        true => Err(Problem::said(format!("{number:e} is out of range of a Float32"))),
        false => Ok(narrow),
    }
}

fn put_moment(scalar: &Scalar, unit: TimeUnit, count: i64, out: &mut Vec<u8>) -> Result<(), Problem> {
    let ticks = |precision| unit.floor_ticks(count, precision).ok_or_else(|| Problem::said("out of range"));
    let days = || Ok::<_, Problem>(ticks(0)?.div_euclid(SECONDS_PER_DAY.into()));
    match scalar {
        Scalar::Date => put_checked(days()?, 2, false, out),
        Scalar::Date32 => put_checked(days()?, 4, true, out),
        Scalar::DateTime { .. } => put_checked(ticks(0)?, 4, false, out),
        // Digits are cut to a unit that NumPy has, where nobody minds; in other columns they would get lost in silence.
        Scalar::DateTime64 { precision, .. }
            if !matches!(precision, 0 | 3 | 6) && !unit.is_whole_in(count, *precision) =>
        {
            Err(too_many_digits(*precision))
        }
        Scalar::DateTime64 { precision, .. } => put_checked(ticks(*precision)?, 8, true, out),
        _ => unreachable!("`suit` was asked"),
    }
}

fn put_duration(scalar: &Scalar, unit: TimeUnit, count: i64, out: &mut Vec<u8>) -> Result<(), Problem> {
    let (precision, bytes) = match scalar {
        Scalar::Time64 { precision } => (*precision, 8),
        _ => (0, 4),
    };
    let ticks = unit.truncated_ticks(count, precision).ok_or_else(|| Problem::said("out of range"))?;
    super::clock::put_ticks(ticks, precision, bytes, out)
}
