//! CityHash as of version 1.0.2 (Geoff Pike and Jyrki Alakuijala, Google): CityHash128 is the checksum of
//! ClickHouse's compressed blocks, CityHash64 its `cityHash64` of strings. Later versions of CityHash give
//! other values, and ClickHouse will always use this version, since its hashes are stored on its disks.
//!
//! The code is written out in full because it is small, fixed, and checked against bytes that ClickHouse made.

use std::num::Wrapping;

type Word = Wrapping<u64>;

const K0: Word = Wrapping(0xc3a5_c85c_97cb_3127);
const K1: Word = Wrapping(0xb492_b66f_be98_f273);
const K2: Word = Wrapping(0x9ae1_6a3b_2f90_404f);
const K3: Word = Wrapping(0xc949_d7c7_509e_6557);
const FOLD: Word = Wrapping(0x9ddf_ea08_eb38_2d69);

/// Bytes that one round of the long loop reads.
const STRIDE_BYTES: usize = 128;

#[derive(Clone, Copy)]
struct Pair {
    low: Word,
    high: Word,
}

/// Returns CityHash128 as ClickHouse writes it: the low half first, both little-endian.
pub fn cityhash128(input: &[u8]) -> [u8; 16] {
    let hash = match input.len() {
        0..=7 => mix(input, Pair { low: K0, high: K1 }),
        8..=15 => {
            let ends = Pair { low: word(input, 0) ^ (length(input) * K0), high: word(input, input.len() - 8) ^ K1 };
            mix(&[], ends)
        }
        _ => mix(&input[16..], Pair { low: word(input, 0) ^ K3, high: word(input, 8) }),
    };
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&hash.low.0.to_le_bytes());
    bytes[8..].copy_from_slice(&hash.high.0.to_le_bytes());
    bytes
}

/// Returns ClickHouse's `cityHash64` of one string.
pub fn cityhash64(input: &[u8]) -> u64 {
    let hash = match input.len() {
        0..=16 => hash_up_to_16(input),
        17..=32 => hash_up_to_32(input),
        33..=64 => hash_up_to_64(input),
        _ => hash_long(input),
    };
    hash.0
}

/// Returns the `cityHash64` of several values, from the hash of the first ones and the hash of the last one.
pub fn combine_cityhash64(first: u64, last: u64) -> u64 {
    fold(Wrapping(first), Wrapping(last)).0
}

fn mix(input: &[u8], seed: Pair) -> Pair {
    if input.len() < STRIDE_BYTES {
        mix_short(input, seed)
    } else {
        mix_long(input, seed)
    }
}

fn mix_short(input: &[u8], seed: Pair) -> Pair {
    let Pair { low: mut a, high: mut b } = seed;
    let (mut c, mut d);
    if input.len() <= 16 {
        a = shift_mix(a * K1) * K1;
        c = b * K1 + hash_up_to_16(input);
        d = shift_mix(a + if input.len() >= 8 { word(input, 0) } else { c });
    } else {
        c = fold(word(input, input.len() - 8) + K1, a);
        d = fold(b + length(input), c + word(input, input.len() - 16));
        a += d;
        // A last piece shorter than 16 bytes is left out here: its bytes are in the two words from the end.
        for start in (0..input.len() - 16).step_by(16) {
            a = (a ^ (shift_mix(word(input, start) * K1) * K1)) * K1;
            b ^= a;
            c = (c ^ (shift_mix(word(input, start + 8) * K1) * K1)) * K1;
            d ^= c;
        }
    }
    a = fold(a, c);
    b = fold(d, b);
    Pair { low: a ^ b, high: fold(b, a) }
}

/// The state of the long loop.
struct State {
    x: Word,
    y: Word,
    z: Word,
    v: Pair,
    w: Pair,
}

impl State {
    fn new(input: &[u8], seed: Pair) -> Self {
        let Pair { low: x, high: y } = seed;
        let z = length(input) * K1;
        let v_low = rotate(y ^ K1, 49) * K1 + word(input, 0);
        let v = Pair { low: v_low, high: rotate(v_low, 42) * K1 + word(input, 8) };
        let w = Pair { low: rotate(y + z, 35) * K1 + x, high: rotate(x + word(input, 88), 53) * K1 };
        Self { x, y, z, v, w }
    }

    fn eat_64(&mut self, piece: &[u8]) {
        self.x = rotate(self.x + self.y + self.v.low + word(piece, 16), 37) * K1;
        self.y = rotate(self.y + self.v.high + word(piece, 48), 42) * K1;
        self.x ^= self.w.high;
        self.y ^= self.v.low;
        self.z = rotate(self.z ^ self.w.low, 33);
        self.v = weak_hash_32(piece, self.v.high * K1, self.x + self.w.low);
        self.w = weak_hash_32(&piece[32..], self.z + self.w.high, self.y);
        std::mem::swap(&mut self.z, &mut self.x);
    }

