//! OTLP's JSON, made into OTLP's Protobuf: from there on there is one form of a request.
//!
//! It takes what the collector takes. Names of fields are in lowerCamelCase, or as the schema has them; unknown ones are
//! passed over; numbers may be texts, and have to be exact; enums are numbers or the schema's names; ids are hexadecimal and
//! bytes are base64. A field that is null counts as not there.

use std::fmt::{self, Formatter};

use base64::engine::general_purpose::STANDARD;
use base64::Engine;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use windrow_columns::wire::write_varint;

use crate::kind::Signal;
use crate::schema::{self, Carries, FieldSpec, Message};

/// A request as Protobuf, or what is wrong with it.
pub(crate) fn to_protobuf(signal: Signal, json: &[u8]) -> Result<Vec<u8>, String> {
    let message = match signal {
        Signal::Logs => &schema::LOGS_REQUEST,
        Signal::Traces => &schema::TRACES_REQUEST,
        Signal::Metrics => &schema::METRICS_REQUEST,
    };
    let mut out = Vec::with_capacity(json.len());
    let mut reader = serde_json::Deserializer::from_slice(json);
    let read = FieldsOf { message, out: &mut out }.deserialize(&mut reader).and_then(|()| reader.end());
    match read {
        Ok(()) => Ok(out),
        Err(error) => Err(error.to_string()),
    }
}

/// An object, or null. Its fields are written one after the other.
struct FieldsOf<'o> {
    message: &'static Message,
    out: &'o mut Vec<u8>,
}

/// What a field has, or what an element of it is.
struct ValueOf<'o> {
    number: u32,
    name: &'static str,
    carries: Carries,
    out: &'o mut Vec<u8>,
}

