//! Where LZ4 frames end.
//!
//! The frame decoder takes an input that stops between two blocks for a complete one; of a body that was cut there, the rows
//! behind the cut would be lost in silence. So the frames are walked first, by their block sizes, up to the end mark.
//! Layout: magic, flags, block descriptor, optional content size (8) and dictionary id (4), header checksum; blocks of a
//! 4-byte size (the top bit marks an uncompressed one), data and an optional checksum (4); a size of 0; an optional
//! checksum (4).

use crate::DecompressError;

const MAGIC: u32 = 0x184D_2204;
/// Frames of other programs' own data, to be passed over.
const SKIPPABLE_MAGIC: std::ops::RangeInclusive<u32> = 0x184D_2A50..=0x184D_2A5F;
const UNCOMPRESSED_BLOCK: u32 = 1 << 31;

const BLOCK_CHECKSUMS: u8 = 0b0001_0000;
const CONTENT_SIZE: u8 = 0b0000_1000;
const CONTENT_CHECKSUM: u8 = 0b0000_0100;
const DICTIONARY_ID: u8 = 0b0000_0001;

pub(crate) struct Frame<'i> {
    /// From its magic number to its end; empty for one that carries no data.
    pub bytes: &'i [u8],
    pub rest: &'i [u8],
}

/// The complete frame that the input begins with.
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

    /// Behind the magic number.
    fn frame(&mut self) -> Result<(), DecompressError> {
        let flags = *self.rest.first().ok_or(DecompressError::Truncated)?;
        let bytes_if = |flag: u8, count: usize| if flags & flag != 0 { count } else { 0 };
        self.skip(3 + bytes_if(CONTENT_SIZE, 8) + bytes_if(DICTIONARY_ID, 4))?;
        loop {
            let size = self.u32()? & !UNCOMPRESSED_BLOCK;
            if size == 0 {
                return self.skip(bytes_if(CONTENT_CHECKSUM, 4));
            }
            self.skip(size as usize + bytes_if(BLOCK_CHECKSUMS, 4))?;
        }
    }
}
