//! Reads all of a request once, before anything is made of it. What is found whole here is read again without looking for
//! faults; of what isn't, `sieve.rs` makes a request that is.
//!
//! It is as strict as the collector: a field of another wire type than its own is a fault, and so is an id of an odd length.
//! Texts need not be UTF-8, which ClickHouse doesn't ask for.

use std::ops::Range;

use crate::kind::{Kind, Signal};
use crate::request::{DecodeError, Limits};
use crate::schema::{self, Carries, FieldSpec, Message};
use crate::wire::{Fields, Payload, WireFault};

/// One resource of a request, with its scopes and rows.
#[derive(Clone, Debug)]
pub(crate) struct ResourceMessage {
    /// Where in the payload its message stands.
    pub(crate) place: Range<usize>,
    /// Of each kind.
    pub(crate) rows: [usize; Kind::ALL.len()],
}

/// What a row takes beside what was sent for it, as far as one counts it: numbers, lengths, offsets.
const BYTES_OF_A_ROW: usize = 128;

pub(crate) enum Fault {
    Wire(WireFault),
    /// A field that has another wire type, or an id of another length.
    Field(&'static str),
    Depth,
    Size,
}

impl From<WireFault> for Fault {
    fn from(fault: WireFault) -> Self {
        Fault::Wire(fault)
    }
}

impl Fault {
    pub(crate) fn told(self, limits: &Limits) -> DecodeError {
        match self {
            Fault::Wire(fault) => DecodeError::Malformed(fault.as_str().to_owned()),
            Fault::Field(name) => {
                DecodeError::Malformed(format!("the field {name} has another type, or another length"))
            }
            Fault::Depth => DecodeError::TooDeep { max_depth: limits.max_depth },
            Fault::Size => DecodeError::TooLarge { max_unfolded_bytes: limits.max_unfolded_bytes },
        }
    }
}

pub(crate) struct Checker<'l> {
    limits: &'l Limits,
    signal: Signal,
    unfolded_bytes: usize,
}

/// What is read of a message that rows share, and how many rows it has.
#[derive(Default)]
struct Share {
    rows: [usize; Kind::ALL.len()],
    /// Each of the rows has a copy of these.
    bytes: usize,
}

/// The resources of a request that is whole, as far as they have rows.
pub(crate) fn check(signal: Signal, payload: &[u8], limits: &Limits) -> Result<Vec<ResourceMessage>, DecodeError> {
    Checker::new(signal, limits).request(payload).map_err(|fault| fault.told(limits))
}

impl<'l> Checker<'l> {
    pub(crate) fn new(signal: Signal, limits: &'l Limits) -> Self {
        Checker { limits, signal, unfolded_bytes: 0 }
    }

    fn request(&mut self, payload: &[u8]) -> Result<Vec<ResourceMessage>, Fault> {
        let mut resources = Vec::new();
        let mut fields = Fields::of(payload);
        while let Some(field) = fields.next()? {
            let Payload::Bytes(bytes) = field.payload else {
                match field.number {
                    1 => return Err(Fault::Field("resource")),
                    _ => continue,
                }
            };
            if field.number == 1 {
                let start = bytes.as_ptr() as usize - payload.as_ptr() as usize;
                let rows = self.resource(bytes)?;
                if rows != [0; Kind::ALL.len()] {
                    resources.push(ResourceMessage { place: start..start + bytes.len(), rows });
                }
            }
        }
        Ok(resources)
    }

    fn resource(&mut self, bytes: &[u8]) -> Result<[usize; Kind::ALL.len()], Fault> {
        let message = match self.signal {
            Signal::Logs => &schema::RESOURCE_LOGS,
            Signal::Traces => &schema::RESOURCE_SPANS,
            Signal::Metrics => &schema::RESOURCE_METRICS,
        };
        let share = self.shared(bytes, message, Checker::scope)?;
        let rows: usize = share.rows.iter().sum();
        self.unfold(rows, share.bytes + BYTES_OF_A_ROW)?;
        Ok(share.rows)
    }

    fn scope(&mut self, bytes: &[u8]) -> Result<[usize; Kind::ALL.len()], Fault> {
        let (message, row): (_, fn(&mut Self, &[u8]) -> _) = match self.signal {
            Signal::Logs => (&schema::SCOPE_LOGS, Checker::log_record),
            Signal::Traces => (&schema::SCOPE_SPANS, Checker::span),
            Signal::Metrics => (&schema::SCOPE_METRICS, Checker::metric),
        };
        let share = self.shared(bytes, message, row)?;
        self.unfold(share.rows.iter().sum(), share.bytes)?;
        Ok(share.rows)
    }

