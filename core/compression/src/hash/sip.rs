//! SipHash-2-4 with a key of zeros (Aumasson, Bernstein: "SipHash: a fast short-input PRF"). The standard
//! library's own SipHash-2-4 is deprecated, and its default hasher is SipHash-1-3.

/// Returns ClickHouse's `sipHash64` of one value.
pub fn siphash64(input: &[u8]) -> u64 {
    let mut state = State([0x736f_6d65_7073_6575, 0x646f_7261_6e64_6f6d, 0x6c79_6765_6e65_7261, 0x7465_6462_7974_6573]);
    let mut pieces = input.chunks_exact(8);
    for piece in &mut pieces {
        state.eat(u64::from_le_bytes(piece.try_into().expect("eight bytes")));
    }
    let mut last = [0; 8];
    last[..pieces.remainder().len()].copy_from_slice(pieces.remainder());
    // Of the length only the lowest byte counts.
    last[7] = input.len() as u8;
    state.eat(u64::from_le_bytes(last));
    state.finish()
}

struct State([u64; 4]);

impl State {
    fn eat(&mut self, word: u64) {
        self.0[3] ^= word;
        self.round();
        self.round();
        self.0[0] ^= word;
    }

    fn finish(mut self) -> u64 {
        self.0[2] ^= 0xff;
        (0..4).for_each(|_| self.round());
        self.0.into_iter().fold(0, |all, word| all ^ word)
    }

    fn round(&mut self) {
        let [a, b, c, d] = &mut self.0;
        *a = a.wrapping_add(*b);
        *b = b.rotate_left(13) ^ *a;
        *a = a.rotate_left(32);
        *c = c.wrapping_add(*d);
        *d = d.rotate_left(16) ^ *c;
        *a = a.wrapping_add(*d);
        *d = d.rotate_left(21) ^ *a;
        *c = c.wrapping_add(*b);
        *b = b.rotate_left(17) ^ *c;
        *c = c.rotate_left(32);
    }
}
