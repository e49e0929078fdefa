//! One element of a partition key, and its values in a column.

use crate::calendar::{LocalTime, Unit, DAY_SECONDS};
use crate::column::Column;
use crate::types::DataType;
use crate::wire::{read_varint, varint_length};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Element {
    pub(super) column: String,
    pub(super) function: Function,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Function {
    Value,
    Quotient(i64),
    Remainder(i64),
    Calendar { unit: Unit, timezone: Option<String> },
}

impl Function {
    pub(super) fn calendar(unit: Unit) -> Function {
        Function::Calendar { unit, timezone: None }
    }
}

impl Element {
    /// Mixes the element's value of each row into the row's key.
    pub(super) fn mix(&self, data_type: &DataType, column: &Column, zone: &str, keys: &mut [u64]) -> Option<()> {
        match &self.function {
            Function::Value => mix_values(column, keys),
            Function::Quotient(divisor) => mix_numbers(data_type, column, keys, |number| number / divisor),
            Function::Remainder(divisor) => mix_numbers(data_type, column, keys, |number| number % divisor),
            Function::Calendar { unit, timezone } => {
                let mut local = local_seconds(data_type, timezone.as_deref(), zone)?;
                mix_numbers(&as_number(data_type)?, column, keys, |number| unit.of(local(number)))
            }
        }
    }
}

fn mix(key: &mut u64, value: u64) {
    *key = (key.rotate_left(23) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    *key ^= *key >> 29;
}

fn mix_values(column: &Column, keys: &mut [u64]) -> Option<()> {
    match column {
        Column::Fixed { width, data } => {
            let values = data.chunks_exact(*width);
            keys.iter_mut().zip(values).for_each(|(key, value)| mix_bytes(key, value));
        }
        Column::Strings { data, .. } => {
            let mut at = 0;
            for key in keys {
                let length = read_varint(data.get(at..)?)?;
                let start = at + varint_length(length);
                at = start.checked_add(usize::try_from(length).ok()?)?;
                mix(key, length);
                mix_bytes(key, data.get(start..at)?);
            }
        }
        Column::Nullable { nulls, inner } => {
            keys.iter_mut().zip(nulls).for_each(|(key, null)| mix(key, u64::from(*null)));
            mix_values(inner, keys)?;
        }
        Column::Array { .. } | Column::Tuple { .. } | Column::Variant { .. } => return None,
    }
    Some(())
}

fn mix_bytes(key: &mut u64, bytes: &[u8]) {
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        mix(key, u64::from_le_bytes(word));
    }
}

/// Returns the integer that a type's values are stored as.
fn as_number(data_type: &DataType) -> Option<DataType> {
    Some(match data_type {
        DataType::Date => DataType::UInt16,
        DataType::Date32 => DataType::Int32,
        DataType::DateTime { .. } => DataType::UInt32,
        DataType::DateTime64 { .. } => DataType::Int64,
        _ => return None,
    })
}

fn mix_numbers(
    data_type: &DataType,
    column: &Column,
    keys: &mut [u64],
    mut function: impl FnMut(i64) -> i64,
) -> Option<()> {
    let Column::Fixed { width, data } = column else { return None };
    let is_signed = match data_type {
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => false,
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => true,
        _ => return None,
    };
    for (key, value) in keys.iter_mut().zip(data.chunks_exact(*width)) {
        let number = integer(value, is_signed)?;
        mix(key, function(number) as u64);
    }
    Some(())
}

/// Reads an integer; `None` where it does not fit into an `i64`.
fn integer(bytes: &[u8], is_signed: bool) -> Option<i64> {
    let fill = if is_signed && bytes.last()? & 0x80 != 0 { 0xff } else { 0 };
    let mut word = [fill; 8];
    word.get_mut(..bytes.len())?.copy_from_slice(bytes);
    let number = i64::from_le_bytes(word);
    (is_signed || number >= 0).then_some(number)
}

/// Returns a function that turns stored values into seconds of local time.
fn local_seconds(
    data_type: &DataType,
    said: Option<&str>,
    server_timezone: &str,
) -> Option<Box<dyn FnMut(i64) -> i64>> {
    let zone = |own: &Option<String>| LocalTime::of(said.or(own.as_deref()).unwrap_or(server_timezone));
    Some(match data_type {
        DataType::Date | DataType::Date32 => Box::new(|day| day * DAY_SECONDS),
        DataType::DateTime { timezone } => {
            let mut zone = zone(timezone)?;
            Box::new(move |second| zone.of_moment(second))
        }
        DataType::DateTime64 { precision, timezone } => {
            let (mut zone, ticks) = (zone(timezone)?, 10i64.checked_pow(u32::from(*precision))?);
            Box::new(move |tick| zone.of_moment(tick.div_euclid(ticks)))
        }
        _ => return None,
    })
}
