//! Values as text, in each of the forms that ClickHouse writes.

mod escape;
mod json;
mod rendered;

pub(crate) use escape::{csv_string, escaped, json_string, quoted};
pub(crate) use json::{json_pretty, json_value};

use std::io::Write;

use windrow_columns::value_text::{number, time};

use crate::results::values::{Column, Values};

/// The place of a value, which decides how it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextContext {
    /// A field of TabSeparated.
    Escaped,
    /// A field of TabSeparatedRaw: nothing is escaped.
    Raw,
    /// A field of CSV.
    Csv,
    /// A value of `Values`, or inside an array, a map or a tuple anywhere but in JSON.
    Quoted,
}

pub(crate) fn write_value(out: &mut Vec<u8>, column: &Column, row: usize, place: TextContext) {
    if column.is_null(row) {
        return out.extend_from_slice(if place == TextContext::Quoted { b"NULL" } else { b"\\N" });
    }
    match &column.values {
        Values::String(strings) => write_string(out, strings.bytes(row), place),
        Values::FixedString(array) => write_string(out, array.value(row), place),
        Values::Enum { numbers, names } => write_string(out, names[numbers[row] as usize].as_bytes(), place),
        Values::Array { .. } | Values::Map { .. } | Values::Tuple { .. } => match place {
            TextContext::Csv => csv_string(out, |out| write_nested(out, column, row)),
            _ => write_nested(out, column, row),
        },
        values if is_bare(values) => write_bare(out, values, row),
        // Letters and signs that need no escape, but do need their quotes.
        values => match place {
            TextContext::Escaped | TextContext::Raw => write_bare(out, values, row),
            TextContext::Csv => around(out, b'"', |out| write_bare(out, values, row)),
            TextContext::Quoted => around(out, b'\'', |out| write_bare(out, values, row)),
        },
    }
}

fn write_string(out: &mut Vec<u8>, text: &[u8], place: TextContext) {
    match place {
        TextContext::Escaped => escaped(out, text),
        TextContext::Raw => out.extend_from_slice(text),
        TextContext::Csv => csv_string(out, |out| out.extend_from_slice(text)),
        TextContext::Quoted => quoted(out, text),
    }
}

/// Says whether values of the type stand without quotes everywhere.
fn is_bare(values: &Values) -> bool {
    use Values::*;
    match values {
        Nothing | Bool(_) | Int8(_) | Int16(_) | Int32(_) | Int64(_) | Int128(_) => true,
        UInt8(_) | UInt16(_) | UInt32(_) | UInt64(_) | UInt128(_) | Float32(_) | Float64(_) | Decimal { .. } => true,
        String(_) | FixedString(_) | Date(_) | Time { .. } | Moment { .. } | Uuid(_) | Enum { .. } => false,
        Interval(_) | TimeWithZone(_) | Bits(_) | Array { .. } | Map { .. } | Tuple { .. } => false,
    }
}

/// Writes a scalar without quotes around it.
pub(crate) fn write_bare(out: &mut Vec<u8>, values: &Values, row: usize) {
    match values {
        Values::Nothing => out.extend_from_slice(b"NULL"),
        Values::Bool(array) => out.extend_from_slice(if array.value(row) { b"true" } else { b"false" }),
        Values::Int8(array) => number::integer(out, i64::from(array.value(row))),
        Values::Int16(array) => number::integer(out, i64::from(array.value(row))),
        Values::Int32(array) => number::integer(out, i64::from(array.value(row))),
        Values::Int64(array) => number::integer(out, array.value(row)),
        Values::UInt8(array) => number::unsigned(out, u64::from(array.value(row))),
        Values::UInt16(array) => number::unsigned(out, u64::from(array.value(row))),
        Values::UInt32(array) => number::unsigned(out, u64::from(array.value(row))),
        Values::UInt64(array) => number::unsigned(out, array.value(row)),
        Values::Int128(array) => append(out, format_args!("{}", wide(array.value(row)) as i128)),
        Values::UInt128(array) => append(out, format_args!("{}", wide(array.value(row)))),
        Values::Float32(array) => number::float(out, &format!("{:e}", array.value(row))),
        Values::Float64(array) => number::float(out, &format!("{:e}", array.value(row))),
        Values::Decimal { array, scale, .. } => number::decimal(out, array.value(row), usize::from(*scale)),
        Values::Date(array) => time::day(out, i64::from(array.value(row))),
        Values::Time { ticks, precision } => time::of_day(out, ticks[row], *precision),
        Values::Moment { ticks, precision } => time::moment(out, ticks[row], *precision),
        Values::Uuid(array) => rendered::uuid(out, array.value(row)),
        Values::Interval(array) => rendered::interval(out, array.value(row)),
        Values::TimeWithZone(array) => rendered::time_with_zone(out, array.value(row)),
        Values::Bits(strings) => rendered::bits(out, strings.bytes(row)),
        Values::String(strings) => out.extend_from_slice(strings.bytes(row)),
        Values::FixedString(array) => out.extend_from_slice(array.value(row)),
        Values::Enum { numbers, names } => out.extend_from_slice(names[numbers[row] as usize].as_bytes()),
        Values::Array { .. } | Values::Map { .. } | Values::Tuple { .. } => {}
    }
}

fn write_nested(out: &mut Vec<u8>, column: &Column, row: usize) {
    match &column.values {
        Values::Array { offsets, element } => {
            out.push(b'[');
            for (at, item) in offsets.range(row).enumerate() {
                comma(out, at);
                write_value(out, element, item, TextContext::Quoted);
            }
            out.push(b']');
        }
        Values::Map { offsets, key, value } => {
            out.push(b'{');
            for (at, item) in offsets.range(row).enumerate() {
                comma(out, at);
                write_value(out, key, item, TextContext::Quoted);
                out.push(b':');
                write_value(out, value, item, TextContext::Quoted);
            }
            out.push(b'}');
        }
        Values::Tuple { elements, .. } => {
            out.push(b'(');
            for (at, element) in elements.iter().enumerate() {
                comma(out, at);
                write_value(out, element, row, TextContext::Quoted);
            }
            out.push(b')');
        }
        _ => write_value(out, column, row, TextContext::Quoted),
    }
}

fn comma(out: &mut Vec<u8>, at: usize) {
    if at > 0 {
        out.push(b',');
    }
}

fn around(out: &mut Vec<u8>, mark: u8, write: impl FnOnce(&mut Vec<u8>)) {
    out.push(mark);
    write(out);
    out.push(mark);
}

pub(super) fn append(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to a vector cannot fail");
}

/// Reads a number of 16 bytes, little-endian.
pub(crate) fn wide(bytes: &[u8]) -> u128 {
    u128::from_le_bytes(bytes.try_into().expect("the width was checked when the column was taken"))
}

/// Returns the text of a value that ClickHouse lacks a type for.
pub(crate) fn rendered_text(values: &Values, row: usize) -> Vec<u8> {
    let mut text = Vec::new();
    write_bare(&mut text, values, row);
    text
}
