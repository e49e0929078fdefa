//! The ends of LZ4 frames.
//!
//! The frame decoder takes an input that stops between two blocks for a complete one; of a body that was cut
//! there, the rows behind the cut would be lost in silence. So the frames are walked first, by their block
//! sizes, up to the end mark. Layout: magic, flags, block descriptor, optional content size (8) and
//! dictionary id (4), header checksum; blocks of a 4-byte size (the top bit marks an uncompressed one), data
//! and an optional checksum (4); a size of 0; an optional checksum (4).

use crate::DecompressError;

const MAGIC: u32 = 0x184D_2204;
/// The magic numbers of frames that hold other programs' own data. Such frames are passed over.
const SKIPPABLE_MAGIC: std::ops::RangeInclusive<u32> = 0x184D_2A50..=0x184D_2A5F;
const UNCOMPRESSED_BLOCK: u32 = 1 << 31;

const BLOCK_CHECKSUMS: u8 = 0b0001_0000;
const CONTENT_SIZE: u8 = 0b0000_1000;
const CONTENT_CHECKSUM: u8 = 0b0000_0100;
const DICTIONARY_ID: u8 = 0b0000_0001;

pub(crate) struct Frame<'i> {
    /// Bytes from the frame's magic number to its end; empty for a frame that carries no data.
    pub bytes: &'i [u8],
    pub rest: &'i [u8],
}

/// Returns the complete frame that the input begins with.
pub(crate) fn split_frame(input: &[u8]) -> Result<Frame<'_>, DecompressError> {
    let mut walk = Walk { rest: input };
    let magic = walk.u32()?;
    if SKIPPABLE_MAGIC.contains(&magic) {
        let size = walk.u32()?;
        walk.skip(size as usize)?;
        return Ok(Frame { bytes: &[], rest: walk.rest });
    }
    if magic != MAGIC {
        return Err(DecompressError::Corrupt("this is no LZ4 frame".to_owned()));
    }
    walk.frame()?;
    Ok(Frame { bytes: &input[..input.len() - walk.rest.len()], rest: walk.rest })
}

struct Walk<'i> {
    rest: &'i [u8],
}

impl Walk<'_> {
    fn skip(&mut self, count: usize) -> Result<(), DecompressError> {
        self.rest = self.rest.get(count..).ok_or(DecompressError::Truncated)?;
        Ok(())
    }

    fn u32(&mut self) -> Result<u32, DecompressError> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(DecompressError::Truncated)?;
        self.rest = rest;
        Ok(u32::from_le_bytes(*bytes))
    }

    /// Passes over the rest of a frame, behind its magic number.
    fn frame(&mut self) -> Result<(), DecompressError> {
        let shape = FrameShape::new(*self.rest.first().ok_or(DecompressError::Truncated)?);
        self.skip(shape.head_bytes() - 4)?;
        loop {
            let size = self.u32()?;
            self.skip(shape.block_bytes(size) - 4)?;
            if is_end_mark(size) {
                return Ok(());
            }
        }
    }
}

/// The lengths of a frame's parts, which follow from its flags.
#[derive(Clone, Copy)]
pub(crate) struct FrameShape {
    flags: u8,
}

impl FrameShape {
    pub(crate) fn new(flags: u8) -> Self {
        Self { flags }
    }

    fn bytes_if(self, flag: u8, count: usize) -> usize {
        if self.flags & flag != 0 {
            count
        } else {
            0
        }
    }

    /// Returns the length of the head, with its magic number.
    pub(crate) fn head_bytes(self) -> usize {
        7 + self.bytes_if(CONTENT_SIZE, 8) + self.bytes_if(DICTIONARY_ID, 4)
    }

    /// Returns the length of the block that begins with this size, or of the frame's end, with everything
    /// that belongs to it.
    pub(crate) fn block_bytes(self, size: u32) -> usize {
        match (size & !UNCOMPRESSED_BLOCK) as usize {
            0 => 4 + self.bytes_if(CONTENT_CHECKSUM, 4),
            size => 4 + size + self.bytes_if(BLOCK_CHECKSUMS, 4),
        }
    }
}

pub(crate) fn is_frame_magic(word: u32) -> bool {
    word == MAGIC
}

pub(crate) fn is_end_mark(size: u32) -> bool {
    size & !UNCOMPRESSED_BLOCK == 0
}

pub(crate) fn is_skippable_magic(word: u32) -> bool {
    SKIPPABLE_MAGIC.contains(&word)
}
