//! Values of attributes, and bodies: OTLP's AnyValue, and the texts that the collector makes of it.
//!
//! These texts are to the byte those of `AsString` in the collector's pdata: queries and dashboards rely on them.

use base64::engine::general_purpose::STANDARD;
use base64::Engine;
use windrow_columns::value_text::number;

use crate::json_text::{not_finite_text, write_finite, write_json, JsonFor, NotJson};
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
    /// A list; the message that has its elements.
    List(&'a [u8]),
    /// A map; the message that has its entries.
    Map(&'a [u8]),
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Attribute<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) value: AnyValue<'a>,
}

impl<'a> AnyValue<'a> {
    /// Reads a message with a value. Fields that come later replace earlier ones.
    #[inline]
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

    /// Appends the value's text to `out`.
    pub(crate) fn write_text(&self, out: &mut Vec<u8>) {
        match self {
            AnyValue::Empty => {}
            AnyValue::Text(text) => out.extend_from_slice(text),
            AnyValue::Bool(bool) => out.extend_from_slice(bool_text(*bool)),
            AnyValue::Int(int) => number::integer(out, *int),
            AnyValue::Double(double) => match write_finite(*double, JsonFor::Text, out) {
                Ok(()) => {}
                Err(NotJson) => out.extend_from_slice(not_finite_text(*double)),
            },
            AnyValue::Bytes(bytes) => out.extend_from_slice(STANDARD.encode(bytes).as_bytes()),
            AnyValue::List(_) | AnyValue::Map(_) => {
                let start = out.len();
                // Of a list or map with a number that JSON can't have, nothing is left.
                if write_json(self, JsonFor::Text, out).is_err() {
                    out.truncate(start);
                }
            }
        }
    }
}

impl<'a> Attribute<'a> {
    #[inline]
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

    /// Returns the entries of a map, or of a resource, sorted.
    pub(crate) fn all_of(map: &'a [u8]) -> Vec<Self> {
        let entries = checked(map).filter_map(|field| match (field.number, field.payload) {
            (1, Payload::Bytes(entry)) => Some(Attribute::read(entry)),
            _ => None,
        });
        let mut entries: Vec<Self> = entries.collect();
        Attribute::sort(&mut entries);
        entries
    }

    /// Sorts attributes by key, as the exporter has them in its Maps. Attributes of the same key keep their order.
    pub(crate) fn sort(attributes: &mut [Self]) {
        attributes.sort_by(|one, other| one.key.cmp(other.key));
    }

    /// Returns roughly the bytes that the attribute took in the request.
    pub(crate) fn bytes(&self) -> usize {
        let value = match self.value {
            AnyValue::Text(bytes) | AnyValue::Bytes(bytes) | AnyValue::List(bytes) | AnyValue::Map(bytes) => {
                bytes.len()
            }
            _ => 8,
        };
        self.key.len() + value
    }

    /// Returns the value of the first attribute with this key. The first counts wherever one is looked for.
    pub(crate) fn find(attributes: &[Self], key: &[u8]) -> AnyValue<'a> {
        attributes.iter().find(|attribute| attribute.key == key).map_or(AnyValue::Empty, |found| found.value)
    }
}

pub(crate) fn bool_text(bool: bool) -> &'static [u8] {
    match bool {
        true => b"true",
        false => b"false",
    }
}
