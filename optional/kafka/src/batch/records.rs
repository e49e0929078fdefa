//! The records of a batch, read in the memory that they are in.

use crate::batch::error::BatchError;
use crate::batch::record_batch::RecordBatch;
use crate::batch::varint::Cursor;

/// A message that borrows from the batch's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'r> {
    pub offset: i64,
    /// Timestamp in milliseconds since 1970, or -1 if the record has none.
    pub timestamp_ms: i64,
    pub key: Option<&'r [u8]>,
    pub value: Option<&'r [u8]>,
    pub headers: Headers<'r>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header<'r> {
    pub key: &'r [u8],
    pub value: Option<&'r [u8]>,
}

/// Headers of a record, in the order they were given. A key may come more than once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Headers<'r> {
    count: u32,
    bytes: &'r [u8],
}

impl<'r> Headers<'r> {
    pub fn len(&self) -> usize {
        self.count as usize
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn iter(&self) -> impl Iterator<Item = Header<'r>> {
        let mut cursor = Cursor { rest: self.bytes };
        // They were walked once when the record was read, so that none is missing here.
        (0..self.count).map_while(move |_| header(&mut cursor))
    }

    /// Reads the headers at the end of a record. Returns `None` unless all of them are well-formed.
    fn at_end(mut cursor: Cursor<'r>) -> Option<Headers<'r>> {
        let count = u32::try_from(cursor.varint()?).ok()?;
        let bytes = cursor.rest;
        for _ in 0..count {
            header(&mut cursor)?;
        }
        cursor.rest.is_empty().then_some(Headers { count, bytes })
    }
}

fn header<'r>(cursor: &mut Cursor<'r>) -> Option<Header<'r>> {
    let key = cursor.nullable_bytes()??;
    let value = cursor.nullable_bytes()?;
    Some(Header { key, value })
}

/// An iterator over the records of a batch. It ends after an error.
#[derive(Debug, Clone)]
pub struct Records<'r> {
    cursor: Cursor<'r>,
    remaining: u32,
    base_offset: i64,
    last_offset_delta: i64,
    /// Offset delta of the record before, or -1 before the first one.
    previous_offset_delta: i64,
    base_timestamp_ms: i64,
    /// The broker's time of arrival, if that is the timestamp of all records.
    append_time_ms: Option<i64>,
}

impl<'r> Records<'r> {
    /// Iterates over `bytes`, which are the batch's records, decompressed.
    pub(crate) fn new(batch: &RecordBatch, bytes: &'r [u8]) -> Self {
        Self {
            cursor: Cursor { rest: bytes },
            remaining: batch.count,
            base_offset: batch.base_offset,
            last_offset_delta: batch.last_offset - batch.base_offset,
            previous_offset_delta: -1,
            base_timestamp_ms: batch.base_timestamp_ms,
            append_time_ms: batch.is_log_append_time.then_some(batch.max_timestamp_ms),
        }
    }

    /// Reads the next record, or returns `None` if the bytes are not a record.
    #[inline]
    fn read(&mut self) -> Option<Record<'r>> {
        let length = usize::try_from(self.cursor.varint()?).ok()?;
        let mut inside = Cursor { rest: self.cursor.take(length)? };
        let _attributes = inside.byte()?;
        let timestamp_delta_ms = inside.varint()?;
        let offset_delta = inside.varint()?;
        // What is said of a range of offsets elsewhere relies on their growing, and on the batch's own bounds.
        if offset_delta <= self.previous_offset_delta || offset_delta > self.last_offset_delta {
            return None;
        }
        self.previous_offset_delta = offset_delta;
        let key = inside.nullable_bytes()?;
        let value = inside.nullable_bytes()?;
        let headers = match inside.rest {
            [0] => Headers::default(),
            _ => Headers::at_end(inside)?,
        };
        let timestamp_ms = self.append_time_ms.unwrap_or(self.base_timestamp_ms.wrapping_add(timestamp_delta_ms));
        Some(Record { offset: self.base_offset + offset_delta, timestamp_ms, key, value, headers })
    }

    #[cold]
    fn damaged(&mut self) -> BatchError {
        self.remaining = 0;
        self.cursor.rest = &[];
        let after = self.base_offset + self.previous_offset_delta.max(0);
        BatchError::corrupt(self.base_offset, format!("a record at or after offset {after} can't be read"))
    }

    #[cold]
    fn too_long(&mut self) -> BatchError {
        self.cursor.rest = &[];
        BatchError::corrupt(self.base_offset, "there are bytes behind its last record")
    }
}

impl<'r> Iterator for Records<'r> {
    type Item = Result<Record<'r>, BatchError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.remaining == 0 {
            return match self.cursor.rest.is_empty() {
                true => None,
                false => Some(Err(self.too_long())),
            };
        }
        self.remaining -= 1;
        match self.read() {
            Some(record) => Some(Ok(record)),
            None => Some(Err(self.damaged())),
        }
    }
}
