//! Converts strings and byte arrays, and values that are written as such: UUIDs, addresses, names of an Enum,
//! wide integers.

use std::net::{Ipv4Addr, Ipv6Addr};

use windrow_columns::{ColumnData, DataType, EnumValue, StringData};

use super::number::cleaned;
use super::Nulls;
use crate::column::Strings;

pub(super) fn from_strings(
    strings: &Strings<'_>,
    nulls: Option<&[u8]>,
    wanted: &DataType,
    null_rule: Nulls,
) -> Option<ColumnData> {
    let is_null = |row: usize| nulls.is_some_and(|nulls| nulls[row] == 1);
    let values = strings.iter().enumerate().map(|(row, value)| if is_null(row) { None } else { Some(value) });
    let rows = strings.ends.len();
    match wanted {
        DataType::String => {
            let mut out = StringData::with_capacity(rows, strings.data.len());
            values.for_each(|value| out.push(value.unwrap_or_default()));
            Some(ColumnData::Strings(out))
        }
        DataType::FixedString(width) => fixed(rows, *width, values, |value, out| {
            out.extend_from_slice(value);
            out.resize(out.len() + width.checked_sub(value.len())?, 0);
            Some(())
        }),
        // A NULL is read as '' and then cast, which is none of these.
        _ if nulls.is_some() && null_rule != Nulls::Kept => None,
        DataType::Enum8(names) => {
            let by_name = by_name(names);
            fixed(rows, 1, values, |value, out| push_named(&by_name, value, 1, out))
        }
        DataType::Enum16(names) => {
            let by_name = by_name(names);
            fixed(rows, 2, values, |value, out| push_named(&by_name, value, 2, out))
        }
        DataType::Uuid => fixed(rows, 16, values, |value, out| push_uuid(&uuid_bytes(value)?, out)),
        DataType::Ipv4 => fixed(rows, 4, values, |value, out| {
            let address: Ipv4Addr = std::str::from_utf8(value).ok()?.parse().ok()?;
            out.extend_from_slice(&u32::from(address).to_le_bytes());
            Some(())
        }),
        DataType::Ipv6 => fixed(rows, 16, values, |value, out| {
            // Sixteen bytes are also what an address in binary has.
            let address: Ipv6Addr = std::str::from_utf8(value).ok().filter(|text| text.len() != 16)?.parse().ok()?;
            out.extend_from_slice(&address.octets());
            Some(())
        }),
        _ => None,
    }
}

pub(super) fn from_fixed(width: usize, data: &[u8], nulls: Option<&[u8]>, wanted: &DataType) -> Option<ColumnData> {
    let data = cleaned(data, width, nulls);
    let fixed = match (wanted, width) {
        (DataType::FixedString(wanted_width), _) if *wanted_width == width => data.into_owned(),
        (DataType::Ipv6 | DataType::UInt128 | DataType::Int128, 16) => data.into_owned(),
        (DataType::UInt256 | DataType::Int256, 32) => data.into_owned(),
        (DataType::Uuid, 16) => {
            let mut out = Vec::with_capacity(data.len());
            for value in data.chunks_exact(16) {
                push_uuid(value.try_into().ok()?, &mut out)?;
            }
            out
        }
        (DataType::String, _) if nulls.is_none() => {
            let mut out = StringData::with_capacity(data.len() / width, data.len());
            for value in data.chunks_exact(width) {
                // ClickHouse's FixedString loses its zeros at the end when it becomes a String.
                if value.last() == Some(&0) {
                    return None;
                }
                out.push(value);
            }
            return Some(ColumnData::Strings(out));
        }
        _ => return None,
    };
    Some(ColumnData::Fixed(fixed))
}

/// Makes values of a fixed width. Rows that are NULL become zeros.
fn fixed<'v>(
    rows: usize,
    width: usize,
    mut values: impl Iterator<Item = Option<&'v [u8]>>,
    push: impl Fn(&[u8], &mut Vec<u8>) -> Option<()>,
) -> Option<ColumnData> {
    let mut out = Vec::with_capacity(rows.checked_mul(width).filter(|bytes| *bytes <= MAX_PADDED_BYTES)?);
    values.try_for_each(|value| match value {
        Some(value) => push(value, &mut out),
        None => {
            out.resize(out.len() + width, 0);
            Some(())
        }
    })?;
    Some(ColumnData::Fixed(out))
}

/// The most bytes of a column of padded values: a wide FixedString makes much of short values.
const MAX_PADDED_BYTES: usize = 256 << 20;

fn by_name(values: &[EnumValue]) -> Vec<&EnumValue> {
    let mut sorted: Vec<&EnumValue> = values.iter().collect();
    sorted.sort_by(|a, b| a.name.cmp(&b.name));
    sorted
}

fn push_named(sorted: &[&EnumValue], name: &[u8], width: usize, out: &mut Vec<u8>) -> Option<()> {
    let found = sorted.binary_search_by(|entry| entry.name.as_bytes().cmp(name)).ok()?;
    out.extend_from_slice(&sorted[found].value.to_le_bytes()[..width]);
    Some(())
}

/// Writes a UUID as two halves, each little-endian, the more significant half first.
fn push_uuid(bytes: &[u8; 16], out: &mut Vec<u8>) -> Option<()> {
    out.extend(bytes[..8].iter().rev());
    out.extend(bytes[8..].iter().rev());
    Some(())
}

/// Reads a UUID in the usual form of 36 characters, and in no other.
fn uuid_bytes(text: &[u8]) -> Option<[u8; 16]> {
    if text.len() != 36 || [8, 13, 18, 23].iter().any(|&dash| text[dash] != b'-') {
        return None;
    }
    let mut digits = text.iter().enumerate().filter(|(at, _)| ![8, 13, 18, 23].contains(at)).map(|(_, digit)| digit);
    let mut bytes = [0; 16];
    for byte in &mut bytes {
        *byte = hex(*digits.next()?)? << 4 | hex(*digits.next()?)?;
    }
    Some(bytes)
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}
