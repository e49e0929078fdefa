//! Values of a fixed width: numbers, dates, times, identifiers.

use std::net::{Ipv4Addr, Ipv6Addr};

use windrow_columns::{DataType, EnumValue};

use super::field::{Field, Layout};
use super::numbers::{float, integer, key};
use super::texts::text_of;
use super::view::View;
use super::writer::Piece;
use super::Unsuited;

const SECONDS_PER_DAY: i128 = 86_400;
const MILLISECONDS_PER_DAY: i128 = 86_400_000;

/// Writes a column of a scalar type other than the strings. NULLs become zeros.
pub(super) fn put(field: &Field, pieces: &[Piece<'_>], scalar: &DataType, out: &mut Vec<u8>) -> Result<(), Unsuited> {
    let width = scalar.fixed_width().ok_or(Unsuited)?;
    for piece in pieces {
        if is_same(field, scalar) {
            let start = out.len();
            out.extend_from_slice(piece.view.bytes(1, width, piece.rows.start, piece.rows.len()));
            clear_nulls(piece, width, &mut out[start..]);
            continue;
        }
        for row in piece.rows.clone() {
            let end = out.len() + width;
            if field.layout != Layout::Null && piece.view.is_valid(row) {
                put_value(field, &piece.view, row, scalar, out)?;
            }
            out.resize(end, 0);
        }
    }
    Ok(())
}

/// Sets the values of NULLs to zero. Arrow may have any bytes in the place of a NULL, which are nobody's
/// business.
fn clear_nulls(piece: &Piece<'_>, width: usize, values: &mut [u8]) {
    if piece.view.may_have_nulls() {
        for (value, row) in values.chunks_exact_mut(width).zip(piece.rows.clone()) {
            if !piece.view.is_valid(row) {
                value.fill(0);
            }
        }
    }
}

/// Says whether the bytes are the same on both sides.
fn is_same(field: &Field, scalar: &DataType) -> bool {
    use DataType::*;
    let int = |width, signed| Layout::Int { width, signed };
    if field.dictionary.is_some() {
        return false;
    }
    match scalar {
        UInt8 => field.layout == int(1, false),
        UInt16 => field.layout == int(2, false),
        UInt32 | DateTime { .. } | Ipv4 => field.layout == int(4, false),
        UInt64 => field.layout == int(8, false),
        Int8 => field.layout == int(1, true),
        Int16 => field.layout == int(2, true),
        Int32 => field.layout == int(4, true),
        Int64 | Interval(_) => field.layout == int(8, true),
        Float32 => field.layout == Layout::Float { width: 4 },
        Float64 => field.layout == Layout::Float { width: 8 },
        DateTime64 { precision, .. } => {
            field.layout == Layout::Timestamp { per_second: 10_i64.pow(u32::from(*precision)) }
        }
        UInt128 | Int128 | Ipv6 => field.layout == Layout::FixedBytes { width: 16 },
        UInt256 | Int256 => field.layout == Layout::FixedBytes { width: 32 },
        _ => false,
    }
}

/// Appends the value, or some of its bytes if the rest of them are zeros.
fn put_value(field: &Field, view: &View<'_>, row: usize, scalar: &DataType, out: &mut Vec<u8>) -> Result<(), Unsuited> {
    use DataType::*;
    if let (Some(values), Some(dictionary)) = (&field.dictionary, view.dictionary()) {
        let key = key(field, view, row).filter(|key| *key < dictionary.length()).ok_or(Unsuited)?;
        return match dictionary.is_valid(key) {
            true => put_value(values, &dictionary, key, scalar, out),
            // NULLs were looked for before.
            false => Ok(()),
        };
    }
    let number = || integer(field.layout, view, row);
    let whole = || matches!(field.layout, Layout::Int { .. } | Layout::Bool).then(number).flatten().ok_or(Unsuited);
    match scalar {
        UInt8 => put_int::<u8>(whole()?, out),
        UInt16 => put_int::<u16>(whole()?, out),
        UInt32 => put_int::<u32>(whole()?, out),
        UInt64 => put_int::<u64>(whole()?, out),
        Int8 => put_int::<i8>(whole()?, out),
        Int16 => put_int::<i16>(whole()?, out),
        Int32 => put_int::<i32>(whole()?, out),
        Int64 => put_int::<i64>(whole()?, out),
        Bool => match whole()? {
            truth @ 0..=1 => put_int::<u8>(truth, out),
            _ => Err(Unsuited),
        },
        UInt128 | UInt256 => put_wide(whole()?, false, scalar, out),
        Int128 | Int256 => put_wide(whole()?, true, scalar, out),
        Float64 => {
            out.extend(float(field.layout, view, row).ok_or(Unsuited)?.to_le_bytes());
            Ok(())
        }
        Float32 => {
            out.extend((float(field.layout, view, row).ok_or(Unsuited)? as f32).to_le_bytes());
            Ok(())
        }
        Date => put_int::<u16>(days(field.layout, number)?, out),
        Date32 => put_int::<i32>(days(field.layout, number)?, out),
        DateTime { .. } => put_int::<u32>(ticks(field.layout, number, 1, Rounding::Down)?, out),
        DateTime64 { precision, .. } => {
            let per_second = 10_i128.pow(u32::from(*precision));
            put_int::<i64>(ticks(field.layout, number, per_second, Rounding::Down)?, out)
        }
        Time => put_int::<i32>(ticks(field.layout, number, 1, Rounding::ToZero)?, out),
        Time64 { precision } => {
            let per_second = 10_i128.pow(u32::from(*precision));
            put_int::<i64>(ticks(field.layout, number, per_second, Rounding::ToZero)?, out)
        }
        Interval(_) => put_int::<i64>(whole()?, out),
        Decimal { precision, scale } => {
            let value = decimal(field.layout, number, i32::from(*scale))?;
            if value.unsigned_abs() >= 10_u128.checked_pow(u32::from(*precision)).unwrap_or(u128::MAX) {
                return Err(Unsuited);
            }
            put_wide_to(value, scalar.fixed_width().ok_or(Unsuited)?, out)
        }
        Uuid => put_uuid(field, view, row, out),
        Ipv4 => put_ipv4(field, view, row, out),
        Ipv6 => put_ipv6(field, view, row, out),
        Enum8(names) => put_int::<i8>(enumerated(field, view, row, names)?, out),
        Enum16(names) => put_int::<i16>(enumerated(field, view, row, names)?, out),
        BFloat16 | String | FixedString(_) => Err(Unsuited),
        Nullable(_) | LowCardinality(_) | Array(_) | Map(..) | Tuple(_) | Variant(_) | Custom(_) => Err(Unsuited),
        Dynamic | Json { .. } | QBit { .. } | Nothing | AggregateFunction(_) => Err(Unsuited),
    }
}

trait Bytes: TryFrom<i128> {
    fn put(self, out: &mut Vec<u8>);
}

macro_rules! bytes {
    ($($int:ty)*) => { $(impl Bytes for $int {
        fn put(self, out: &mut Vec<u8>) {
            out.extend(self.to_le_bytes());
        }
    })* };
}
bytes!(u8 u16 u32 u64 i8 i16 i32 i64);

fn put_int<T: Bytes>(number: i128, out: &mut Vec<u8>) -> Result<(), Unsuited> {
    T::try_from(number).map_err(|_| Unsuited)?.put(out);
    Ok(())
}

fn put_wide(number: i128, signed: bool, scalar: &DataType, out: &mut Vec<u8>) -> Result<(), Unsuited> {
    if number < 0 && !signed {
        return Err(Unsuited);
    }
    put_wide_to(number, scalar.fixed_width().ok_or(Unsuited)?, out)
}

/// Writes a number in as many bytes as the type has, which were found to be enough.
fn put_wide_to(number: i128, width: usize, out: &mut Vec<u8>) -> Result<(), Unsuited> {
    let bytes = number.to_le_bytes();
    let sign = if number < 0 { 0xFF } else { 0 };
    out.extend((0..width).map(|at| bytes.get(at).copied().unwrap_or(sign)));
    Ok(())
}

fn days(layout: Layout, number: impl Fn() -> Option<i128>) -> Result<i128, Unsuited> {
    let number = number().ok_or(Unsuited)?;
    match layout {
        Layout::Date { width: 4 } => Ok(number),
        Layout::Date { .. } => Ok(number.div_euclid(MILLISECONDS_PER_DAY)),
        Layout::Timestamp { per_second } => Ok(number.div_euclid(SECONDS_PER_DAY * i128::from(per_second))),
        _ => Err(Unsuited),
    }
}

#[derive(Clone, Copy)]
enum Rounding {
    Down,
    ToZero,
}

/// Returns moments since 1970, or times of day, in the type's own ticks.
fn ticks(
    layout: Layout,
    number: impl Fn() -> Option<i128>,
    wanted_per_second: i128,
    rounding: Rounding,
) -> Result<i128, Unsuited> {
    let number = number().ok_or(Unsuited)?;
    let per_second = match (layout, rounding) {
        (Layout::Timestamp { per_second }, Rounding::Down) => per_second,
        (Layout::TimeOfDay { per_second, .. } | Layout::Duration { per_second }, Rounding::ToZero) => per_second,
        (Layout::Date { width: 4 }, Rounding::Down) => return Ok(number * SECONDS_PER_DAY * wanted_per_second),
        (Layout::Date { .. }, Rounding::Down) => 1_000,
        _ => return Err(Unsuited),
    };
    let scaled = number * wanted_per_second;
    Ok(match rounding {
        Rounding::Down => scaled.div_euclid(i128::from(per_second)),
        Rounding::ToZero => scaled / i128::from(per_second),
    })
}

/// Returns a Decimal of the wanted scale, if no digit is lost.
fn decimal(layout: Layout, number: impl Fn() -> Option<i128>, wanted_scale: i32) -> Result<i128, Unsuited> {
    let number = number().ok_or(Unsuited)?;
    let scale = match layout {
        Layout::Decimal { scale, .. } => scale,
        Layout::Int { .. } => 0,
        _ => return Err(Unsuited),
    };
    let more = u32::try_from(wanted_scale - scale).map_err(|_| Unsuited)?;
    10_i128.checked_pow(more).and_then(|factor| number.checked_mul(factor)).ok_or(Unsuited)
}

fn put_uuid(field: &Field, view: &View<'_>, row: usize, out: &mut Vec<u8>) -> Result<(), Unsuited> {
    let text = text_of(field, view, row)?;
    let octets: [u8; 16] = match field.layout {
        Layout::FixedBytes { width: 16 } => text.try_into().map_err(|_| Unsuited)?,
        Layout::Bytes { .. } | Layout::BytesView => uuid_of_text(text)?,
        _ => return Err(Unsuited),
    };
    out.extend(octets[..8].iter().rev());
    out.extend(octets[8..].iter().rev());
    Ok(())
}

fn uuid_of_text(text: &[u8]) -> Result<[u8; 16], Unsuited> {
    let text = std::str::from_utf8(text).map_err(|_| Unsuited)?;
    let in_places =
        text.len() == 36 && text.char_indices().all(|(at, letter)| (letter == '-') == [8, 13, 18, 23].contains(&at));
    let digits: String = text.chars().filter(|letter| letter.is_ascii_hexdigit()).collect();
    if !in_places || digits.len() != 32 {
        return Err(Unsuited);
    }
    u128::from_str_radix(&digits, 16).map(u128::to_be_bytes).map_err(|_| Unsuited)
}

fn put_ipv4(field: &Field, view: &View<'_>, row: usize, out: &mut Vec<u8>) -> Result<(), Unsuited> {
    if let Layout::Int { .. } = field.layout {
        return put_int::<u32>(integer(field.layout, view, row).ok_or(Unsuited)?, out);
    }
    let address: Ipv4Addr = parsed(field, view, row)?;
    out.extend(u32::from(address).to_le_bytes());
    Ok(())
}

fn put_ipv6(field: &Field, view: &View<'_>, row: usize, out: &mut Vec<u8>) -> Result<(), Unsuited> {
    let octets = match field.layout {
        Layout::FixedBytes { width: 16 } => text_of(field, view, row)?.try_into().map_err(|_| Unsuited)?,
        _ => parsed::<Ipv6Addr>(field, view, row)?.octets(),
    };
    out.extend(octets);
    Ok(())
}

fn parsed<T: std::str::FromStr>(field: &Field, view: &View<'_>, row: usize) -> Result<T, Unsuited> {
    let text = std::str::from_utf8(text_of(field, view, row)?).map_err(|_| Unsuited)?;
    text.parse().map_err(|_| Unsuited)
}

/// Returns the value of an Enum, found by number or by name.
fn enumerated(field: &Field, view: &View<'_>, row: usize, names: &[EnumValue]) -> Result<i128, Unsuited> {
    let found = match field.layout {
        Layout::Int { .. } => {
            let number = integer(field.layout, view, row).ok_or(Unsuited)?;
            names.iter().find(|name| i128::from(name.value) == number)
        }
        _ => {
            let text = text_of(field, view, row)?;
            names.iter().find(|name| name.name.as_bytes() == text)
        }
    };
    found.map(|name| i128::from(name.value)).ok_or(Unsuited)
}
