//! Writes JSON like Go, but without Go's escapes for HTML: the collector makes such texts of lists and maps.

use base64::engine::general_purpose::STANDARD;
use base64::Engine;
use windrow_columns::value_text::number;

use crate::value::{bool_text, AnyValue, Attribute};
use crate::wire::{checked, Payload};

/// The reader that a JSON text is for.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum JsonFor {
    /// No particular reader: it is the collector's text of a list or map.
    Text,
    /// ClickHouse. It takes a number without an exponent for an integer, and refuses it if it is too large for one.
    Column,
    /// A person who is to see what can't be stored in a column. Every value has a form: texts stand for
    /// numbers that have none.
    Repair,
}

/// A number that JSON has no form for: NaN or infinity.
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

/// Writes the shortest form of the number, with an exponent where JavaScript would write one.
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

/// Returns the collector's text for such a number outside of JSON.
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

/// Writes an object of sorted entries. Of several entries with the same key, the last is written.
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

/// Writes a text with a replacement character for every byte that is not UTF-8, and with Unicode's two line
/// ends escaped, as Go does.
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
