//! Reads all of a request once, before its rows are made. A request that is found whole here is read again
//! without looking for faults; from any other, `sieve.rs` makes a request that is whole.
//!
//! The check is as strict as the collector: a field of another wire type than its own is a fault, and so is
//! an id of a wrong length. Texts need not be UTF-8, which ClickHouse doesn't ask for.

use std::ops::Range;

use crate::kind::{Kind, Signal};
use crate::request::{DecodeError, Limits};
use crate::schema::{self, Carries, FieldSpec, Message};
use crate::wire::{Fields, Payload, WireFault};

/// One resource of a request, with its scopes and rows.
#[derive(Clone, Debug)]
pub(crate) struct ResourceMessage {
    /// The range of its message in the payload.
    pub(crate) place: Range<usize>,
    /// Count of rows of each kind.
    pub(crate) rows: [usize; Kind::ALL.len()],
}

/// Bytes that a row takes besides what was sent for it, roughly: numbers, lengths, offsets.
const BYTES_OF_A_ROW: usize = 128;

pub(crate) enum Fault {
    Wire(WireFault),
    /// A field has another wire type, or an id has another length.
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

/// The contents of a message that its rows share.
#[derive(Default)]
struct Share {
    rows: [usize; Kind::ALL.len()],
    /// Bytes of which each row gets a copy.
    bytes: usize,
}

/// Returns the resources of a request, if the request is whole. Resources without rows are left out.
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

    /// Reads a message whose second field has the rows, and whose other fields the rows share.
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

    /// Reads a metric. It is of one kind: that of its last list of points.
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

/// Returns the kind of metric whose points a field has.
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
