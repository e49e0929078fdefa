//! The Snappy format as Kafka's producers write it: the framing of the Java library (`\x82SNAPPY\0`, two
//! versions, blocks behind their sizes), or a single block without any framing.

use crate::batch::output::{Failure, Output};

const MAGIC: &[u8; 8] = b"\x82SNAPPY\0";
/// Bytes of the magic number, the version and the oldest compatible version.
const FRAMING_BYTES: usize = 16;

pub(crate) fn decompress(input: &[u8], output: &mut Output) -> Result<(), Failure> {
    if !input.starts_with(MAGIC) {
        return append_block(input, output);
    }
    let mut rest = input;
    while !rest.is_empty() {
        // Streams that follow each other each begin with the framing.
        if rest.starts_with(MAGIC) {
            rest = rest.get(FRAMING_BYTES..).ok_or(Failure::CUT)?;
            continue;
        }
        let (size, behind) = rest.split_first_chunk().ok_or(Failure::CUT)?;
        let size = u32::from_be_bytes(*size) as usize;
        let (block, behind) = behind.split_at_checked(size).ok_or(Failure::CUT)?;
        append_block(block, output)?;
        rest = behind;
    }
    Ok(())
}

fn append_block(block: &[u8], output: &mut Output) -> Result<(), Failure> {
    let length = snap::raw::decompress_len(block).map_err(Failure::damaged)?;
    // A copy of 64 bytes takes three: what claims to grow by more is damaged, and gets no memory.
    if length / 32 > block.len() {
        return Err(Failure::damaged("a block claims to be larger than it can be"));
    }
    let room = output.room(length)?;
    let written = snap::raw::Decoder::new().decompress(block, &mut room[..length]).map_err(Failure::damaged)?;
    output.advance(written);
    Ok(())
}
