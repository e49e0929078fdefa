//! Blocks as a stream of arrays, each made when it is asked for.

use std::sync::Arc;

use super::schema::ArrowField;
use super::{ArrowArray, ArrowArrayStream, ArrowError, ArrowOptions};
use crate::column::{Block, Header};

impl ArrowArrayStream {
    /// Makes a stream of struct arrays. All blocks have to have the header's columns: the stream itself fails
    /// at another one.
    ///
    /// # Errors
    /// Fails where a column's type can't become Arrow.
    pub fn of_blocks(
        header: &Arc<Header>,
        blocks: Vec<Arc<Block>>,
        options: ArrowOptions,
    ) -> Result<ArrowArrayStream, ArrowError> {
        let schema = ArrowField::of_header(header, &options)?;
        let header = header.clone();
        let arrays = blocks.into_iter().map(move |block| {
            if !Arc::ptr_eq(&block.header, &header) && block.header.types != header.types {
                return Err(ArrowError::OtherColumns);
            }
            ArrowArray::of_block(&block, &options)
        });
        Ok(ArrowArrayStream::new(schema, Box::new(arrays)))
    }
}
