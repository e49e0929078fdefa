//! `murmurHash3_64`: the two halves of Austin Appleby's MurmurHash3 for 64-bit machines (x64, 128 bits,
//! public domain), combined by XOR.

use std::num::Wrapping;

type Word = Wrapping<u64>;

const C1: Word = Wrapping(0x87c3_7b91_1142_53d5);
const C2: Word = Wrapping(0x4cf5_ad43_2745_937f);

/// Returns ClickHouse's `murmurHash3_64` of one value.
pub fn murmurhash3_64(input: &[u8]) -> u64 {
    let (mut low, mut high) = (Wrapping(0), Wrapping(0));
    let mut pieces = input.chunks_exact(16);
    for piece in &mut pieces {
        low = (rotate(low ^ scatter_low(word(&piece[..8])), 27) + high) * Wrapping(5) + Wrapping(0x52dc_e729);
        high = (rotate(high ^ scatter_high(word(&piece[8..])), 31) + low) * Wrapping(5) + Wrapping(0x3849_5ab5);
    }
    // Zeros behind the last bytes change nothing, since the scattered zero is zero.
    let mut last = [0; 16];
    last[..pieces.remainder().len()].copy_from_slice(pieces.remainder());
    let length = Wrapping(input.len() as u64);
    low ^= scatter_low(word(&last[..8])) ^ length;
    high ^= scatter_high(word(&last[8..])) ^ length;
    low += high;
    high += low;
    (low, high) = (finish(low), finish(high));
    low += high;
    high += low;
    (low ^ high).0
}

fn scatter_low(word: Word) -> Word {
    rotate(word * C1, 31) * C2
}

fn scatter_high(word: Word) -> Word {
    rotate(word * C2, 33) * C1
}

fn finish(word: Word) -> Word {
    Wrapping(crate::hash::number::finish(word.0))
}

fn rotate(word: Word, bits: u32) -> Word {
    Wrapping(word.0.rotate_left(bits))
}

fn word(bytes: &[u8]) -> Word {
    Wrapping(u64::from_le_bytes(bytes.try_into().expect("eight bytes")))
}
