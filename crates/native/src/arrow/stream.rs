//! Blocks as a stream of arrays, each made when it is asked for.

use std::sync::Arc;

use super::{ArrowArray, ArrowArrayStream, ArrowError, ArrowField, ArrowOptions};
use crate::column::{Block, Header};

/// A stream of struct arrays. All blocks have to have the header's columns.
pub fn stream_of(
    header: &Header,
    blocks: Vec<Arc<Block>>,
    options: ArrowOptions,
) -> Result<ArrowArrayStream, ArrowError> {
    let fields = header.names.iter().zip(&header.types).map(|(name, of)| ArrowField::of(name, of, &options));
    let schema = ArrowField::of_struct(fields.collect::<Result<_, _>>()?);
    let types = header.types.clone();
    let arrays = blocks.into_iter().map(move |block| {
        if block.header.types != types {
            return Err(ArrowError { code: 8, message: "a block of other columns than the stream's".to_string() });
        }
        ArrowArray::of_block(&block, &options)
    });
    Ok(ArrowArrayStream::new(schema, Box::new(arrays)))
}
