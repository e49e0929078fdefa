//! ClickHouse's own compression: a sequence of blocks, each
//!
//! | bytes | content |
//! |---|---|
//! | 16 | CityHash128 (1.0.2) of all that follows in the block |
//! | 1 | method: 0x02 none, 0x82 LZ4, 0x90 ZSTD |
//! | 4 | size of the rest and of these 9 bytes, little-endian |
//! | 4 | size of the decompressed data, little-endian |
//! | | the compressed data |
//!
//! Sizes are claims until proved: the compressed one must be there, the other one must be reachable from it (LZ4 can't
//! expand more than 255 times, ZSTD is decoded step by step), before anything is allocated.

use crate::decompress::{read_capped, zstd_reader};
use crate::hash::cityhash128;
use crate::DecompressError;

const CHECKSUM_BYTES: usize = 16;
const HEADER_BYTES: usize = 9;
/// ClickHouse cuts streams into blocks of this size as well.
const BLOCK_BYTES: usize = 1 << 20;
/// The largest compressed size of one block that ClickHouse accepts, in bytes.
const MAX_COMPRESSED_BYTES: usize = 1 << 30;
/// The most output bytes that one more byte of an LZ4 length adds.
const LZ4_MAX_RATIO: usize = 255;
const ZSTD_LEVEL: i32 = 1;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClickHouseMethod {
    None,
    Lz4,
    Zstd,
}

impl ClickHouseMethod {
    fn byte(self) -> u8 {
        match self {
            Self::None => 0x02,
            Self::Lz4 => 0x82,
            Self::Zstd => 0x90,
        }
    }
}

/// Compresses the input into as many blocks as it needs. An empty input gives no blocks.
pub fn compress_clickhouse(method: ClickHouseMethod, input: &[u8]) -> Vec<u8> {
    let mut output = Vec::new();
    for chunk in input.chunks(BLOCK_BYTES) {
        append_block(method, chunk, &mut output);
    }
    output
}

fn append_block(method: ClickHouseMethod, chunk: &[u8], output: &mut Vec<u8>) {
    let start = output.len();
    output.resize(start + CHECKSUM_BYTES + HEADER_BYTES, 0);
    match method {
        ClickHouseMethod::None => output.extend_from_slice(chunk),
        ClickHouseMethod::Lz4 => output.extend_from_slice(&lz4_flex::block::compress(chunk)),
        ClickHouseMethod::Zstd => {
            let compressed = zstd::bulk::compress(chunk, ZSTD_LEVEL).expect("zstd sizes its own buffer");
            output.extend_from_slice(&compressed);
        }
    }
    let block = &mut output[start..];
    let (checksum, checked) = block.split_at_mut(CHECKSUM_BYTES);
    checked[0] = method.byte();
    let checked_bytes = checked.len();
    checked[1..5].copy_from_slice(&size_bytes(checked_bytes));
    checked[5..9].copy_from_slice(&size_bytes(chunk.len()));
    checksum.copy_from_slice(&cityhash128(checked));
}

fn size_bytes(size: usize) -> [u8; 4] {
    u32::try_from(size).expect("a block is about a megabyte").to_le_bytes()
}

/// Returns the length of the block that `input` begins with, or `None` while too few bytes of the header are
/// there.
///
/// # Errors
/// Fails where the header claims a size that no block has.
pub fn clickhouse_block_bytes(input: &[u8]) -> Result<Option<usize>, DecompressError> {
    let Some(header) = input.get(CHECKSUM_BYTES..CHECKSUM_BYTES + HEADER_BYTES) else { return Ok(None) };
    Ok(Some(CHECKSUM_BYTES + checked_size(header)?))
}

/// Appends the decompressed data of the one block that `input` is to `output`.
///
/// # Errors
/// Fails where the block ends too early, its checksum does not match, its data is damaged or of an unknown
/// method, or it would decompress to more than `max_bytes`.
pub fn decompress_clickhouse_block(
    input: &[u8],
    output: &mut Vec<u8>,
    max_bytes: usize,
) -> Result<(), DecompressError> {
    let block = Block::split_from(input)?;
    if block.raw_bytes > max_bytes {
        return Err(DecompressError::TooLarge { max_bytes });
    }
    block.append_to(output)
}

