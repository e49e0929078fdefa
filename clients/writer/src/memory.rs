//! Rows in the memory of the process, gone with it.
//!
//! Rows are appended to a chunk until it is as large as a batch may be; then another one is begun. Sealing takes the
//! oldest chunk as it is, so nothing is copied on the way from an append to a socket, and the memory of stored batches
//! is used again.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::buffer::{AppendError, Appended, Buffer, BufferError, Kept, Open, Ready, Sealed};
use crate::id::BatchId;
use crate::rows::{Body, Chunk, Rows};

/// The most memory that is kept for use again.
const MAX_SPARE_BYTES: usize = 8 << 20;

pub struct MemoryBuffer {
    batch_rows: usize,
    batch_bytes: usize,
    chunks: Mutex<Chunks>,
}

#[derive(Default)]
struct Chunks {
    /// The position of the next row.
    next: u64,
    open: Chunk,
    full: VecDeque<Chunk>,
    rows_in_full: u64,
    sealed: HashMap<BatchId, Piece>,
    spare: Vec<Chunk>,
    is_closed: bool,
}

struct Piece {
    body: Body,
    first: u64,
}

impl Piece {
    fn sealed(&self, id: BatchId) -> Sealed {
        let rows = self.body.count() as u64;
        let held_bytes = self.body.rows().held_bytes();
        Sealed { id, rows, positions: self.first..self.first + rows, held_bytes, destination: None }
    }
}

