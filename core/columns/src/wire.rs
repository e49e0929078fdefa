//! The numbers of Native that are no values: lengths, and the prefixes of a LowCardinality or a Variant.

/// The only form of a LowCardinality that there is: every block has its own keys.
pub const DICTIONARY_VERSION: u64 = 1;
/// The flag that keys come with the column, which has no other dictionary.
const HAS_ADDITIONAL_KEYS: u64 = 1 << 9;
const NEEDS_UPDATE: u64 = 1 << 10;
/// The flags of a dictionary whose positions have 32 bits each.
pub const DICTIONARY_OF_32_BITS: u64 = HAS_ADDITIONAL_KEYS | NEEDS_UPDATE | 2;

/// The form in which each row's discriminator has a byte of its own. The other form, one for many rows, is
/// only used on disk.
pub const PLAIN_DISCRIMINATORS: u64 = 0;
/// The discriminator of NULL in a Variant.
pub const NULL_DISCRIMINATOR: u8 = 255;

/// Returns the bytes of each position in a dictionary with these flags; `None` if its keys are elsewhere, or
/// its kind is unknown.
pub fn position_bytes(flags: u64) -> Option<usize> {
    let width = (flags & !NEEDS_UPDATE) ^ HAS_ADDITIONAL_KEYS;
    (width <= 3).then(|| 1 << width)
}

/// Writes seven bits a byte, lowest first; the top bit says that more follow.
#[inline]
pub fn write_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Returns the bytes that `value` takes in its shortest form, the only one that is ever kept.
pub(crate) fn varint_length(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

/// A number that was read.
pub struct Varint {
    pub value: u64,
    /// The number of bytes that the varint took.
    pub length: usize,
}

/// Reads the number at the start of bytes from outside; `None` if it is cut off.
///
/// # Errors
/// Fails where the number has more than 64 bits, or not its shortest form.
#[inline]
pub fn parse_varint(bytes: &[u8]) -> Result<Option<Varint>, &'static str> {
    let mut value = 0_u64;
    for (index, byte) in bytes.iter().enumerate() {
        if index == 9 && *byte > 1 {
            return Err("a number of more than 64 bits");
        }
        value |= u64::from(byte & 0x7F) << (7 * index);
        if *byte < 0x80 {
            return match *byte {
                0 if index > 0 => Err("a number not in its shortest form"),
                _ => Ok(Some(Varint { value, length: index + 1 })),
            };
        }
    }
    Ok(None)
}

/// Returns the number at the start of `bytes`, if one is there.
#[inline]
pub(crate) fn read_varint(bytes: &[u8]) -> Option<u64> {
    parse_varint(bytes).ok().flatten().map(|varint| varint.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_power_of_two_comes_back() {
        for shift in 0..64 {
            for value in [(1u64 << shift) - 1, 1 << shift, u64::MAX >> shift] {
                let mut bytes = Vec::new();
                write_varint(&mut bytes, value);
                assert_eq!(bytes.len(), varint_length(value));
                assert_eq!(read_varint(&bytes), Some(value));
                assert_eq!(read_varint(&bytes[..bytes.len() - 1]), None);
            }
        }
        assert_eq!(read_varint(&[0xFF; 11]), None);
        assert_eq!(read_varint(&[0x80, 0]), None, "a byte would do");
    }

    #[test]
    fn dictionaries_of_other_kinds_are_told() {
        assert_eq!([0x200, 0x601, DICTIONARY_OF_32_BITS, 0x203].map(position_bytes), [1, 2, 4, 8].map(Some));
        assert_eq!([0, 0x300, 0x400, 0x204, 0xA00].map(position_bytes), [None; 5]);
    }
}
