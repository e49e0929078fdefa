//! Converts OTLP's JSON to OTLP's Protobuf: after that, a request has only one form.
//!
//! It accepts what the collector accepts. Names of fields are in lowerCamelCase, or as the schema has them;
//! unknown fields are skipped. Numbers may be texts, and have to be exact. Enums are numbers or the schema's
//! names; ids are hexadecimal and bytes are base64. A field that is null counts as missing.
//!
//! A value that can't be read spoils its record, or the message that records share, and nothing beside it.
//! Such a message is written with an end that Protobuf doesn't have, and is left out together with messages
//! that were sent broken (`sieve.rs`).

use base64::alphabet::STANDARD;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use base64::Engine;
use windrow_columns::wire::write_varint;

use crate::json_reader::{Json, Syntax, Value};
use crate::kind::Signal;
use crate::schema::{self, Carries, FieldSpec, Message};

/// The base64 that the collector reads: bits that mean nothing may have any value.
const BASE64: GeneralPurpose =
    GeneralPurpose::new(&STANDARD, GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true));
/// A field number that no field has. It makes a message one that can't be read.
const SPOILED: u8 = 0;

/// A request in Protobuf, and the first fault of its spoiled messages.
pub(crate) struct Converted {
    pub(crate) payload: Vec<u8>,
    pub(crate) fault: Option<String>,
}

/// Converts a request. The error says what is wrong with the whole of it.
pub(crate) fn to_protobuf(signal: Signal, json: &[u8], max_depth: usize) -> Result<Converted, String> {
    let out = Vec::with_capacity(json.len());
    let mut converter = Converter { json: Json::of(json), out, max_depth, fault: None, first_fault: None };
    converter.request(schema::request(signal)).map_err(|Syntax(at)| format!("it is no JSON from byte {at} on"))?;
    match converter.fault {
        Some(fault) => Err(fault),
        None => Ok(Converted { payload: converter.out, fault: converter.first_fault }),
    }
}

struct Converter<'j> {
    json: Json<'j>,
    out: Vec<u8>,
    max_depth: usize,
    /// The first fault of the present message that stands alone (`alone`).
    fault: Option<String>,
    /// The first fault of the messages that were spoiled.
    first_fault: Option<String>,
}

