//! Records of what becomes of inserts: pieces that are about to be stored under an id, and inserts that are
//! done.

use crate::sink::BatchId;

use super::bytes::{Bytes, RecordError, Writer};
use windrow_log::RecordId;

const VERSION: u8 = 1;

/// Bytes that the log needs to be done with an insert that is sent alone: for its piece, and for the record
/// that it is done, each with what the log puts before it. Several inserts that share these records need less
/// for each.
pub const MOST_END_BYTES: u64 = 56 + 40;

/// Inserts that go to the sink together, under an id that stays theirs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    pub batch: BatchId,
    pub members: Vec<RecordId>,
}

pub fn encode_piece(piece: &Piece) -> Vec<u8> {
    let mut out = Writer(Vec::with_capacity(21 + 8 * piece.members.len()));
    out.u8(VERSION);
    out.u128(piece.batch.0);
    ids(&piece.members, &mut out);
    out.0
}

/// Reads the record of a piece back.
///
/// # Errors
/// Fails where the bytes end too early or too late, or the version is not known.
pub fn decode_piece(payload: &[u8]) -> Result<Piece, RecordError> {
    let mut bytes = Bytes(payload);
    bytes.version(VERSION, "a piece")?;
    let piece = Piece { batch: BatchId(bytes.u128()?), members: read_ids(&mut bytes)? };
    bytes.end()?;
    Ok(piece)
}

/// Inserts that need not be stored any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    pub inserts: Vec<RecordId>,
}

pub fn encode_done(inserts: &[RecordId]) -> Vec<u8> {
    let mut out = Writer(Vec::with_capacity(5 + 8 * inserts.len()));
    out.u8(VERSION);
    ids(inserts, &mut out);
    out.0
}

/// Reads back which inserts are done.
///
/// # Errors
/// Fails where the bytes end too early or too late, or the version is not known.
pub fn decode_done(payload: &[u8]) -> Result<Done, RecordError> {
    let mut bytes = Bytes(payload);
    bytes.version(VERSION, "what is done")?;
    let done = Done { inserts: read_ids(&mut bytes)? };
    bytes.end()?;
    Ok(done)
}

fn ids(ids: &[RecordId], out: &mut Writer) {
    out.u32(ids.len() as u32);
    ids.iter().for_each(|id| out.u64(id.0));
}

fn read_ids(bytes: &mut Bytes<'_>) -> Result<Vec<RecordId>, RecordError> {
    bytes.list(8, |bytes| bytes.u64().map(RecordId))
}
