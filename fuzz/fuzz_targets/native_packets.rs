#![no_main]
//! Reads packets of the native protocol, of both sides, at any revision: it makes no difference how blocks are cut.

use libfuzzer_sys::fuzz_target;
use windrow_clickhouse::native::{
    client, read_server_packet, revision, write_varint, Addendum, BlockEnd, BlockReader, ChunkReader, DataReader,
    Fault, Input, Query, ServerHello, Startup,
};

const MAX_BYTES: usize = 1 << 20;

fuzz_target!(|bytes: &[u8]| {
    let Some(([choice, step, piece], bytes)) = bytes.split_first_chunk::<3>() else { return };
    let revision = revision::OLDEST + u64::from(*step) % (revision::NEWEST + 1 - revision::OLDEST);
    match choice % 8 {
        0 => length_fits(bytes, Startup::read(bytes).map(|(_, length)| length)),
        1 => length_fits(bytes, Addendum::read(bytes, revision).map(|(_, length)| length)),
        2 => {
            let mut input = Input::new(bytes);
            length_fits(bytes, ServerHello::read(&mut input, revision).map(|_| input.at()));
        }
        3 => {
            let mut packet = Vec::new();
            write_varint(&mut packet, client::QUERY);
            packet.extend_from_slice(bytes);
            if let Ok((query, length)) = Query::read(&packet, revision) {
                assert!(query.text.end <= length && query.settings_place.end <= length && length <= packet.len());
            }
        }
        5 => assert_eq!(stripped(bytes, usize::MAX), stripped(bytes, usize::from(*piece).max(1))),
        4 => length_fits(bytes, read_server_packet(bytes, revision, *piece > 127).map(|packet| packet.bytes)),
        6 => {
            let (whole, cut) = (payload(bytes, usize::MAX), payload(bytes, usize::from(*piece).max(1)));
            assert_eq!(whole.is_ok(), cut.is_ok());
            if let (Ok(whole), Ok(cut)) = (whole, cut) {
                assert_eq!(whole, cut);
            }
        }
        _ => {
            let mut packet = Vec::new();
            write_varint(&mut packet, client::DATA);
            packet.extend_from_slice(bytes);
            let is_compressed = *choice > 127;
            let whole = blocks(&packet, revision, is_compressed, usize::MAX);
            let cut = blocks(&packet, revision, is_compressed, usize::from(*piece).max(1));
            assert_eq!(whole.is_ok(), cut.is_ok());
            if let (Ok(whole), Ok(cut)) = (whole, cut) {
                assert_eq!(whole, cut);
            }
        }
    }
});

fn length_fits(bytes: &[u8], length: Result<usize, Fault>) {
    match length {
        Ok(length) => assert!(length <= bytes.len()),
        Err(Fault::Incomplete { at_least }) => assert!(at_least > bytes.len()),
        Err(_) => {}
    }
}

/// Returns the contents of chunks that arrive in pieces of this size.
fn stripped(bytes: &[u8], piece: usize) -> Result<Vec<u8>, Fault> {
    let (mut reader, mut out) = (ChunkReader::default(), Vec::new());
    for piece in bytes.chunks(piece) {
        let mut piece = piece.to_vec();
        let kept = reader.strip(&mut piece)?;
        out.extend_from_slice(&piece[..kept]);
    }
    Ok(out)
}

/// Reads the first block of a payload in the format Native, which arrives in pieces of this size.
fn payload(bytes: &[u8], piece: usize) -> Result<(Vec<u8>, Option<BlockEnd>), Fault> {
    let mut reader = BlockReader::of_payload(MAX_BYTES);
    reader.begin();
    let (mut out, mut there, mut from) = (Vec::new(), Vec::new(), 0);
    loop {
        let (taken, end) = reader.read(&there, &mut out)?;
        there.drain(..taken);
        if end.is_some() || from == bytes.len() {
            return Ok((out, end));
        }
        let to = bytes.len().min(from.saturating_add(piece));
        there.extend_from_slice(&bytes[from..to]);
        from = to;
    }
}

/// Reads one Data packet that arrives in pieces of this size.
fn blocks(
    packet: &[u8],
    revision: u64,
    is_compressed: bool,
    piece: usize,
) -> Result<(Vec<u8>, Option<BlockEnd>), Fault> {
    let mut reader = DataReader::new(revision, is_compressed, MAX_BYTES);
    let (mut out, mut there, mut from) = (Vec::new(), Vec::new(), 0);
    loop {
        let taken = reader.read(&there, &mut out)?;
        there.drain(..taken.bytes);
        if taken.end.is_some() || from == packet.len() {
            return Ok((out, taken.end));
        }
        let to = packet.len().min(from.saturating_add(piece));
        there.extend_from_slice(&packet[from..to]);
        from = to;
    }
}