impl Converter<'_> {
    fn request(&mut self, message: &'static Message) -> Result<(), Syntax> {
        match self.json.value()? {
            Value::Object => self.fields(message, 0)?,
            Value::Null => {}
            Value::List => {
                self.json.skip_rest(b']')?;
                self.blame("the request is no object");
            }
            _ => self.blame("the request is no object"),
        }
        self.json.end()
    }

    fn blame(&mut self, fault: impl Into<String>) {
        self.fault.get_or_insert_with(|| fault.into());
    }

    /// Converts the fields of an object whose bracket was read.
    fn fields(&mut self, message: &'static Message, depth: usize) -> Result<(), Syntax> {
        let depth = depth + usize::from(message.is_nesting);
        if depth > self.max_depth {
            // What is read next refuses it for its depth.
            return self.json.skip_rest(b'}');
        }
        let mut is_first = true;
        while let Some(name) = self.json.name(is_first)? {
            is_first = false;
            match std::str::from_utf8(&name).ok().and_then(|name| message.field_named(name)) {
                Some(field) => self.field(field, depth)?,
                None => self.json.skip()?,
            }
        }
        Ok(())
    }

    fn field(&mut self, field: &'static FieldSpec, depth: usize) -> Result<(), Syntax> {
        let element = match field.carries {
            Carries::Messages(message) => Carries::Message(message),
            Carries::Fixed64s => Carries::Fixed64,
            Carries::Doubles => Carries::Double,
            Carries::Uint64s => Carries::Uint64,
            single => {
                let value = self.json.value()?;
                return self.value(Field { carries: single, ..Field::of(field) }, value, depth);
            }
        };
        match self.json.value()? {
            Value::List => {
                let mut is_first = true;
                while self.json.element(is_first)? {
                    is_first = false;
                    let value = self.json.value()?;
                    self.value(Field { carries: element, ..Field::of(field) }, value, depth)?;
                }
                Ok(())
            }
            Value::Null => Ok(()),
            other => self.misplaced(Field::of(field), other, "is a list"),
        }
    }

    fn value(&mut self, field: Field, value: Value<'_>, depth: usize) -> Result<(), Syntax> {
        match (field.carries, value) {
            (_, Value::Null) => Ok(()),
            (Carries::Message(message), value) if message.holds_rows => self.alone(field, message, value, depth),
            (Carries::Message(message), Value::Object) => self.message(field, message, depth),
            (_, value) => match field.written(&value, &mut self.out) {
                Ok(()) => Ok(()),
                Err(what) => self.misplaced(field, value, what),
            },
        }
    }

    /// Converts a message that spoils nothing beside it if it is spoiled.
    fn alone(&mut self, field: Field, message: &'static Message, value: Value<'_>, depth: usize) -> Result<(), Syntax> {
        let around = self.fault.take();
        let start = self.out.len();
        match value {
            Value::Object => self.message(field, message, depth)?,
            other => {
                self.misplaced(field, other, "is an object")?;
                put_tag(field.number, 2, &mut self.out);
                self.out.extend_from_slice(&[0; PADDED_VARINT]);
            }
        }
        if let Some(fault) = std::mem::replace(&mut self.fault, around) {
            self.first_fault.get_or_insert(fault);
            self.out.push(SPOILED);
        }
        self.close(start);
        Ok(())
    }

    fn message(&mut self, field: Field, message: &'static Message, depth: usize) -> Result<(), Syntax> {
        let start = self.out.len();
        put_tag(field.number, 2, &mut self.out);
        self.out.extend_from_slice(&[0; PADDED_VARINT]);
        self.fields(message, depth)?;
        self.close(start);
        Ok(())
    }

    /// Writes the length of the message whose tag is at `tag`. All tags of messages take a byte.
    fn close(&mut self, tag: usize) {
        let (head, content) = self.out[tag + 1..].split_at_mut(PADDED_VARINT);
        write_padded_varint(content.len(), head);
    }

    fn misplaced(&mut self, field: Field, value: Value<'_>, what: &str) -> Result<(), Syntax> {
        self.blame(format!("the field {} {what}", field.name));
        match value {
            Value::Object => self.json.skip_rest(b'}'),
            Value::List => self.json.skip_rest(b']'),
            _ => Ok(()),
        }
    }
}

/// A field, or an element of a field.
#[derive(Clone, Copy)]
struct Field {
    number: u32,
    name: &'static str,
    carries: Carries,
}

type Written = Result<(), &'static str>;

impl Field {
    fn of(spec: &'static FieldSpec) -> Field {
        Field { number: spec.number, name: spec.name, carries: spec.carries }
    }

    /// Writes a value. The error says what is wrong with the field.
    fn written(self, value: &Value<'_>, out: &mut Vec<u8>) -> Written {
        match value {
            Value::Bool(value) if matches!(self.carries, Carries::Bool) => {
                self.put_varint(u64::from(*value), out);
                Ok(())
            }
            Value::Bool(_) => Err("is no Boolean"),
            Value::Number(text) => self.put_number(text, out),
            Value::Text(text) => self.put_text(text, out),
            Value::Object => Err("is no object"),
            Value::List => Err("is no list"),
            Value::Null => Ok(()),
            Value::Nonsense => Err("has a value that JSON doesn't have"),
        }
    }

    fn put_number(self, text: &str, out: &mut Vec<u8>) -> Written {
        if let Carries::Double = self.carries {
            return self.put_double(text, out);
        }
        if let Ok(value) = text.parse::<i128>() {
            return self.put_integer(value, out);
        }
        match text.parse::<f64>() {
            // A whole number may be written with an exponent. This one is exact: it has fewer than 39 digits.
            Ok(value) if value.fract() == 0.0 && value.abs() < 1e38 => self.put_integer(value as i128, out),
            _ => Err("is a whole number"),
        }
    }