    fn eat_tail_32(&mut self, piece: &[u8]) {
        self.y = rotate(self.y - self.x, 42) * K0 + self.v.high;
        self.w.low += word(piece, 16);
        self.x = rotate(self.x, 49) * K0 + self.w.low;
        self.w.low += self.v.low;
        self.v = weak_hash_32(piece, self.v.low, self.v.high);
    }

    fn finish(self) -> Pair {
        let x = fold(self.x, self.v.low);
        let y = fold(self.y, self.w.low);
        Pair { low: fold(x + self.v.high, self.w.high) + y, high: fold(x + self.w.high, y + self.v.high) }
    }
}

fn mix_long(input: &[u8], seed: Pair) -> Pair {
    let mut state = State::new(input, seed);
    let whole_bytes = input.len() / STRIDE_BYTES * STRIDE_BYTES;
    for piece in input[..whole_bytes].chunks_exact(64) {
        state.eat_64(piece);
    }
    state.y += rotate(state.w.low, 37) * K0 + state.z;
    state.x += rotate(state.v.low + state.z, 49) * K0;
    // Pieces of 32 from the end backwards; the last one may reach into what the loop has already eaten.
    let mut end = input.len();
    while end > whole_bytes {
        state.eat_tail_32(&input[end - 32..]);
        end -= 32;
    }
    state.finish()
}

fn hash_up_to_16(input: &[u8]) -> Word {
    let len = input.len();
    match len {
        0 => K2,
        1..=3 => {
            let byte = |at: usize| Wrapping(u64::from(input[at]));
            let y = byte(0) + (byte(len / 2) << 8);
            let z = length(input) + (byte(len - 1) << 2);
            shift_mix((y * K2) ^ (z * K3)) * K2
        }
        4..=8 => fold(length(input) + (half_word(input, 0) << 3), half_word(input, len - 4)),
        _ => {
            let last = word(input, len - 8);
            fold(word(input, 0), rotate(last + length(input), len as u32)) ^ last
        }
    }
}

fn hash_up_to_32(input: &[u8]) -> Word {
    let len = input.len();
    let a = word(input, 0) * K1;
    let b = word(input, 8);
    let c = word(input, len - 8) * K2;
    let d = word(input, len - 16) * K0;
    fold(rotate(a - b, 43) + rotate(c, 30) + d, a + rotate(b ^ K3, 20) - c + length(input))
}

fn hash_up_to_64(input: &[u8]) -> Word {
    let len = input.len();
    let z = word(input, 24);
    let first = word(input, 0) + (length(input) + word(input, len - 16)) * K0;
    let v = half_of_64(first, z, word(input, 8), word(input, 16));
    let z = word(input, len - 8);
    let first = word(input, 16) + word(input, len - 32);
    let w = half_of_64(first, z, word(input, len - 24), word(input, len - 16));
    let both = shift_mix((v.low + w.high) * K2 + (w.low + v.high) * K0);
    shift_mix(both * K0 + v.high) * K2
}

fn half_of_64(first: Word, last: Word, second: Word, third: Word) -> Pair {
    let two = first + second;
    let three = two + third;
    let high = rotate(first + last, 52) + rotate(three, 31) + rotate(first, 37) + rotate(two, 7);
    Pair { low: three + last, high }
}

fn hash_long(input: &[u8]) -> Word {
    let len = input.len();
    let y = word(input, len - 16) ^ K1;
    let v = weak_hash_32(&input[len - 64..], length(input), y);
    let w = weak_hash_32(&input[len - 32..], length(input) * K1, K0);
    let z = (word(input, len - 56) ^ K0) + shift_mix(v.high) * K1;
    let mut state = State { x: rotate(z + word(input, 0), 39) * K1, y: rotate(y, 33) * K1, z, v, w };
    // The last bytes, up to 64 of them, are in what the state began with.
    for piece in input[..(len - 1) / 64 * 64].chunks_exact(64) {
        state.eat_64(piece);
    }
    let State { x, y, z, v, w } = state;
    fold(fold(v.low, w.low) + shift_mix(y) * K1 + z, fold(v.high, w.high) + x)
}

fn weak_hash_32(piece: &[u8], a: Word, b: Word) -> Pair {
    let first = a + word(piece, 0);
    let last = word(piece, 24);
    let sum = first + word(piece, 8) + word(piece, 16);
    Pair { low: sum + last, high: rotate(b + first + last, 21) + rotate(sum, 44) + first }
}

fn fold(u: Word, v: Word) -> Word {
    let a = shift_mix((u ^ v) * FOLD);
    shift_mix((v ^ a) * FOLD) * FOLD
}

fn shift_mix(value: Word) -> Word {
    value ^ (value >> 47)
}

fn rotate(value: Word, bits: u32) -> Word {
    Wrapping(value.0.rotate_right(bits))
}

fn length(input: &[u8]) -> Word {
    Wrapping(input.len() as u64)
}

fn word(input: &[u8], at: usize) -> Word {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&input[at..at + 8]);
    Wrapping(u64::from_le_bytes(bytes))
}

fn half_word(input: &[u8], at: usize) -> Word {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&input[at..at + 4]);
    Wrapping(u64::from(u32::from_le_bytes(bytes)))
}
