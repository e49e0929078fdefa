//! The golden files: answers of the real engine.

pub mod row_binary;

use std::path::PathBuf;

use windrow_results::{Block, BlockDecoder, DecodeError};

pub struct Golden {
    pub name: String,
    pub native: Vec<u8>,
}

/// Returns the golden files that golden/make.py has made.
pub fn goldens() -> Vec<Golden> {
    let cases = String::from_utf8(golden_file("cases.txt")).expect("a text");
    let golden = |line: &str| {
        let name = line.split('\t').next().expect("a line has a first field").to_string();
        Golden { native: golden_file(&format!("{name}.native")), name }
    };
    cases.lines().map(golden).collect()
}

pub fn golden_file(name: &str) -> Vec<u8> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    std::fs::read(folder.join(name)).expect("a file of every case")
}

/// Decodes all blocks of a result that comes in pieces of these lengths, again and again.
pub fn decoded(native: &[u8], pieces: &[usize]) -> Result<Vec<Block>, DecodeError> {
    let (mut decoder, mut blocks, mut rest) = (BlockDecoder::new(), Vec::new(), native);
    for piece in pieces.iter().cycle() {
        let (now, later) = rest.split_at(rest.len().min(*piece));
        decoder.push(now);
        while let Some(block) = decoder.next()? {
            blocks.push(block);
        }
        rest = later;
        if rest.is_empty() {
            break;
        }
    }
    decoder.finish().map(|()| blocks)
}
