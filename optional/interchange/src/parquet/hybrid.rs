//! Reads small numbers as runs and bit-packed groups: levels, positions in a dictionary, booleans.

use crate::input::Input;

/// Reads the next `count` numbers of `bit_width` bits. Memory is taken for the numbers that are there, not
/// for as many as are claimed.
pub(super) fn read(input: &mut Input<'_>, bit_width: u32, count: usize) -> Option<Vec<u32>> {
    if bit_width > 32 {
        return None;
    }
    let mut numbers = Vec::new();
    while numbers.len() < count {
        let head = input.varint()?;
        let wanted = count - numbers.len();
        let stated = usize::try_from(head >> 1).ok()?;
        if stated == 0 {
            return None;
        }
        if head & 1 == 1 {
            let packed = input.take(stated.checked_mul(bit_width as usize)?)?;
            // The last group may hold more than is wanted.
            unpack(packed, bit_width, wanted.min(stated.checked_mul(8)?), &mut numbers);
        } else {
            let mut value = [0; 4];
            let bytes = input.take(bit_width.div_ceil(8) as usize)?;
            value[..bytes.len()].copy_from_slice(bytes);
            let value = u32::from_le_bytes(value);
            if bit_width < 32 && value >> bit_width != 0 || stated > wanted {
                return None;
            }
            numbers.resize(numbers.len() + stated, value);
        }
    }
    Some(numbers)
}

fn unpack(packed: &[u8], bit_width: u32, count: usize, numbers: &mut Vec<u32>) {
    let mask = (1u64 << bit_width) - 1;
    let (mut bits, mut held) = (0u64, 0);
    let mut bytes = packed.iter();
    numbers.reserve(count);
    for _ in 0..count {
        while held < bit_width {
            bits |= u64::from(*bytes.next().expect("a group has all bits of its numbers")) << held;
            held += 8;
        }
        numbers.push((bits & mask) as u32);
        bits >>= bit_width;
        held -= bit_width;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_and_groups() {
        let read = |bytes: &[u8], width, count| read(&mut Input::new(bytes), width, count);
        assert_eq!(read(&[8, 5], 3, 4), Some(vec![5; 4]));
        assert_eq!(read(&[3, 0b1000_1000, 0b1100_0110, 0b1111_1010], 3, 8), Some(vec![0, 1, 2, 3, 4, 5, 6, 7]));
        assert_eq!(read(&[8, 5], 3, 5), None);
        assert_eq!(read(&[8, 9], 3, 4), None);
        assert_eq!(read(&[0, 0], 3, 4), None);
        assert_eq!(read(&[3, 0], 3, 8), None);
    }
}
