//! The record of an insert: its head, and its rows.

use std::fmt;
use std::sync::Arc;

use crate::sink::{BatchId, Form};
use windrow_columns::{decode_columns, NativeLimits, PassthroughRows, Rows};

use super::bytes::{error, Bytes, RecordError, Writer};
use super::context::RecordedContext;

const VERSION: u8 = 1;
const GIVEN: u8 = 0;
const RANDOM: u8 = 1;

/// The promise of an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckLevel {
    /// The rows are in the buffer.
    Memory,
    /// The rows survive a crash and the loss of power.
    Disk,
    /// The rows are in the database, and searchable.
    Stored,
}

impl AckLevel {
    pub fn as_str(self) -> &'static str {
        match self {
            AckLevel::Memory => "memory",
            AckLevel::Disk => "disk",
            AckLevel::Stored => "stored",
        }
    }
}

/// A query's id: the client's own, or a random one that is only written out where it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueryId {
    Given(Arc<str>),
    Random(u128),
}

impl fmt::Display for QueryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueryId::Given(id) => f.write_str(id),
            QueryId::Random(id) => BatchId(*id).fmt(f),
        }
    }
}

/// All that is known of an insert besides its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InsertHead {
    /// Time of arrival by the wall clock, in microseconds since 1970.
    pub arrived_micros: u64,
    pub query_id: QueryId,
    /// Bytes of the payload as it came.
    pub payload_bytes: u64,
    pub ack: AckLevel,
    /// Number of attempts to store the insert before the record was written.
    pub attempts: u32,
    /// Deduplication keys of the insert, as the gatherer encodes them; empty if it has none.
    pub dedup: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct InsertRecord {
    pub head: InsertHead,
    pub rows: Rows,
}

pub fn encode_insert(head: &InsertHead, rows: &Rows) -> Vec<u8> {
    let mut out = Writer(Vec::with_capacity(rows.bytes() + head.dedup.len() + 96));
    out.u8(VERSION);
    out.u64(head.arrived_micros);
    match &head.query_id {
        QueryId::Given(id) => {
            out.u8(GIVEN);
            out.bytes(id.as_bytes());
        }
        QueryId::Random(id) => {
            out.u8(RANDOM);
            out.u128(*id);
        }
    }
    out.u64(head.payload_bytes);
    out.u8(match head.ack {
        AckLevel::Memory => 0,
        AckLevel::Disk => 1,
        AckLevel::Stored => 2,
    });
    out.u32(head.attempts);
    out.bytes(&head.dedup);
    // The rows are all the rest.
    match rows {
        Rows::Parsed(block) => block.write_columns(&mut out.0),
        Rows::Blocks(_) => rows.to_block().into_iter().for_each(|block| block.write_columns(&mut out.0)),
        Rows::Passthrough(text) => {
            out.u64(text.count() as u64);
            out.0.extend_from_slice(text.text());
        }
    }
    out.0
}

/// Reads the head of an insert, without a look at its rows.
///
/// # Errors
/// Fails where the head ends too early, or its version, its kind of query id or its ack level is not known.
pub fn decode_insert_head(payload: &[u8]) -> Result<InsertHead, RecordError> {
    head(&mut Bytes(payload))
}

/// Reads an insert back.
///
/// # Errors
/// Fails where the head can't be read, or the rows are not such as the context says.
pub fn decode_insert(payload: &[u8], context: &RecordedContext) -> Result<InsertRecord, RecordError> {
    let mut bytes = Bytes(payload);
    let head = head(&mut bytes)?;
    let rows = match &context.destination.form {
        Form::Native { .. } => {
            let block = decode_columns(bytes.0, &context.layout, NativeLimits::default());
            Rows::Parsed(block.map_err(|error| RecordError(error.to_string()))?)
        }
        Form::Text { .. } => {
            let count = usize::try_from(bytes.u64()?).or_else(|_| error("more rows than can be counted"))?;
            Rows::Passthrough(PassthroughRows::piece(bytes.0.to_vec(), count))
        }
    };
    Ok(InsertRecord { head, rows })
}

fn head(bytes: &mut Bytes<'_>) -> Result<InsertHead, RecordError> {
    bytes.version(VERSION, "an insert")?;
    Ok(InsertHead {
        arrived_micros: bytes.u64()?,
        query_id: match bytes.u8()? {
            GIVEN => QueryId::Given(bytes.text()?.into()),
            RANDOM => QueryId::Random(bytes.u128()?),
            other => return error(format!("unknown kind of query id {other}")),
        },
        payload_bytes: bytes.u64()?,
        ack: match bytes.u8()? {
            0 => AckLevel::Memory,
            1 => AckLevel::Disk,
            2 => AckLevel::Stored,
            other => return error(format!("unknown ack level {other}")),
        },
        attempts: bytes.u32()?,
        dedup: bytes.bytes()?.to_vec(),
    })
}
