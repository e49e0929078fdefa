use super::super::allowance::Allowance;
use super::NotParsedReason;
use crate::wire::{parse_varint, Varint};

/// A position in the payload.
pub(crate) struct BinaryInput<'a> {
    bytes: &'a [u8],
    at: usize,
    allowance: Allowance,
}

impl<'a> BinaryInput<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        BinaryInput { bytes, at: 0, allowance: Allowance::of(bytes.len()) }
    }

    #[inline]
    pub(crate) fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    #[inline]
    pub(crate) fn at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    #[inline]
    pub(crate) fn take(&mut self, length: usize) -> Result<&'a [u8], NotParsedReason> {
        let taken = self.rest().get(..length).ok_or(NotParsedReason::Syntax)?;
        self.at += length;
        Ok(taken)
    }

    #[inline]
    pub(crate) fn array<const N: usize>(&mut self) -> Result<&'a [u8; N], NotParsedReason> {
        let taken = self.rest().first_chunk::<N>().ok_or(NotParsedReason::Syntax)?;
        self.at += N;
        Ok(taken)
    }

    #[inline]
    pub(crate) fn byte(&mut self) -> Result<u8, NotParsedReason> {
        let byte = *self.bytes.get(self.at).ok_or(NotParsedReason::Syntax)?;
        self.at += 1;
        Ok(byte)
    }

    /// Reads a length, which must have its shortest form. The caller has to check that so many bytes are
    /// there.
    #[inline]
    pub(super) fn length(&mut self) -> Result<usize, NotParsedReason> {
        match self.bytes.get(self.at) {
            Some(length @ ..0x80) => {
                self.at += 1;
                Ok(usize::from(*length))
            }
            _ => self.long_length(),
        }
    }

    fn long_length(&mut self) -> Result<usize, NotParsedReason> {
        let rest = self.rest();
        let Ok(Some(Varint { value, length })) = parse_varint(rest) else { return Err(NotParsedReason::Syntax) };
        self.at += length;
        usize::try_from(value).map_err(|_| NotParsedReason::Syntax)
    }

    /// Reads a string with its length before it.
    #[inline]
    pub(super) fn string_with_length(&mut self) -> Result<&'a [u8], NotParsedReason> {
        let start = self.at;
        let length = self.length()?;
        self.take(length)?;
        Ok(&self.bytes[start..self.at])
    }

    /// Reads a name, of a column or of a type.
    pub(super) fn text(&mut self) -> Result<&'a [u8], NotParsedReason> {
        let length = self.length()?;
        self.take(length)
    }

    /// Accounts for bytes that are made out of nothing: one byte says that a wide FixedString is NULL.
    pub(crate) fn fill(&mut self, bytes: usize) -> Result<(), NotParsedReason> {
        self.allowance.take(bytes)
    }
}