    /// A message whose second field has what its other fields are shared by.
    fn shared(
        &mut self,
        bytes: &[u8],
        message: &'static Message,
        inner: impl Fn(&mut Self, &[u8]) -> Result<[usize; Kind::ALL.len()], Fault>,
    ) -> Result<Share, Fault> {
        let mut share = Share::default();
        let mut fields = Fields::of(bytes);
        while let Some(field) = fields.next()? {
            match (field.number, field.payload) {
                (2, Payload::Bytes(bytes)) => {
                    let rows = inner(self, bytes)?;
                    share.rows.iter_mut().zip(rows).for_each(|(sum, more)| *sum += more);
                }
                (number, payload) => {
                    if let Some(spec) = message.field(number) {
                        self.field(spec, payload, 0)?;
                        share.bytes += length_of(payload);
                    }
                }
            }
        }
        Ok(share)
    }

    fn log_record(&mut self, bytes: &[u8]) -> Result<[usize; Kind::ALL.len()], Fault> {
        self.message(&schema::LOG_RECORD, bytes, 0)?;
        Ok(rows_of(Kind::Logs, 1))
    }

    fn span(&mut self, bytes: &[u8]) -> Result<[usize; Kind::ALL.len()], Fault> {
        self.message(&schema::SPAN, bytes, 0)?;
        Ok(rows_of(Kind::Traces, 1))
    }

    /// A metric is of one kind: that of the last of its lists of points.
    fn metric(&mut self, bytes: &[u8]) -> Result<[usize; Kind::ALL.len()], Fault> {
        let mut rows = [0; Kind::ALL.len()];
        let mut shared_bytes = 0;
        let mut fields = Fields::of(bytes);
        while let Some(field) = fields.next()? {
            let Some(spec) = schema::METRIC.field(field.number) else { continue };
            self.field(spec, field.payload, 0)?;
            match (points_of(field.number), field.payload) {
                (Some(kind), Payload::Bytes(points)) => rows = rows_of(kind, count_of_points(points)),
                _ => shared_bytes += length_of(field.payload),
            }
        }
        self.unfold(rows.iter().sum(), shared_bytes)?;
        Ok(rows)
    }

    fn unfold(&mut self, rows: usize, bytes: usize) -> Result<(), Fault> {
        self.unfolded_bytes = self.unfolded_bytes.saturating_add(rows.saturating_mul(bytes));
        match self.unfolded_bytes <= self.limits.max_unfolded_bytes {
            true => Ok(()),
            false => Err(Fault::Size),
        }
    }

    fn message(&mut self, message: &'static Message, bytes: &[u8], depth: usize) -> Result<(), Fault> {
        let depth = depth + usize::from(message.is_nesting);
        if depth > self.limits.max_depth {
            return Err(Fault::Depth);
        }
        let mut fields = Fields::of(bytes);
        while let Some(field) = fields.next()? {
            if let Some(spec) = message.field(field.number) {
                self.field(spec, field.payload, depth)?;
            }
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn field(&mut self, spec: &'static FieldSpec, payload: Payload<'_>, depth: usize) -> Result<(), Fault> {
        use Carries::*;
        match (spec.carries, payload) {
            (Message(inner) | Messages(inner), Payload::Bytes(bytes)) => self.message(inner, bytes, depth),
            (Text | Bytes, Payload::Bytes(_)) => Ok(()),
            (Id(length), Payload::Bytes(id)) if id.is_empty() || id.len() == length => Ok(()),
            (Bool | Uint32 | Uint64 | Int32 | Int64 | Sint32 | Enum(_) | Uint64s, Payload::Varint(_)) => Ok(()),
            (Fixed32, Payload::Fixed32(_)) => Ok(()),
            (Fixed64 | Sfixed64 | Double | Fixed64s | Doubles, Payload::Fixed64(_)) => Ok(()),
            (Fixed64s | Doubles, Payload::Bytes(packed)) if packed.len() % 8 == 0 => Ok(()),
            (Uint64s, Payload::Bytes(packed)) => Ok(Fields::of(packed).check_varints()?),
            _ => Err(Fault::Field(spec.name)),
        }
    }
}

fn rows_of(kind: Kind, count: usize) -> [usize; Kind::ALL.len()] {
    let mut rows = [0; Kind::ALL.len()];
    rows[kind as usize] = count;
    rows
}

/// The kind of metric whose points stand in a field.
pub(crate) fn points_of(number: u32) -> Option<Kind> {
    match number {
        5 => Some(Kind::Gauge),
        7 => Some(Kind::Sum),
        9 => Some(Kind::Histogram),
        10 => Some(Kind::ExponentialHistogram),
        11 => Some(Kind::Summary),
        _ => None,
    }
}

fn count_of_points(points: &[u8]) -> usize {
    crate::wire::checked(points).filter(|field| field.number == 1).count()
}

fn length_of(payload: Payload<'_>) -> usize {
    match payload {
        Payload::Bytes(bytes) => bytes.len(),
        _ => 0,
    }
}
