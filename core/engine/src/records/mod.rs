//! Encoding of the journal's records. It is pure: bytes to values and back. Each kind begins with its
//! version.
//!
//! An insert's record has all of the insert but what many inserts share, which is the record's context. When
//! the insert's batch is about to be stored, a piece says under which id and with which members. When nothing
//! more is to be done for the insert, it is named as done.
//!
//! Dead letters have a log of their own, whose records hold inserts as they are here, or messages of a
//! pipeline.

mod bytes;
mod context;
mod insert;
mod message;
mod progress;

pub use bytes::RecordError;
pub use context::{decode_context, encode_context, ContextRecord, RecordedContext};
pub use insert::{decode_insert, decode_insert_head, encode_insert, AckLevel, InsertHead, InsertRecord, QueryId};
pub use message::{decode_message, decode_stream, encode_message, encode_stream, MessageRecord, StreamRecord};
pub use progress::{decode_done, decode_piece, encode_done, encode_piece, Done, Piece, MOST_END_BYTES};

/// Kinds of the journal's records.
pub const INSERT: u8 = 1;
pub const PIECE: u8 = 2;
pub const DONE: u8 = 3;
