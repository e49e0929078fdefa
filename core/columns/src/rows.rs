use std::borrow::Cow;
use std::ops::Range;

use crate::block::Block;
use crate::passthrough::PassthroughRows;

/// The rows that inserts bring and batches hold. Code that gathers rows need not care which kind they are:
/// rows of one shape are always of one kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Rows {
    /// Parsed rows, in columns.
    Parsed(Block),
    /// Parsed rows in several blocks of the same columns, one after the other: too many bytes to be copied
    /// into one block without need.
    Blocks(Vec<Block>),
    /// Rows as their senders wrote them.
    Passthrough(PassthroughRows),
}

impl Default for Rows {
    fn default() -> Self {
        Rows::Parsed(Block::default())
    }
}

impl Rows {
    pub fn count(&self) -> usize {
        match self {
            Rows::Parsed(block) => block.rows(),
            Rows::Blocks(blocks) => blocks.iter().map(Block::rows).sum(),
            Rows::Passthrough(rows) => rows.count(),
        }
    }

    pub fn bytes(&self) -> usize {
        match self {
            Rows::Parsed(block) => block.bytes(),
            Rows::Blocks(blocks) => blocks.iter().map(Block::bytes).sum(),
            Rows::Passthrough(rows) => rows.text().len(),
        }
    }

    /// Returns parsed rows, in order. `None` where the rows are not parsed.
    pub fn blocks(&self) -> Option<&[Block]> {
        match self {
            Rows::Parsed(block) => Some(std::slice::from_ref(block)),
            Rows::Blocks(blocks) => Some(blocks),
            Rows::Passthrough(_) => None,
        }
    }

