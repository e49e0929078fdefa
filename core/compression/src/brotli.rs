//! Decompression of Brotli bodies. The decoder is driven by hand: its reader neither distinguishes an early
//! end from damage nor notices bytes behind the end, and ClickHouse refuses both. Answers are written
//! uncompressed in Brotli's format (RFC 7932, section 9.2): they are errors of a few hundred bytes, and not
//! worth the encoder's weight.

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};

use crate::DecompressError;

const STEP_BYTES: usize = 64 << 10;

pub(crate) fn decompress_brotli(input: &[u8], max_bytes: usize) -> Result<Vec<u8>, DecompressError> {
    let alloc = StandardAlloc::default;
    // Strict: no windows of a gigabyte, as the large-window extension would allow.
    let mut state = BrotliState::new_strict(alloc(), alloc(), alloc());
    let mut output = Vec::new();
    let mut step = vec![0; STEP_BYTES];
    let (mut available_in, mut read, mut total_out) = (input.len(), 0, 0);
    loop {
        let (mut available_out, mut written) = (step.len(), 0);
        let result = BrotliDecompressStream(
            &mut available_in,
            &mut read,
            input,
            &mut available_out,
            &mut written,
            &mut step,
            &mut total_out,
            &mut state,
        );
        if written > max_bytes - output.len() {
            return Err(DecompressError::TooLarge { max_bytes });
        }
        output.extend_from_slice(&step[..written]);
        match result {
            BrotliResult::NeedsMoreOutput => {}
            BrotliResult::NeedsMoreInput => return Err(DecompressError::Truncated),
            BrotliResult::ResultSuccess if available_in == 0 => return Ok(output),
            BrotliResult::ResultSuccess => return Err(corrupt("there are bytes behind the end of the brotli stream")),
            BrotliResult::ResultFailure => return Err(corrupt("this is no brotli stream")),
        }
    }
}

/// The most bytes that a meta-block holds whose length has four nibbles.
const META_BLOCK_BYTES: usize = 1 << 16;
/// The bits of an empty last meta-block.
const END: u8 = 0b11;

pub(crate) fn store_brotli(input: &[u8]) -> Vec<u8> {
    let mut output = Vec::with_capacity(input.len() + 16);
    for (number, block) in input.chunks(META_BLOCK_BYTES).enumerate() {
        // From the lowest bit: not the last, four nibbles, the length less one, uncompressed. The stream begins with
        // one more bit, for a window of 64 KiB.
        let header = (block.len() as u32 - 1) << 3 | 1 << 19;
        let header = if number == 0 { header << 1 } else { header };
        output.extend_from_slice(&header.to_le_bytes()[..3]);
        output.extend_from_slice(block);
    }
    output.push(if input.is_empty() { END << 1 } else { END });
    output
}

fn corrupt(reason: &str) -> DecompressError {
    DecompressError::Corrupt(reason.to_owned())
}