impl MemoryBuffer {
    /// Makes a buffer whose batches have up to so many rows and bytes; a single row may be larger.
    pub fn new(batch_rows: usize, batch_bytes: usize) -> MemoryBuffer {
        MemoryBuffer { batch_rows: batch_rows.max(1), batch_bytes: batch_bytes.max(1), chunks: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Chunks> {
        self.chunks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends several rows, or a row that fills the open chunk. Says whether a chunk has become full.
    #[cold]
    fn append_in_parts(&self, chunks: &mut Chunks, mut rows: Rows<'_>) -> bool {
        let mut has_filled = false;
        while !rows.is_empty() {
            let room = self.batch_rows - chunks.open.lengths.len();
            let bytes = self.batch_bytes.saturating_sub(chunks.open.bytes.len());
            let is_first = usize::from(chunks.open.lengths.is_empty());
            let (now, later) = rows.split_at(rows.fitting(room, bytes, is_first));
            chunks.open.push(now);
            chunks.next += now.count() as u64;
            if !later.is_empty() || self.is_full(&chunks.open) {
                chunks.close_open();
                has_filled = true;
            }
            rows = later;
        }
        has_filled
    }

    fn is_full(&self, chunk: &Chunk) -> bool {
        chunk.lengths.len() >= self.batch_rows || chunk.bytes.len() >= self.batch_bytes
    }
}

impl Chunks {
    fn close_open(&mut self) {
        let next = self.spare.pop().unwrap_or_default();
        let full = std::mem::replace(&mut self.open, next);
        self.rows_in_full += full.lengths.len() as u64;
        self.full.push_back(full);
    }

    fn open_rows(&self) -> u64 {
        self.rows_in_full + self.open.lengths.len() as u64
    }
}

impl Buffer for MemoryBuffer {
    fn survives(&self) -> bool {
        false
    }

    fn append(&self, rows: Rows<'_>) -> Result<Appended, AppendError> {
        let chunks = &mut *self.lock();
        if chunks.is_closed {
            return Err(AppendError::Closed);
        }
        let first = chunks.next;
        let waited = chunks.open_rows();
        let has_filled = match chunks.open.lengths.len() + rows.count() < self.batch_rows
            && chunks.open.bytes.len() + rows.bytes().len() < self.batch_bytes
        {
            true => {
                chunks.open.push(rows);
                chunks.next += rows.count() as u64;
                false
            }
            false => self.append_in_parts(chunks, rows),
        };
        let ready = match (has_filled, waited) {
            (true, _) => Ready::Full,
            (false, 0) => Ready::FirstRow,
            (false, _) => Ready::No,
        };
        Ok(Appended { first, kept: Kept::Now, ready })
    }

    fn next_position(&self) -> u64 {
        self.lock().next
    }

    fn open(&self) -> Open {
        let chunks = self.lock();
        Open { rows: chunks.open_rows(), full_batches: chunks.full.len() as u64 }
    }

    fn seal(&self) -> Result<Option<Sealed>, BufferError> {
        let id = BatchId::random()?;
        let mut chunks = self.lock();
        if chunks.full.is_empty() {
            chunks.close_open();
        }
        let first = chunks.next - chunks.open_rows();
        let Some(chunk) = chunks.full.pop_front() else { return Ok(None) };
        chunks.rows_in_full -= chunk.lengths.len() as u64;
        if chunk.lengths.is_empty() {
            return Ok(None);
        }
        let piece = Piece { body: Body::of(chunk), first };
        let sealed = piece.sealed(id);
        chunks.sealed.insert(id, piece);
        Ok(Some(sealed))
    }

    fn load(&self, id: BatchId) -> Result<Body, BufferError> {
        let chunks = self.lock();
        chunks.sealed.get(&id).map(|piece| piece.body.clone()).ok_or(BufferError::UnknownBatch(id))
    }

    fn split(&self, id: BatchId, cuts: &[usize]) -> Result<Vec<Sealed>, BufferError> {
        let ids: Vec<BatchId> = (0..=cuts.len()).map(|_| BatchId::random()).collect::<Result<_, _>>()?;
        let mut chunks = self.lock();
        let parent = chunks.sealed.remove(&id).ok_or(BufferError::UnknownBatch(id))?;
        let mut start = 0;
        let mut children = Vec::with_capacity(ids.len());
        for (index, id) in ids.into_iter().enumerate() {
            let end = cuts.get(index).copied().unwrap_or(parent.body.count());
            let piece = Piece { body: parent.body.part(start..end), first: parent.first + start as u64 };
            children.push(piece.sealed(id));
            chunks.sealed.insert(id, piece);
            start = end;
        }
        Ok(children)
    }

    fn done(&self, id: BatchId) -> Result<(), BufferError> {
        let mut chunks = self.lock();
        let piece = chunks.sealed.remove(&id).ok_or(BufferError::UnknownBatch(id))?;
        let spare_bytes: usize = chunks.spare.iter().map(Chunk::capacity_bytes).sum();
        let spare = piece.body.into_spare();
        chunks.spare.extend(spare.filter(|chunk| spare_bytes + chunk.capacity_bytes() <= MAX_SPARE_BYTES));
        Ok(())
    }

    /// Refuses appends from now on: nobody would see their rows.
    fn close(&self) {
        self.lock().is_closed = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn append(buffer: &MemoryBuffer, lengths: &[u32]) -> Appended {
        let bytes = vec![b'x'; lengths.iter().sum::<u32>() as usize];
        buffer.append(Rows::new(&bytes, lengths)).unwrap()
    }

    fn seal(buffer: &MemoryBuffer) -> Option<(u64, std::ops::Range<u64>)> {
        buffer.seal().unwrap().map(|sealed| (sealed.rows, sealed.positions))
    }

    #[test]
    fn batches_have_as_many_rows_as_they_may() {
        let buffer = MemoryBuffer::new(3, 100);
        assert_eq!(append(&buffer, &[1, 1]).ready, Ready::FirstRow);
        assert_eq!(append(&buffer, &[1; 6]).ready, Ready::Full);
        assert_eq!(buffer.open(), Open { rows: 8, full_batches: 2 });
        assert_eq!(seal(&buffer), Some((3, 0..3)));
        assert_eq!(append(&buffer, &[1]).first, 8);
        assert_eq!([seal(&buffer), seal(&buffer), seal(&buffer)], [Some((3, 3..6)), Some((3, 6..9)), None]);
    }

    #[test]
    fn batches_have_as_many_bytes_as_they_may_and_large_rows_go_alone() {
        let buffer = MemoryBuffer::new(100, 10);
        append(&buffer, &[4, 4, 4, 25, 4]);
        append(&buffer, &[30]);
        let sealed: Vec<_> = std::iter::from_fn(|| seal(&buffer)).collect();
        assert_eq!(sealed, [(2, 0..2), (1, 2..3), (1, 3..4), (1, 4..5), (1, 5..6)]);
    }

    #[test]
    fn nothing_is_taken_after_the_end() {
        let buffer = MemoryBuffer::new(3, 100);
        append(&buffer, &[1]);
        buffer.close();
        assert!(matches!(buffer.append(Rows::new(b"x", &[1])), Err(AppendError::Closed)));
        assert_eq!(seal(&buffer), Some((1, 0..1)));
    }

    #[test]
    fn pieces_of_a_batch_have_its_rows_and_positions() {
        let buffer = MemoryBuffer::new(100, 100);
        buffer.append(Rows::new(b"abbccc", &[1, 2, 3])).unwrap();
        let id = buffer.seal().unwrap().unwrap().id;
        let children = buffer.split(id, &[1, 2]).unwrap();
        assert!(matches!(buffer.load(id), Err(BufferError::UnknownBatch(_))));
        let texts: Vec<_> = children.iter().map(|child| buffer.load(child.id).unwrap().bytes()).collect();
        assert_eq!(texts, [&b"a"[..], b"bb", b"ccc"]);
        assert_eq!(children[2].positions, 2..3);
        children.iter().for_each(|child| buffer.done(child.id).unwrap());
    }
}
