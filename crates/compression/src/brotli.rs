//! Brotli bodies, with the decoder driven by hand: its reader neither tells an early end from damage nor notices bytes
//! behind the end, and ClickHouse refuses both.

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

fn corrupt(reason: &str) -> DecompressError {
    DecompressError::Corrupt(reason.to_owned())
}
