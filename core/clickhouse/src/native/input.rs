//! Input whose end may not have come yet.

pub use windrow_columns::wire::write_varint;

/// The cause why something can't be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The input ends too early: at least so many bytes are needed, counted from the same start.
    Incomplete { at_least: usize },
    /// The bytes are wrong, and no bytes that follow can make them right.
    Malformed(&'static str),
    /// The bytes may be right, but they can't be read here.
    Unsupported(&'static str),
    /// The named thing is longer than it may be.
    TooLarge(&'static str),
    /// A compressed frame differs from what its checksum or its sizes say.
    Frame(windrow_compression::DecompressError),
}

pub fn write_string(out: &mut Vec<u8>, text: impl AsRef<[u8]>) {
    let text = text.as_ref();
    write_varint(out, text.len() as u64);
    out.extend_from_slice(text);
}

/// A position in bytes of which more may come.
#[derive(Clone)]
pub struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Input<'a> {
    pub fn new(bytes: &'a [u8]) -> Input<'a> {
        Input { bytes, at: 0 }
    }

    /// Returns how many bytes have been read.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Takes the next `length` bytes.
    ///
    /// # Errors
    /// Fails where they have not all come.
    pub fn take(&mut self, length: usize) -> Result<&'a [u8], Fault> {
        let end = self.at.checked_add(length).ok_or(Fault::Malformed("a length that no memory holds"))?;
        let taken = self.bytes.get(self.at..end).ok_or(Fault::Incomplete { at_least: end })?;
        self.at = end;
        Ok(taken)
    }

    /// Takes as many bytes as there are, at most `most`.
    pub fn rest(&mut self, most: usize) -> &'a [u8] {
        let end = self.bytes.len().min(self.at.saturating_add(most));
        let taken = &self.bytes[self.at..end];
        self.at = end;
        taken
    }

    /// Returns the bytes from here to the position of `end`, a later copy.
    pub fn between(&self, end: &Input<'a>) -> &'a [u8] {
        &self.bytes[self.at..end.at]
    }

    /// Reads a byte.
    ///
    /// # Errors
    /// Fails where none is left.
    pub fn byte(&mut self) -> Result<u8, Fault> {
        Ok(self.take(1)?[0])
    }

    /// Reads a byte as a truth value: any but 0 is true.
    ///
    /// # Errors
    /// Fails where no byte is left.
    pub fn bool(&mut self) -> Result<bool, Fault> {
        Ok(self.byte()? != 0)
    }

    /// Reads `N` bytes.
    ///
    /// # Errors
    /// Fails where they have not all come.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        Ok(self.take(N)?.try_into().expect("as many bytes were taken"))
    }

    /// Reads a number of 8 bytes, the least significant first.
    ///
    /// # Errors
    /// Fails where they have not all come.
    pub fn u64(&mut self) -> Result<u64, Fault> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// Reads a signed number of 4 bytes, the least significant first.
    ///
    /// # Errors
    /// Fails where they have not all come.
    pub fn i32(&mut self) -> Result<i32, Fault> {
        Ok(i32::from_le_bytes(self.array()?))
    }

    /// Reads a number of up to 64 bits in its variable length. Like ClickHouse, this accepts a longer form
    /// than needed.
    ///
    /// # Errors
    /// Fails where the number has not all come, or takes more than ten bytes.
    pub fn varint(&mut self) -> Result<u64, Fault> {
        let mut value = 0;
        for index in 0..10 {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7F) << (7 * index).min(63);
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Fault::Malformed("a number of more than ten bytes"))
    }

    /// Reads a count of at most `most` things; `what` names them in the error.
    ///
    /// # Errors
    /// Fails where the count has not all come, or is greater.
    pub fn count(&mut self, most: usize, what: &'static str) -> Result<usize, Fault> {
        let count = usize::try_from(self.varint()?).unwrap_or(usize::MAX);
        if count > most {
            return Err(Fault::TooLarge(what));
        }
        Ok(count)
    }

    /// Reads a length of at most `most`, and so many bytes.
    ///
    /// # Errors
    /// Fails where they have not all come, or the length is greater.
    pub fn bytes(&mut self, most: usize, what: &'static str) -> Result<&'a [u8], Fault> {
        let length = self.count(most, what)?;
        self.take(length)
    }

    /// Reads a text, which has to be UTF-8.
    ///
    /// # Errors
    /// Fails where the text has not all come, is longer than `most`, or is not UTF-8.
    pub fn text(&mut self, most: usize, what: &'static str) -> Result<&'a str, Fault> {
        std::str::from_utf8(self.bytes(most, what)?).map_err(|_| Fault::Malformed("a text that is not UTF-8"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_told() {
        let mut bytes = Vec::new();
        write_string(&mut bytes, "abc");
        for end in 0..bytes.len() {
            let fault = Input::new(&bytes[..end]).text(10, "a text").unwrap_err();
            assert_eq!(fault, Fault::Incomplete { at_least: if end == 0 { 1 } else { 4 } });
        }
        assert_eq!(Input::new(&bytes).text(10, "a text"), Ok("abc"));
        assert_eq!(Input::new(&bytes).text(2, "a text"), Err(Fault::TooLarge("a text")));
    }

    #[test]
    fn numbers_end() {
        assert_eq!(Input::new(&[0xFF; 20]).varint(), Err(Fault::Malformed("a number of more than ten bytes")));
        assert_eq!(Input::new(&[0x80, 0]).varint(), Ok(0));
        let mut bytes = Vec::new();
        write_varint(&mut bytes, u64::MAX);
        assert_eq!(Input::new(&bytes).varint(), Ok(u64::MAX));
    }
}
