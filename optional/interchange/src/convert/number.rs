//! Converts integers, floats and decimals.

use std::borrow::Cow;

use windrow_columns::{ColumnData, DataType, EnumValue};

pub(super) struct Ints<'a> {
    pub(super) width: usize,
    pub(super) signed: bool,
    pub(super) data: &'a [u8],
}

pub(super) struct Decimals<'a> {
    pub(super) scale: i32,
    pub(super) width: usize,
    pub(super) data: &'a [u8],
}

struct IntType {
    width: usize,
    signed: bool,
}

fn int_type(data_type: &DataType) -> Option<IntType> {
    use DataType::*;
    let (width, signed) = match data_type {
        UInt8 => (1, false),
        UInt16 => (2, false),
        UInt32 => (4, false),
        UInt64 => (8, false),
        UInt128 => (16, false),
        UInt256 => (32, false),
        Int8 => (1, true),
        Int16 => (2, true),
        Int32 => (4, true),
        Int64 => (8, true),
        Int128 => (16, true),
        Int256 => (32, true),
        _ => return None,
    };
    Some(IntType { width, signed })
}

/// Returns the values with zeros in the rows that are NULL.
pub(super) fn cleaned<'a>(data: &'a [u8], width: usize, nulls: Option<&[u8]>) -> Cow<'a, [u8]> {
    let Some(nulls) = nulls else { return Cow::Borrowed(data) };
    let mut owned = data.to_vec();
    for (row, value) in owned.chunks_exact_mut(width).enumerate() {
        if nulls[row] == 1 {
            value.fill(0);
        }
    }
    Cow::Owned(owned)
}

pub(super) fn from_bools(data: &[u8], nulls: Option<&[u8]>, wanted: &DataType) -> Option<ColumnData> {
    match wanted {
        DataType::Bool => Some(ColumnData::Fixed(cleaned(data, 1, nulls).into_owned())),
        _ => {
            int_type(wanted)?;
            from_ints(&Ints { width: 1, signed: false, data }, nulls, wanted, true)
        }
    }
}

/// Converts integers. With `exact`, no digit may be lost.
pub(super) fn from_ints(ints: &Ints<'_>, nulls: Option<&[u8]>, wanted: &DataType, exact: bool) -> Option<ColumnData> {
    let data = cleaned(ints.data, ints.width, nulls);
    let (width, signed) = (ints.width, ints.signed);
    if let Some(to) = int_type(wanted) {
        if to.width == width && to.signed == signed {
            return Some(ColumnData::Fixed(data.into_owned()));
        }
        return resized(width, signed, &data, &to).map(ColumnData::Fixed);
    }
    let rows = data.len() / width;
    let fixed = match wanted {
        DataType::Float64 => collect(rows * 8, |out| {
            each(width, signed, &data, |value| {
                out.extend_from_slice(&(value as f64).to_le_bytes());
                (!exact || (value as f64) as i128 == value).then_some(())
            })
        }),
        DataType::Float32 => collect(rows * 4, |out| {
            each(width, signed, &data, |value| {
                out.extend_from_slice(&(value as f32).to_le_bytes());
                (!exact || (value as f32) as i128 == value).then_some(())
            })
        }),
        DataType::DateTime { .. } => resized(width, signed, &data, &IntType { width: 4, signed: false }),
        DataType::Date if width == 2 && !signed => Some(data.into_owned()),
        DataType::Ipv4 if width == 4 && !signed => Some(data.into_owned()),
        DataType::Enum8(values) => enum_numbers(ints, nulls, values, 1),
        DataType::Enum16(values) => enum_numbers(ints, nulls, values, 2),
        _ => None,
    };
    fixed.map(ColumnData::Fixed)
}

/// Returns the numbers of an Enum. A row that is NULL gets zero; the caller has made sure that it stays NULL.
fn enum_numbers(ints: &Ints<'_>, nulls: Option<&[u8]>, values: &[EnumValue], to_width: usize) -> Option<Vec<u8>> {
    let mut row = 0;
    collect(ints.data.len() / ints.width * to_width, |out| {
        each(ints.width, ints.signed, ints.data, |value| {
            let is_null = nulls.is_some_and(|nulls| nulls[row] == 1);
            row += 1;
            let value = if is_null { 0 } else { i16::try_from(value).ok()? };
            if !is_null {
                values.binary_search_by_key(&value, |entry| entry.value).ok()?;
            }
            out.extend_from_slice(&value.to_le_bytes()[..to_width]);
            Some(())
        })
    })
}

fn collect(capacity: usize, fill: impl FnOnce(&mut Vec<u8>) -> Option<()>) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(capacity);
    fill(&mut out)?;
    Some(out)
}

