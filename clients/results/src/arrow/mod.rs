//! Blocks as Arrow's C data interface has them, laid out as ClickHouse's own `FORMAT Arrow` does.
//!
//! Values that have the same layout on both sides are not copied: the array points into the block and keeps
//! it alive. That is so for numbers, strings, arrays and most of the rest; the others are made anew: NULLs
//! and Bool (a bit each), Date (32 bits), Decimal (128 bits), UUID (big-endian), LowCardinality (unfolded,
//! unless asked for as dictionary), Dynamic and JSON (text).
//!
//! ```text
//! schema.rs   a type -> a field      ffi.rs      fields and nodes -> C structs that release what they own
//! export.rs   a column -> a node     stream.rs   blocks one after the other
//! import/     the way back: arrays of others -> columns to insert
//! ```

mod export;
mod ffi;
mod fixed;
mod import;
mod json_text;
mod low_cardinality;
mod node;
mod scalar_text;
mod schema;
mod stream;

pub use ffi::{ArrowArray, ArrowArrayStream, ArrowSchema};
pub use import::{ArrowColumn, Unsuited};

use schema::ArrowField;

use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

use crate::column::{Block, Header};

/// The options of ClickHouse's settings for Arrow that can be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrowOptions {
    /// ClickHouse's `output_format_arrow_string_as_string`: `String` as Arrow's string rather than its
    /// binary.
    pub string_as_string: bool,
    /// ClickHouse's `output_format_arrow_low_cardinality_as_dictionary`.
    pub low_cardinality_as_dictionary: bool,
    /// The server's or session's zone, in which a `DateTime64` without a zone of its own is shown.
    pub timezone: String,
    /// Positions of the columns, in the wanted order; `None` stands for all columns.
    pub columns: Option<Vec<usize>>,
}

impl Default for ArrowOptions {
    fn default() -> Self {
        ArrowOptions {
            string_as_string: true,
            low_cardinality_as_dictionary: false,
            timezone: "UTC".to_string(),
            columns: None,
        }
    }
}

impl ArrowOptions {
    fn columns_of(&self, header: &Header) -> Vec<usize> {
        match &self.columns {
            Some(columns) => columns.iter().copied().filter(|column| *column < header.types.len()).collect(),
            None => (0..header.types.len()).collect(),
        }
    }
}

/// The reason why a result does not become Arrow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArrowError {
    /// ClickHouse refuses the type as Arrow too, with this message.
    NotSupported(String),
    /// A block has other columns than its stream.
    OtherColumns,
}

impl Display for ArrowError {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            ArrowError::NotSupported(message) => message,
            ArrowError::OtherColumns => "a block of other columns than the stream's",
        })
    }
}

impl std::error::Error for ArrowError {}

impl ArrowField {
    /// Returns the field of a struct that has a field for every column.
    fn of_header(header: &Header, options: &ArrowOptions) -> Result<ArrowField, ArrowError> {
        let field = |column: usize| ArrowField::of(&header.names[column], &header.types[column], options);
        Ok(ArrowField::of_struct(options.columns_of(header).into_iter().map(field).collect::<Result<_, _>>()?))
    }
}

impl ArrowSchema {
    /// Makes the schema of a struct that has a field for every column.
    ///
    /// # Errors
    /// Fails where a column's type can't become Arrow.
    pub fn of_header(header: &Header, options: &ArrowOptions) -> Result<ArrowSchema, ArrowError> {
        Ok(ArrowField::of_header(header, options)?.to_ffi())
    }
}

impl ArrowArray {
    /// Makes a struct array of the columns, each of which keeps the block alive until it is released.
    ///
    /// # Errors
    /// Fails where a column's type can't become Arrow.
    pub fn of_block(block: &Arc<Block>, options: &ArrowOptions) -> Result<ArrowArray, ArrowError> {
        let columns =
            options.columns_of(&block.header).into_iter().map(|index| export::column_of(block, index, options));
        Ok(node::Node::of_struct(block.rows, columns.collect::<Result<_, _>>()?).into_ffi())
    }
}
