//! The readable part of a request that can't be read whole: everything but the rows, or the messages with
//! rows in them, that have a fault. A sender drops a request that is refused, with the good rows in it.

use windrow_columns::wire::write_varint;

use crate::check::{Checker, Fault};
use crate::kind::Signal;
use crate::request::{DecodeError, Limits};
use crate::schema::{self, Carries, FieldSpec, Message};
use crate::wire::{Fields, Payload};

/// A request that is whole, and the rows that were left out.
pub(crate) struct Sieved {
    pub(crate) payload: Vec<u8>,
    pub(crate) rows: usize,
    /// The fault of the first of them.
    pub(crate) because: Option<DecodeError>,
}

/// Sieves a request. The error says why the ends of its messages can't be found, or what is wrong with the
/// request itself.
pub(crate) fn sieve(signal: Signal, payload: &[u8], limits: &Limits) -> Result<Sieved, DecodeError> {
    let mut sieve = Sieve { checker: Checker::new(signal, limits), limits, rows: 0, because: None };
    let payload = sieve.message(schema::request(signal), payload).map_err(|fault| fault.told(limits))?;
    Ok(Sieved { payload, rows: sieve.rows, because: sieve.because })
}

struct Sieve<'l> {
    checker: Checker<'l>,
    limits: &'l Limits,
    rows: usize,
    because: Option<DecodeError>,
}

impl Sieve<'_> {
    /// Returns the message without its bad parts. The error says what is wrong with the message itself.
    fn message(&mut self, message: &'static Message, bytes: &[u8]) -> Result<Vec<u8>, Fault> {
        let mut kept = Vec::with_capacity(bytes.len());
        let mut fields = Fields::of(bytes);
        while let Some((field, written)) = fields.next_with_bytes()? {
            let Some(spec) = message.field(field.number) else { continue };
            match (with_rows(spec), field.payload) {
                (Some(inner), Payload::Bytes(bytes)) => self.part(spec.number, inner, bytes, &mut kept),
                (_, payload) => {
                    self.checker.field(spec, payload, 0)?;
                    kept.extend_from_slice(written);
                }
            }
        }
        Ok(kept)
    }

    fn part(&mut self, number: u32, message: &'static Message, bytes: &[u8], kept: &mut Vec<u8>) {
        let rows_before = self.rows;
        match self.message(message, bytes) {
            Ok(part) => {
                write_varint(kept, u64::from(number << 3 | 2));
                write_varint(kept, part.len() as u64);
                kept.extend_from_slice(&part);
            }
            Err(fault) => {
                self.rows = rows_before + rows_in(message, bytes).max(1);
                self.because.get_or_insert_with(|| fault.told(self.limits));
            }
        }
    }
}

fn with_rows(spec: &FieldSpec) -> Option<&'static Message> {
    match spec.carries {
        Carries::Message(inner) | Carries::Messages(inner) => Some(inner).filter(|inner| inner.holds_rows),
        _ => None,
    }
}

/// Counts the rows in a message that can't be read, as far as they can be told.
fn rows_in(message: &'static Message, bytes: &[u8]) -> usize {
    if !message.fields.iter().any(|spec| with_rows(spec).is_some()) {
        return 1;
    }
    let mut rows = 0;
    let mut fields = Fields::of(bytes);
    while let Ok(Some(field)) = fields.next() {
        let inner = message.field(field.number).and_then(with_rows);
        if let (Some(inner), Payload::Bytes(bytes)) = (inner, field.payload) {
            rows += rows_in(inner, bytes);
        }
    }
    rows
}
