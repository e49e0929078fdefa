//! States of aggregate functions. They have no lengths; for the functions here the length of each state is known.
//!
//! A function writes its states row by row, in a layout of its own. Each layout was checked against
//! ClickHouse for every function and type here (`tests/native/test_blocks.py`). The end of any other
//! function's state is not known.

use std::sync::Arc;

use windrow_columns::{AggregateFunction, DataType};

use super::{bytes_of, BlockReader, Step};
use crate::native::input::{Fault, Input};

#[derive(Debug)]
pub(super) enum State {
    /// Bytes; their count.
    Fixed(usize),
    /// A number of variable length.
    Count,
    /// A length of four bytes, negative where there is no text, and the text.
    Text,
    /// The count of values, and the values, each of so many bytes.
    List(usize),
    /// The count of texts, and each text with its length.
    Texts,
    /// A byte that says whether a state follows, and the state.
    Optional(Arc<State>),
    Sequence(Vec<Arc<State>>),
    /// A list for few numbers of so many bytes each, or a compressed bitmap with its length.
    Bitmap(usize),
    /// A sample of values of so many bytes each, after the state of a random generator. The sample is full or
    /// has all values.
    Sample(usize),
}

impl State {
    pub(super) fn of(function: &AggregateFunction) -> Result<Arc<State>, Fault> {
        let name = function.name.as_deref();
        name.and_then(|name| named(name, &function.arguments))
            .map(Arc::new)
            .ok_or(Fault::Unsupported("states of an aggregate function whose end Windrow can't find"))
    }
}

fn named(name: &str, arguments: &[DataType]) -> Option<State> {
    use DataType::Nullable;
    if let Some(inner) = name.strip_suffix("If") {
        return match arguments.split_last()? {
            (DataType::UInt8, arguments) => named(inner, arguments),
            _ => None,
        };
    }
    let has_nulls = arguments.iter().any(|argument| matches!(argument, Nullable(_)));
    if let Some(inner) = name.strip_suffix("OrNull").or_else(|| name.strip_suffix("OrDefault")) {
        // Whether there was a value stands behind.
        let with_mark = |state| State::Sequence(vec![Arc::new(state), Arc::new(State::Fixed(1))]);
        return named(inner, arguments).filter(|_| !has_nulls).map(with_mark);
    }
    let plain = |argument: &DataType| match argument {
        Nullable(inner) => (**inner).clone(),
        argument => argument.clone(),
    };
    let arguments: Vec<DataType> = arguments.iter().map(plain).collect();
    let state = match (name, arguments.as_slice()) {
        ("count", _) => return Some(State::Count),
        // They pass over NULLs.
        ("groupArray" | "groupUniqArray", [of]) => return grouped(of),
        ("uniq", [_, ..]) => sequence([State::Fixed(1), State::List(4)]),
        ("uniqExact", [of]) => State::List(if is_key(of) { of.fixed_width()? } else { HASH_BYTES }),
        ("uniqExact", [_, _, ..]) => State::List(HASH_BYTES),
        ("argMin" | "argMax", [result, of]) => sequence([single(result)?, single(of)?]),
        ("min" | "max" | "any" | "anyLast", [of]) => single(of)?,
        ("sum", [of]) => State::Fixed(sum_bytes(of)?),
        ("sumWithOverflow", [of]) if sum_bytes(of).is_some() => State::Fixed(of.fixed_width()?),
        ("avg", [of]) => sequence([State::Fixed(average_bytes(of)?), State::Count]),
        ("varPop" | "varSamp" | "stddevPop" | "stddevSamp", [of]) if sum_bytes(of).is_some() => {
            State::Fixed(if *of == DataType::Float32 { 12 } else { 24 })
        }
        ("groupBitAnd" | "groupBitOr" | "groupBitXor", [of]) if is_integer(of) || is_wide_integer(of) => {
            State::Fixed(of.fixed_width()?)
        }
        ("groupBitmap", [of]) if is_integer(of) => State::Bitmap(of.fixed_width()?),
        ("quantile" | "quantiles" | "median", [of]) if is_ranked(of) => State::Sample(of.fixed_width()?),
        ("quantileExact" | "quantilesExact" | "medianExact", [of]) if is_ranked(of) => State::List(of.fixed_width()?),
        // Each with a mean and a weight.
        ("quantileTDigest" | "quantilesTDigest" | "medianTDigest", [of]) if is_ranked(of) => State::List(8),
        _ => return None,
    };
    Some(if has_nulls { State::Optional(Arc::new(state)) } else { state })
}