    fn put_text(self, text: &[u8], out: &mut Vec<u8>) -> Written {
        let utf8 = || std::str::from_utf8(text).map_err(|_| "is UTF-8");
        match self.carries {
            Carries::Text => self.put_bytes(text, out),
            Carries::Bytes => {
                let digits: Vec<u8> = text.iter().copied().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect();
                self.put_bytes(&BASE64.decode(digits).map_err(|_| "is base64")?, out);
            }
            Carries::Id(length) => match from_hex(utf8()?) {
                Some(id) if id.is_empty() || id.len() == length => self.put_bytes(&id, out),
                _ => return Err("is an id, of another number of hexadecimal digits"),
            },
            Carries::Enum(names) => match names.iter().position(|name| name.as_bytes() == text) {
                Some(number) => self.put_varint(number as u64, out),
                None => return Err("has no value of this name"),
            },
            Carries::Double => return self.put_double(utf8()?, out),
            _ => return self.put_integer(utf8()?.parse().map_err(|_| "is no text")?, out),
        }
        Ok(())
    }

    /// Writes a number as Double. Only the word gives infinity; digits that are too large for a Double are an error.
    fn put_double(self, text: &str, out: &mut Vec<u8>) -> Written {
        let value: f64 = text.parse().map_err(|_| "is a number")?;
        match value.is_infinite() && text.bytes().any(|byte| byte.is_ascii_digit()) {
            true => Err(OUT_OF_RANGE),
            false => {
                self.put_fixed64(value.to_bits(), out);
                Ok(())
            }
        }
    }

    /// Writes a number in the field's own form, if it is in its range.
    fn put_integer(self, value: i128, out: &mut Vec<u8>) -> Written {
        let (signed, unsigned) = (i64::try_from(value), u64::try_from(value));
        let (signed_32, unsigned_32) = (i32::try_from(value), u32::try_from(value));
        match self.carries {
            Carries::Fixed64 => self.put_fixed64(unsigned.map_err(|_| OUT_OF_RANGE)?, out),
            Carries::Uint64 => self.put_varint(unsigned.map_err(|_| OUT_OF_RANGE)?, out),
            Carries::Uint32 => self.put_varint(unsigned_32.map_err(|_| OUT_OF_RANGE)?.into(), out),
            Carries::Fixed32 => self.put_fixed32(unsigned_32.map_err(|_| OUT_OF_RANGE)?, out),
            Carries::Int64 => self.put_varint(signed.map_err(|_| OUT_OF_RANGE)?.cast_unsigned(), out),
            Carries::Sfixed64 => self.put_fixed64(signed.map_err(|_| OUT_OF_RANGE)?.cast_unsigned(), out),
            Carries::Sint32 => {
                let value = signed_32.map_err(|_| OUT_OF_RANGE)?;
                self.put_varint(((value << 1) ^ (value >> 31)).cast_unsigned().into(), out);
            }
            Carries::Int32 | Carries::Enum(_) => {
                self.put_varint(i64::from(signed_32.map_err(|_| OUT_OF_RANGE)?).cast_unsigned(), out);
            }
            _ => return Err("is no number"),
        }
        Ok(())
    }

    fn put_varint(self, value: u64, out: &mut Vec<u8>) {
        put_tag(self.number, 0, out);
        write_varint(out, value);
    }

    fn put_fixed64(self, value: u64, out: &mut Vec<u8>) {
        put_tag(self.number, 1, out);
        out.extend_from_slice(&value.to_le_bytes());
    }

    fn put_fixed32(self, value: u32, out: &mut Vec<u8>) {
        put_tag(self.number, 5, out);
        out.extend_from_slice(&value.to_le_bytes());
    }

