//! Log records as rows.

use crate::cells::{Column, Value};
use crate::rows::{push_keys, Fields};
use crate::source::Field;
use crate::value::{AnyValue, Attribute};
use crate::wire::{checked, Payload};

#[derive(Default)]
pub(crate) struct LogRecord<'a> {
    time: u64,
    observed_time: u64,
    severity_number: u64,
    severity_text: &'a [u8],
    body: AnyValue<'a>,
    attributes: Vec<Attribute<'a>>,
    flags: u64,
    trace_id: &'a [u8],
    span_id: &'a [u8],
    event_name: &'a [u8],
}

impl<'a> LogRecord<'a> {
    /// Reads a record in place of the one that was read before.
    pub(crate) fn read(&mut self, message: &'a [u8]) {
        let mut attributes = std::mem::take(&mut self.attributes);
        attributes.clear();
        *self = LogRecord { attributes, ..LogRecord::default() };
        for field in checked(message) {
            match (field.number, field.payload) {
                (1, Payload::Fixed64(time)) => self.time = time,
                (2, Payload::Varint(number)) => self.severity_number = number,
                (3, Payload::Bytes(text)) => self.severity_text = text,
                (5, Payload::Bytes(body)) => self.body.read(body),
                (6, Payload::Bytes(attribute)) => self.attributes.push(Attribute::read(attribute)),
                (8, Payload::Fixed32(flags)) => self.flags = u64::from(flags),
                (9, Payload::Bytes(id)) => self.trace_id = id,
                (10, Payload::Bytes(id)) => self.span_id = id,
                (11, Payload::Fixed64(time)) => self.observed_time = time,
                (12, Payload::Bytes(name)) => self.event_name = name,
                _ => {}
            }
        }
        Attribute::sort(&mut self.attributes);
    }

    /// Returns the time of the event, or the time when it was observed if that is not known.
    fn timestamp(&self) -> u64 {
        match self.time {
            0 => self.observed_time,
            time => time,
        }
    }
}

impl Fields for LogRecord<'_> {
    fn write(&self, field: Field, column: &mut Column<'_>) {
        let value = match field {
            Field::Timestamp => Value::Time(self.timestamp()),
            Field::ObservedTimestamp => Value::Time(self.observed_time),
            Field::TraceId => id(self.trace_id),
            Field::SpanId => id(self.span_id),
            // The lower eight bits are the flags of W3C's trace context; the others are kept for later.
            Field::Flags => Value::Integer(self.flags & 0xFF),
            Field::SeverityText => Value::Text(self.severity_text),
            Field::SeverityNumber => Value::Integer(self.severity_number & 0xFF),
            Field::Body => Value::Any(self.body),
            Field::EventName => Value::Text(self.event_name),
            Field::Attributes => Value::Attributes(&self.attributes),
            Field::AttributesKeys => return push_keys(column, &self.attributes),
            other => unreachable!("{other:?} is no field of a log record"),
        };
        column.push(value);
    }

    fn attributes(&self) -> &[Attribute<'_>] {
        &self.attributes
    }
}

/// Returns an id as a value; an id of only zeros is empty.
pub(crate) fn id(bytes: &[u8]) -> Value<'_> {
    match bytes.iter().all(|byte| *byte == 0) {
        true => Value::Text(b""),
        false => Value::Hex(bytes),
    }
}
