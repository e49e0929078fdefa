//! Compression of answers.

use std::io::{self, Write};

use crate::brotli::store_brotli;
use crate::xz::compress_xz;
use crate::AnswerEncoding;

/// The zstd level of answers. The gateway's own answers are small or asked for at once: speed comes before
/// size, as in ClickHouse's `http_zlib_compression_level` 3.
const ZSTD_LEVEL: i32 = 1;
const ZLIB_LEVEL: u32 = 3;

pub fn compress(encoding: AnswerEncoding, input: &[u8]) -> Vec<u8> {
    match encoding {
        AnswerEncoding::Zstd => zstd::bulk::compress(input, ZSTD_LEVEL),
        AnswerEncoding::Brotli => Ok(store_brotli(input)),
        AnswerEncoding::Lz4 => lz4_frame(input),
        AnswerEncoding::Snappy => snappy(input),
        AnswerEncoding::Xz => compress_xz(input),
        AnswerEncoding::Gzip => gzip(input),
        AnswerEncoding::Deflate => zlib(input),
    }
    .expect("writing into memory does not fail")
}

fn gzip(input: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(ZLIB_LEVEL));
    encoder.write_all(input)?;
    encoder.finish()
}

fn zlib(input: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::new(ZLIB_LEVEL));
    encoder.write_all(input)?;
    encoder.finish()
}

fn snappy(input: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = snap::write::FrameEncoder::new(Vec::new());
    encoder.write_all(input)?;
    encoder.into_inner().map_err(|error| error.into_error())
}

fn lz4_frame(input: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
    encoder.write_all(input)?;
    Ok(encoder.finish()?)
}
