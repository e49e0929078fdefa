//! Values of a fixed width.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use arrow_array::types::*;
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Decimal128Array, FixedSizeBinaryArray, IntervalMonthDayNanoArray,
    PrimitiveArray, StringArray,
};
use arrow_buffer::{BooleanBuffer, IntervalMonthDayNano};
use windrow_columns::{DataType, EnumValue, IntervalUnit};

use crate::fit::CannotStoreValue;

pub(super) fn array(width: usize, data: &[u8], of: &DataType) -> Result<ArrayRef, CannotStoreValue> {
    Ok(match of {
        DataType::Bool => {
            Arc::new(BooleanArray::new(BooleanBuffer::collect_bool(data.len(), |row| data[row] != 0), None))
        }
        DataType::Int8 => numbers::<Int8Type, 1>(data, i8::from_le_bytes),
        DataType::Int16 => numbers::<Int16Type, 2>(data, i16::from_le_bytes),
        DataType::Int32 => numbers::<Int32Type, 4>(data, i32::from_le_bytes),
        DataType::Int64 => numbers::<Int64Type, 8>(data, i64::from_le_bytes),
        DataType::UInt8 => numbers::<UInt8Type, 1>(data, u8::from_le_bytes),
        DataType::UInt16 => numbers::<UInt16Type, 2>(data, u16::from_le_bytes),
        DataType::UInt32 => numbers::<UInt32Type, 4>(data, u32::from_le_bytes),
        DataType::UInt64 => numbers::<UInt64Type, 8>(data, u64::from_le_bytes),
        DataType::Float32 => numbers::<Float32Type, 4>(data, f32::from_le_bytes),
        DataType::Float64 => numbers::<Float64Type, 8>(data, f64::from_le_bytes),
        DataType::BFloat16 => {
            numbers::<Float32Type, 2>(data, |bytes| f32::from_bits(u32::from(u16::from_le_bytes(bytes)) << 16))
        }
        DataType::Date => numbers::<Date32Type, 2>(data, |bytes| i32::from(u16::from_le_bytes(bytes))),
        DataType::Date32 => numbers::<Date32Type, 4>(data, i32::from_le_bytes),
        DataType::DateTime { .. } => {
            numbers::<TimestampSecondType, 4>(data, |bytes| i64::from(u32::from_le_bytes(bytes)))
        }
        DataType::DateTime64 { precision, .. } => date_times(data, *precision)?,
        DataType::Time => numbers::<Time32SecondType, 4>(data, i32::from_le_bytes),
        DataType::Time64 { precision } => times(data, *precision)?,
        DataType::Interval(unit) => intervals(data, *unit)?,
        DataType::Decimal { precision, scale } if *precision <= 38 => decimals(width, data, *precision, *scale)?,
        // Sixteen bytes as they are: the lowest first.
        DataType::Int128 | DataType::UInt128 => sixteens(data.to_vec())?,
        DataType::Uuid => sixteens(data.chunks_exact(8).flat_map(|half| half.iter().rev().copied()).collect())?,
        DataType::Ipv4 => texts(words::<4>(data).map(|bytes| Ipv4Addr::from(u32::from_le_bytes(bytes)).to_string())),
        DataType::Ipv6 => texts(words::<16>(data).map(|bytes| Ipv6Addr::from(bytes).to_string())),
        DataType::FixedString(_) => Arc::new(data.chunks_exact(width).map(Some).collect::<BinaryArray>()),
        DataType::Enum8(values) => names(words::<1>(data).map(|[byte]| i16::from(byte as i8)), values)?,
        DataType::Enum16(values) => names(words::<2>(data).map(i16::from_le_bytes), values)?,
        other => {
            let why = format!("values of ClickHouse's {} don't go into DuckDB", other.native_name());
            return Err(CannotStoreValue::other(&why));
        }
    })
}

fn words<const WIDTH: usize>(data: &[u8]) -> impl Iterator<Item = [u8; WIDTH]> + '_ {
    data.chunks_exact(WIDTH).map(|word| word.try_into().expect("chunks of this length"))
}

fn numbers<T: ArrowPrimitiveType, const WIDTH: usize>(data: &[u8], of: impl Fn([u8; WIDTH]) -> T::Native) -> ArrayRef {
    Arc::new(PrimitiveArray::<T>::from_iter_values(words::<WIDTH>(data).map(of)))
}

fn texts(values: impl Iterator<Item = String>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(values))
}

fn sixteens(data: Vec<u8>) -> Result<ArrayRef, CannotStoreValue> {
    let made = FixedSizeBinaryArray::try_new(16, data.into(), None);
    Ok(Arc::new(made.map_err(|error| CannotStoreValue::other(&error.to_string()))?))
}

/// Returns the digits of Arrow's next finer unit: 0, 3, 6 or 9.
fn next_unit(precision: u8) -> u8 {
    precision.div_ceil(3).min(3) * 3
}

