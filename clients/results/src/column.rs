//! Columns of a result, each laid out so that Arrow can take it over without a copy.

use std::sync::Arc;

use windrow_columns::DataType;

/// Names and types of a result's columns; all blocks of a result share them.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    pub names: Vec<String>,
    pub types: Vec<DataType>,
}

/// Rows as they came in one piece from the server.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    pub header: Arc<Header>,
    pub rows: usize,
    pub columns: Vec<Column>,
}

/// The values of one column of a block. Which variant a type has follows from the type alone.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Values of one width: `rows × width` bytes, little-endian as ClickHouse sends them (`UUID` as two
    /// 64-bit halves, `FixedString` as it is).
    Fixed {
        width: usize,
        data: Vec<u8>,
    },
    /// `String`: row n is `data[offsets[n]..offsets[n + 1]]`, not always UTF-8. There is one offset more than
    /// rows.
    Strings {
        offsets: Vec<i32>,
        data: Vec<u8>,
    },
    /// `Nullable`: `nulls[n] == 1` marks NULL; the inner column has some value there.
    Nullable {
        nulls: Vec<u8>,
        inner: Box<Column>,
    },
    /// `LowCardinality`: `indices[n]` is a row of the dictionary. If the type is nullable, row 0 of the
    /// dictionary stands for NULL and the dictionary itself is not `Nullable`.
    LowCardinality {
        indices: Vec<u32>,
        dictionary: Box<Column>,
        nullable: bool,
    },
    /// `Array` and `Nested`: row n is `inner[offsets[n]..offsets[n + 1]]`. There is one offset more than
    /// rows.
    Array {
        offsets: Vec<i32>,
        inner: Box<Column>,
    },
    /// `Map`: laid out like `Array`, with pairs of keys and values.
    Map {
        offsets: Vec<i32>,
        keys: Box<Column>,
        values: Box<Column>,
    },
    Tuple {
        rows: usize,
        elements: Vec<Column>,
    },
    /// `Variant` and `Dynamic`: row n is row `positions[n]` of `alternatives[discriminators[n]]`, or NULL where that is
    /// [`NULL_DISCRIMINATOR`](Column::NULL_DISCRIMINATOR).
    Variant {
        discriminators: Vec<u16>,
        positions: Vec<u32>,
        alternatives: Vec<(DataType, Column)>,
    },
    /// `JSON`: every path that occurs, with a column of all rows, in the order of the paths' names. Where a
    /// row lacks a path, the path's `Variant` is NULL.
    Json {
        rows: usize,
        paths: Vec<(String, DataType, Column)>,
    },
    /// `Nothing`: only NULL.
    Nothing {
        rows: usize,
    },
}

impl Column {
    pub const NULL_DISCRIMINATOR: u16 = u16::MAX;

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        match self {
            // No type has values of no bytes.
            Column::Fixed { width, data } => data.len() / width.max(&1),
            Column::Strings { offsets, .. } | Column::Array { offsets, .. } | Column::Map { offsets, .. } => {
                offsets.len().saturating_sub(1)
            }
            Column::Nullable { nulls, .. } => nulls.len(),
            Column::LowCardinality { indices, .. } => indices.len(),
            Column::Variant { discriminators, .. } => discriminators.len(),
            Column::Tuple { rows, .. } | Column::Json { rows, .. } | Column::Nothing { rows } => *rows,
        }
    }
}
