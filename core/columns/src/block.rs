use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;

use crate::column::Column;
use crate::types::DataType;
use crate::wire::write_varint;

/// Rows in columns, in ClickHouse's Native layout. A block knows the layout of its columns, not their names
/// or types: those are the same for every block that is gathered into one batch, and are given when the block
/// is encoded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Block {
    pub(crate) rows: usize,
    pub(crate) columns: Vec<Column>,
}

impl Block {
    pub fn empty<'a>(types: impl IntoIterator<Item = &'a DataType>) -> Self {
        Block { rows: 0, columns: types.into_iter().map(Column::empty).collect() }
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    pub fn columns(&self) -> usize {
        self.columns.len()
    }

    /// Returns the bytes of all values, which is also the space that they take in a Native block.
    pub fn bytes(&self) -> usize {
        self.columns.iter().map(Column::bytes).sum()
    }

    /// Appends all rows of a block whose columns have the same types.
    ///
    /// # Panics
    /// If the columns are of other types: rows of different tables would be mixed.
    pub fn append(&mut self, other: &Block) {
        assert_eq!(self.columns.len(), other.columns.len(), "blocks are only joined when they have the same columns");
        for (column, more) in self.columns.iter_mut().zip(&other.columns) {
            column.append(more);
        }
        self.rows += other.rows;
    }

    /// Makes room for all rows of these blocks, whose columns have the same types.
    ///
    /// # Panics
    /// If the columns are of other types.
    pub(crate) fn reserve(&mut self, more: &[Block]) {
        assert!(
            more.iter().all(|block| block.columns.len() == self.columns.len()),
            "blocks are only joined when they have the same columns"
        );
        for (index, column) in self.columns.iter_mut().enumerate() {
            column.reserve(&more.iter().map(|block| &block.columns[index]).collect::<Vec<_>>());
        }
    }

    /// Appends some rows of a block whose columns have the same types.
    ///
    /// # Panics
    /// If the columns are of other types, or if the other block has not that many rows.
    pub fn append_range(&mut self, other: &Block, rows: Range<usize>) {
        self.append_ranges(other, std::slice::from_ref(&rows));
    }

    /// Appends several ranges of rows, which ascend, in one pass over the other block.
    ///
    /// # Panics
    /// Like [`append_range`](Block::append_range), and if a range begins before the end of the one before it.
    pub fn append_ranges(&mut self, other: &Block, ranges: &[Range<usize>]) {
        assert_eq!(self.columns.len(), other.columns.len(), "blocks are only joined when they have the same columns");
        for rows in ranges {
            assert!(rows.start <= rows.end && rows.end <= other.rows, "rows {rows:?} of a block of {}", other.rows);
            self.rows += rows.len();
        }
        assert!(ranges.is_sorted_by(|one, next| one.end <= next.start), "ranges of rows ascend: {ranges:?}");
        for (column, more) in self.columns.iter_mut().zip(&other.columns) {
            assert!(ranges.iter().all(|rows| more.covers(rows)), "a column is shorter than its block");
            column.append_ranges(more, ranges);
        }
    }

    /// Returns the columns of several blocks of equally many rows as one block. `order` has for each of its
    /// columns the block that the column is taken from, and its position there. No column may be taken twice.
    ///
    /// # Panics
    /// If the blocks have not equally many rows, or a column isn't there.
    pub fn beside(parts: Vec<Block>, order: impl IntoIterator<Item = (usize, usize)>) -> Block {
        let rows = parts.first().map_or(0, Block::rows);
        assert!(
            parts.iter().all(|part| part.rows == rows),
            "blocks are only put side by side when they have the same rows"
        );
        let mut parts: Vec<Vec<Option<Column>>> =
            parts.into_iter().map(|part| part.columns.into_iter().map(Some).collect()).collect();
        let taken = |(part, column): (usize, usize)| parts[part][column].take().expect("a column is taken once");
        Block { rows, columns: order.into_iter().map(taken).collect() }
    }

    /// Returns some columns of the block, each at most once.
    ///
    /// # Panics
    /// If a column isn't there.
    pub fn select(self, columns: impl IntoIterator<Item = usize>) -> Block {
        Block::beside(vec![self], columns.into_iter().map(|column| (0, column)))
    }

    /// Turns a Nullable column, in which no row is NULL, into a column of the type inside.
    ///
    /// # Panics
    /// If the column isn't Nullable, or has NULLs.
    pub fn unwrap_nullable(&mut self, column: usize) {
        let Column::Nullable { nulls, inner } = &mut self.columns[column] else {
            panic!("column {column} is not Nullable")
        };
        assert!(!nulls.contains(&1), "column {column} has NULLs");
        let empty = Column::Fixed { width: 1, data: Vec::new() };
        self.columns[column] = std::mem::replace(&mut **inner, empty);
    }

    /// Drops the rows and keeps the memory.
    pub fn clear(&mut self) {
        self.rows = 0;
        self.columns.iter_mut().for_each(Column::clear);
    }

    /// Returns an empty block of the same columns.
    pub(crate) fn like(&self) -> Block {
        Block { rows: 0, columns: self.columns.iter().map(Column::like).collect() }
    }

    /// Hands out the rows and leaves an empty block of the same columns.
    pub fn take(&mut self) -> Block {
        let empty = self.like();
        std::mem::replace(self, empty)
    }

    /// Encodes one Native block as the HTTP interface takes it, without BlockInfo. `names` and `types` are
    /// those of the block's columns, in order.
    pub fn encode_native<N: AsRef<str>>(&self, names: &[N], types: &[DataType]) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.bytes() + 64 * self.columns.len() + 20);
        self.write_counts(&mut out);
        for ((column, name), data_type) in self.columns.iter().zip(names).zip(types) {
            write_header(&mut out, name.as_ref(), data_type);
            if self.rows > 0 {
                column.write_prefix(&mut out);
            }
            column.write_native(&mut out);
        }
        out
    }

    /// Encodes the block like `encode_native`, in pieces for a vectored write. The values are handed over,
    /// not copied, and the pieces are cheap to clone for another attempt.
    pub fn into_native<N: AsRef<str>>(self, names: &[N], types: &[DataType]) -> Vec<Bytes> {
        let mut head = Vec::with_capacity(64);
        self.write_counts(&mut head);
        let mut pieces = Vec::with_capacity(2 * self.columns.len() + 1);
        for ((column, name), data_type) in self.columns.into_iter().zip(names).zip(types) {
            write_header(&mut head, name.as_ref(), data_type);
            if self.rows > 0 {
                column.write_prefix(&mut head);
            }
            pieces.push(std::mem::take(&mut head).into());
            column.into_native(&mut pieces);
        }
        if !head.is_empty() {
            pieces.push(head.into());
        }
        pieces
    }

    /// Writes the columns alone, for readers that know their names and types: the number of rows, then the
    /// part of each column that Native has behind name and type.
    pub fn write_columns(&self, out: &mut Vec<u8>) {
        write_varint(out, self.rows as u64);
        if self.rows == 0 {
            return;
        }
        for column in &self.columns {
            column.write_prefix(out);
            column.write_native(out);
        }
    }

    fn write_counts(&self, out: &mut Vec<u8>) {
        write_varint(out, self.columns.len() as u64);
        write_varint(out, self.rows as u64);
    }
}