/// Bytes of the hash that stands for a value that is no number.
const HASH_BYTES: usize = 16;

fn sequence(states: [State; 2]) -> State {
    State::Sequence(states.into_iter().map(Arc::new).collect())
}

fn single(of: &DataType) -> Option<State> {
    match of {
        DataType::String => Some(State::Text),
        of => Some(State::Optional(Arc::new(State::Fixed(of.fixed_width()?)))),
    }
}

fn grouped(of: &DataType) -> Option<State> {
    match is_key(of) && !matches!(of, DataType::Date32 | DataType::Uuid) {
        true => Some(State::List(of.fixed_width()?)),
        false => (of.is_scalar() && !matches!(of, DataType::Nullable(_))).then_some(State::Texts),
    }
}

fn is_integer(of: &DataType) -> bool {
    use DataType::*;
    matches!(of, UInt8 | UInt16 | UInt32 | UInt64 | Int8 | Int16 | Int32 | Int64 | Bool)
}

fn is_wide_integer(of: &DataType) -> bool {
    matches!(of, DataType::UInt128 | DataType::UInt256 | DataType::Int128 | DataType::Int256)
}

/// Says whether a set holds a value of the type as it is, not as a hash.
fn is_key(of: &DataType) -> bool {
    use DataType::*;
    is_integer(of)
        || is_wide_integer(of)
        || matches!(of, Float32 | Float64 | BFloat16 | Date | Date32 | DateTime { .. })
        || matches!(of, Uuid | Ipv4 | Enum8(_) | Enum16(_))
}

fn is_ranked(of: &DataType) -> bool {
    use DataType::*;
    is_integer(of)
        || is_wide_integer(of)
        || matches!(of, Float32 | Float64 | Date | DateTime { .. } | DateTime64 { .. } | Decimal { .. })
}

fn sum_bytes(of: &DataType) -> Option<usize> {
    use DataType::*;
    match of {
        Float32 | Float64 | BFloat16 | Enum8(_) | Enum16(_) => Some(8),
        Decimal { .. } => Some(of.fixed_width()?.max(16)),
        of if is_integer(of) => Some(8),
        of if is_wide_integer(of) => of.fixed_width(),
        _ => None,
    }
}

fn average_bytes(of: &DataType) -> Option<usize> {
    use DataType::*;
    match of {
        Date | Date32 | DateTime { .. } | Time => Some(8),
        DateTime64 { .. } | Time64 { .. } => Some(16),
        Enum8(_) | Enum16(_) => None,
        of => sum_bytes(of),
    }
}

impl BlockReader {
    /// Reads the length of a state, and puts the rest of the state on the stack.
    pub(super) fn state(&mut self, state: &State, input: &mut Input<'_>, out: &mut Vec<u8>) -> Result<(), Fault> {
        let head = input.clone();
        let rest = match state {
            State::Sequence(states) => {
                self.steps.extend(states.iter().rev().map(|state| Step::State(state.clone())));
                return Ok(());
            }
            State::Fixed(bytes) => Step::Copy(*bytes as u64),
            State::Count => {
                input.varint()?;
                Step::Copy(0)
            }
            State::Text => Step::Copy(u64::try_from(input.i32()?).unwrap_or(0)),
            State::List(width) => list(input.varint()?, *width)?,
            State::Texts => Step::Strings(input.varint()?),
            State::Optional(inner) => match input.bool()? {
                true => Step::State(inner.clone()),
                false => Step::Copy(0),
            },
            State::Bitmap(width) => match input.byte()? {
                0 => list(input.varint()?, *width)?,
                1 => Step::Strings(1),
                _ => return Err(Fault::Malformed("a bitmap of an unknown kind")),
            },
            State::Sample(width) => {
                let (most, values) = (input.u64()?, input.u64()?);
                self.steps.push(list(most.min(values), *width)?);
                Step::Strings(1)
            }
        };
        out.extend_from_slice(head.between(input));
        self.steps.push(rest);
        Ok(())
    }
}

fn list(values: u64, width: usize) -> Result<Step, Fault> {
    Ok(Step::Copy(bytes_of(values, width)? as u64))
}
