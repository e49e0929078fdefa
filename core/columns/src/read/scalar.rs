//! Values that JSON and VALUES write in the same way, apart from their quotes.

use memchr::memchr;

use super::address;
use super::cursor::Cursor;
use super::number;
use super::outcome::NotParsedReason;
use super::time;
use super::time_of_day;
use crate::column::MAX_ZERO_BYTES;
use crate::reader::Reader;
use crate::settings::ReadSettings;
use crate::wire::write_varint;

/// The longest text in quotes: no date, address or UUID is longer.
const MAX_QUOTED_BYTES: usize = 64;

/// Reads the text up to the closing quote, which the cursor is left behind. Only for types whose values need
/// no escapes.
#[inline]
pub(super) fn quoted<'a>(cursor: &mut Cursor<'a>, quote: u8) -> Result<&'a [u8], NotParsedReason> {
    let rest = cursor.rest();
    // `2006-01-02 15:04:05`, which most are. Any other text of this shape is no value of such a type.
    if let [_, _, _, _, b'-', _, _, b'-', _, _, b' ' | b'T', _, _, b':', _, _, b':', _, _, end, ..] = rest {
        if *end == quote {
            cursor.at += 20;
            return Ok(&rest[..19]);
        }
    }
    let window = &rest[..rest.len().min(MAX_QUOTED_BYTES)];
    let length = memchr(quote, window).ok_or(NotParsedReason::Value)?;
    cursor.at += length + 1;
    Ok(&rest[..length])
}

/// Appends a bare number to a numeric column.
#[inline]
pub(super) fn push_number(reader: &Reader, cursor: &mut Cursor<'_>, out: &mut Vec<u8>) -> Result<(), NotParsedReason> {
    match reader {
        Reader::Integer { width, signed } => number::push_integer(cursor, *width, *signed, out),
        Reader::WideInteger { width, signed } => number::push_wide_integer(cursor, *width, *signed, out),
        Reader::Float32 => number::push_float32(cursor, out),
        Reader::Float64 => number::push_float64(cursor, out),
        Reader::BFloat16 => number::push_bfloat16(cursor, out),
        Reader::Decimal { precision, scale, width } => number::push_decimal(cursor, *precision, *scale, *width, out),
        _ => Err(NotParsedReason::Value),
    }
}

/// Appends a float that has no digits, and says whether the text is one.
pub(super) fn push_special_float(reader: &Reader, text: &[u8], out: &mut Vec<u8>) -> bool {
    let value = match text {
        b"nan" => f32::NAN,
        b"inf" => f32::INFINITY,
        b"-inf" => f32::NEG_INFINITY,
        _ => return false,
    };
    match reader {
        Reader::Float32 => out.extend_from_slice(&value.to_le_bytes()),
        Reader::Float64 => out.extend_from_slice(&f64::from(value).to_le_bytes()),
        Reader::BFloat16 => out.extend_from_slice(&value.to_le_bytes()[2..]),
        _ => return false,
    }
    true
}

/// Appends Unix seconds to a DateTime, seconds to a Time, ticks to a DateTime64 or Time64.
pub(super) fn push_time_number(
    reader: &Reader,
    cursor: &mut Cursor<'_>,
    settings: &ReadSettings,
    out: &mut Vec<u8>,
) -> Result<(), NotParsedReason> {
    match reader {
        Reader::DateTime(_) => {
            let seconds = u32::try_from(number::read_magnitude(cursor)?).map_err(|_| NotParsedReason::Value)?;
            out.extend_from_slice(&seconds.to_le_bytes());
            Ok(())
        }
        Reader::DateTime64 { .. } if settings.numbers_are_ticks() => number::push_integer(cursor, 8, true, out),
        Reader::Time => {
            let seconds = time_of_day::seconds(number::read_signed(cursor)?).ok_or(NotParsedReason::Value)?;
            out.extend_from_slice(&seconds.to_le_bytes());
            Ok(())
        }
        Reader::Time64 { precision } if settings.numbers_are_ticks() => {
            let ticks = time_of_day::ticks(number::read_signed(cursor)?, *precision).ok_or(NotParsedReason::Value)?;
            out.extend_from_slice(&ticks.to_le_bytes());
            Ok(())
        }
        Reader::DateTime64 { .. } | Reader::Time64 { .. } => Err(NotParsedReason::Setting),
        _ => Err(NotParsedReason::Value),
    }
}

/// Appends a value that is written as text without escapes: a time, an address, a UUID.
#[inline]
pub(super) fn push_text(
    reader: &Reader,
    text: &[u8],
    settings: &ReadSettings,
    out: &mut Vec<u8>,
) -> Result<(), NotParsedReason> {
    let spelling = settings.time_spelling;
    match reader {
        Reader::DateTime(zone) => {
            let written = time::read_written(text).ok_or(NotParsedReason::Value)?;
            out.extend_from_slice(&written.date_time(zone, spelling)?.to_le_bytes());
        }
        Reader::DateTime64 { precision, zone } => {
            let written = time::read_written(text).ok_or(NotParsedReason::Value)?;
            out.extend_from_slice(&written.date_time64(*precision, zone, settings)?.to_le_bytes());
        }
        Reader::Date => {
            let days = time::read_date(text).ok_or(NotParsedReason::Value)?;
            out.extend_from_slice(&time::date(days)?.to_le_bytes());
        }
        Reader::Date32 => {
            let days = time::read_date(text).ok_or(NotParsedReason::Value)?;
            out.extend_from_slice(&time::date32(days, settings)?.to_le_bytes());
        }
        Reader::Time => {
            out.extend_from_slice(&time_of_day::time(text).ok_or(NotParsedReason::Value)?.to_le_bytes());
        }
        Reader::Time64 { precision } => {
            out.extend_from_slice(&time_of_day::time64(text, *precision).ok_or(NotParsedReason::Value)?.to_le_bytes());
        }
        Reader::Uuid => out.extend_from_slice(&address::uuid(text).ok_or(NotParsedReason::Value)?),
        Reader::Ipv4 => out.extend_from_slice(&address::ipv4(text).ok_or(NotParsedReason::Value)?),
        Reader::Ipv6 => out.extend_from_slice(&address::ipv6(text).ok_or(NotParsedReason::Value)?),
        _ => return Err(NotParsedReason::Value),
    }
    Ok(())
}

#[inline]
pub(super) fn push_string(text: &[u8], rows: &mut usize, out: &mut Vec<u8>) {
    *rows += 1;
    write_varint(out, text.len() as u64);
    out.extend_from_slice(text);
}

pub(super) fn push_fixed_string(text: &[u8], width: usize, out: &mut Vec<u8>) -> Result<(), NotParsedReason> {
    if text.len() > width || width - text.len() > MAX_ZERO_BYTES {
        return Err(NotParsedReason::Value);
    }
    let end = out.len() + width;
    out.extend_from_slice(text);
    out.resize(end, 0);
    Ok(())
}
