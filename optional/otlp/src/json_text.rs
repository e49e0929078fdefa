//! JSON as Go writes it, without its care for HTML: what the collector makes of lists and maps.

use base64::engine::general_purpose::STANDARD;
use base64::Engine;
use windrow_columns::value_text::number;

use crate::value::{bool_text, AnyValue, Attribute};
use crate::wire::{checked, Payload};

/// Who reads a JSON text.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum JsonFor {
    /// Nobody in particular: it is the collector's text of a list or map.
    Text,
    /// ClickHouse, which takes a number without an exponent for an integer, and refuses those that are too large for one.
    Column,
    /// Somebody who is to see what can't be had in a column. Nothing is without a form: texts stand for numbers that have
    /// none.
    Repair,
}

/// A number that JSON has no form for: NaN, or one that is infinite.
#[derive(Debug)]
pub(crate) struct NotJson;

pub(crate) fn write_json(value: &AnyValue<'_>, reader: JsonFor, out: &mut Vec<u8>) -> Result<(), NotJson> {
    match value {
        // The collector makes no difference between bytes that are empty and none.
        AnyValue::Empty | AnyValue::Bytes([]) => out.extend_from_slice(b"null"),
        AnyValue::Text(text) => write_json_string(text, out),
        AnyValue::Bool(bool) => out.extend_from_slice(bool_text(*bool)),
        AnyValue::Int(int) => number::integer(out, *int),
        AnyValue::Double(double) => write_finite(*double, reader, out)?,
        AnyValue::Bytes(bytes) => write_json_string(STANDARD.encode(bytes).as_bytes(), out),
        AnyValue::List(list) => write_json_list(list, reader, out)?,
        AnyValue::Map(map) => write_json_map(&Attribute::all_of(map), reader, out)?,
    }
    Ok(())
}

/// The shortest form that means the number; with an exponent where JavaScript would write one.
pub(crate) fn write_finite(double: f64, reader: JsonFor, out: &mut Vec<u8>) -> Result<(), NotJson> {
    if !double.is_finite() {
        if reader != JsonFor::Repair {
            return Err(NotJson);
        }
        out.push(b'"');
        out.extend_from_slice(not_finite_text(double));
        out.push(b'"');
        return Ok(());
    }
    let shortest = format!("{double:e}");
    if reader != JsonFor::Text && double.abs() >= 2_f64.powi(63) {
        out.extend_from_slice(shortest.as_bytes());
        return Ok(());
    }
    match shortest.split_once('e') {
        Some((digits, exponent)) if exponent.parse().is_ok_and(|exponent: i32| exponent >= 21) => {
            out.extend_from_slice(digits.as_bytes());
            out.extend_from_slice(b"e+");
            out.extend_from_slice(exponent.as_bytes());
        }
        _ => number::float(out, &shortest),
    }
    Ok(())
}

/// As the collector writes it outside of JSON.
pub(crate) fn not_finite_text(double: f64) -> &'static [u8] {
    match () {
        () if double.is_nan() => b"NaN",
        () if double > 0.0 => b"Infinity",
        () => b"-Infinity",
    }
}

fn write_json_list(list: &[u8], reader: JsonFor, out: &mut Vec<u8>) -> Result<(), NotJson> {
    out.push(b'[');
    let mut is_first = true;
    for field in checked(list) {
        let (1, Payload::Bytes(element)) = (field.number, field.payload) else { continue };
        if !std::mem::take(&mut is_first) {
            out.push(b',');
        }
        let mut value = AnyValue::Empty;
        value.read(element);
        write_json(&value, reader, out)?;
    }
    out.push(b']');
    Ok(())
}

/// Of entries that are sorted, and of those with the same key the last.
pub(crate) fn write_json_map(sorted: &[Attribute<'_>], reader: JsonFor, out: &mut Vec<u8>) -> Result<(), NotJson> {
    out.push(b'{');
    let mut is_first = true;
    for (at, entry) in sorted.iter().enumerate() {
        if sorted.get(at + 1).is_some_and(|next| next.key == entry.key) {
            continue;
        }
        if !std::mem::take(&mut is_first) {
            out.push(b',');
        }
        write_json_string(entry.key, out);
        out.push(b':');
        write_json(&entry.value, reader, out)?;
    }
    out.push(b'}');
    Ok(())
}

/// With a replacement character for every byte that is not UTF-8, and with the two line ends of Unicode escaped, as Go does.
fn write_json_string(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for chunk in text.utf8_chunks() {
        chunk.valid().chars().for_each(|letter| write_json_letter(letter, out));
        chunk.invalid().iter().for_each(|_| out.extend_from_slice(b"\\ufffd"));
    }
    out.push(b'"');
}

fn write_json_letter(letter: char, out: &mut Vec<u8>) {
    let short = match letter {
        '"' | '\\' => letter as u8,
        '\n' => b'n',
        '\r' => b'r',
        '\t' => b't',
        '\u{8}' => b'b',
        '\u{c}' => b'f',
        '\0'..' ' | '\u{2028}' | '\u{2029}' => {
            return out.extend_from_slice(format!("\\u{:04x}", u32::from(letter)).as_bytes());
        }
        _ => return out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes()),
    };
    out.extend_from_slice(&[b'\\', short]);
}
