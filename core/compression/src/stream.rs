//! Decompression and compression of bodies that come in piece by piece.
//!
//! A step takes input and appends at most as much output as the caller asks for: the further output of a bomb
//! stays compressed until the caller asks for it. Besides the output, memory holds what a decoder itself
//! needs: a window of at most 16 MiB (zstd), or one block of at most 4 MiB with its window (LZ4).
//! Concatenated members and frames are one body, as for whole bodies.

mod brotli;
mod compressor;
mod lz4;
mod zlib;
mod zstandard;

pub use compressor::StreamCompressor;

use crate::{DecompressError, Encoding};

/// The result of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Bytes of the input that need not be given again.
    pub consumed: usize,
    /// True if the output has as many bytes as were asked for, and there may be more: step again, also
    /// without input.
    pub full: bool,
}

/// The decoder of one body.
pub struct StreamDecompressor {
    decoder: Decoder,
}

enum Decoder {
    Lz4(Box<lz4::Lz4>),
    Zstd(zstandard::Zstd),
    Zlib(zlib::Zlib),
    Brotli(Box<brotli::Brotli>),
}

impl StreamDecompressor {
    /// Creates a decoder of LZ4 frames, zstd, gzip, deflate (zlib) or Brotli.
    ///
    /// # Errors
    /// Fails where the encoding can't be decoded as a stream (xz, Snappy, ClickHouse's blocks), or zstd has
    /// no memory for a decoder.
    pub fn new(encoding: Encoding) -> Result<Self, DecompressError> {
        let decoder = match encoding {
            Encoding::Lz4 => Decoder::Lz4(Box::default()),
            Encoding::Zstd => Decoder::Zstd(zstandard::Zstd::new()?),
            Encoding::Gzip => Decoder::Zlib(zlib::Zlib::gzip()),
            Encoding::Deflate => Decoder::Zlib(zlib::Zlib::deflate()),
            Encoding::Brotli => Decoder::Brotli(Box::default()),
            Encoding::Xz | Encoding::Snappy | Encoding::ClickHouse => {
                return Err(DecompressError::Unsupported(format!("{encoding:?} as a stream")))
            }
        };
        Ok(Self { decoder })
    }

    /// Takes input and appends at most `max_bytes` to the output. Unless the step was full, it has consumed
    /// all of the input and has given out all output of it.
    ///
    /// # Errors
    /// Fails where the input is damaged or of a kind that is not decoded here.
    pub fn step(&mut self, input: &[u8], output: &mut Vec<u8>, max_bytes: usize) -> Result<Step, DecompressError> {
        let limit = output.len().saturating_add(max_bytes);
        let consumed = match &mut self.decoder {
            Decoder::Lz4(decoder) => decoder.step(input, output, limit),
            Decoder::Zstd(decoder) => decoder.step(input, output, limit),
            Decoder::Zlib(decoder) => decoder.step(input, output, limit),
            Decoder::Brotli(decoder) => decoder.step(input, output, limit),
        }?;
        Ok(Step { consumed, full: output.len() >= limit })
    }

    /// Checks that the body may end here, once no step gives anything more.
    ///
    /// # Errors
    /// Fails where the body ends too early.
    pub fn finish(&self) -> Result<(), DecompressError> {
        let whole = match &self.decoder {
            Decoder::Lz4(decoder) => decoder.is_whole(),
            Decoder::Zstd(decoder) => decoder.is_whole(),
            Decoder::Zlib(decoder) => decoder.is_whole(),
            Decoder::Brotli(decoder) => decoder.is_whole(),
        };
        whole.then_some(()).ok_or(DecompressError::Truncated)
    }
}

/// Reserves room for the next piece of output and returns its size: the rest up to the limit, but at most one
/// piece (or the spare capacity, if that is larger).
fn reserve_piece(output: &mut Vec<u8>, limit: usize) -> usize {
    const PIECE_BYTES: usize = 128 << 10;
    let room = (limit - output.len()).min(PIECE_BYTES.max(output.capacity() - output.len()));
    output.reserve(room);
    room
}
