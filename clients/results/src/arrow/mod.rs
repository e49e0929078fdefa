//! Blocks as record batches of Arrow's own library, laid out as ClickHouse's own `FORMAT Arrow` does.
//!
//! Values that have the same layout on both sides are not copied: the array points into the block and keeps
//! it alive. That is so for numbers, strings, arrays and most of the rest; the others are made anew: NULLs
//! and Bool (a bit each), Date (32 bits), Decimal (128 bits), UUID (big-endian), LowCardinality (unfolded,
//! unless asked for as dictionary), Dynamic and JSON (text).
//!
//! ```text
//! schema.rs    a type -> a field               export.rs   a column -> an array
//! buffers.rs   what an array points into       import/     the way back: arrays of others -> columns
//! ```

mod buffers;
mod export;
mod fixed;
mod import;
mod json_text;
mod low_cardinality;
mod scalar_text;
mod schema;

pub use import::{ArrowColumn, Unsuited};
pub use schema::arrow_schema;

use std::fmt::{self, Display, Formatter};
use std::sync::Arc;
use std::vec;

use arrow_array::ffi::FFI_ArrowArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{make_array, Array, RecordBatch, RecordBatchReader, StructArray};
use arrow_schema::SchemaRef;

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

/// Makes a struct array of a block's columns, each of which keeps the block alive. Its texts are what
/// ClickHouse has, which may be other than UTF-8.
///
/// # Errors
/// Fails where a column's type can't become Arrow.
pub fn arrow_array(block: &Arc<Block>, options: &ArrowOptions) -> Result<FFI_ArrowArray, ArrowError> {
    let batch = batch_of(block, Arc::new(arrow_schema(&block.header, options)?), options)?;
    Ok(FFI_ArrowArray::new(&StructArray::from(batch).to_data()))
}

/// Makes a stream of struct arrays, each made of a block when it is asked for. All blocks have to have the
/// header's columns: the stream itself fails at another one.
///
/// # Errors
/// Fails where a column's type can't become Arrow.
pub fn arrow_stream(
    header: &Arc<Header>,
    blocks: Vec<Arc<Block>>,
    options: ArrowOptions,
) -> Result<FFI_ArrowArrayStream, ArrowError> {
    let schema = Arc::new(arrow_schema(header, &options)?);
    let reader = BlockReader { header: header.clone(), schema, blocks: blocks.into_iter(), options };
    Ok(FFI_ArrowArrayStream::new(Box::new(reader)))
}

fn batch_of(block: &Arc<Block>, schema: SchemaRef, options: &ArrowOptions) -> Result<RecordBatch, ArrowError> {
    let columns = options.columns_of(&block.header).into_iter().zip(schema.fields());
    let columns = columns
        .map(|(index, field)| Ok(make_array(export::column_of(block, index, field.data_type(), options)?)))
        .collect::<Result<_, _>>()?;
    // SAFETY: each column was made for its field, and has as many rows as the block, as its decoder sees to.
    Ok(unsafe { RecordBatch::new_unchecked(schema, columns, block.rows) })
}

struct BlockReader {
    header: Arc<Header>,
    schema: SchemaRef,
    blocks: vec::IntoIter<Arc<Block>>,
    options: ArrowOptions,
}

impl BlockReader {
    fn batch(&self, block: &Arc<Block>) -> Result<RecordBatch, ArrowError> {
        if !Arc::ptr_eq(&block.header, &self.header) && block.header.types != self.header.types {
            return Err(ArrowError::OtherColumns);
        }
        batch_of(block, self.schema.clone(), &self.options)
    }
}

impl Iterator for BlockReader {
    type Item = Result<RecordBatch, arrow_schema::ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let block = self.blocks.next()?;
        // The text ends at a zero byte in C.
        let told =
            |error: ArrowError| arrow_schema::ArrowError::CDataInterface(error.to_string().replace('\0', "\u{2400}"));
        Some(self.batch(&block).map_err(told))
    }
}

impl RecordBatchReader for BlockReader {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
