#![no_main]
//! Decompresses bodies of any bytes in every encoding: never more than was allowed, and the same in pieces as whole.

use libfuzzer_sys::fuzz_target;
use windrow_compression::{decompress, DecompressError, Encoding, StreamDecompressor};

const MAX_BYTES: usize = 1 << 18;
const ENCODINGS: [Encoding; 8] = [
    Encoding::Gzip,
    Encoding::Deflate,
    Encoding::Brotli,
    Encoding::Zstd,
    Encoding::Lz4,
    Encoding::Xz,
    Encoding::Snappy,
    Encoding::ClickHouse,
];

fuzz_target!(|bytes: &[u8]| {
    let [choice, piece, body @ ..] = bytes else { return };
    let encoding = ENCODINGS[usize::from(*choice) % ENCODINGS.len()];
    let whole = decompress(encoding, body, MAX_BYTES);
    assert!(whole.as_ref().map_or(0, Vec::len) <= MAX_BYTES);
    let Ok(decoder) = StreamDecompressor::new(encoding) else { return };
    let in_pieces = read(decoder, body, usize::from(*piece).max(1));
    if let Ok(whole) = whole {
        assert!(in_pieces.as_deref() == Ok(&whole[..]), "{encoding:?}: {in_pieces:?}");
    }
});

/// Decompresses at most `MAX_BYTES`, and one step more.
fn read(mut decoder: StreamDecompressor, body: &[u8], piece: usize) -> Result<Vec<u8>, DecompressError> {
    let (mut output, mut rest) = (Vec::new(), body);
    while output.len() <= MAX_BYTES {
        let (given, before) = (&rest[..piece.min(rest.len())], output.len());
        let step = decoder.step(given, &mut output, 4096)?;
        assert!(output.len() - before <= 4096, "more than was asked for");
        assert!(step.full || step.consumed == given.len(), "input was left over without a reason");
        rest = &rest[step.consumed..];
        if rest.is_empty() && !step.full {
            return decoder.finish().map(|()| output);
        }
    }
    Ok(output)
}
