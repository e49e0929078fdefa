//! Decompresses parts of payloads whose size is known before.

use windrow_compression::{decompress, Encoding};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Codec {
    Http(Encoding),
    /// Snappy's raw blocks, without a frame.
    Snappy,
    Lz4Block,
}

/// Returns the decompressed bytes, if there are exactly as many as promised.
pub(crate) fn decompress_to(codec: Codec, compressed: &[u8], bytes: usize) -> Option<Vec<u8>> {
    let plain = match codec {
        Codec::Http(Encoding::Lz4) if !ends_in_mark(compressed) => return None,
        Codec::Http(encoding) => decompress(encoding, compressed, bytes).ok()?,
        Codec::Snappy => {
            if snap::raw::decompress_len(compressed).ok()? != bytes {
                return None;
            }
            snap::raw::Decoder::new().decompress_vec(compressed).ok()?
        }
        Codec::Lz4Block => lz4_flex::block::decompress(compressed, bytes).ok()?,
    };
    (plain.len() == bytes).then_some(plain)
}

/// Says whether an LZ4 frame has its end: four zeros, and a checksum if its flags say so. No data is missing
/// without them, but ClickHouse takes the frame for cut off.
fn ends_in_mark(frame: &[u8]) -> bool {
    let has_checksum = frame.get(4).is_some_and(|flags| flags & 0x04 != 0);
    let behind_mark = if has_checksum { 4 } else { 0 };
    frame.len().checked_sub(behind_mark).is_some_and(|end| frame[..end].ends_with(&[0; 4]))
}
