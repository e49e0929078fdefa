//! Views of a block's columns from outside: code that brings rows into another layout than Native walks them
//! here.

use crate::block::Block;
use crate::column::Column;
use crate::wire::read_varint;

/// A view of one column, or of a part of a nested one.
#[derive(Clone, Copy)]
pub struct ColumnView<'a>(&'a Column);

/// The layout of a column's values, which follows from the type.
pub enum Layout<'a> {
    /// Little-endian values, all of `width` bytes.
    Fixed {
        width: usize,
        data: &'a [u8],
    },
    Strings(Strings<'a>),
    /// One byte per row, 1 for NULL, where `inner` has some value.
    Nullable {
        nulls: &'a [u8],
        inner: ColumnView<'a>,
    },
    /// Values of `Array` and `Map`: for every row the number of inner values up to its end.
    Array {
        offsets: &'a [u64],
        inner: ColumnView<'a>,
    },
    Tuple(Vec<ColumnView<'a>>),
    /// Values of `Variant`: for every row the position of its alternative, 255 for NULL; an alternative has
    /// only its own rows.
    Variant {
        discriminators: &'a [u8],
        alternatives: Vec<ColumnView<'a>>,
    },
}

/// The values of a `String` column, one after the other.
#[derive(Clone)]
pub struct Strings<'a> {
    rows: usize,
    data: &'a [u8],
}

impl Block {
    /// Returns a column by its position; `None` behind the last.
    pub fn column(&self, index: usize) -> Option<ColumnView<'_>> {
        self.columns.get(index).map(ColumnView)
    }
}

impl<'a> ColumnView<'a> {
    pub fn rows(&self) -> usize {
        self.0.rows()
    }

    pub fn layout(&self) -> Layout<'a> {
        match self.0 {
            Column::Fixed { width, data } => Layout::Fixed { width: *width, data },
            Column::Strings { rows, data } => Layout::Strings(Strings { rows: *rows, data }),
            Column::Nullable { nulls, inner } => Layout::Nullable { nulls, inner: ColumnView(inner) },
            Column::Array { offsets, inner } => Layout::Array { offsets, inner: ColumnView(inner) },
            Column::Tuple { elements } => Layout::Tuple(elements.iter().map(ColumnView).collect()),
            Column::Variant { discriminators, alternatives } => {
                Layout::Variant { discriminators, alternatives: alternatives.iter().map(ColumnView).collect() }
            }
        }
    }
}

impl Strings<'_> {
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the bytes of all values and their lengths.
    pub fn bytes(&self) -> usize {
        self.data.len()
    }
}

impl<'a> Iterator for Strings<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let bytes = read_varint(self.data)? as usize;
        let head = self.data.iter().position(|byte| byte & 0x80 == 0)? + 1;
        let value = self.data.get(head..head.checked_add(bytes)?)?;
        self.data = &self.data[head + bytes..];
        Some(value)
    }
}
