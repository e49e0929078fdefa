//! Values in JSON: on one line, or over several lines as in the format JSON.

use super::{append, escape::json_string, write_bare, write_value, TextContext};
use crate::results::settings::OutputSettings;
use crate::results::values::{Column, Values};

pub(crate) fn json_value(out: &mut Vec<u8>, column: &Column, row: usize, settings: &OutputSettings) {
    if column.is_null(row) {
        return out.extend_from_slice(b"null");
    }
    match &column.values {
        Values::Array { offsets, element } => {
            out.push(b'[');
            for (at, item) in offsets.range(row).enumerate() {
                separate(out, at, ",");
                json_value(out, element, item, settings);
            }
            out.push(b']');
        }
        Values::Map { offsets, key, value } => {
            out.push(b'{');
            for (at, item) in offsets.range(row).enumerate() {
                separate(out, at, ",");
                map_key(out, key, item, settings);
                out.push(b':');
                json_value(out, value, item, settings);
            }
            out.push(b'}');
        }
        Values::Tuple { names: Some(names), elements } if settings.named_tuples_as_objects => {
            out.push(b'{');
            for (at, (name, element)) in names.iter().zip(elements).enumerate() {
                separate(out, at, ",");
                json_string(out, name.as_bytes(), settings.escape_forward_slashes);
                out.push(b':');
                json_value(out, element, row, settings);
            }
            out.push(b'}');
        }
        Values::Tuple { elements, .. } => {
            out.push(b'[');
            for (at, element) in elements.iter().enumerate() {
                separate(out, at, ",");
                json_value(out, element, row, settings);
            }
            out.push(b']');
        }
        values => scalar(out, values, row, settings),
    }
}

/// Writes each element of a container on a line of its own, `indent` tabs deep. Arrays of scalars stay on one line.
pub(crate) fn json_pretty(out: &mut Vec<u8>, column: &Column, row: usize, settings: &OutputSettings, indent: usize) {
    if column.is_null(row) {
        return out.extend_from_slice(b"null");
    }
    match &column.values {
        Values::Array { offsets, element } if is_container(element) && !offsets.range(row).is_empty() => {
            out.extend_from_slice(b"[\n");
            for (at, item) in offsets.range(row).enumerate() {
                separate(out, at, ",\n");
                tabs(out, indent + 1);
                json_pretty(out, element, item, settings, indent + 1);
            }
            close(out, b']', indent);
        }
        Values::Map { offsets, key, value } if !offsets.range(row).is_empty() => {
            out.extend_from_slice(b"{\n");
            for (at, item) in offsets.range(row).enumerate() {
                separate(out, at, ",\n");
                tabs(out, indent + 1);
                map_key(out, key, item, settings);
                out.extend_from_slice(b": ");
                json_pretty(out, value, item, settings, indent + 1);
            }
            close(out, b'}', indent);
        }
        Values::Tuple { names, elements } => {
            let names = names.as_ref().filter(|_| settings.named_tuples_as_objects);
            out.extend_from_slice(if names.is_some() { b"{\n" } else { b"[\n" });
            for (at, element) in elements.iter().enumerate() {
                separate(out, at, ",\n");
                tabs(out, indent + 1);
                if let Some(name) = names.and_then(|names| names.get(at)) {
                    json_string(out, name.as_bytes(), settings.escape_forward_slashes);
                    out.extend_from_slice(b": ");
                }
                json_pretty(out, element, row, settings, indent + 1);
            }
            close(out, if names.is_some() { b'}' } else { b']' }, indent);
        }
        _ => json_value(out, column, row, settings),
    }
}

fn is_container(column: &Column) -> bool {
    matches!(column.values, Values::Array { .. } | Values::Map { .. } | Values::Tuple { .. })
}

fn scalar(out: &mut Vec<u8>, values: &Values, row: usize, settings: &OutputSettings) {
    let bare = |out: &mut Vec<u8>| write_bare(out, values, row);
    match values {
        Values::Int64(_) | Values::UInt64(_) | Values::Int128(_) | Values::UInt128(_)
            if settings.quote_64bit_integers =>
        {
            in_quotes(out, bare);
        }
        Values::Decimal { .. } if settings.quote_decimals => in_quotes(out, bare),
        Values::Float32(array) => float(out, array.value(row).is_finite(), settings, bare),
        Values::Float64(array) => float(out, array.value(row).is_finite(), settings, bare),
        Values::String(strings) => json_string(out, strings.bytes(row), settings.escape_forward_slashes),
        Values::FixedString(array) => json_string(out, array.value(row), settings.escape_forward_slashes),
        Values::Enum { numbers, names } => {
            json_string(out, names[numbers[row] as usize].as_bytes(), settings.escape_forward_slashes);
        }
        Values::Date(_) | Values::Time { .. } | Values::Moment { .. } | Values::Uuid(_) => in_quotes(out, bare),
        Values::Interval(_) | Values::TimeWithZone(_) | Values::Bits(_) => in_quotes(out, bare),
        _ => bare(out),
    }
}

fn float(out: &mut Vec<u8>, finite: bool, settings: &OutputSettings, bare: impl Fn(&mut Vec<u8>)) {
    match (finite, settings.quote_denormals) {
        (true, _) => bare(out),
        (false, true) => in_quotes(out, bare),
        (false, false) => out.extend_from_slice(b"null"),
    }
}

fn in_quotes(out: &mut Vec<u8>, write: impl Fn(&mut Vec<u8>)) {
    out.push(b'"');
    write(out);
    out.push(b'"');
}

/// Writes a map's key as a string: keys of JSON's objects are strings, whatever the map's are.
fn map_key(out: &mut Vec<u8>, key: &Column, item: usize, settings: &OutputSettings) {
    let mut text = Vec::new();
    write_value(&mut text, key, item, TextContext::Raw);
    json_string(out, &text, settings.escape_forward_slashes);
}

fn separate(out: &mut Vec<u8>, at: usize, separator: &str) {
    if at > 0 {
        out.extend_from_slice(separator.as_bytes());
    }
}

fn close(out: &mut Vec<u8>, mark: u8, indent: usize) {
    out.push(b'\n');
    tabs(out, indent);
    out.push(mark);
}

fn tabs(out: &mut Vec<u8>, count: usize) {
    append(out, format_args!("{:\t<count$}", ""));
}
