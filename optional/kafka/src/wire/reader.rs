//! The reader of the protocol's primitives.
//!
//! Kafka has two encodings of everything that has a length. The classic one gives strings an i16, and bytes
//! and arrays an i32, with -1 for null. The compact one, of *flexible* versions, has an unsigned varint that
//! is one more than the length, with 0 for null, and ends every structure with tagged fields. A reader is
//! told which of the two it reads, so that the code of an API is written only once.
//!
//! No memory is allocated for a length that is only claimed: strings and bytes are cut out of the frame,
//! arrays grow as their elements are read.

use bytes::Bytes;

use crate::wire::malformed::Malformed;

/// Elements for which an array reserves room before it has read any.
const MAX_RESERVED_ELEMENTS: usize = 1024;

pub type Read<T> = Result<T, Malformed>;

pub struct Reader<'f> {
    frame: &'f Bytes,
    rest: &'f [u8],
    flexible: bool,
}

impl<'f> Reader<'f> {
    pub(crate) fn new(frame: &'f Bytes, flexible: bool) -> Self {
        Self { frame, rest: frame, flexible }
    }

    /// Chooses the encoding of flexible versions, or the classic one, from here on.
    pub(crate) fn set_flexible(&mut self, flexible: bool) {
        self.flexible = flexible;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    fn take(&mut self, count: usize) -> Read<&'f [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(Malformed::TRUNCATED)?;
        self.rest = rest;
        Ok(taken)
    }

    fn fixed<const N: usize>(&mut self) -> Read<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(Malformed::TRUNCATED)?;
        self.rest = rest;
        Ok(*taken)
    }

    pub(crate) fn i8(&mut self) -> Read<i8> {
        self.fixed().map(i8::from_be_bytes)
    }

    pub(crate) fn i16(&mut self) -> Read<i16> {
        self.fixed().map(i16::from_be_bytes)
    }

    pub(crate) fn i32(&mut self) -> Read<i32> {
        self.fixed().map(i32::from_be_bytes)
    }

    pub(crate) fn i64(&mut self) -> Read<i64> {
        self.fixed().map(i64::from_be_bytes)
    }

    pub(crate) fn bool(&mut self) -> Read<bool> {
        self.i8().map(|byte| byte != 0)
    }

    pub(crate) fn uuid(&mut self) -> Read<[u8; 16]> {
        self.fixed()
    }

    /// Reads a TCP port, which the protocol gives 32 bits.
    pub(crate) fn port(&mut self) -> Read<u16> {
        u16::try_from(self.i32()?).map_err(|_| Malformed("a port is out of range"))
    }

    /// Passes over the rest of an answer that can't be understood.
    pub(crate) fn skip_rest(&mut self) {
        self.rest = &[];
    }

    fn unsigned_varint(&mut self) -> Read<u32> {
        let mut value = 0u32;
        for shift in [0, 7, 14, 21, 28] {
            let byte = self.fixed::<1>()?[0];
            if shift == 28 && byte > 0x0F {
                break;
            }
            value |= u32::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Malformed("a variable-length integer is larger than 32 bits"))
    }

    /// Reads a length, or `None` for null.
    fn length(&mut self, classic: fn(&mut Self) -> Read<i32>) -> Read<Option<usize>> {
        if self.flexible {
            return Ok(self.unsigned_varint()?.checked_sub(1).map(|length| length as usize));
        }
        match classic(self)? {
            -1 => Ok(None),
            length => usize::try_from(length).map(Some).map_err(|_| Malformed("a length is negative")),
        }
    }

    pub(crate) fn nullable_string(&mut self) -> Read<Option<String>> {
        let Some(length) = self.length(|reader| reader.i16().map(i32::from))? else { return Ok(None) };
        let text = std::str::from_utf8(self.take(length)?).map_err(|_| Malformed("a string is not UTF-8"))?;
        Ok(Some(text.to_owned()))
    }

    pub(crate) fn string(&mut self) -> Read<String> {
        self.nullable_string()?.ok_or(Malformed("a string is null"))
    }

    fn nullable_slice(&mut self) -> Read<Option<&'f [u8]>> {
        match self.length(Self::i32)? {
            Some(length) => self.take(length).map(Some),
            None => Ok(None),
        }
    }

    /// Reads bytes that share the answer's memory. Null becomes empty bytes.
    pub(crate) fn shared_bytes(&mut self) -> Read<Bytes> {
        Ok(self.nullable_slice()?.map_or_else(Bytes::new, |slice| self.frame.slice_ref(slice)))
    }

    /// Reads bytes into memory of their own. Null becomes empty bytes.
    pub(crate) fn owned_bytes(&mut self) -> Read<Vec<u8>> {
        Ok(self.nullable_slice()?.unwrap_or_default().to_vec())
    }

    /// Reads an array. Null becomes an empty one.
    pub(crate) fn array<T>(&mut self, mut element: impl FnMut(&mut Self) -> Read<T>) -> Read<Vec<T>> {
        let count = self.length(Self::i32)?.unwrap_or_default();
        // No element is shorter than a byte.
        if count > self.rest.len() {
            return Err(Malformed::TRUNCATED);
        }
        let mut elements = Vec::with_capacity(count.min(MAX_RESERVED_ELEMENTS));
        for _ in 0..count {
            elements.push(element(self)?);
        }
        Ok(elements)
    }

    /// Passes over the tagged fields at the end of a structure, which only flexible versions have.
    pub(crate) fn end_structure(&mut self) -> Read<()> {
        if !self.flexible {
            return Ok(());
        }
        for _ in 0..self.unsigned_varint()? {
            let _tag = self.unsigned_varint()?;
            let size = self.unsigned_varint()?;
            self.take(size as usize)?;
        }
        Ok(())
    }
}
