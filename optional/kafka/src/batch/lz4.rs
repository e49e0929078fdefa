//! LZ4's frame format.
//!
//! Producers write independent blocks, which are decompressed straight into the output. Frames with blocks
//! that depend on each other are left to the library's own reader. The format's checksums are not verified:
//! the batch has a checksum of its own, over everything. Layout: magic, flags, block descriptor, optional
//! content size (8), header checksum; blocks of a 4-byte size (the top bit marks an uncompressed block), data
//! and an optional checksum (4); a size of 0; an optional checksum (4).

use crate::batch::output::{Failure, Output};

const MAGIC: u32 = 0x184D_2204;
const UNCOMPRESSED: u32 = 1 << 31;

const VERSION: u8 = 0b1100_0000;
const VERSION_1: u8 = 0b0100_0000;
const INDEPENDENT_BLOCKS: u8 = 0b0010_0000;
const BLOCK_CHECKSUMS: u8 = 0b0001_0000;
const CONTENT_SIZE: u8 = 0b0000_1000;
const CONTENT_CHECKSUM: u8 = 0b0000_0100;
const DICTIONARY_ID: u8 = 0b0000_0001;

struct Input<'i> {
    rest: &'i [u8],
}

impl<'i> Input<'i> {
    fn take(&mut self, count: usize) -> Result<&'i [u8], Failure> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(Failure::CUT)?;
        self.rest = rest;
        Ok(taken)
    }

    fn u32(&mut self) -> Result<u32, Failure> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(Failure::CUT)?;
        self.rest = rest;
        Ok(u32::from_le_bytes(*bytes))
    }
}

/// Decompresses all frames of the input, which may follow each other.
pub(crate) fn decompress(input: &[u8], output: &mut Output) -> Result<(), Failure> {
    let mut input = Input { rest: input };
    loop {
        let whole = input.rest;
        if input.u32()? != MAGIC {
            return Err(Failure::damaged("this is no LZ4 frame"));
        }
        let head = input.take(2)?;
        let (flags, descriptor) = (head[0], head[1]);
        if flags & VERSION != VERSION_1 || flags & DICTIONARY_ID != 0 {
            return Err(Failure::damaged("an LZ4 frame of another version, or with a dictionary"));
        }
        if flags & INDEPENDENT_BLOCKS == 0 {
            return output.read_all(lz4_flex::frame::FrameDecoder::new(whole));
        }
        let max_block_bytes = max_block_bytes(descriptor)?;
        input.take(if flags & CONTENT_SIZE != 0 { 8 + 1 } else { 1 })?;
        blocks(&mut input, flags, max_block_bytes, output)?;
        if input.rest.is_empty() {
            return Ok(());
        }
    }
}

fn max_block_bytes(descriptor: u8) -> Result<usize, Failure> {
    match descriptor >> 4 & 0b111 {
        size @ 4..=7 => Ok(1 << (8 + 2 * size)),
        _ => Err(Failure::damaged("an LZ4 frame with blocks of no known size")),
    }
}

fn blocks(input: &mut Input<'_>, flags: u8, max_block_bytes: usize, output: &mut Output) -> Result<(), Failure> {
    loop {
        let size = input.u32()?;
        if size & !UNCOMPRESSED == 0 {
            input.take(if flags & CONTENT_CHECKSUM != 0 { 4 } else { 0 })?;
            return Ok(());
        }
        let block = input.take((size & !UNCOMPRESSED) as usize)?;
        input.take(if flags & BLOCK_CHECKSUMS != 0 { 4 } else { 0 })?;
        match size & UNCOMPRESSED {
            0 => compressed_block(block, max_block_bytes, output)?,
            _ => {
                output.room(block.len())?[..block.len()].copy_from_slice(block);
                output.advance(block.len());
            }
        }
    }
}

/// Decompresses one block. Its size afterwards is not written anywhere: a block can't grow by more than 255
/// times, nor over the frame's bound.
fn compressed_block(block: &[u8], max_block_bytes: usize, output: &mut Output) -> Result<(), Failure> {
    let most = max_block_bytes.min(block.len().saturating_mul(255));
    let room = match output.room(most) {
        Ok(room) => room,
        // Perhaps it needs less.
        Err(_) => output.some_room()?,
    };
    let length = room.len().min(most);
    match lz4_flex::block::decompress_into(block, &mut room[..length]) {
        Ok(written) => {
            output.advance(written);
            Ok(())
        }
        Err(lz4_flex::block::DecompressError::OutputTooSmall { .. }) if length < most => Err(Failure::TooLarge),
        Err(error) => Err(Failure::damaged(error)),
    }
}
