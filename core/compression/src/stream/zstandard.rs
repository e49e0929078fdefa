//! Decompression of zstd by the reference implementation.

use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation, OutBuffer};

use super::reserve_piece;
use crate::DecompressError;

/// The largest window as a power of two, the same as for whole bodies: it covers every level up to 19.
const MAX_WINDOW_LOG: u32 = 24;

pub(super) struct Zstd {
    decoder: Decoder<'static>,
    between_frames: bool,
}

impl Zstd {
    pub(super) fn new() -> Result<Self, DecompressError> {
        let mut decoder = Decoder::new()?;
        decoder.set_parameter(DParameter::WindowLogMax(MAX_WINDOW_LOG))?;
        Ok(Self { decoder, between_frames: true })
    }

    pub(super) fn step(&mut self, input: &[u8], output: &mut Vec<u8>, limit: usize) -> Result<usize, DecompressError> {
        let mut source = InBuffer::around(input);
        while output.len() < limit && !(self.between_frames && source.pos() == input.len()) {
            let (start, room) = (output.len(), reserve_piece(output, limit));
            let before = source.pos();
            // The decoder writes up to the vector's capacity: a piece of its own keeps it within the limit.
            let mut piece = Bounded { output, limit: start + room };
            let remaining = piece.run(&mut self.decoder, &mut source)?;
            let written = output.len() - start;
            self.between_frames = remaining == 0;
            if written == 0 && source.pos() == before {
                break;
            }
        }
        Ok(source.pos())
    }

    pub(super) fn is_whole(&self) -> bool {
        self.between_frames
    }
}

struct Bounded<'o> {
    output: &'o mut Vec<u8>,
    limit: usize,
}

impl Bounded<'_> {
    fn run(&mut self, decoder: &mut Decoder<'static>, source: &mut InBuffer<'_>) -> std::io::Result<usize> {
        let start = self.output.len();
        self.output.resize(self.limit, 0);
        let mut target = OutBuffer::around(&mut self.output[start..]);
        let outcome = decoder.run(source, &mut target);
        let written = target.pos();
        self.output.truncate(start + written);
        outcome
    }
}