/// Encodes all rows of these blocks, which have the same columns, as one Native block: like `encode_native`,
/// in pieces that are written one after the other. The values are lent, not copied.
///
/// # Panics
/// If the blocks have different columns.
pub fn native_pieces<'a, N: AsRef<str>>(blocks: &'a [Block], names: &[N], types: &[DataType]) -> Vec<Cow<'a, [u8]>> {
    let columns = blocks.first().map_or(0, Block::columns);
    let rows: usize = blocks.iter().map(Block::rows).sum();
    let mut head = Vec::with_capacity(64);
    write_varint(&mut head, columns as u64);
    write_varint(&mut head, rows as u64);
    let mut pieces = Vec::with_capacity((blocks.len() + 1) * columns + 1);
    for (at, (name, data_type)) in names.iter().zip(types).enumerate().take(columns) {
        let column: Vec<&Column> = blocks.iter().map(|block| &block.columns[at]).collect();
        write_header(&mut head, name.as_ref(), data_type);
        if rows > 0 {
            column[0].write_prefix(&mut head);
        }
        pieces.push(Cow::from(std::mem::take(&mut head)));
        Column::native_pieces(&column, &mut pieces);
    }
    if !head.is_empty() {
        pieces.push(Cow::from(head));
    }
    pieces
}

fn write_header(out: &mut Vec<u8>, name: &str, data_type: &DataType) {
    write_string(out, name);
    write_string(out, &data_type.native_name());
}

fn write_string(out: &mut Vec<u8>, text: &str) {
    write_varint(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}
