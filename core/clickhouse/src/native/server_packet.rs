//! A server's packets, skipped one by one, as far as answers to an INSERT and to statements without a result
//! have them. Such answers have no blocks of rows but those of logs and counters, whose types are known.

use crate::exception::ErrorCode;
use crate::native::data::DataReader;
use crate::native::input::{Fault, Input};
use crate::native::{revision, server};

const MAX_TEXT_BYTES: usize = 16 << 20;
/// The most bytes of a block that a server writes by itself, with logs or counters.
const MAX_BLOCK_BYTES: usize = 64 << 20;

/// A packet that has been skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerPacket {
    pub kind: u64,
    pub bytes: usize,
    /// Code and text of an exception.
    pub error: Option<(ErrorCode, String)>,
}

/// Finds the end of the packet that `bytes` begin with.
///
/// # Errors
/// Fails where the packet has not all come, is malformed, or is of a type that no answer to an INSERT has.
pub fn read_server_packet(bytes: &[u8], revision: u64, is_compressed: bool) -> Result<ServerPacket, Fault> {
    let mut input = Input::new(bytes);
    let kind = input.varint()?;
    let mut error = None;
    let compressed_since = revision >= revision::COMPRESSED_LOGS_PROFILE_EVENTS_COLUMNS;
    match kind {
        server::PONG | server::END_OF_STREAM => {}
        server::EXCEPTION => {
            let code = ErrorCode::from_number(input.i32()?);
            input.bytes(MAX_TEXT_BYTES, "the name of an exception")?;
            let text = input.bytes(MAX_TEXT_BYTES, "an exception")?;
            input.bytes(MAX_TEXT_BYTES, "a stack trace")?;
            input.byte()?;
            error = Some((code, String::from_utf8_lossy(text).into_owned()));
        }
        server::PROGRESS => {
            let total_bytes = usize::from(revision >= revision::TOTAL_BYTES_IN_PROGRESS);
            let elapsed = usize::from(revision >= revision::SERVER_QUERY_TIME_IN_PROGRESS);
            for _ in 0..5 + total_bytes + elapsed {
                input.varint()?;
            }
        }
        server::PROFILE_INFO => {
            (0..3).try_for_each(|_| input.varint().map(drop))?;
            input.byte()?;
            input.varint()?;
            input.byte()?;
            if revision >= revision::ROWS_BEFORE_AGGREGATION {
                input.byte()?;
                input.varint()?;
            }
        }
        server::TIMEZONE_UPDATE => drop(input.bytes(MAX_TEXT_BYTES, "a time zone")?),
        server::TABLE_COLUMNS if is_compressed && compressed_since => {
            return Ok(ServerPacket { kind, bytes: end_of_frames(bytes, input.at())?, error: None });
        }
        server::TABLE_COLUMNS => {
            input.bytes(MAX_TEXT_BYTES, "the name of a table")?;
            input.bytes(MAX_TEXT_BYTES, "the columns of a table")?;
        }
        server::DATA => return block(bytes, kind, revision, is_compressed),
        server::LOG | server::PROFILE_EVENTS => return block(bytes, kind, revision, is_compressed && compressed_since),
        _ => return Err(Fault::Unsupported("a packet that no answer to an INSERT has")),
    }
    Ok(ServerPacket { kind, bytes: input.at(), error })
}

fn block(bytes: &[u8], kind: u64, revision: u64, is_compressed: bool) -> Result<ServerPacket, Fault> {
    let taken = DataReader::new(revision, is_compressed, MAX_BLOCK_BYTES).discarding().read(bytes, &mut Vec::new())?;
    match taken.end {
        Some(_) => Ok(ServerPacket { kind, bytes: taken.bytes, error: None }),
        None => Err(Fault::Incomplete { at_least: bytes.len() + 1 }),
    }
}

/// Finds the end of a table's columns, which have a frame of their own; a long description takes several frames.
fn end_of_frames(bytes: &[u8], start: usize) -> Result<usize, Fault> {
    let (mut at, mut unpacked) = (start, Vec::new());
    loop {
        let left = &bytes[at..];
        let length = windrow_compression::clickhouse_block_bytes(left).map_err(Fault::Frame)?;
        let frame =
            length.and_then(|length| left.get(..length)).ok_or(Fault::Incomplete { at_least: bytes.len() + 1 })?;
        windrow_compression::decompress_clickhouse_block(frame, &mut unpacked, MAX_TEXT_BYTES).map_err(Fault::Frame)?;
        at += frame.len();
        let mut input = Input::new(&unpacked);
        let mut whole = || {
            input.bytes(MAX_TEXT_BYTES, "the name of a table")?;
            input.bytes(MAX_TEXT_BYTES, "the columns of a table").map(drop)
        };
        match whole() {
            Err(Fault::Incomplete { .. }) => {}
            result => return result.map(|()| at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::{Answer, Counter};

    #[test]
    fn every_packet_that_is_written_is_passed_over() {
        for revision in [54_429, 54_455, 54_460, 54_470, 54_481, revision::NEWEST] {
            for is_compressed in [false, true] {
                let packet = |write: &dyn Fn(&mut Answer<'_>)| {
                    let mut out = Vec::new();
                    write(&mut Answer { out: &mut out, revision, is_compressed });
                    out
                };
                let packets = [
                    (server::PONG, packet(&|answer| answer.pong())),
                    (server::END_OF_STREAM, packet(&|answer| answer.end_of_stream())),
                    (
                        server::EXCEPTION,
                        packet(&|answer| answer.exception(ErrorCode::UNKNOWN_TABLE, "DB::Exception: no")),
                    ),
                    (server::PROGRESS, packet(&|answer| answer.progress(1, 2, 3))),
                    (server::TABLE_COLUMNS, packet(&|answer| answer.table_columns("columns"))),
                    (server::DATA, packet(&|answer| answer.header([("a", "JSON"), ("b", "String")].into_iter()))),
                    (
                        server::PROFILE_EVENTS,
                        packet(&|answer| answer.profile_events("h", 7, &[Counter { name: "x", value: 1 }])),
                    ),
                ];
                for (kind, bytes) in packets {
                    let read = read_server_packet(&bytes, revision, is_compressed).unwrap();
                    assert_eq!((read.kind, read.bytes), (kind, bytes.len()), "{revision} {kind}");
                    if let Some((code, text)) = read.error {
                        assert_eq!((code, text.as_str()), (ErrorCode::UNKNOWN_TABLE, "DB::Exception: no"));
                    }
                    for end in 0..bytes.len() {
                        let cut = read_server_packet(&bytes[..end], revision, is_compressed);
                        assert!(matches!(cut, Err(Fault::Incomplete { .. })), "{revision} {kind} {end}");
                    }
                }
            }
        }
    }
}
