//! Decompression of LZ4 frames.
//!
//! The frame decoder is a reader, and a reader whose input ends within a block can't be asked again. So input
//! is kept until a unit of the frame is complete (its head, or one block with its checksum), and the decoder
//! sees complete units only: between units its input may end as often as it likes. A unit is at most
//! [`MAX_UNIT_BYTES`].

use std::io::{self, BufRead, ErrorKind, Read};

use lz4_flex::frame::FrameDecoder;

use crate::lz4_frames::{is_end_mark, is_frame_magic, is_skippable_magic, FrameShape};
use crate::DecompressError;

/// The largest block that the format has, with its size and checksum, in bytes. A head is smaller.
const MAX_UNIT_BYTES: usize = (4 << 20) + 8;

pub(super) struct Lz4 {
    decoder: FrameDecoder<Units>,
    at: At,
}

impl Default for Lz4 {
    fn default() -> Self {
        Self { decoder: FrameDecoder::new(Units::default()), at: At::BetweenFrames }
    }
}

/// The place of the next unit in the input.
#[derive(Clone, Copy)]
enum At {
    BetweenFrames,
    InFrame(FrameShape),
    /// The place within a skippable frame of another program's data, of which `left` bytes are still to come.
    Skipping {
        left: usize,
    },
}

/// Bytes that were received and not decoded yet. The decoder sees only the complete units of them.
#[derive(Default)]
struct Units {
    bytes: Vec<u8>,
    read: usize,
    /// Bytes from the start that are complete units.
    whole: usize,
}

impl Read for Units {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let visible = &self.bytes[self.read..self.whole];
        if visible.is_empty() {
            return Err(ErrorKind::WouldBlock.into());
        }
        let count = visible.len().min(target.len());
        target[..count].copy_from_slice(&visible[..count]);
        self.read += count;
        Ok(count)
    }
}

impl Lz4 {
    /// Consumes input for one unit at a time, so that few bytes are kept, however large the input is.
    pub(super) fn step(&mut self, input: &[u8], output: &mut Vec<u8>, limit: usize) -> Result<usize, DecompressError> {
        let mut consumed = 0;
        loop {
            self.give_out(output, limit)?;
            if output.len() >= limit || consumed == input.len() {
                return Ok(consumed);
            }
            consumed += self.take_in(&input[consumed..])?;
        }
    }

    fn give_out(&mut self, output: &mut Vec<u8>, limit: usize) -> Result<(), DecompressError> {
        while output.len() < limit {
            let more_units = self.decoder.get_ref().read < self.decoder.get_ref().whole;
            match self.decoder.fill_buf() {
                // An empty block or the end of a frame; there is something behind it.
                Ok([]) if more_units => {}
                Ok([]) => return Ok(()),
                Ok(bytes) => {
                    let count = bytes.len().min(limit - output.len());
                    output.extend_from_slice(&bytes[..count]);
                    self.decoder.consume(count);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(DecompressError::Corrupt(format!("lz4: {error}"))),
            }
        }
        Ok(())
    }

    /// Takes the bytes that the next unit needs, or as many of them as there are.
    fn take_in(&mut self, input: &[u8]) -> Result<usize, DecompressError> {
        if let At::Skipping { left } = self.at {
            let count = left.min(input.len());
            self.at = if count == left { At::BetweenFrames } else { At::Skipping { left: left - count } };
            return Ok(count);
        }
        let units = self.decoder.get_mut();
        if units.read == units.whole && units.read > 0 {
            units.bytes.drain(..units.read);
            (units.read, units.whole) = (0, 0);
        }
        let needed = unit_bytes(self.at, &units.bytes[units.whole..])?;
        let count = (units.whole + needed - units.bytes.len()).min(input.len());
        units.bytes.extend_from_slice(&input[..count]);
        let unit = &units.bytes[units.whole..];
        // The size may have been part of what came just now.
        if unit.len() < unit_bytes(self.at, unit)? {
            return Ok(count);
        }
        let (next, shown) = behind(self.at, unit);
        self.at = next;
        match shown {
            true => units.whole = units.bytes.len(),
            false => units.bytes.truncate(units.whole),
        }
        Ok(count)
    }

    pub(super) fn is_whole(&self) -> bool {
        let units = self.decoder.get_ref();
        matches!(self.at, At::BetweenFrames) && units.whole == units.bytes.len()
    }
}

/// Returns the length of the unit that begins with these bytes, as far as they show it.
fn unit_bytes(at: At, unit: &[u8]) -> Result<usize, DecompressError> {
    let Some(word) = unit.first_chunk().map(|bytes| u32::from_le_bytes(*bytes)) else { return Ok(4) };
    let bytes = match at {
        At::InFrame(shape) => shape.block_bytes(word),
        _ if is_skippable_magic(word) => 8,
        _ if is_frame_magic(word) => unit.get(4).map_or(5, |flags| FrameShape::new(*flags).head_bytes()),
        _ => return Err(DecompressError::Corrupt("this is no LZ4 frame".to_owned())),
    };
    match bytes <= MAX_UNIT_BYTES {
        true => Ok(bytes),
        false => Err(DecompressError::Corrupt("an LZ4 block of more than 4 MiB".to_owned())),
    }
}

/// Returns the place behind a complete unit, and whether the decoder is to see the unit.
fn behind(at: At, unit: &[u8]) -> (At, bool) {
    let word = unit.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
    match at {
        At::InFrame(_) if is_end_mark(word) => (At::BetweenFrames, true),
        At::InFrame(shape) => (At::InFrame(shape), true),
        _ if is_skippable_magic(word) => {
            let left = unit[4..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes)) as usize;
            (if left == 0 { At::BetweenFrames } else { At::Skipping { left } }, false)
        }
        _ => (At::InFrame(FrameShape::new(unit[4])), true),
    }
}