/// Converts times to Arrow's next finer unit.
fn in_unit(data: &[u8], precision: u8) -> Result<Vec<i64>, CannotStoreValue> {
    let factor = 10i64.pow(u32::from(next_unit(precision).saturating_sub(precision)));
    let finer = |(row, bytes): (usize, [u8; 8])| {
        let value = i64::from_le_bytes(bytes);
        value.checked_mul(factor).ok_or_else(|| CannotStoreValue::range(row, value, "a timestamp"))
    };
    words::<8>(data).enumerate().map(finer).collect()
}

fn date_times(data: &[u8], precision: u8) -> Result<ArrayRef, CannotStoreValue> {
    let values = in_unit(data, precision)?.into();
    Ok(match next_unit(precision) {
        0 => Arc::new(PrimitiveArray::<TimestampSecondType>::new(values, None)),
        3 => Arc::new(PrimitiveArray::<TimestampMillisecondType>::new(values, None)),
        6 => Arc::new(PrimitiveArray::<TimestampMicrosecondType>::new(values, None)),
        _ => Arc::new(PrimitiveArray::<TimestampNanosecondType>::new(values, None)),
    })
}

fn times(data: &[u8], precision: u8) -> Result<ArrayRef, CannotStoreValue> {
    let nanoseconds = precision > 6;
    let factor = 10i64.pow(u32::from((if nanoseconds { 9 } else { 6 } as u8).saturating_sub(precision)));
    let finer = |(row, bytes): (usize, [u8; 8])| {
        let value = i64::from_le_bytes(bytes);
        value.checked_mul(factor).ok_or_else(|| CannotStoreValue::range(row, value, "a time of day"))
    };
    let values: Vec<i64> = words::<8>(data).enumerate().map(finer).collect::<Result<_, _>>()?;
    Ok(match nanoseconds {
        true => Arc::new(PrimitiveArray::<Time64NanosecondType>::new(values.into(), None)),
        false => Arc::new(PrimitiveArray::<Time64MicrosecondType>::new(values.into(), None)),
    })
}

fn intervals(data: &[u8], unit: IntervalUnit) -> Result<ArrayRef, CannotStoreValue> {
    let of = |value: i64| -> Option<IntervalMonthDayNano> {
        let months = |by: i64| Some(IntervalMonthDayNano::new(i32::try_from(value.checked_mul(by)?).ok()?, 0, 0));
        let days = |by: i64| Some(IntervalMonthDayNano::new(0, i32::try_from(value.checked_mul(by)?).ok()?, 0));
        let nanos = |by: i64| Some(IntervalMonthDayNano::new(0, 0, value.checked_mul(by)?));
        match unit {
            IntervalUnit::Nanosecond => nanos(1),
            IntervalUnit::Microsecond => nanos(1_000),
            IntervalUnit::Millisecond => nanos(1_000_000),
            IntervalUnit::Second => nanos(1_000_000_000),
            IntervalUnit::Minute => nanos(60_000_000_000),
            IntervalUnit::Hour => nanos(3_600_000_000_000),
            IntervalUnit::Day => days(1),
            IntervalUnit::Week => days(7),
            IntervalUnit::Month => months(1),
            IntervalUnit::Quarter => months(3),
            IntervalUnit::Year => months(12),
        }
    };
    let made = words::<8>(data).enumerate().map(|(row, bytes)| {
        let value = i64::from_le_bytes(bytes);
        of(value).ok_or_else(|| CannotStoreValue::range(row, value, "INTERVAL"))
    });
    Ok(Arc::new(IntervalMonthDayNanoArray::from(made.collect::<Result<Vec<_>, _>>()?)))
}

fn decimals(width: usize, data: &[u8], precision: u8, scale: u8) -> Result<ArrayRef, CannotStoreValue> {
    let values: Vec<i128> = match width {
        4 => words::<4>(data).map(|bytes| i128::from(i32::from_le_bytes(bytes))).collect(),
        8 => words::<8>(data).map(|bytes| i128::from(i64::from_le_bytes(bytes))).collect(),
        _ => words::<16>(data).map(i128::from_le_bytes).collect(),
    };
    let made = Decimal128Array::from(values).with_precision_and_scale(precision, scale as i8);
    Ok(Arc::new(made.map_err(|error| CannotStoreValue::other(&error.to_string()))?))
}

/// Converts numbers to names. A number without a name is one that stands in the place of a NULL.
fn names(numbers: impl Iterator<Item = i16>, values: &[EnumValue]) -> Result<ArrayRef, CannotStoreValue> {
    let name = |number| {
        let at = values.binary_search_by_key(&number, |known| known.value).ok();
        at.map_or("", |at| values[at].name.as_str())
    };
    Ok(Arc::new(StringArray::from_iter_values(numbers.map(name))))
}
