//! Decompression of whole bodies. Concatenated members and frames are one body, as in ClickHouse (Brotli has
//! none). A zstd or lz4 body that was cut is an error here, while ClickHouse takes it for a whole one and
//! drops the rows behind the cut. Snappy alone has no end that could be missing: a body that ends between two
//! chunks is a whole one, here and in ClickHouse.

use std::io::{self, Read};

use crate::blocks::decompress_clickhouse;
use crate::brotli::decompress_brotli;
use crate::lz4_frames::split_frame;
use crate::xz::decompress_xz;
use crate::{DecompressError, Encoding};

/// The largest window that a zstd frame may ask for, as a power of two: zstd allocates it. 16 MiB covers
/// every level up to 19; the backend decides about larger ones.
const ZSTD_MAX_WINDOW_LOG: u32 = 24;

/// Decompresses a whole body of at most `max_bytes`. An empty body is empty in every encoding.
///
/// # Errors
/// Fails where the body is cut, damaged or of a kind that is not decoded here, or where it would decompress
/// to more than `max_bytes`.
pub fn decompress(encoding: Encoding, input: &[u8], max_bytes: usize) -> Result<Vec<u8>, DecompressError> {
    if input.is_empty() {
        return Ok(Vec::new());
    }
    match encoding {
        Encoding::Gzip => read_capped(flate2::bufread::MultiGzDecoder::new(input), max_bytes),
        Encoding::Deflate => zlib_members(input, max_bytes),
        Encoding::Brotli => decompress_brotli(input, max_bytes),
        Encoding::Zstd => read_capped(zstd_reader(input)?, max_bytes),
        Encoding::Lz4 => lz4_frames(input, max_bytes),
        Encoding::Xz => decompress_xz(input, max_bytes),
        Encoding::Snappy => read_capped(snap::read::FrameDecoder::new(input), max_bytes),
        Encoding::ClickHouse => decompress_clickhouse(input, max_bytes),
    }
}

fn zlib_members(mut input: &[u8], max_bytes: usize) -> Result<Vec<u8>, DecompressError> {
    let mut output = Vec::new();
    while !input.is_empty() {
        let mut member = flate2::bufread::ZlibDecoder::new(input);
        append_capped(&mut member, max_bytes, &mut output)?;
        input = member.into_inner();
    }
    Ok(output)
}

fn lz4_frames(mut input: &[u8], max_bytes: usize) -> Result<Vec<u8>, DecompressError> {
    let mut output = Vec::new();
    while !input.is_empty() {
        let frame = split_frame(input)?;
        append_capped(&mut lz4_flex::frame::FrameDecoder::new(frame.bytes), max_bytes, &mut output)?;
        input = frame.rest;
    }
    Ok(output)
}

pub(crate) fn read_capped(mut reader: impl Read, max_bytes: usize) -> Result<Vec<u8>, DecompressError> {
    let mut output = Vec::new();
    append_capped(&mut reader, max_bytes, &mut output)?;
    Ok(output)
}

/// Appends everything that the reader gives. The output grows as bytes come, and by one byte more than
/// allowed, which shows that there are more.
fn append_capped(reader: &mut impl Read, max_bytes: usize, output: &mut Vec<u8>) -> Result<(), DecompressError> {
    let room = (max_bytes - output.len()) as u64;
    reader.take(room + 1).read_to_end(output).map_err(classify)?;
    if output.len() > max_bytes {
        return Err(DecompressError::TooLarge { max_bytes });
    }
    Ok(())
}

fn classify(error: io::Error) -> DecompressError {
    if error.to_string().contains("too much memory") {
        return DecompressError::Unsupported("a zstd frame with a window of more than 16 MiB".to_owned());
    }
    error.into()
}

pub(crate) fn zstd_reader(input: &[u8]) -> Result<impl Read + '_, DecompressError> {
    let mut reader = zstd::stream::read::Decoder::with_buffer(input)?;
    reader.window_log_max(ZSTD_MAX_WINDOW_LOG)?;
    Ok(reader)
}
