//! Encoded rows: their bytes one after the other, and the length of each, so that a batch can be cut between any two.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

/// Rows in FORMAT RowBinary, borrowed from their encoder.
#[derive(Clone, Copy)]
pub struct Rows<'a> {
    bytes: &'a [u8],
    lengths: &'a [u32],
}

impl<'a> Rows<'a> {
    /// Makes rows of their bytes. `lengths` has the length in bytes of each row. Panics unless the lengths
    /// add up to the bytes: the encoder of rows knows where they end.
    #[inline]
    pub fn new(bytes: &'a [u8], lengths: &'a [u32]) -> Rows<'a> {
        let sum: u64 = lengths.iter().map(|&length| u64::from(length)).sum();
        assert_eq!(sum, bytes.len() as u64, "the lengths of rows add up to all of their bytes");
        Rows { bytes, lengths }
    }

    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    pub fn lengths(&self) -> &'a [u32] {
        self.lengths
    }

    pub fn count(&self) -> usize {
        self.lengths.len()
    }

    pub fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// Returns the bytes that rows count for where room is bounded: their own, and those of the lengths that
    /// tell them apart.
    pub fn held_bytes(&self) -> u64 {
        held_bytes(self.bytes.len(), self.lengths.len())
    }

    /// Returns the first `count` rows, and the rest.
    pub fn split_at(&self, count: usize) -> (Rows<'a>, Rows<'a>) {
        let (first, second) = self.lengths.split_at(count);
        let at = byte_length(first);
        (Rows { bytes: &self.bytes[..at], lengths: first }, Rows { bytes: &self.bytes[at..], lengths: second })
    }

    /// Returns how many of the rows, from the first on, fit into so much: at least `least`.
    pub(crate) fn fitting(&self, rows: usize, bytes: usize, least: usize) -> usize {
        if self.count() <= rows && self.bytes.len() <= bytes {
            return self.count();
        }
        let mut sum = 0;
        let fits = |&&length: &&u32| {
            sum += length as usize;
            sum <= bytes
        };
        self.lengths.iter().take(rows).take_while(fits).count().max(least.min(self.count()))
    }
}

pub(crate) fn held_bytes(bytes: usize, rows: usize) -> u64 {
    bytes as u64 + 4 * rows as u64
}

fn byte_length(lengths: &[u32]) -> usize {
    lengths.iter().map(|&length| length as usize).sum()
}

/// Rows that are gathered in memory.
#[derive(Default)]
pub(crate) struct Chunk {
    pub(crate) bytes: Vec<u8>,
    pub(crate) lengths: Vec<u32>,
}

impl Chunk {
    pub(crate) fn push(&mut self, rows: Rows<'_>) {
        self.bytes.extend_from_slice(rows.bytes);
        self.lengths.extend_from_slice(rows.lengths);
    }

    pub(crate) fn capacity_bytes(&self) -> usize {
        self.bytes.capacity() + 4 * self.lengths.capacity()
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.lengths.clear();
    }
}

/// The rows of a batch, or some of them; shared, so that sending them again costs nothing.
#[derive(Clone)]
pub struct Body {
    chunk: Arc<Chunk>,
    rows: Range<usize>,
    bytes: Range<usize>,
}

impl Body {
    pub fn new(bytes: Vec<u8>, lengths: Vec<u32>) -> Body {
        Rows::new(&bytes, &lengths);
        Body::of(Chunk { bytes, lengths })
    }

    pub(crate) fn of(chunk: Chunk) -> Body {
        let (rows, bytes) = (0..chunk.lengths.len(), 0..chunk.bytes.len());
        Body { chunk: Arc::new(chunk), rows, bytes }
    }

    pub fn rows(&self) -> Rows<'_> {
        Rows { bytes: &self.chunk.bytes[self.bytes.clone()], lengths: &self.chunk.lengths[self.rows.clone()] }
    }

    pub fn count(&self) -> usize {
        self.rows.len()
    }

    /// Returns the bytes of all rows, as they are sent, without a copy.
    pub fn bytes(&self) -> Bytes {
        Bytes::from_owner(SharedChunk(self.chunk.clone())).slice(self.bytes.clone())
    }

    /// Returns the bytes of each row.
    pub fn each_row(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = self.rows().bytes;
        self.rows().lengths.iter().map(move |&length| {
            let (row, behind) = rest.split_at(length as usize);
            rest = behind;
            row
        })
    }

    /// Returns some of the rows, by their number in the body.
    pub(crate) fn part(&self, rows: Range<usize>) -> Body {
        let lengths = self.rows().lengths;
        let start = self.bytes.start + byte_length(&lengths[..rows.start]);
        let end = start + byte_length(&lengths[rows.clone()]);
        let first = self.rows.start;
        Body { chunk: self.chunk.clone(), rows: first + rows.start..first + rows.end, bytes: start..end }
    }

    /// Returns a copy that does not keep the rows around it in memory.
    pub(crate) fn detached(&self) -> Body {
        if self.rows.len() == self.chunk.lengths.len() {
            return self.clone();
        }
        let mut chunk = Chunk::default();
        chunk.push(self.rows());
        Body::of(chunk)
    }

    /// Returns the memory, for other rows, if nobody else looks at it.
    pub(crate) fn into_spare(self) -> Option<Chunk> {
        let mut chunk = Arc::try_unwrap(self.chunk).ok()?;
        chunk.clear();
        Some(chunk)
    }
}

/// Shows no rows: they are data of the program that wrote them, and don't get into logs.
impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Body({} rows, {} bytes)", self.rows.len(), self.bytes.len())
    }
}

struct SharedChunk(Arc<Chunk>);

impl AsRef<[u8]> for SharedChunk {
    fn as_ref(&self) -> &[u8] {
        &self.0.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_cut_between_rows() {
        let body = Body::new(b"abbccc".to_vec(), vec![1, 2, 3]);
        let part = body.part(1..3);
        assert_eq!((part.rows().bytes(), part.rows().lengths()), (&b"bbccc"[..], &[2, 3][..]));
        let last = part.part(1..2);
        assert_eq!(&last.bytes()[..], b"ccc");
        assert_eq!(last.detached().rows().bytes(), b"ccc");
        assert_eq!(body.each_row().collect::<Vec<_>>(), [&b"a"[..], b"bb", b"ccc"]);
    }

    #[test]
    fn what_fits_is_counted_by_rows_and_bytes() {
        let rows = Rows::new(b"abbccc", &[1, 2, 3]);
        assert_eq!(rows.fitting(10, 10, 1), 3);
        assert_eq!(rows.fitting(2, 10, 1), 2);
        assert_eq!(rows.fitting(10, 5, 1), 2);
        assert_eq!((rows.fitting(10, 0, 1), rows.fitting(10, 0, 0)), (1, 0));
    }
}
