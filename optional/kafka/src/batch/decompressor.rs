//! The decompression of batches, with memory and state that are used again for the next one.

use std::fmt;

use flate2::Decompress as Inflater;
use zstd::stream::raw::{DParameter, Decoder as ZstdDecoder, InBuffer, Operation, OutBuffer};

use crate::batch::compression::Compression;
use crate::batch::error::BatchError;
use crate::batch::gzip;
use crate::batch::lz4;
use crate::batch::output::{Failure, Output};
use crate::batch::record_batch::RecordBatch;
use crate::batch::records::Records;
use crate::batch::snappy;

/// The largest window that is accepted, as a power of two. Every level of zstd stays within it.
const ZSTD_MAX_WINDOW_LOG: u32 = 27;

/// The memory and state that decompressing needs, kept so that the next batch costs no allocation. There is
/// one for each thread that decodes.
pub struct Decompressor {
    output: Output,
    inflater: Option<Inflater>,
    zstd: Option<ZstdDecoder<'static>>,
}

impl fmt::Debug for Decompressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decompressor").field("max_bytes", &self.output.max_bytes()).finish_non_exhaustive()
    }
}

impl Decompressor {
    /// Makes a decompressor for batches of at most `max_bytes`, counted after decompression.
    pub fn new(max_bytes: usize) -> Self {
        Self { output: Output::new(max_bytes), inflater: None, zstd: None }
    }

    /// Returns the records of a batch. They stay in this decompressor's memory until the next call, or in the
    /// batch if it is not compressed.
    ///
    /// # Errors
    /// Fails where the body can't be decompressed, or would be larger than `max_bytes`.
    pub fn records<'r>(&'r mut self, batch: &'r RecordBatch) -> Result<Records<'r>, BatchError> {
        let offset = batch.base_offset;
        self.output.clear();
        let decompressed = match batch.compression {
            Compression::None => return Ok(batch.uncompressed_records()),
            Compression::Gzip => {
                let without_zlib_head = false;
                let inflater = self.inflater.get_or_insert_with(|| Inflater::new(without_zlib_head));
                gzip::decompress(&batch.body, inflater, &mut self.output)
            }
            Compression::Snappy => snappy::decompress(&batch.body, &mut self.output),
            Compression::Lz4 => lz4::decompress(&batch.body, &mut self.output),
            Compression::Zstd => self.zstd(&batch.body),
        };
        decompressed.map_err(|failure| match failure {
            Failure::TooLarge => BatchError::TooLarge { offset, max_bytes: self.output.max_bytes() },
            Failure::Damaged(reason) => {
                BatchError::corrupt(offset, format!("its {} can't be decompressed: {reason}", batch.compression))
            }
        })?;
        Ok(Records::new(batch, self.output.filled()))
    }

    fn zstd(&mut self, input: &[u8]) -> Result<(), Failure> {
        let decoder = match &mut self.zstd {
            Some(decoder) => {
                decoder.reinit().map_err(Failure::damaged)?;
                decoder
            }
            none => {
                let mut decoder = ZstdDecoder::new().map_err(Failure::damaged)?;
                decoder.set_parameter(DParameter::WindowLogMax(ZSTD_MAX_WINDOW_LOG)).map_err(Failure::damaged)?;
                none.insert(decoder)
            }
        };
        let mut input = InBuffer::around(input);
        loop {
            let room = self.output.some_room()?;
            let length = room.len();
            let mut output = OutBuffer::around(room);
            let hint = decoder.run(&mut input, &mut output).map_err(Failure::damaged)?;
            let written = output.pos();
            self.output.advance(written);
            let is_read = input.pos() == input.src.len();
            // Frames may follow each other; the hint is 0 where one ends.
            match (is_read, hint) {
                (true, 0) => return Ok(()),
                (true, _) if written < length => return Err(Failure::CUT),
                _ => {}
            }
        }
    }
}
