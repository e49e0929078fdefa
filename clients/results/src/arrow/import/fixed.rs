//! Values of a fixed width: numbers, dates, times, identifiers.

use std::net::{Ipv4Addr, Ipv6Addr};

use arrow_schema::DataType as ArrowType;
use windrow_columns::{DataType, EnumValue};

use super::numbers::{float, key, per_second, Integers};
use super::texts::text_of;
use super::view::View;
use super::writer::Piece;
use super::Unsuited;

const SECONDS_PER_DAY: i128 = 86_400;
const MILLISECONDS_PER_DAY: i128 = 86_400_000;

/// Writes a column of a scalar type other than the strings. NULLs become zeros.
pub(super) fn put(
    arrow: &ArrowType,
    pieces: &[Piece<'_>],
    scalar: &DataType,
    out: &mut Vec<u8>,
) -> Result<(), Unsuited> {
    let width = scalar.fixed_width().ok_or(Unsuited)?;
    for piece in pieces {
        if is_same(arrow, scalar) {
            let start = out.len();
            out.extend_from_slice(piece.view.bytes(width, piece.rows.start, piece.rows.len()).ok_or(Unsuited)?);
            clear_nulls(piece, width, &mut out[start..]);
            continue;
        }
        let integers = Integers::of(&piece.view);
        for row in piece.rows.clone() {
            let end = out.len() + width;
            if !arrow.is_null() && piece.view.is_valid(row) {
                put_value(&piece.view, integers, row, scalar, out).ok_or(Unsuited)?;
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
fn is_same(arrow: &ArrowType, scalar: &DataType) -> bool {
    use DataType::*;
    match (scalar, arrow) {
        (UInt8, ArrowType::UInt8) | (UInt16, ArrowType::UInt16) | (UInt64, ArrowType::UInt64) => true,
        (UInt32 | DateTime { .. } | Ipv4, ArrowType::UInt32) => true,
        (Int8, ArrowType::Int8) | (Int16, ArrowType::Int16) | (Int32, ArrowType::Int32) => true,
        (Int64 | Interval(_), ArrowType::Int64) => true,
        (Float32, ArrowType::Float32) | (Float64, ArrowType::Float64) => true,
        (DateTime64 { precision, .. }, ArrowType::Timestamp(unit, _)) => {
            per_second(unit) == 10_i64.pow(u32::from(*precision))
        }
        (UInt128 | Int128 | Ipv6, ArrowType::FixedSizeBinary(16)) => true,
        (UInt256 | Int256, ArrowType::FixedSizeBinary(32)) => true,
        _ => false,
    }
}

/// Appends the value, or some of its bytes if the rest of them are zeros. `None` where it has not
/// surely a place in the type.
fn put_value(
    view: &View<'_>,
    integers: Option<Integers<'_>>,
    row: usize,
    scalar: &DataType,
    out: &mut Vec<u8>,
) -> Option<()> {
    use DataType::*;
    if let Some(values) = view.dictionary() {
        let key = key(view, row).filter(|key| *key < values.length())?;
        return match values.is_valid(key) {
            true => put_value(&values, Integers::of(&values), key, scalar, out),
            // NULLs were looked for before.
            false => Some(()),
        };
    }
    let arrow = view.data_type();
    let number = || integers.and_then(|integers| integers.get(row));
    let whole = || (arrow.is_integer() || matches!(arrow, ArrowType::Boolean)).then(number).flatten();
    match scalar {
        UInt8 => put_int::<u8>(whole()?, out),
        UInt16 => put_int::<u16>(whole()?, out),
        UInt32 => put_int::<u32>(whole()?, out),
        UInt64 => put_int::<u64>(whole()?, out),
        Int8 => put_int::<i8>(whole()?, out),
        Int16 => put_int::<i16>(whole()?, out),
        Int32 => put_int::<i32>(whole()?, out),
        Int64 => put_int::<i64>(whole()?, out),
        Bool => put_int::<u8>(whole().filter(|truth| (0..=1).contains(truth))?, out),
        UInt128 | UInt256 => put_wide(whole().filter(|number| *number >= 0)?, scalar, out),
        Int128 | Int256 => put_wide(whole()?, scalar, out),
        Float64 => put_bytes(&float(view, row)?.to_le_bytes(), out),
        Float32 => put_bytes(&(float(view, row)? as f32).to_le_bytes(), out),
        Date => put_int::<u16>(days(arrow, number()?)?, out),
        Date32 => put_int::<i32>(days(arrow, number()?)?, out),
        DateTime { .. } => put_int::<u32>(ticks(arrow, number()?, 1, Rounding::Down)?, out),
        DateTime64 { precision, .. } => {
            put_int::<i64>(ticks(arrow, number()?, 10_i128.pow(u32::from(*precision)), Rounding::Down)?, out)
        }
        Time => put_int::<i32>(ticks(arrow, number()?, 1, Rounding::ToZero)?, out),
        Time64 { precision } => {
            put_int::<i64>(ticks(arrow, number()?, 10_i128.pow(u32::from(*precision)), Rounding::ToZero)?, out)
        }
        Interval(_) => put_int::<i64>(whole()?, out),
        Decimal { precision, scale } => {
            let value = decimal(arrow, number()?, i32::from(*scale))?;
            let is_too_long = value.unsigned_abs() >= 10_u128.checked_pow(u32::from(*precision)).unwrap_or(u128::MAX);
            (!is_too_long).then(|| put_wide(value, scalar, out)).flatten()
        }
        Uuid => put_uuid(view, row, out),
        Ipv4 => put_ipv4(view, row, out),
        Ipv6 => put_ipv6(view, row, out),
        Enum8(names) => put_int::<i8>(enumerated(view, row, names)?, out),
        Enum16(names) => put_int::<i16>(enumerated(view, row, names)?, out),
        BFloat16 | String | FixedString(_) => None,
        Nullable(_) | LowCardinality(_) | Array(_) | Map(..) | Tuple(_) | Variant(_) | Custom(_) => None,
        Dynamic | Json { .. } | QBit { .. } | Nothing | AggregateFunction(_) => None,
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

fn put_int<T: Bytes>(number: i128, out: &mut Vec<u8>) -> Option<()> {
    T::try_from(number).ok()?.put(out);
    Some(())
}

fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) -> Option<()> {
    out.extend_from_slice(bytes);
    Some(())
}

/// Writes a number in as many bytes as the type has, which were found to be enough.
fn put_wide(number: i128, scalar: &DataType, out: &mut Vec<u8>) -> Option<()> {
    let bytes = number.to_le_bytes();
    let sign = if number < 0 { 0xFF } else { 0 };
    out.extend((0..scalar.fixed_width()?).map(|at| bytes.get(at).copied().unwrap_or(sign)));
    Some(())
}

fn days(arrow: &ArrowType, number: i128) -> Option<i128> {
    match arrow {
        ArrowType::Date32 => Some(number),
        ArrowType::Date64 => Some(number.div_euclid(MILLISECONDS_PER_DAY)),
        ArrowType::Timestamp(unit, _) => Some(number.div_euclid(SECONDS_PER_DAY * i128::from(per_second(unit)))),
        _ => None,
    }
}

#[derive(Clone, Copy)]
enum Rounding {
    Down,
    ToZero,
}

/// Returns moments since 1970, or times of day, in the type's own ticks.
fn ticks(arrow: &ArrowType, number: i128, wanted_per_second: i128, rounding: Rounding) -> Option<i128> {
    let per_second = match (arrow, rounding) {
        (ArrowType::Timestamp(unit, _), Rounding::Down) => per_second(unit),
        (ArrowType::Time32(unit) | ArrowType::Time64(unit) | ArrowType::Duration(unit), Rounding::ToZero) => {
            per_second(unit)
        }
        (ArrowType::Date32, Rounding::Down) => return Some(number * SECONDS_PER_DAY * wanted_per_second),
        (ArrowType::Date64, Rounding::Down) => 1_000,
        _ => return None,
    };
    let scaled = number * wanted_per_second;
    Some(match rounding {
        Rounding::Down => scaled.div_euclid(i128::from(per_second)),
        Rounding::ToZero => scaled / i128::from(per_second),
    })
}

/// Returns a Decimal of the wanted scale, if no digit is lost.
fn decimal(arrow: &ArrowType, number: i128, wanted_scale: i32) -> Option<i128> {
    let scale = match arrow {
        ArrowType::Decimal32(_, scale) | ArrowType::Decimal64(_, scale) | ArrowType::Decimal128(_, scale) => *scale,
        of if of.is_integer() => 0,
        _ => return None,
    };
    let more = u32::try_from(wanted_scale - i32::from(scale)).ok()?;
    10_i128.checked_pow(more).and_then(|factor| number.checked_mul(factor))
}

fn put_uuid(view: &View<'_>, row: usize, out: &mut Vec<u8>) -> Option<()> {
    let text = text_of(view, row)?;
    let octets: [u8; 16] = match view.data_type() {
        ArrowType::FixedSizeBinary(_) => text.try_into().ok()?,
        _ => uuid_of_text(text)?,
    };
    out.extend(octets[..8].iter().rev());
    out.extend(octets[8..].iter().rev());
    Some(())
}

fn uuid_of_text(text: &[u8]) -> Option<[u8; 16]> {
    let text = std::str::from_utf8(text).ok()?;
    let in_places =
        text.len() == 36 && text.char_indices().all(|(at, letter)| (letter == '-') == [8, 13, 18, 23].contains(&at));
    let digits: String = text.chars().filter(|letter| letter.is_ascii_hexdigit()).collect();
    if !in_places || digits.len() != 32 {
        return None;
    }
    u128::from_str_radix(&digits, 16).map(u128::to_be_bytes).ok()
}

fn put_ipv4(view: &View<'_>, row: usize, out: &mut Vec<u8>) -> Option<()> {
    if view.data_type().is_integer() {
        return put_int::<u32>(Integers::of(view)?.get(row)?, out);
    }
    put_bytes(&u32::from(parsed::<Ipv4Addr>(view, row)?).to_le_bytes(), out)
}

fn put_ipv6(view: &View<'_>, row: usize, out: &mut Vec<u8>) -> Option<()> {
    let octets = match view.data_type() {
        ArrowType::FixedSizeBinary(16) => text_of(view, row)?.try_into().ok()?,
        _ => parsed::<Ipv6Addr>(view, row)?.octets(),
    };
    put_bytes(&octets, out)
}

fn parsed<T: std::str::FromStr>(view: &View<'_>, row: usize) -> Option<T> {
    std::str::from_utf8(text_of(view, row)?).ok()?.parse().ok()
}

/// Returns the value of an Enum, found by number or by name.
fn enumerated(view: &View<'_>, row: usize, names: &[EnumValue]) -> Option<i128> {
    let found = if view.data_type().is_integer() {
        let number = Integers::of(view)?.get(row)?;
        names.iter().find(|name| i128::from(name.value) == number)
    } else {
        let text = text_of(view, row)?;
        names.iter().find(|name| name.name.as_bytes() == text)
    };
    found.map(|name| i128::from(name.value))
}
