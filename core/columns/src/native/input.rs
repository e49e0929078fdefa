use super::{NativeError, NativeLimits};
use crate::wire::{parse_varint, Varint};

/// A position in the bytes of a block. Bytes behind the end are never handed out.
pub(crate) struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
    limits: NativeLimits,
    unfolded_bytes: usize,
}

impl<'a> Input<'a> {
    pub(crate) fn new(bytes: &'a [u8], limits: NativeLimits) -> Self {
        Input { bytes, at: 0, limits, unfolded_bytes: 0 }
    }

    pub(crate) fn consumed_bytes(&self) -> usize {
        self.at
    }

    pub(crate) fn at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    pub(crate) fn eat_exactly(&mut self, expected: &[u8]) -> bool {
        let found = self.bytes[self.at..].starts_with(expected);
        if found {
            self.at += expected.len();
        }
        found
    }

    /// Reads the number of columns of a block.
    pub(crate) fn columns(&mut self) -> Result<usize, NativeError> {
        self.count(self.limits.max_columns, "columns")
    }

    /// Reads the number of rows of a block.
    pub(crate) fn rows(&mut self) -> Result<usize, NativeError> {
        self.count(self.limits.max_rows, "rows")
    }

    /// Reads a name, of a column or of a type.
    pub(crate) fn text(&mut self) -> Result<&'a str, NativeError> {
        let length = self.count(self.limits.max_name_bytes, "bytes in a name")?;
        std::str::from_utf8(self.take(length)?).map_err(|_| NativeError::Malformed("a name that is not UTF-8"))
    }

    pub(super) fn take(&mut self, length: usize) -> Result<&'a [u8], NativeError> {
        let taken = self.bytes[self.at..].get(..length).ok_or(NativeError::Truncated)?;
        self.at += length;
        Ok(taken)
    }

    /// Takes `count` values of `width` bytes.
    pub(super) fn take_values(&mut self, count: usize, width: usize) -> Result<&'a [u8], NativeError> {
        self.take(count.checked_mul(width).ok_or(NativeError::Truncated)?)
    }

    pub(super) fn u64(&mut self) -> Result<u64, NativeError> {
        let bytes = self.take(8)?;
        Ok(u64::from_le_bytes(bytes.try_into().expect("eight bytes were taken")))
    }

    /// Takes `count` strings, each behind its length.
    pub(super) fn take_strings(&mut self, count: usize) -> Result<&'a [u8], NativeError> {
        let start = self.at;
        for _ in 0..count {
            match self.bytes.get(self.at) {
                Some(length @ ..0x80) => self.at += 1 + usize::from(*length),
                _ => {
                    let length = usize::try_from(self.varint()?).map_err(|_| NativeError::Truncated)?;
                    self.at = self.at.checked_add(length).ok_or(NativeError::Truncated)?;
                }
            }
            if self.at > self.bytes.len() {
                self.at = self.bytes.len();
                return Err(NativeError::Truncated);
            }
        }
        Ok(&self.bytes[start..self.at])
    }

    /// Accounts for values that a dictionary unfolds to, before they are made.
    pub(super) fn unfold(&mut self, bytes: usize) -> Result<(), NativeError> {
        self.unfolded_bytes = self.unfolded_bytes.saturating_add(bytes);
        if self.unfolded_bytes > self.limits.max_unfolded_bytes {
            return Err(NativeError::OverLimit("repeated values"));
        }
        Ok(())
    }

    fn count(&mut self, limit: usize, what: &'static str) -> Result<usize, NativeError> {
        let count = self.varint()?;
        usize::try_from(count).ok().filter(|count| *count <= limit).ok_or(NativeError::OverLimit(what))
    }

    fn varint(&mut self) -> Result<u64, NativeError> {
        let varint = parse_varint(&self.bytes[self.at..]).map_err(NativeError::Malformed)?;
        let Varint { value, length } = varint.ok_or(NativeError::Truncated)?;
        self.at += length;
        Ok(value)
    }
}
