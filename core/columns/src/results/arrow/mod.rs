//! Blocks as Arrow's C data interface has them, laid out as ClickHouse's own `FORMAT Arrow` does.
//!
//! What has the same layout on both sides is not copied: the array points into the block and keeps it alive. That is so
//! for numbers, strings, arrays and most of the rest; what differs is made anew: NULLs and Bool (a bit each), Date (32
//! bits), Decimal (128 bits), UUID (big-endian), LowCardinality (unfolded, unless asked for as dictionary), Dynamic and
//! JSON (text).
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

use crate::results::column::{Block, Header};

/// What of ClickHouse's settings for Arrow can be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrowOptions {
    /// `output_format_arrow_string_as_string`: `String` as Arrow's string rather than its binary.
    pub string_as_string: bool,
    /// `output_format_arrow_low_cardinality_as_dictionary`
    pub low_cardinality_as_dictionary: bool,
    /// The server's or session's zone: what a `DateTime64` without one of its own is shown in.
    pub timezone: String,
    /// Which columns, in which order. None: all.
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

/// Reason why a result does not become Arrow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArrowError {
    /// A type that ClickHouse refuses as Arrow too, in its words.
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
    /// A struct with a field for every column.
    fn of_header(header: &Header, options: &ArrowOptions) -> Result<ArrowField, ArrowError> {
        let field = |column: usize| ArrowField::of(&header.names[column], &header.types[column], options);
        Ok(ArrowField::of_struct(options.columns_of(header).into_iter().map(field).collect::<Result<_, _>>()?))
    }
}

impl ArrowSchema {
    /// A struct with a field for every column.
    pub fn of_header(header: &Header, options: &ArrowOptions) -> Result<ArrowSchema, ArrowError> {
        Ok(ArrowField::of_header(header, options)?.to_ffi())
    }
}

impl ArrowArray {
    /// A struct array of the columns, each of which keeps the block alive until it is released.
    pub fn of_block(block: &Arc<Block>, options: &ArrowOptions) -> Result<ArrowArray, ArrowError> {
        let columns =
            options.columns_of(&block.header).into_iter().map(|index| export::column_of(block, index, options));
        Ok(node::Node::of_struct(block.rows, columns.collect::<Result<_, _>>()?).into_ffi())
    }
}
