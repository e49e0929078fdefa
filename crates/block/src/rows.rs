use std::ops::Range;

use crate::block::Block;
use crate::opaque::OpaqueRows;

/// What inserts bring and batches hold. Who gathers need not care which it is: rows of one shape are always of one kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Rows {
    /// Parsed, in columns.
    Typed(Block),
    /// As their senders wrote them.
    Opaque(OpaqueRows),
}

impl Default for Rows {
    fn default() -> Self {
        Rows::Typed(Block::default())
    }
}

impl Rows {
    pub fn count(&self) -> usize {
        match self {
            Rows::Typed(block) => block.rows(),
            Rows::Opaque(rows) => rows.count(),
        }
    }

    pub fn bytes(&self) -> usize {
        match self {
            Rows::Typed(block) => block.bytes(),
            Rows::Opaque(rows) => rows.text().len(),
        }
    }

    /// Appends rows of the same shape.
    ///
    /// # Panics
    /// If they are of another: rows of different tables would be mixed.
    pub fn append(&mut self, other: &Rows) {
        match (self, other) {
            (Rows::Typed(block), Rows::Typed(more)) => block.append(more),
            (Rows::Opaque(rows), Rows::Opaque(more)) => rows.append(more),
            _ => mixed(),
        }
    }

    /// Appends some rows of the same shape: those of one insert, or of several that follow each other.
    ///
    /// # Panics
    /// If they are of another shape, or if the range does not begin and end where inserts do.
    pub fn append_range(&mut self, other: &Rows, rows: Range<usize>) {
        match (self, other) {
            (Rows::Typed(block), Rows::Typed(more)) => block.append_range(more, rows),
            (Rows::Opaque(opaque), Rows::Opaque(more)) => opaque.append_range(more, rows),
            _ => mixed(),
        }
    }

    /// Appends several such ranges, which ascend, in one pass over the other rows.
    ///
    /// # Panics
    /// As [`append_range`](Rows::append_range).
    pub fn append_ranges(&mut self, other: &Rows, ranges: &[Range<usize>]) {
        match (self, other) {
            (Rows::Typed(block), Rows::Typed(more)) => block.append_ranges(more, ranges),
            (Rows::Opaque(opaque), Rows::Opaque(more)) => {
                ranges.iter().for_each(|rows| opaque.append_range(more, rows.clone()));
            }
            _ => mixed(),
        }
    }

    /// All rows of these, which are of the same shape, in one piece. Each part is let go as soon as its rows are taken, so that
    /// hardly more memory is needed than the rows take once.
    ///
    /// # Panics
    /// If they are of different shapes: rows of different tables would be mixed.
    pub fn joined(parts: Vec<Rows>) -> Rows {
        let mut parts = parts.into_iter();
        let mut joined = parts.next().unwrap_or_default();
        if let Rows::Typed(block) = &mut joined {
            let more = parts.as_slice().iter();
            let blocks: Vec<&Block> =
                more.map(|rows| if let Rows::Typed(block) = rows { block } else { mixed() }).collect();
            block.reserve(&blocks);
        }
        parts.for_each(|part| joined.append(&part));
        joined
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

    /// Cuts the rows into pieces of these many.
    ///
    /// # Panics
    /// If they are not that many together, or if an insert's rows are on both sides of a cut.
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
            Rows::Typed(block) => Rows::Typed(block.take()),
            Rows::Opaque(rows) => Rows::Opaque(std::mem::take(rows)),
        }
    }
}

fn mixed() -> ! {
    panic!("rows are only joined with others of their shape")
}