    /// Returns parsed rows as one block, which costs a copy where they are in several. `None` where the rows
    /// are not parsed.
    pub fn to_block(&self) -> Option<Cow<'_, Block>> {
        match self {
            Rows::Parsed(block) => Some(Cow::Borrowed(block)),
            Rows::Blocks(blocks) => Some(Cow::Owned(join(blocks.clone()))),
            Rows::Passthrough(_) => None,
        }
    }

    /// Appends rows of the same shape.
    ///
    /// # Panics
    /// If they are of another shape: rows of different tables would be mixed.
    pub fn append(&mut self, other: &Rows) {
        self.copy_into_one();
        match (self, other) {
            (Rows::Parsed(block), Rows::Parsed(more)) => block.append(more),
            (Rows::Parsed(block), Rows::Blocks(more)) => more.iter().for_each(|more| block.append(more)),
            (Rows::Passthrough(rows), Rows::Passthrough(more)) => rows.append(more),
            _ => mixed(),
        }
    }

    /// Appends some rows of the same shape: those of one insert, or of several that follow each other.
    ///
    /// # Panics
    /// If they are of another shape, or if the range does not begin and end where inserts do.
    pub fn append_range(&mut self, other: &Rows, rows: Range<usize>) {
        self.append_ranges(other, std::slice::from_ref(&rows));
    }

    /// Appends several such ranges, which ascend, in one pass over the other rows.
    ///
    /// # Panics
    /// Like [`append_range`](Rows::append_range).
    pub fn append_ranges(&mut self, other: &Rows, ranges: &[Range<usize>]) {
        self.copy_into_one();
        match (self, other) {
            (Rows::Parsed(block), Rows::Parsed(more)) => block.append_ranges(more, ranges),
            (Rows::Parsed(block), Rows::Blocks(more)) => append_ranges_of(block, more, ranges),
            (Rows::Passthrough(passthrough), Rows::Passthrough(more)) => {
                ranges.iter().for_each(|rows| passthrough.append_range(more, rows.clone()));
            }
            _ => mixed(),
        }
    }

    /// Returns all rows of these, which are of the same shape. Large ones stay in their blocks.
    ///
    /// # Panics
    /// If they are of different shapes: rows of different tables would be mixed.
    pub fn of_parts(parts: Vec<Rows>) -> Rows {
        const LARGE_BYTES: usize = 16 << 10;
        let bytes: usize = parts.iter().map(Rows::bytes).sum();
        let is_large = parts.len() > 1 && bytes / parts.len() >= LARGE_BYTES;
        let mut parts = parts.into_iter();
        let first = parts.next().unwrap_or_default();
        if let Rows::Passthrough(_) = first {
            return parts.fold(first, |mut joined, part| {
                joined.append(&part);
                joined
            });
        }
        let blocks = std::iter::once(first).chain(parts).flat_map(|part| match part {
            Rows::Parsed(block) => vec![block],
            Rows::Blocks(blocks) => blocks,
            Rows::Passthrough(_) => mixed(),
        });
        let mut joined = Rows::Blocks(blocks.collect());
        if !is_large {
            joined.copy_into_one();
        }
        joined
    }

    /// Copies parsed rows into one block, before rows are taken apart or appended.
    fn copy_into_one(&mut self) {
        if let Rows::Blocks(blocks) = self {
            *self = Rows::Parsed(join(std::mem::take(blocks)));
        }
    }

    /// Keeps the rows before `row` and hands out the others.
    ///
    /// # Panics
    /// If there are fewer rows, or if an insert's rows are on both sides of the cut.
    pub fn split_off(&mut self, row: usize) -> Rows {
        let all = self.take();
        let mut second = self.clone();
        self.append_range(&all, 0..row);
        second.append_range(&all, row..all.count());
        second
    }

    /// Cuts the rows into pieces of these numbers of rows.
    ///
    /// # Panics
    /// If the numbers are not those of all rows together, or if an insert's rows are on both sides of a cut.
    pub fn into_pieces(mut self, counts: &[usize]) -> Vec<Rows> {
        match counts {
            [] => Vec::new(),
            [_] => vec![self],
            // In the middle: a row is then copied only as often as the pieces can be halved.
            _ => {
                let (first, second) = counts.split_at(counts.len() / 2);
                let rest = self.split_off(first.iter().sum());
                let mut pieces = self.into_pieces(first);
                pieces.append(&mut rest.into_pieces(second));
                pieces
            }
        }
    }

    /// Hands out the rows and leaves none, of the same shape.
    pub fn take(&mut self) -> Rows {
        match self {
            Rows::Parsed(block) => Rows::Parsed(block.take()),
            Rows::Blocks(blocks) => {
                let empty = blocks.first().map_or_else(Block::default, Block::like);
                std::mem::replace(self, Rows::Parsed(empty))
            }
            Rows::Passthrough(rows) => Rows::Passthrough(std::mem::take(rows)),
        }
    }
}

/// Joins blocks. Each block is dropped as soon as its rows are copied, so that hardly more memory is needed
/// than the rows take once.
fn join(blocks: Vec<Block>) -> Block {
    let mut blocks = blocks.into_iter();
    let mut joined = blocks.next().unwrap_or_default();
    joined.reserve(blocks.as_slice());
    blocks.for_each(|block| joined.append(&block));
    joined
}

/// Appends ranges of rows, which are counted over all blocks.
fn append_ranges_of(to: &mut Block, blocks: &[Block], ranges: &[Range<usize>]) {
    let count: usize = blocks.iter().map(Block::rows).sum();
    assert!(ranges.iter().all(|range| range.end <= count), "ranges {ranges:?} of {count} rows");
    let mut start = 0;
    for block in blocks {
        let end = start + block.rows();
        let within = |range: &Range<usize>| range.start.clamp(start, end) - start..range.end.clamp(start, end) - start;
        to.append_ranges(block, &ranges.iter().map(within).filter(|range| !range.is_empty()).collect::<Vec<_>>());
        start = end;
    }
}

fn mixed() -> ! {
    panic!("rows are only joined with others of their shape")
}
