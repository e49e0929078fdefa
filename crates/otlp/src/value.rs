//! Values of attributes, and bodies: what OTLP calls AnyValue, and the texts that the collector makes of them.
//!
//! These texts are what `AsString` of the collector's pdata gives, to the byte: queries and dashboards count on them.

use base64::engine::general_purpose::STANDARD;
use base64::Engine;
use windrow_columns::value_text::number;

use crate::wire::{checked, Payload};

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum AnyValue<'a> {
    #[default]
    Empty,
    Text(&'a [u8]),
    Bool(bool),
    Int(i64),
    Double(f64),
    Bytes(&'a [u8]),
    /// The message that has the elements.
    List(&'a [u8]),
    /// The message that has the entries.
    Map(&'a [u8]),
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Attribute<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) value: AnyValue<'a>,
}

/// Who reads a JSON text.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum JsonFor {
    /// Nobody in particular: it is the collector's text of a list or map.
    Text,
    /// ClickHouse, which takes a number without an exponent for an integer, and refuses those that are too large for one.
    Column,
}

/// A number that JSON has no form for: NaN, or one that is infinite.
#[derive(Debug)]
pub(crate) struct NotJson;

impl<'a> AnyValue<'a> {
    /// Reads a message of one; fields of it that come later replace earlier ones.
    pub(crate) fn read(&mut self, message: &'a [u8]) {
        for field in checked(message) {
            *self = match (field.number, field.payload) {
                (1, Payload::Bytes(text)) => AnyValue::Text(text),
                (2, Payload::Varint(bool)) => AnyValue::Bool(bool != 0),
                (3, Payload::Varint(int)) => AnyValue::Int(int.cast_signed()),
                (4, Payload::Fixed64(bits)) => AnyValue::Double(f64::from_bits(bits)),
                (5, Payload::Bytes(list)) => AnyValue::List(list),
                (6, Payload::Bytes(map)) => AnyValue::Map(map),
                (7, Payload::Bytes(bytes)) => AnyValue::Bytes(bytes),
                // An index into a table of strings, which only profiles have.
                (8, _) => AnyValue::Empty,
                _ => continue,
            }
        }
    }

    /// Behind what `out` has already.
    pub(crate) fn write_text(&self, out: &mut Vec<u8>) {
        match self {
            AnyValue::Empty => {}
            AnyValue::Text(text) => out.extend_from_slice(text),
            AnyValue::Bool(bool) => out.extend_from_slice(bool_text(*bool)),
            AnyValue::Int(int) => number::integer(out, *int),
            AnyValue::Double(double) => match write_finite(*double, JsonFor::Text, out) {
                Ok(()) => {}
                Err(NotJson) if double.is_nan() => out.extend_from_slice(b"NaN"),
                Err(NotJson) if *double > 0.0 => out.extend_from_slice(b"Infinity"),
                Err(NotJson) => out.extend_from_slice(b"-Infinity"),
            },
            AnyValue::Bytes(bytes) => out.extend_from_slice(STANDARD.encode(bytes).as_bytes()),
            AnyValue::List(_) | AnyValue::Map(_) => {
                let start = out.len();
                // Of a list or map with a number that JSON can't have, nothing is left.
                if self.write_json(JsonFor::Text, out).is_err() {
                    out.truncate(start);
                }
            }
        }
    }

    fn write_json(&self, reader: JsonFor, out: &mut Vec<u8>) -> Result<(), NotJson> {
        match self {
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
}

impl<'a> Attribute<'a> {
    pub(crate) fn read(message: &'a [u8]) -> Self {
        let mut attribute = Attribute::default();
        for field in checked(message) {
            match (field.number, field.payload) {
                (1, Payload::Bytes(key)) => attribute.key = key,
                (2, Payload::Bytes(value)) => attribute.value.read(value),
                _ => {}
            }
        }
        attribute
    }

    /// The entries of a map, or of a resource, sorted.
    pub(crate) fn all_of(map: &'a [u8]) -> Vec<Self> {
        let entries = checked(map).filter_map(|field| match (field.number, field.payload) {
            (1, Payload::Bytes(entry)) => Some(Attribute::read(entry)),
            _ => None,
        });
        let mut entries: Vec<Self> = entries.collect();
        Attribute::sort(&mut entries);
        entries
    }

    /// By key, as the exporter has them in its Maps. Those of the same key stay in their order.
    pub(crate) fn sort(attributes: &mut [Self]) {
        attributes.sort_by(|one, other| one.key.cmp(other.key));
    }

    /// About what it took in the request.
    fn bytes(&self) -> usize {
        let value = match self.value {
            AnyValue::Text(bytes) | AnyValue::Bytes(bytes) | AnyValue::List(bytes) | AnyValue::Map(bytes) => {
                bytes.len()
            }
            _ => 8,
        };
        self.key.len() + value
    }

    /// The first of this key, as everywhere where one is looked for.
    pub(crate) fn find(attributes: &[Self], key: &[u8]) -> AnyValue<'a> {
        attributes.iter().find(|attribute| attribute.key == key).map_or(AnyValue::Empty, |found| found.value)
    }
}

fn bool_text(bool: bool) -> &'static [u8] {
    match bool {
        true => b"true",
        false => b"false",
    }
}

/// The shortest form that means the number; with an exponent where JavaScript would write one.
fn write_finite(double: f64, reader: JsonFor, out: &mut Vec<u8>) -> Result<(), NotJson> {
    if !double.is_finite() {
        return Err(NotJson);
    }
    let shortest = format!("{double:e}");
    if reader == JsonFor::Column && double.abs() >= 2_f64.powi(63) {
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
        value.write_json(reader, out)?;
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
        entry.value.write_json(reader, out)?;
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

/// The keys of a JSON object that these attributes make, those within others behind a dot; sorted, and each once. Nothing if
/// they are many times longer than the attributes: a long key is repeated for each one within it.
pub(crate) fn flattened_keys<'a>(attributes: &[Attribute<'a>]) -> Option<Vec<Vec<u8>>> {
    let sent: usize = attributes.iter().map(Attribute::bytes).sum();
    let mut keys = FlattenedKeys { keys: Vec::new(), left_bytes: 1024 + 8 * sent };
    keys.add(b"", attributes)?;
    keys.keys.sort_unstable();
    keys.keys.dedup();
    Some(keys.keys)
}

struct FlattenedKeys {
    keys: Vec<Vec<u8>>,
    left_bytes: usize,
}

impl FlattenedKeys {
    fn add(&mut self, prefix: &[u8], attributes: &[Attribute<'_>]) -> Option<()> {
        for attribute in attributes {
            let key = match prefix.is_empty() {
                true => attribute.key.to_vec(),
                false => [prefix, b".", attribute.key].concat(),
            };
            self.left_bytes = self.left_bytes.checked_sub(key.len())?;
            match attribute.value {
                AnyValue::Map(map) => self.add(&key, &Attribute::all_of(map))?,
                _ => self.keys.push(key),
            }
        }
        Some(())
    }
}