pub(crate) fn decompress_clickhouse(mut input: &[u8], max_bytes: usize) -> Result<Vec<u8>, DecompressError> {
    let mut output = Vec::new();
    while !input.is_empty() {
        let block = Block::split_from(input)?;
        if block.raw_bytes > max_bytes - output.len() {
            return Err(DecompressError::TooLarge { max_bytes });
        }
        block.append_to(&mut output)?;
        input = block.rest;
    }
    Ok(output)
}

struct Block<'i> {
    method: u8,
    data: &'i [u8],
    raw_bytes: usize,
    rest: &'i [u8],
}

impl<'i> Block<'i> {
    fn split_from(input: &'i [u8]) -> Result<Self, DecompressError> {
        let (checksum, from_header) = input.split_at_checked(CHECKSUM_BYTES).ok_or(DecompressError::Truncated)?;
        let header = from_header.get(..HEADER_BYTES).ok_or(DecompressError::Truncated)?;
        let size = checked_size(header)?;
        let (checked, rest) = from_header.split_at_checked(size).ok_or(DecompressError::Truncated)?;
        if checksum != cityhash128(checked) {
            return Err(DecompressError::Checksum);
        }
        Ok(Self { method: header[0], data: &checked[HEADER_BYTES..], raw_bytes: size_at(header, 5), rest })
    }

    fn append_to(&self, output: &mut Vec<u8>) -> Result<(), DecompressError> {
        match self.method {
            0x02 => self.append(output, self.data),
            0x82 => self.append_lz4(output),
            0x90 => {
                let raw =
                    read_capped(zstd_reader(self.data)?, self.raw_bytes).map_err(|error| self.name_misfit(error))?;
                self.append(output, &raw)
            }
            other => Err(DecompressError::Unsupported(format!("a block of method {other:#04x}"))),
        }
    }

    fn append(&self, output: &mut Vec<u8>, raw: &[u8]) -> Result<(), DecompressError> {
        if raw.len() != self.raw_bytes {
            return Err(self.misfit());
        }
        output.extend_from_slice(raw);
        Ok(())
    }

    fn append_lz4(&self, output: &mut Vec<u8>) -> Result<(), DecompressError> {
        if self.raw_bytes > self.data.len().saturating_mul(LZ4_MAX_RATIO) {
            return Err(self.misfit());
        }
        let start = output.len();
        output.resize(start + self.raw_bytes, 0);
        let written = lz4_flex::block::decompress_into(self.data, &mut output[start..])
            .map_err(|error| DecompressError::Corrupt(error.to_string()))?;
        if written == self.raw_bytes {
            Ok(())
        } else {
            Err(self.misfit())
        }
    }

    /// Returns the misfit error in place of an error about size or an early end, and other errors unchanged.
    /// Inside a block whose checksum is right, such an error shows a false claim, not an accident.
    fn name_misfit(&self, error: DecompressError) -> DecompressError {
        match error {
            DecompressError::TooLarge { .. } | DecompressError::Truncated => self.misfit(),
            other => other,
        }
    }

    fn misfit(&self) -> DecompressError {
        DecompressError::Corrupt(format!("a block does not decompress to the {} bytes that it claims", self.raw_bytes))
    }
}

fn checked_size(header: &[u8]) -> Result<usize, DecompressError> {
    let size = size_at(header, 1);
    match (HEADER_BYTES..=MAX_COMPRESSED_BYTES).contains(&size) {
        true => Ok(size),
        false => Err(DecompressError::Corrupt(format!("a block claims a size of {size} bytes"))),
    }
}

fn size_at(header: &[u8], at: usize) -> usize {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&header[at..at + 4]);
    u32::from_le_bytes(bytes) as usize
}
