//! Numbers, texts and lists in a record: little-endian, with lengths before what they count. The bytes come
//! from a file, so nothing is allocated before the bytes for it are known to be there.

use std::fmt;

/// The reason why bytes are no record of this kind, or of this version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordError(pub(super) String);

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for RecordError {}

pub(super) fn error<T>(text: impl Into<String>) -> Result<T, RecordError> {
    Err(RecordError(text.into()))
}

#[derive(Default)]
pub(super) struct Writer(pub(super) Vec<u8>);

impl Writer {
    pub(super) fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    pub(super) fn u32(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(super) fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(super) fn u128(&mut self, value: u128) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.u32(bytes.len() as u32);
        self.0.extend_from_slice(bytes);
    }

    pub(super) fn list<'a>(&mut self, texts: impl ExactSizeIterator<Item = &'a str>) {
        self.u32(texts.len() as u32);
        texts.for_each(|text| self.bytes(text.as_bytes()));
    }

    pub(super) fn optional_u64(&mut self, value: Option<u64>) {
        self.u8(u8::from(value.is_some()));
        self.u64(value.unwrap_or(0));
    }
}

pub(super) struct Bytes<'a>(pub(super) &'a [u8]);

impl<'a> Bytes<'a> {
    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], RecordError> {
        match self.0.split_at_checked(count) {
            Some((taken, rest)) => {
                self.0 = rest;
                Ok(taken)
            }
            None => error("it is cut off"),
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], RecordError> {
        Ok(self.take(N)?.try_into().expect("so many were taken"))
    }

    pub(super) fn u8(&mut self) -> Result<u8, RecordError> {
        Ok(self.array::<1>()?[0])
    }

    pub(super) fn bool(&mut self) -> Result<bool, RecordError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            other => error(format!("{other} is neither yes nor no")),
        }
    }

    pub(super) fn u32(&mut self) -> Result<u32, RecordError> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, RecordError> {
        self.array().map(u64::from_le_bytes)
    }

    pub(super) fn u128(&mut self) -> Result<u128, RecordError> {
        self.array().map(u128::from_le_bytes)
    }

    pub(super) fn bytes(&mut self) -> Result<&'a [u8], RecordError> {
        let length = self.u32()? as usize;
        self.take(length)
    }

    pub(super) fn text(&mut self) -> Result<&'a str, RecordError> {
        std::str::from_utf8(self.bytes()?).or_else(|_| error("a text that is not UTF-8"))
    }

    /// Reads a list. An item takes `least_bytes` at least, so that a wrong count is found before anything is
    /// made for it.
    pub(super) fn list<T>(
        &mut self,
        least_bytes: usize,
        mut item: impl FnMut(&mut Self) -> Result<T, RecordError>,
    ) -> Result<Vec<T>, RecordError> {
        let count = self.u32()? as usize;
        if count > self.0.len() / least_bytes {
            return error("it is cut off");
        }
        (0..count).map(|_| item(self)).collect()
    }

    pub(super) fn texts(&mut self) -> Result<Vec<String>, RecordError> {
        self.list(4, |bytes| bytes.text().map(str::to_owned))
    }

    pub(super) fn optional_u64(&mut self) -> Result<Option<u64>, RecordError> {
        let is_there = self.bool()?;
        let value = self.u64()?;
        Ok(is_there.then_some(value))
    }

    pub(super) fn end(&self) -> Result<(), RecordError> {
        match self.0.is_empty() {
            true => Ok(()),
            false => error(format!("{} bytes too many", self.0.len())),
        }
    }

    pub(super) fn version(&mut self, expected: u8, what: &str) -> Result<(), RecordError> {
        match self.u8()? {
            version if version == expected => Ok(()),
            version => error(format!("{what} of version {version}, and this Windrow knows version {expected}")),
        }
    }
}
