#![no_main]
//! Reads a result of any bytes: it makes no difference how it is cut, and every column has the rows of its block.

use libfuzzer_sys::fuzz_target;
use windrow_results::{Block, BlockDecoder, DecodeError};

fuzz_target!(|bytes: &[u8]| {
    let Some((piece, result)) = bytes.split_first() else { return };
    let whole = decoded(result, usize::MAX);
    assert_eq!(decoded(result, usize::from(*piece).max(1)), whole);
    for block in whole.unwrap_or_default() {
        assert!(block.columns.iter().all(|column| column.rows() == block.rows));
    }
});

fn decoded(result: &[u8], piece: usize) -> Result<Vec<Block>, DecodeError> {
    let (mut decoder, mut blocks) = (BlockDecoder::new(), Vec::new());
    for piece in result.chunks(piece) {
        decoder.push(piece);
        while let Some(block) = decoder.next()? {
            blocks.push(block);
        }
    }
    decoder.finish().map(|()| blocks)
}
