//! Bodies that are decompressed and compressed while they come in, piece by piece.
//!
//! A step takes input and appends at most as much output as it was asked for: what a bomb holds beyond that stays
//! compressed until somebody wants it. Memory besides the output is what a decoder needs for itself: a window of at
//! most 16 MiB (zstd), or one block of at most 4 MiB with its window (LZ4). Concatenated members and frames are one
//! body, as for whole bodies.

mod brotli;
mod compressor;
mod lz4;
mod zlib;
mod zstandard;

pub use compressor::StreamCompressor;

use crate::{DecompressError, Encoding};

/// What a step did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Bytes of the input that need not be given again.
    pub consumed: usize,
    /// The output has as much as was asked for, and there may be more: step again, also without input.
    pub full: bool,
}

/// One body's decoder.
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
    /// LZ4 frames, zstd, gzip, deflate (zlib) and brotli.
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

    /// Takes input and appends at most `max_bytes` to the output. Unless the step was full, all of the input was
    /// consumed and all that it holds was given out.
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

    /// Whether the body may end here, once no step gives anything more.
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

/// Room for the next piece of output: what is left up to the limit, but not more than a piece at a time.
fn reserve_piece(output: &mut Vec<u8>, limit: usize) -> usize {
    const PIECE_BYTES: usize = 128 << 10;
    let room = (limit - output.len()).min(PIECE_BYTES.max(output.capacity() - output.len()));
    output.reserve(room);
    room
}