    fn put_bytes(self, bytes: &[u8], out: &mut Vec<u8>) {
        put_tag(self.number, 2, out);
        write_varint(out, bytes.len() as u64);
        out.extend_from_slice(bytes);
    }
}

const OUT_OF_RANGE: &str = "is a number in a smaller range";

fn put_tag(number: u32, wire_type: u32, out: &mut Vec<u8>) {
    write_varint(out, u64::from(number << 3 | wire_type));
}

/// Bytes of a message's length, which is known only when the message is written. The length always takes all
/// of them, though fewer would do.
const PADDED_VARINT: usize = 5;

fn write_padded_varint(length: usize, out: &mut [u8]) {
    for (at, byte) in out.iter_mut().enumerate() {
        let more = if at + 1 < PADDED_VARINT { 0x80 } else { 0 };
        *byte = (length >> (7 * at)) as u8 & 0x7F | more;
    }
}

/// Decodes hexadecimal digits in either case.
fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text.chars().map(|digit| Some(digit.to_digit(16)? as u8)).collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
    Some(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logs(json: &str) -> Result<Vec<u8>, String> {
        let Converted { payload, fault } = to_protobuf(Signal::Logs, json.as_bytes(), 32)?;
        fault.map_or(Ok(payload), Err)
    }

    /// Returns the only record of a request.
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
        for value in [
            r#""""#,
            "NaN",
            "07",
            r#""\ud83d""#,
            "7.5",
            "-1",
            "18446744073709551616",
            "1e300",
            "true",
            "{}",
            "[7]",
            r#""0x7""#,
        ] {
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
    fn texts_need_not_be_unicode() {
        let text = |json: &[u8]| {
            let json =
                [br#"{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"eventName":""#, json, br#""}]}]}]}"#].concat();
            let Converted { payload, fault } = to_protobuf(Signal::Logs, &json, 32).unwrap();
            assert_eq!(fault, None);
            payload[3 * (1 + PADDED_VARINT) + 2..].to_vec()
        };
        assert_eq!(text(br"a\ud83db"), "a\u{FFFD}b".as_bytes());
        assert_eq!(text(b"a\xFF\xED\xA0\xBDb\nc"), b"a\xFF\xED\xA0\xBDb\nc");
    }

    #[test]
    fn bytes_are_base64() {
        let body = |bytes: &str| record(&format!(r#""body":{{"bytesValue":"{bytes}"}}"#));
        let expected = |bytes: &[u8]| {
            Ok([&[0x2A, 0x80 + 2 + bytes.len() as u8, 0x80, 0x80, 0x80, 0, 0x3A, bytes.len() as u8], bytes].concat())
        };
        for text in ["AQI=", r"AQ\nI=", "AQJ="] {
            assert_eq!(body(text), expected(&[1, 2]), "{text}");
        }
        for text in ["AQI", "A", "%%%%", "AQ-_"] {
            assert!(body(text).is_err(), "{text}");
        }
    }

    #[test]
    fn infinity_has_to_be_said() {
        let double = |value: &str| record(&format!(r#""body":{{"doubleValue":{value}}}"#));
        for value in ["1e999", "-1e999", r#""1e999""#, "Infinity", "true", r#""x""#, "{}"] {
            assert!(double(value).is_err(), "{value}");
        }
        for value in [r#""Infinity""#, r#""-Infinity""#, r#""NaN""#, "1e308", "7", r#""7.5""#] {
            assert!(double(value).is_ok(), "{value}");
        }
    }

    #[test]
    fn what_is_no_request_is_refused() {
        for json in ["", "{", "[]", "7", r#"{"resourceLogs":{}}"#, r#"{"resourceLogs":[7]}"#, "{} {}"] {
            assert!(logs(json).is_err(), "{json}");
        }
        for json in [r#"{"resourceLogs":[{"scopeLogs":{}}]}"#, r#"{"resourceLogs":[{"resource":{"attributes":7}}]}"#] {
            assert!(logs(json).is_err(), "{json}");
        }
    }
}