/// Converts integers to another width or sign, if all of them fit.
fn resized(width: usize, signed: bool, data: &[u8], to: &IntType) -> Option<Vec<u8>> {
    let bits = 8 * to.width.min(16) as u32;
    // 128 bits hold every source, so wider targets take all but negative values in unsigned ones.
    let (low, high) = match (to.signed, to.width >= 16) {
        (true, true) => (i128::MIN, i128::MAX),
        (false, true) => (0, i128::MAX),
        (true, false) => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
        (false, false) => (0, (1i128 << bits) - 1),
    };
    collect(data.len() / width * to.width, |out| {
        each(width, signed, data, |value| {
            if value < low || value > high {
                return None;
            }
            let bytes = value.to_le_bytes();
            match to.width {
                32 => {
                    out.extend_from_slice(&bytes);
                    out.resize(out.len() + 16, if value < 0 { 0xFF } else { 0 });
                }
                width => out.extend_from_slice(&bytes[..width]),
            }
            Some(())
        })
    })
}

#[inline]
fn each(width: usize, signed: bool, data: &[u8], mut take: impl FnMut(i128) -> Option<()>) -> Option<()> {
    macro_rules! all {
        ($number:ty) => {
            data.chunks_exact(width).try_for_each(|bytes| {
                take(i128::from(<$number>::from_le_bytes(bytes.try_into().expect("a chunk has the number's width"))))
            })
        };
    }
    match (width, signed) {
        (1, false) => all!(u8),
        (2, false) => all!(u16),
        (4, false) => all!(u32),
        (8, false) => all!(u64),
        (1, true) => all!(i8),
        (2, true) => all!(i16),
        (4, true) => all!(i32),
        (8, true) => all!(i64),
        _ => None,
    }
}

/// Converts floats. With `exact`, no digit may be lost.
pub(super) fn from_floats(
    width: usize,
    data: &[u8],
    nulls: Option<&[u8]>,
    wanted: &DataType,
    exact: bool,
) -> Option<ColumnData> {
    let data = cleaned(data, width, nulls);
    let f32_of = |bytes: &[u8]| f32::from_le_bytes(bytes.try_into().expect("a chunk has the number's width"));
    let f64_of = |bytes: &[u8]| f64::from_le_bytes(bytes.try_into().expect("a chunk has the number's width"));
    let is_kept = |value: f64| value.is_nan() || f64::from(value as f32) == value;
    let fixed = match (width, wanted) {
        (8, DataType::Float32) if exact && !data.chunks_exact(8).all(|bytes| is_kept(f64_of(bytes))) => return None,
        (4, DataType::Float32) | (8, DataType::Float64) => data.into_owned(),
        (4, DataType::Float64) => {
            data.chunks_exact(4).flat_map(|bytes| f64::from(f32_of(bytes)).to_le_bytes()).collect()
        }
        (8, DataType::Float32) => data.chunks_exact(8).flat_map(|bytes| (f64_of(bytes) as f32).to_le_bytes()).collect(),
        _ => return None,
    };
    Some(ColumnData::Fixed(fixed))
}

pub(super) fn from_decimals(decimals: &Decimals<'_>, nulls: Option<&[u8]>, wanted: &DataType) -> Option<ColumnData> {
    let DataType::Decimal { precision, scale } = wanted else { return None };
    let to_width = match precision {
        0..=9 => 4,
        10..=18 => 8,
        19..=38 => 16,
        _ => 32,
    };
    let data = cleaned(decimals.data, decimals.width, nulls);
    let shift = i32::from(*scale) - decimals.scale;
    if shift == 0 && *precision == 76 && decimals.width == 32 {
        // 252 bits are less than 76 digits.
        let is_small = |value: &[u8]| matches!(value[31], 0..=0x0F | 0xF0..);
        return data.chunks_exact(32).all(is_small).then(|| ColumnData::Fixed(data.into_owned()));
    }
    if !(0..=38).contains(&shift) {
        return None;
    }
    let factor = 10i128.checked_pow(shift as u32)?;
    // A value with more digits than the type promises may be stored by ClickHouse all the same; nobody has to guess.
    let limit = 10i128.checked_pow(u32::from(*precision)).unwrap_or(i128::MAX);
    let fixed = collect(data.len() / decimals.width * to_width, |out| {
        data.chunks_exact(decimals.width).try_for_each(|bytes| {
            let value = narrow(bytes)?.checked_mul(factor)?;
            if value <= -limit || value >= limit {
                return None;
            }
            let sign = if value < 0 { 0xFF } else { 0 };
            let bytes = value.to_le_bytes();
            out.extend_from_slice(&bytes[..to_width.min(16)]);
            out.resize(out.len() + to_width.saturating_sub(16), sign);
            Some(())
        })
    });
    fixed.map(ColumnData::Fixed)
}

/// Reads a little-endian number of any width, if it fits into 128 bits.
fn narrow(bytes: &[u8]) -> Option<i128> {
    let sign = if bytes.last()? & 0x80 != 0 { 0xFF } else { 0 };
    let mut value = [sign; 16];
    let kept = bytes.len().min(16);
    value[..kept].copy_from_slice(&bytes[..kept]);
    let number = i128::from_le_bytes(value);
    let fits = bytes[kept..].iter().all(|byte| *byte == sign) && (number < 0) == (sign != 0);
    fits.then_some(number)
}
