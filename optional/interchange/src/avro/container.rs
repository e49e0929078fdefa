//! The container: magic, metadata, and blocks between marks.

use std::borrow::Cow;
use std::io::Read;

use windrow_columns::NotParsedReason;
use windrow_compression::{decompress, Encoding};

use crate::budget::Budget;
use crate::decompress::{decompress_to, Codec as PartCodec};
use crate::input::Input;

/// The most bytes that one block may decompress to; writers make blocks of kilobytes.
const MAX_BLOCK_BYTES: usize = 64 << 20;

pub(super) struct Container<'a> {
    pub(super) schema: &'a [u8],
    codec: Codec,
    mark: [u8; 16],
    input: Input<'a>,
}

#[derive(Clone, Copy)]
enum Codec {
    Null,
    /// Deflate without zlib's frame.
    Deflate,
    Snappy,
    Zstandard,
}

pub(super) struct Block<'a> {
    pub(super) rows: u64,
    pub(super) bytes: Cow<'a, [u8]>,
}

impl<'a> Container<'a> {
    pub(super) fn open(payload: &'a [u8]) -> Option<Self> {
        let mut input = Input::new(payload.strip_prefix(b"Obj\x01")?);
        let (mut schema, mut codec) = (None, Codec::Null);
        loop {
            let count = input.zigzag()?;
            if count == 0 {
                break;
            }
            for _ in 0..u64::try_from(count).ok()? {
                let (key, value) = (bytes(&mut input)?, bytes(&mut input)?);
                match key {
                    b"avro.schema" if schema.is_none() => schema = Some(value),
                    b"avro.schema" => return None,
                    b"avro.codec" => codec = codec_named(value)?,
                    _ => {}
                }
            }
        }
        Some(Container { schema: schema?, codec, mark: input.array()?, input })
    }

    /// Returns the next block, if the payload goes on.
    pub(super) fn next_block(&mut self, budget: &mut Budget) -> Result<Option<Block<'a>>, NotParsedReason> {
        if self.input.is_empty() {
            return Ok(None);
        }
        let stored = self.stored().ok_or(NotParsedReason::Syntax)?;
        let plain = self.plain(stored.bytes, budget).ok_or(NotParsedReason::Syntax)?;
        Ok(Some(Block { rows: stored.rows, bytes: plain }))
    }

    fn stored(&mut self) -> Option<Stored<'a>> {
        let rows = u64::try_from(self.input.zigzag()?).ok()?;
        let bytes = bytes(&mut self.input)?;
        (rows > 0 && self.input.array() == Some(self.mark)).then_some(Stored { rows, bytes })
    }

    fn plain(&self, stored: &'a [u8], budget: &mut Budget) -> Option<Cow<'a, [u8]>> {
        let plain = match self.codec {
            Codec::Null => return Some(Cow::Borrowed(stored)),
            Codec::Deflate => {
                let mut plain = Vec::new();
                let decoder = flate2::bufread::DeflateDecoder::new(stored);
                decoder.take(MAX_BLOCK_BYTES as u64 + 1).read_to_end(&mut plain).ok()?;
                plain
            }
            Codec::Zstandard => decompress(Encoding::Zstd, stored, MAX_BLOCK_BYTES).ok()?,
            Codec::Snappy => {
                let (compressed, checksum) = stored.split_last_chunk::<4>()?;
                let length = snap::raw::decompress_len(compressed).ok().filter(|length| *length <= MAX_BLOCK_BYTES)?;
                let plain = decompress_to(PartCodec::Snappy, compressed, length)?;
                let mut crc = flate2::Crc::new();
                crc.update(&plain);
                (crc.sum() == u32::from_be_bytes(*checksum)).then_some(plain)?
            }
        };
        (plain.len() <= MAX_BLOCK_BYTES).then_some(())?;
        budget.take(plain.len()).ok()?;
        Some(Cow::Owned(plain))
    }
}

struct Stored<'a> {
    rows: u64,
    bytes: &'a [u8],
}

fn bytes<'a>(input: &mut Input<'a>) -> Option<&'a [u8]> {
    let length = usize::try_from(input.zigzag()?).ok()?;
    input.take(length)
}

fn codec_named(name: &[u8]) -> Option<Codec> {
    match name {
        b"null" => Some(Codec::Null),
        b"deflate" => Some(Codec::Deflate),
        b"snappy" => Some(Codec::Snappy),
        b"zstandard" => Some(Codec::Zstandard),
        _ => None,
    }
}
