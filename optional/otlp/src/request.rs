//! An export request: all of it is checked when it arrives, and then read again for each of its tables.

use std::collections::HashMap;
use std::fmt::{self, Display, Formatter};

use bytes::Bytes;

use crate::block::Block;
use crate::check::{check, points_of, ResourceMessage};
use crate::json::{to_protobuf, Converted};
use crate::kind::{Kind, Signal};
use crate::layout::Layout;
use crate::rows::{resource_attributes, Rows, Which};
use crate::sieve::sieve;
use crate::wire::{checked, Payload};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    Protobuf,
    Json,
}

/// The limits of a request. If a request exceeds one, its sender is told that it can't be accepted, and does
/// not send it again.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The deepest nesting of lists and maps in a body or in an attribute.
    pub max_depth: usize,
    /// The most bytes that its rows may take. Each row has its own copy of the resource's attributes, so a
    /// small request can make a large block.
    pub max_unfolded_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { max_depth: 32, max_unfolded_bytes: 256 << 20 }
    }
}

/// The reason why a request can't be accepted, however often it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// The bytes are no such request.
    Malformed(String),
    TooDeep {
        max_depth: usize,
    },
    TooLarge {
        max_unfolded_bytes: usize,
    },
}

impl Display for DecodeError {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            DecodeError::Malformed(what) => write!(out, "not an OTLP request: {what}"),
            DecodeError::TooDeep { max_depth } => {
                write!(out, "a value has more than {max_depth} lists or maps inside of each other; send it flatter")
            }
            DecodeError::TooLarge { max_unfolded_bytes } => write!(
                out,
                "the rows of this request take more than {max_unfolded_bytes} bytes, since each has the attributes of its \
                 resource; send fewer records in a request"
            ),
        }
    }
}

impl std::error::Error for DecodeError {}

/// A request that was read and found to be whole. The counts of its rows are known; the rows are made for
/// each table from its bytes.
#[derive(Clone, Debug)]
pub struct Request {
    signal: Signal,
    /// The request in Protobuf.
    payload: Bytes,
    resources: Vec<ResourceMessage>,
    unreadable: Option<Unreadable>,
}

/// Rows that were sent with others and can't be read: only their count is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    pub rows: usize,
    /// The fault of the first of them.
    pub because: String,
}

/// Reads a request: all of it, or all but the rows that can't be read.
///
/// # Errors
/// Fails where no row can be read, or where the rows would take more than the limit.
pub fn decode(signal: Signal, encoding: Encoding, payload: &Bytes, limits: &Limits) -> Result<Request, DecodeError> {
    let (payload, fault) = match encoding {
        Encoding::Protobuf => (payload.clone(), None),
        Encoding::Json => {
            let converted = to_protobuf(signal, payload, limits.max_depth).map_err(DecodeError::Malformed)?;
            let Converted { payload, fault } = converted;
            (payload.into(), fault.map(DecodeError::Malformed))
        }
    };
    match check(signal, &payload, limits) {
        Ok(resources) => Ok(Request { signal, payload, resources, unreadable: None }),
        Err(error @ DecodeError::TooLarge { .. }) => Err(error),
        Err(error) => {
            let sieved = sieve(signal, &payload, limits)?;
            let payload = Bytes::from(sieved.payload);
            let because = fault.or(sieved.because).unwrap_or(error);
            let resources = check(signal, &payload, limits)?;
            if resources.is_empty() {
                return Err(because);
            }
            let because = match because {
                DecodeError::Malformed(what) => what,
                other => other.to_string(),
            };
            let unreadable = Some(Unreadable { rows: sieved.rows, because });
            Ok(Request { signal, payload, resources, unreadable })
        }
    }
}

impl Request {
    pub fn signal(&self) -> Signal {
        self.signal
    }

