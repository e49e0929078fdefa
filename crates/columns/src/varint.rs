//! Variable-length integers: seven bits a byte, lowest first, the top bit says that more follow.

pub(crate) fn write_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Bytes that `value` takes in its shortest form, the only one that is ever kept.
pub(crate) fn varint_length(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

/// The value at the start of `bytes`; nothing if it is cut off or larger than 64 bits.
pub(crate) fn read_varint(bytes: &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for (index, byte) in bytes.iter().take(10).enumerate() {
        let bits = u64::from(byte & 0x7F);
        if index == 9 && bits > 1 {
            return None;
        }
        value |= bits << (7 * index);
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
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
    }
}
