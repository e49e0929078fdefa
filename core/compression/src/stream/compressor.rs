//! Compression of a body while it is made.

use std::io::{self, Write};

use crate::Encoding;

/// The zstd level of requests' bodies. They are made as fast as a network takes them: speed comes before size.
const ZSTD_LEVEL: i32 = 1;
const ZLIB_LEVEL: u32 = 3;

/// The encoder of one body. Every step takes out the output so far.
pub struct StreamCompressor {
    encoder: Encoder,
}

enum Encoder {
    Lz4(Box<lz4_flex::frame::FrameEncoder<Vec<u8>>>),
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
    Gzip(flate2::write::GzEncoder<Vec<u8>>),
    Deflate(flate2::write::ZlibEncoder<Vec<u8>>),
}

impl StreamCompressor {
    /// Creates an encoder of LZ4 frames, zstd, gzip or deflate (zlib); returns `None` for other encodings.
    ///
    /// # Errors
    /// Fails where zstd can't create its encoder.
    pub fn new(encoding: Encoding) -> io::Result<Option<Self>> {
        let level = flate2::Compression::new(ZLIB_LEVEL);
        let encoder = match encoding {
            Encoding::Lz4 => Encoder::Lz4(Box::new(lz4_flex::frame::FrameEncoder::new(Vec::new()))),
            Encoding::Zstd => Encoder::Zstd(zstd::stream::write::Encoder::new(Vec::new(), ZSTD_LEVEL)?),
            Encoding::Gzip => Encoder::Gzip(flate2::write::GzEncoder::new(Vec::new(), level)),
            Encoding::Deflate => Encoder::Deflate(flate2::write::ZlibEncoder::new(Vec::new(), level)),
            _ => return Ok(None),
        };
        Ok(Some(Self { encoder }))
    }

    /// Encodes a piece and returns the bytes that can be sent after it; there may be none yet.
    ///
    /// # Errors
    /// Fails where the encoder fails.
    pub fn step(&mut self, input: &[u8]) -> io::Result<Vec<u8>> {
        let output = match &mut self.encoder {
            Encoder::Lz4(encoder) => written(encoder, input)?.get_mut(),
            Encoder::Zstd(encoder) => written(encoder, input)?.get_mut(),
            Encoder::Gzip(encoder) => written(encoder, input)?.get_mut(),
            Encoder::Deflate(encoder) => written(encoder, input)?.get_mut(),
        };
        Ok(std::mem::take(output))
    }

    /// Returns the remaining bytes, with the body's end.
    ///
    /// # Errors
    /// Fails where the encoder fails.
    pub fn finish(self) -> io::Result<Vec<u8>> {
        match self.encoder {
            Encoder::Lz4(encoder) => Ok(encoder.finish()?),
            Encoder::Zstd(encoder) => encoder.finish(),
            Encoder::Gzip(encoder) => encoder.finish(),
            Encoder::Deflate(encoder) => encoder.finish(),
        }
    }
}

fn written<'e, W: Write>(encoder: &'e mut W, input: &[u8]) -> io::Result<&'e mut W> {
    encoder.write_all(input)?;
    Ok(encoder)
}