/// A name in an object: that of a field, if the message has it.
struct NameIn(&'static Message);

impl<'de> DeserializeSeed<'de> for FieldsOf<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for FieldsOf<'_> {
    type Value = ();

    fn expecting(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(field) = map.next_key_seed(NameIn(self.message))? {
            match field {
                Some(&FieldSpec { number, name, carries }) => {
                    map.next_value_seed(ValueOf { number, name, carries, out: self.out })?;
                }
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for NameIn {
    type Value = Option<&'static FieldSpec>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for NameIn {
    type Value = Option<&'static FieldSpec>;

    fn expecting(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str("the name of a field")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        Ok(self.0.field_named(name))
    }
}

impl<'de> DeserializeSeed<'de> for ValueOf<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueOf<'_> {
    type Value = ();

    fn expecting(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "another value of the field {}", self.name)
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        match self.carries {
            Carries::Bool => self.put_varint(u64::from(value)),
            _ => Err(self.fault("is no Boolean")),
        }
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.put_integer(i128::from(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.put_integer(i128::from(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        match self.carries {
            Carries::Double => self.put_fixed64(value.to_bits()),
            // A whole number may be written with an exponent. This one is exact: it has fewer than 39 digits.
            _ if value.fract() == 0.0 && value.abs() < 1e38 => self.put_integer(value as i128),
            _ => Err(self.fault("is a whole number")),
        }
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        match self.carries {
            Carries::Text => self.put_bytes(text.as_bytes()),
            Carries::Bytes => match STANDARD.decode(text) {
                Ok(bytes) => self.put_bytes(&bytes),
                Err(_) => Err(self.fault("is base64")),
            },
            Carries::Id(length) => match from_hex(text) {
                Some(id) if id.is_empty() || id.len() == length => self.put_bytes(&id),
                _ => Err(self.fault("is an id, of another number of hexadecimal digits")),
            },
            Carries::Enum(names) => match names.iter().position(|name| *name == text) {
                Some(number) => self.put_varint(number as u64),
                None => Err(self.fault("has no value of this name")),
            },
            Carries::Double => match text.parse::<f64>() {
                Ok(value) => self.put_fixed64(value.to_bits()),
                Err(_) => Err(self.fault("is a number")),
            },
            _ => match text.parse::<i128>() {
                Ok(value) => self.put_integer(value),
                Err(_) => Err(self.fault("is no text")),
            },
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        let Carries::Message(message) = self.carries else { return Err(self.fault("is no object")) };
        put_tag(self.number, 2, self.out);
        let start = self.out.len();
        self.out.extend_from_slice(&[0; PADDED_VARINT]);
        FieldsOf { message, out: &mut *self.out }.visit_map(map)?;
        let (head, content) = self.out[start..].split_at_mut(PADDED_VARINT);
        write_padded_varint(content.len(), head);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let carries = match self.carries {
            Carries::Messages(message) => Carries::Message(message),
            Carries::Fixed64s => Carries::Fixed64,
            Carries::Doubles => Carries::Double,
            Carries::Uint64s => Carries::Uint64,
            _ => return Err(self.fault("is no list")),
        };
        let ValueOf { number, name, out, .. } = self;
        while items.next_element_seed(ValueOf { number, name, carries, out: &mut *out })?.is_some() {}
        Ok(())
    }
}

impl ValueOf<'_> {
    fn fault<E: Error>(&self, what: &str) -> E {
        E::custom(format_args!("the field {} {what}", self.name))
    }

    /// A number in the field's own form, if it is in its range.
    fn put_integer<E: Error>(self, value: i128) -> Result<(), E> {
        let signed = i64::try_from(value);
        match self.carries {
            Carries::Double => self.put_fixed64((value as f64).to_bits()),
            Carries::Fixed64 => match u64::try_from(value) {
                Ok(value) => self.put_fixed64(value),
                Err(_) => Err(self.out_of_range()),
            },
            Carries::Uint64 => match u64::try_from(value) {
                Ok(value) => self.put_varint(value),
                Err(_) => Err(self.out_of_range()),
            },
            Carries::Uint32 | Carries::Fixed32 => match (u32::try_from(value), self.carries) {
                (Ok(value), Carries::Uint32) => self.put_varint(u64::from(value)),
                (Ok(value), _) => self.put_fixed32(value),
                (Err(_), _) => Err(self.out_of_range()),
            },
            Carries::Int64 | Carries::Sfixed64 => match (signed, self.carries) {
                (Ok(value), Carries::Int64) => self.put_varint(value.cast_unsigned()),
                (Ok(value), _) => self.put_fixed64(value.cast_unsigned()),
                (Err(_), _) => Err(self.out_of_range()),
            },
            Carries::Int32 | Carries::Sint32 | Carries::Enum(_) => match (i32::try_from(value), self.carries) {
                (Ok(value), Carries::Sint32) => {
                    self.put_varint(u64::from(((value << 1) ^ (value >> 31)).cast_unsigned()))
                }
                (Ok(value), _) => self.put_varint(i64::from(value).cast_unsigned()),
                (Err(_), _) => Err(self.out_of_range()),
            },
            _ => Err(self.fault("is no number")),
        }
    }

    fn out_of_range<E: Error>(&self) -> E {
        self.fault("is a number in a smaller range")
    }

    fn put_varint<E>(self, value: u64) -> Result<(), E> {
        put_tag(self.number, 0, self.out);
        write_varint(self.out, value);
        Ok(())
    }

    fn put_fixed64<E>(self, value: u64) -> Result<(), E> {
        put_tag(self.number, 1, self.out);
        self.out.extend_from_slice(&value.to_le_bytes());
        Ok(())
    }

    fn put_fixed32<E>(self, value: u32) -> Result<(), E> {
        put_tag(self.number, 5, self.out);
        self.out.extend_from_slice(&value.to_le_bytes());
        Ok(())
    }

    fn put_bytes<E>(self, bytes: &[u8]) -> Result<(), E> {
        put_tag(self.number, 2, self.out);
        write_varint(self.out, bytes.len() as u64);
        self.out.extend_from_slice(bytes);
        Ok(())
    }
}

fn put_tag(number: u32, wire_type: u32, out: &mut Vec<u8>) {
    write_varint(out, u64::from(number << 3 | wire_type));
}

/// Bytes of a message's length, which is known only when the message is written. It has them all, though fewer would do.
const PADDED_VARINT: usize = 5;

fn write_padded_varint(length: usize, out: &mut [u8]) {
    for (at, byte) in out.iter_mut().enumerate() {
        let more = if at + 1 < PADDED_VARINT { 0x80 } else { 0 };
        *byte = (length >> (7 * at)) as u8 & 0x7F | more;
    }
}

/// Digits in either case.
fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text.chars().map(|digit| Some(digit.to_digit(16)? as u8)).collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
    Some(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logs(json: &str) -> Result<Vec<u8>, String> {
        to_protobuf(Signal::Logs, json.as_bytes())
    }

    /// The one record of a request.
    fn record(fields: &str) -> Result<Vec<u8>, String> {
        let out = logs(&format!(r#"{{"resourceLogs":[{{"scopeLogs":[{{"logRecords":[{{{fields}}}]}}]}}]}}"#))?;
        // Three messages around it, each with a tag and a padded length.
        Ok(out[3 * (1 + PADDED_VARINT)..].to_vec())
    }

    #[test]
    fn numbers_are_texts_or_numbers() {
        let expected = [&[0x09][..], &7_u64.to_le_bytes()].concat();
        for value in ["7", r#""7""#, "7.0", "70e-1"] {
            assert_eq!(record(&format!(r#""timeUnixNano":{value}"#)), Ok(expected.clone()), "{value}");
        }
        for value in [r#""""#, "7.5", "-1", "18446744073709551616", "1e300", "true", "{}", "[7]", r#""0x7""#] {
            assert!(record(&format!(r#""timeUnixNano":{value}"#)).is_err(), "{value}");
        }
        assert_eq!(
            record(r#""timeUnixNano":18446744073709551615"#).map(|bytes| bytes[1..].to_vec()),
            Ok(vec![0xFF; 8])
        );
    }

    #[test]
    fn null_is_nothing_and_unknown_names_are_passed_over() {
        assert_eq!(record(r#""timeUnixNano":null,"body":null,"attributes":null"#), Ok(vec![]));
        assert_eq!(record(r#""newField":{"deep":[1,{"a":null}]},"timeunixnano":5"#), Ok(vec![]));
        assert_eq!(logs("{}"), Ok(vec![]));
        assert_eq!(logs("null"), Ok(vec![]));
    }

    #[test]
    fn names_of_fields_and_of_enums_may_be_those_of_the_schema() {
        assert_eq!(record(r#""severityNumber":9"#), Ok(vec![0x10, 9]));
        assert_eq!(record(r#""severity_number":"SEVERITY_NUMBER_INFO""#), Ok(vec![0x10, 9]));
        assert!(record(r#""severityNumber":"INFO""#).is_err());
        assert!(record(r#""severityNumber":"9""#).is_err());
    }

    #[test]
    fn ids_are_hexadecimal() {
        assert_eq!(record(r#""spanId":"00ffAB0000000001""#), Ok(vec![0x52, 8, 0, 0xFF, 0xAB, 0, 0, 0, 0, 1]));
        assert_eq!(record(r#""spanId":"""#), Ok(vec![0x52, 0]));
        for id in ["00", "00ffAB000000000", "00ffAB00000000010", "zzffAB0000000001", "AP+rAAAAAAE="] {
            assert!(record(&format!(r#""spanId":"{id}""#)).is_err(), "{id}");
        }
    }

    #[test]
    fn what_is_no_request_is_refused() {
        for json in ["", "{", "[]", "7", r#"{"resourceLogs":{}}"#, r#"{"resourceLogs":[7]}"#, "{} {}"] {
            assert!(logs(json).is_err(), "{json}");
        }
        let deep = format!(r#""body":{}1{}"#, r#"{"arrayValue":{"values":["#.repeat(10_000), "]}}".repeat(10_000));
        assert!(record(&deep).is_err());
    }
}
