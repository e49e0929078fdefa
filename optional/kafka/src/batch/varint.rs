//! Signed variable-length integers (zigzag, seven bits a byte), and a cursor over them.

/// The bytes of a batch's records that are still to be read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor<'r> {
    pub(crate) rest: &'r [u8],
}

impl<'r> Cursor<'r> {
    #[inline]
    pub(crate) fn take(&mut self, count: usize) -> Option<&'r [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    #[inline]
    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    /// Reads an integer of up to 64 bits. Nearly all are one or two bytes long.
    #[inline]
    pub(crate) fn varint(&mut self) -> Option<i64> {
        let first = u64::from(self.byte()?);
        if first < 0x80 {
            return Some(unzigzag(first));
        }
        let second = u64::from(self.byte()?);
        let value = first & 0x7F | (second & 0x7F) << 7;
        if second < 0x80 {
            return Some(unzigzag(value));
        }
        self.long_varint(value)
    }

    fn long_varint(&mut self, mut value: u64) -> Option<i64> {
        for shift in (14..64).step_by(7) {
            let byte = u64::from(self.byte()?);
            if shift == 63 && byte > 1 {
                return None;
            }
            value |= (byte & 0x7F) << shift;
            if byte < 0x80 {
                return Some(unzigzag(value));
            }
        }
        None
    }

    /// Reads a length and as many bytes. A length of -1 says null.
    #[inline]
    pub(crate) fn nullable_bytes(&mut self) -> Option<Option<&'r [u8]>> {
        match self.varint()? {
            -1 => Some(None),
            length => Some(Some(self.take(usize::try_from(length).ok()?)?)),
        }
    }
}

#[inline]
fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(value: i64) -> Vec<u8> {
        let (mut zigzag, mut bytes) = ((value << 1 ^ value >> 63) as u64, Vec::new());
        while zigzag >= 0x80 {
            bytes.push(zigzag as u8 | 0x80);
            zigzag >>= 7;
        }
        bytes.push(zigzag as u8);
        bytes
    }

    #[test]
    fn every_length_comes_back_and_needs_all_its_bytes() {
        for shift in 0..64 {
            for value in
                [1i64 << shift, -(1i64 << shift.min(62)), (1i64 << shift).wrapping_sub(1), i64::MIN, i64::MAX, 0]
            {
                let bytes = written(value);
                let mut cursor = Cursor { rest: &bytes };
                assert_eq!(cursor.varint(), Some(value));
                assert!(cursor.rest.is_empty());
                assert_eq!(Cursor { rest: &bytes[..bytes.len() - 1] }.varint(), None);
            }
        }
    }

    #[test]
    fn more_than_64_bits_are_refused() {
        assert_eq!(Cursor { rest: &[0xFF; 12] }.varint(), None);
        assert_eq!(Cursor { rest: &[0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 2] }.varint(), None);
    }

    #[test]
    fn lengths_below_null_are_refused() {
        assert_eq!(Cursor { rest: &written(-2) }.nullable_bytes(), None);
        assert_eq!(Cursor { rest: &written(-1) }.nullable_bytes(), Some(None));
        assert_eq!(Cursor { rest: &written(i64::MAX) }.nullable_bytes(), None);
    }
}
