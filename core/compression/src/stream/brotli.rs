//! Decompression of one Brotli stream, with nothing behind its end.

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};

use super::reserve_piece;
use crate::DecompressError;

pub(super) struct Brotli {
    state: BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>,
    started: bool,
    ended: bool,
}

impl Default for Brotli {
    fn default() -> Self {
        let alloc = StandardAlloc::default;
        Self { state: BrotliState::new_strict(alloc(), alloc(), alloc()), started: false, ended: false }
    }
}

impl Brotli {
    pub(super) fn step(&mut self, input: &[u8], output: &mut Vec<u8>, limit: usize) -> Result<usize, DecompressError> {
        self.started |= !input.is_empty();
        let (mut available_in, mut read, mut total_out) = (input.len(), 0, 0);
        while self.started && !self.ended && output.len() < limit {
            let (start, room) = (output.len(), reserve_piece(output, limit));
            let (mut available_out, mut written) = (room, 0);
            output.resize(start + room, 0);
            let result = BrotliDecompressStream(
                &mut available_in,
                &mut read,
                input,
                &mut available_out,
                &mut written,
                &mut output[start..],
                &mut total_out,
                &mut self.state,
            );
            output.truncate(start + written);
            match result {
                BrotliResult::NeedsMoreOutput => {}
                BrotliResult::NeedsMoreInput => break,
                BrotliResult::ResultSuccess => self.ended = true,
                BrotliResult::ResultFailure => return Err(corrupt("this is no brotli stream")),
            }
        }
        if self.ended && read < input.len() {
            return Err(corrupt("there are bytes behind the end of the brotli stream"));
        }
        Ok(read)
    }

    pub(super) fn is_whole(&self) -> bool {
        self.ended || !self.started
    }
}

fn corrupt(reason: &str) -> DecompressError {
    DecompressError::Corrupt(reason.to_owned())
}
