//! An export request: checked as a whole when it comes, and then read again for each of its tables.

use std::fmt::{self, Display, Formatter};

use bytes::Bytes;

use crate::kind::{Kind, Signal};
use crate::layout::Layout;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    Protobuf,
    Json,
}

/// What a request may have at most. A sender is told that its request can't be taken, and does not send it again.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Of lists and maps inside of each other, in a body or in an attribute.
    pub max_depth: usize,
    /// What its rows may come to: each has its own copy of the resource's attributes, so a small request can stand for a
    /// large block.
    pub max_unfolded_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { max_depth: 32, max_unfolded_bytes: 256 << 20 }
    }
}

/// Why a request can't be taken, however often it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// These bytes are no such request.
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

/// A request that was read and found to be whole.
#[derive(Clone, Debug)]
pub struct Request {
    signal: Signal,
}

/// Rows of one table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// One block in the format Native, as the HTTP interface takes it. Empty if there are no rows.
    pub native: Vec<u8>,
    pub rows: usize,
    /// Rows that the table can never take, and that are not in the block.
    pub rejected: usize,
    /// Why the first of these was rejected.
    pub rejected_because: Option<String>,
}

pub fn decode(signal: Signal, _encoding: Encoding, _payload: &Bytes, _limits: &Limits) -> Result<Request, DecodeError> {
    Ok(Request { signal })
}

impl Request {
    pub fn signal(&self) -> Signal {
        self.signal
    }

    /// The tables that it has rows for, and how many.
    pub fn kinds(&self) -> impl Iterator<Item = (Kind, usize)> + '_ {
        std::iter::empty()
    }

    pub fn rows(&self) -> usize {
        self.kinds().map(|(_, rows)| rows).sum()
    }

    /// The value that all resources of the request have for an attribute, as it is written into a Map. `None` where they
    /// have none, or not the same.
    pub fn resource_attribute(&self, _key: &str) -> Option<String> {
        None
    }

    /// For tables of one value each: the request in pieces whose resources have the same value, in the order of their first.
    pub fn split_by_resource_attribute(self, _key: &str) -> Vec<(Option<String>, Request)> {
        vec![(None, self)]
    }

    /// The rows of a kind, for the table that the layout was made for.
    pub fn block(&self, _layout: &Layout) -> Block {
        Block::default()
    }
}
