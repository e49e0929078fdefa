//! The search for the next of a few bytes.

use memchr::memchr3;

const ONES: u64 = 0x0101_0101_0101_0101;
const TOPS: u64 = 0x8080_8080_8080_8080;
/// Distance that is searched eight bytes at a time, as fields are mostly short; beyond it a vectorised search
/// pays.
const NEAR_BYTES: usize = 32;

/// Three bytes, of which each ends a field's text.
#[derive(Clone, Copy)]
pub(super) struct Stops {
    bytes: [u8; 3],
    repeated: [u64; 3],
}

impl Stops {
    pub(super) fn new(bytes: [u8; 3]) -> Self {
        Stops { bytes, repeated: bytes.map(|byte| ONES * u64::from(byte)) }
    }

    /// Returns the distance to the next of the bytes, or to the end.
    #[inline]
    pub(super) fn find(&self, text: &[u8]) -> usize {
        let zero_bytes = |word: u64| word.wrapping_sub(ONES) & !word & TOPS;
        let mut at = 0;
        while at < NEAR_BYTES {
            let Some(chunk) = text.get(at..at + 8) else { break };
            let word = u64::from_le_bytes(chunk.try_into().expect("eight bytes were taken"));
            let [a, b, c] = self.repeated;
            let found = zero_bytes(word ^ a) | zero_bytes(word ^ b) | zero_bytes(word ^ c);
            if found != 0 {
                return at + found.trailing_zeros() as usize / 8;
            }
            at += 8;
        }
        let [a, b, c] = self.bytes;
        memchr3(a, b, c, &text[at..]).map_or(text.len(), |found| at + found)
    }
}

#[cfg(test)]
mod tests {
    use super::Stops;

    #[test]
    fn the_first_of_the_stops_is_found_at_any_distance() {
        let stops = Stops::new(*b",\n\r");
        for length in 0..100 {
            let mut text = vec![b'+'; length];
            assert_eq!(stops.find(&text), length);
            for at in 0..length {
                text[at] = b",\n\r"[at % 3];
                text[length - 1] = b',';
                assert_eq!(stops.find(&text), at, "{length}");
                text[at] = b'\x8c';
                text[length - 1] = b'+';
            }
        }
    }
}
