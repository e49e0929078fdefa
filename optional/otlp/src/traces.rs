//! Spans as rows.

use crate::cells::{Column, Value};
use crate::logs::id;
use crate::rows::{push_keys, Fields};
use crate::source::Field;
use crate::value::Attribute;
use crate::wire::{checked, Payload};

#[derive(Default)]
pub(crate) struct Span<'a> {
    trace_id: &'a [u8],
    span_id: &'a [u8],
    parent_span_id: &'a [u8],
    trace_state: &'a [u8],
    name: &'a [u8],
    kind: u64,
    start_time: u64,
    end_time: u64,
    attributes: Vec<Attribute<'a>>,
    events: Vec<Event<'a>>,
    links: Vec<Link<'a>>,
    status_message: &'a [u8],
    status_code: u64,
    flags: u64,
}

#[derive(Default)]
struct Event<'a> {
    time: u64,
    name: &'a [u8],
    attributes: Vec<Attribute<'a>>,
}

#[derive(Default)]
struct Link<'a> {
    trace_id: &'a [u8],
    span_id: &'a [u8],
    trace_state: &'a [u8],
    attributes: Vec<Attribute<'a>>,
}

impl<'a> Span<'a> {
    /// Reads a span in place of the one that was read before.
    pub(crate) fn read(&mut self, message: &'a [u8]) {
        let mut attributes = std::mem::take(&mut self.attributes);
        attributes.clear();
        *self = Span { attributes, ..Span::default() };
        for field in checked(message) {
            match (field.number, field.payload) {
                (1, Payload::Bytes(id)) => self.trace_id = id,
                (2, Payload::Bytes(id)) => self.span_id = id,
                (3, Payload::Bytes(state)) => self.trace_state = state,
                (4, Payload::Bytes(id)) => self.parent_span_id = id,
                (5, Payload::Bytes(name)) => self.name = name,
                (6, Payload::Varint(kind)) => self.kind = kind,
                (7, Payload::Fixed64(time)) => self.start_time = time,
                (8, Payload::Fixed64(time)) => self.end_time = time,
                (9, Payload::Bytes(attribute)) => self.attributes.push(Attribute::read(attribute)),
                (11, Payload::Bytes(event)) => self.events.push(Event::read(event)),
                (13, Payload::Bytes(link)) => self.links.push(Link::read(link)),
                (15, Payload::Bytes(status)) => self.read_status(status),
                (16, Payload::Fixed32(flags)) => self.flags = u64::from(flags),
                _ => {}
            }
        }
        Attribute::sort(&mut self.attributes);
    }

    fn read_status(&mut self, message: &'a [u8]) {
        for field in checked(message) {
            match (field.number, field.payload) {
                (2, Payload::Bytes(text)) => self.status_message = text,
                (3, Payload::Varint(code)) => self.status_code = code,
                _ => {}
            }
        }
    }

    /// Returns the collector's name for the span's kind. Unknown kinds have no name.
    fn kind(&self) -> &'static [u8] {
        const KINDS: [&[u8]; 6] = [b"Unspecified", b"Internal", b"Server", b"Client", b"Producer", b"Consumer"];
        KINDS.get(self.kind as u32 as usize).copied().unwrap_or_default()
    }

    fn status_code(&self) -> &'static [u8] {
        const CODES: [&[u8]; 3] = [b"Unset", b"Ok", b"Error"];
        CODES.get(self.status_code as u32 as usize).copied().unwrap_or_default()
    }
}

impl Fields for Span<'_> {
    fn write(&self, field: Field, column: &mut Column<'_>) {
        let (events, links) = (self.events.iter(), self.links.iter());
        let value = match field {
            Field::Timestamp | Field::StartTime => Value::Time(self.start_time),
            Field::EndTime => Value::Time(self.end_time),
            Field::TraceId => id(self.trace_id),
            Field::SpanId => id(self.span_id),
            Field::ParentSpanId => id(self.parent_span_id),
            Field::TraceState => Value::Text(self.trace_state),
            Field::Name => Value::Text(self.name),
            Field::SpanKind => Value::Text(self.kind()),
            // A span that ends before it starts has the exporter's duration, which is that of the numbers without a sign.
            Field::Duration => Value::Integer(self.end_time.wrapping_sub(self.start_time)),
            Field::StatusCode => Value::Text(self.status_code()),
            Field::StatusMessage => Value::Text(self.status_message),
            Field::Flags => Value::Integer(self.flags),
            Field::Attributes => Value::Attributes(&self.attributes),
            Field::AttributesKeys => return push_keys(column, &self.attributes),
            Field::EventTimes => return column.push_list(events.map(|event| Value::Time(event.time))),
            Field::EventNames => return column.push_list(events.map(|event| Value::Text(event.name))),
            Field::EventAttributes => {
                return column.push_list(events.map(|event| Value::Attributes(&event.attributes)));
            }
            Field::LinkTraceIds => return column.push_list(links.map(|link| id(link.trace_id))),
            Field::LinkSpanIds => return column.push_list(links.map(|link| id(link.span_id))),
            Field::LinkTraceStates => return column.push_list(links.map(|link| Value::Text(link.trace_state))),
            Field::LinkAttributes => {
                return column.push_list(links.map(|link| Value::Attributes(&link.attributes)));
            }
            other => unreachable!("{other:?} is no field of a span"),
        };
        column.push(value);
    }

    fn attributes(&self) -> &[Attribute<'_>] {
        &self.attributes
    }

    fn all_attributes<'s>(&'s self) -> Box<dyn Iterator<Item = &'s [Attribute<'s>]> + 's> {
        let events = self.events.iter().map(|event| &event.attributes[..]);
        let links = self.links.iter().map(|link| &link.attributes[..]);
        Box::new(std::iter::once(&self.attributes[..]).chain(events).chain(links))
    }
}

impl<'a> Event<'a> {
    fn read(message: &'a [u8]) -> Self {
        let mut event = Event::default();
        for field in checked(message) {
            match (field.number, field.payload) {
                (1, Payload::Fixed64(time)) => event.time = time,
                (2, Payload::Bytes(name)) => event.name = name,
                (3, Payload::Bytes(attribute)) => event.attributes.push(Attribute::read(attribute)),
                _ => {}
            }
        }
        Attribute::sort(&mut event.attributes);
        event
    }
}

impl<'a> Link<'a> {
    fn read(message: &'a [u8]) -> Self {
        let mut link = Link::default();
        for field in checked(message) {
            match (field.number, field.payload) {
                (1, Payload::Bytes(id)) => link.trace_id = id,
                (2, Payload::Bytes(id)) => link.span_id = id,
                (3, Payload::Bytes(state)) => link.trace_state = state,
                (4, Payload::Bytes(attribute)) => link.attributes.push(Attribute::read(attribute)),
                _ => {}
            }
        }
        Attribute::sort(&mut link.attributes);
        link
    }
}
