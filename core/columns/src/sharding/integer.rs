//! ClickHouse's whole numbers of up to 64 bits. They are passed around as 64 bits, in two's complement: a
//! signed number has its sign in all the upper bits.

use crate::types::DataType;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Integer {
    pub(super) bytes: usize,
    pub(super) is_signed: bool,
}

impl Integer {
    pub(super) const fn unsigned(bytes: usize) -> Integer {
        Integer { bytes, is_signed: false }
    }

    pub(super) const fn signed(bytes: usize) -> Integer {
        Integer { bytes, is_signed: true }
    }

    /// Returns the integer that a type's values are stored as, whatever they stand for; `None` for other
    /// types.
    pub(super) fn stored(data_type: &DataType) -> Option<Integer> {
        use DataType::*;
        Some(match data_type {
            UInt8 | Bool => Integer::unsigned(1),
            UInt16 | Date => Integer::unsigned(2),
            UInt32 | DateTime { .. } | Ipv4 => Integer::unsigned(4),
            UInt64 => Integer::unsigned(8),
            Int8 | Enum8(_) => Integer::signed(1),
            Int16 | Enum16(_) => Integer::signed(2),
            Int32 | Date32 => Integer::signed(4),
            Int64 => Integer::signed(8),
            _ => return None,
        })
    }

    /// Returns the type of a literal: the smallest one that holds it.
    pub(super) fn of_literal(number: i128) -> Integer {
        let fits = |integer: &Integer| {
            let bits = 8 * integer.bytes as u32;
            match integer.is_signed {
                true => number >= -(1_i128 << (bits - 1)),
                false => number < (1_i128 << bits),
            }
        };
        let all = [1, 2, 4, 8].map(|bytes| Integer { bytes, is_signed: number < 0 });
        all.into_iter().find(fits).unwrap_or(all[3])
    }

    /// Returns the type of the results of most operations, which ClickHouse widens so that they seldom
    /// overflow.
    pub(super) fn wider(self) -> Integer {
        Integer { bytes: (2 * self.bytes).min(8), ..self }
    }

    pub(super) fn max(self) -> u64 {
        u64::MAX >> (64 - 8 * self.bytes + usize::from(self.is_signed))
    }

    /// Returns the number as the type holds it: bits that don't fit are cut off.
    pub(super) fn wrap(self, number: u64) -> u64 {
        let unused = 64 - 8 * self.bytes as u32;
        match self.is_signed {
            true => (((number << unused) as i64) >> unused) as u64,
            false => (number << unused) >> unused,
        }
    }

    /// Returns the stored bytes as a number, with zeros above whatever the sign is.
    pub(super) fn bits(self, number: u64) -> u64 {
        Integer::unsigned(self.bytes).wrap(number)
    }

    pub(super) fn decode(self, data: &[u8]) -> Vec<u64> {
        match (self.bytes, self.is_signed) {
            (1, false) => data.iter().map(|byte| u64::from(*byte)).collect(),
            (1, true) => data.iter().map(|byte| *byte as i8 as u64).collect(),
            (2, false) => words(data).map(|word| u64::from(u16::from_le_bytes(word))).collect(),
            (2, true) => words(data).map(|word| i16::from_le_bytes(word) as u64).collect(),
            (4, false) => words(data).map(|word| u64::from(u32::from_le_bytes(word))).collect(),
            (4, true) => words(data).map(|word| i32::from_le_bytes(word) as u64).collect(),
            _ => words(data).map(u64::from_le_bytes).collect(),
        }
    }
}

fn words<const N: usize>(data: &[u8]) -> impl Iterator<Item = [u8; N]> + '_ {
    data.chunks_exact(N).map(|chunk| chunk.try_into().expect("chunks have that many bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_have_the_smallest_type() {
        for (number, expected) in [
            (0, Integer::unsigned(1)),
            (255, Integer::unsigned(1)),
            (256, Integer::unsigned(2)),
            (65_536, Integer::unsigned(4)),
            (1 << 32, Integer::unsigned(8)),
            (u64::MAX.into(), Integer::unsigned(8)),
            (-1, Integer::signed(1)),
            (-128, Integer::signed(1)),
            (-129, Integer::signed(2)),
            (-32_769, Integer::signed(4)),
            (i64::MIN.into(), Integer::signed(8)),
        ] {
            assert_eq!(Integer::of_literal(number), expected, "{number}");
        }
    }

    #[test]
    fn numbers_are_cut_to_their_type() {
        assert_eq!(Integer::unsigned(1).wrap(300), 44);
        assert_eq!(Integer::signed(1).wrap(200), -56_i64 as u64);
        assert_eq!(Integer::signed(1).bits(u64::MAX), 255);
        assert_eq!(Integer::signed(8).wrap(u64::MAX), u64::MAX);
        let all = [Integer::unsigned(1), Integer::signed(1), Integer::signed(8), Integer::unsigned(8)];
        assert_eq!(all.map(Integer::max), [255, 127, i64::MAX as u64, u64::MAX]);
    }

    #[test]
    fn signs_are_kept_when_numbers_are_decoded() {
        for bytes in [1, 2, 4, 8] {
            let minus_two = &(-2_i64).to_le_bytes()[..bytes];
            assert_eq!(Integer::signed(bytes).decode(minus_two), [-2_i64 as u64]);
            assert_eq!(Integer::unsigned(bytes).decode(minus_two), [Integer::unsigned(bytes).max() - 1]);
        }
    }
}