    /// Returns the kinds of tables that the request has rows for, and how many.
    pub fn kinds(&self) -> impl Iterator<Item = (Kind, usize)> + '_ {
        Kind::ALL.into_iter().map(|kind| (kind, self.rows_of(kind))).filter(|(_, rows)| *rows > 0)
    }

    /// Returns the rows that were sent with these and can't be read.
    pub fn unreadable(&self) -> Option<&Unreadable> {
        self.unreadable.as_ref()
    }

    pub fn rows(&self) -> usize {
        self.kinds().map(|(_, rows)| rows).sum()
    }

    fn rows_of(&self, kind: Kind) -> usize {
        self.resources.iter().map(|resource| resource.rows[kind as usize]).sum()
    }

    /// Returns the time of the last record, in nanoseconds since 1970: when it was logged or observed, when
    /// the span ended, or when the point was taken. Returns `None` where the record has no time.
    pub fn last_time(&self) -> Option<u64> {
        let resource = self.resources.last()?;
        let scope = last_of(&self.payload[resource.place.clone()], 2)?;
        let row = last_of(scope, 2)?;
        let times: &[u32] = match self.signal {
            Signal::Logs => &[1, 11],
            Signal::Traces => &[8, 7],
            Signal::Metrics => &[3],
        };
        let row = match self.signal {
            Signal::Logs | Signal::Traces => row,
            Signal::Metrics => {
                let points = checked(row).filter(|field| points_of(field.number).is_some()).last()?;
                let Payload::Bytes(points) = points.payload else { return None };
                last_of(points, 1)?
            }
        };
        let time = |number: u32| match checked(row).filter(|field| field.number == number).last()?.payload {
            Payload::Fixed64(time) => Some(time).filter(|time| *time != 0),
            _ => None,
        };
        times.iter().find_map(|number| time(*number))
    }

    /// Returns the value that all resources of the request have for an attribute, as a Map would have it.
    /// Returns `None` where the attribute is missing somewhere, or has different values.
    pub fn resource_attribute(&self, key: &str) -> Option<String> {
        let mut values = self.resources.iter().map(|resource| self.attribute_of(resource, key));
        let first = values.next()??;
        values.all(|value| value.as_ref() == Some(&first)).then_some(first)
    }

    /// Splits the request for tables of one value each: all resources of a piece have the same value, and the
    /// pieces are in the order of their first resource.
    pub fn split_by_resource_attribute(self, key: &str) -> Vec<(Option<String>, Request)> {
        let mut pieces: Vec<(Option<String>, Request)> = Vec::new();
        let mut by_value = HashMap::new();
        for resource in &self.resources {
            let value = self.attribute_of(resource, key);
            let at = *by_value.entry(value.clone()).or_insert(pieces.len());
            if at == pieces.len() {
                let (payload, resources) = (self.payload.clone(), Vec::new());
                pieces.push((value, Request { signal: self.signal, payload, resources, unreadable: None }));
            }
            pieces[at].1.resources.push(resource.clone());
        }
        pieces
    }

    fn attribute_of(&self, resource: &ResourceMessage, key: &str) -> Option<String> {
        let attributes = resource_attributes(&self.payload[resource.place.clone()]);
        let found = attributes.iter().find(|attribute| attribute.key == key.as_bytes())?;
        let mut text = Vec::new();
        found.value.write_text(&mut text);
        Some(String::from_utf8_lossy(&text).into_owned())
    }

    /// Makes the rows of the layout's kind, for the table that the layout was made for.
    pub fn block<'l>(&self, layout: &'l Layout) -> Block<'l> {
        self.rows_as(layout, Which::Fit)
    }

    /// Makes the rows that are rejected, as close to the table's columns as possible. They are kept until a
    /// person corrects them, or the table.
    pub fn rejected_block<'l>(&self, layout: &'l Layout) -> Block<'l> {
        self.rows_as(layout, Which::Unfit)
    }

    fn rows_as<'l>(&self, layout: &'l Layout, which: Which) -> Block<'l> {
        let mut rows = Rows::new(layout, which, self.rows_of(layout.kind()));
        for resource in self.resources.iter().filter(|resource| resource.rows[layout.kind() as usize] > 0) {
            rows.add_resource(&self.payload[resource.place.clone()]);
        }
        let (rejected, rejected_because) = (rows.rejected, rows.rejected_because);
        let columns = rows.finish();
        Block { names: layout.names(), types: layout.types(), columns, rejected, rejected_because }
    }
}

/// Returns the last message in this field of a message.
fn last_of(message: &[u8], number: u32) -> Option<&[u8]> {
    let found = checked(message).filter_map(|field| match (field.number, field.payload) {
        (found, Payload::Bytes(bytes)) if found == number => Some(bytes),
        _ => None,
    });
    found.last()
}
