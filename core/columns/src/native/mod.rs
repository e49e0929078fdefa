//! Reads Native blocks. All bytes come from outside: lengths are checked against the bytes that are there
//! before anything is allocated for them, and the memory that dictionaries unfold to is bounded.

mod dictionary;
mod input;
mod streams;

use std::fmt::{self, Display, Formatter};

use crate::block::Block;
use crate::column::Column;
use crate::types::{DataType, TypeError};
pub(crate) use input::Input;
pub(crate) use streams::read_column;

/// The limits of a block.
#[derive(Clone, Copy, Debug)]
pub struct NativeLimits {
    pub max_columns: usize,
    pub max_rows: usize,
    /// Bytes of a column's name, or of its type.
    pub max_name_bytes: usize,
    /// Bytes that the values of LowCardinality columns may take once each row has its own copy: a few bytes
    /// can stand for any number of copies of a long string.
    pub max_unfolded_bytes: usize,
}

impl Default for NativeLimits {
    fn default() -> Self {
        NativeLimits {
            max_columns: 10_000,
            max_rows: 100_000_000,
            max_name_bytes: 1 << 20,
            max_unfolded_bytes: 64 << 20,
        }
    }
}

/// A block with the names and types that its bytes carried. LowCardinality columns have lost their dictionaries: the
/// values are those of the type inside.
#[derive(Clone, Debug, PartialEq)]
pub struct NativeBlock {
    pub names: Vec<String>,
    pub types: Vec<DataType>,
    pub block: Block,
    /// The number of bytes that the block took; another block may follow.
    pub consumed_bytes: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub enum NativeError {
    /// The bytes end within the block.
    Truncated,
    /// The block has more columns, more rows or longer names than allowed.
    OverLimit(&'static str),
    /// The bytes are no Native block.
    Malformed(&'static str),
    Type(TypeError),
}

impl Display for NativeError {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            NativeError::Truncated => write!(out, "the Native block is cut off; send it whole"),
            NativeError::OverLimit(what) => write!(out, "the Native block has too many {what}; send smaller blocks"),
            NativeError::Malformed(what) => write!(out, "not a Native block: {what}"),
            NativeError::Type(error) => write!(out, "Native block: {error}"),
        }
    }
}

impl std::error::Error for NativeError {}

/// Returns the number of rows of the first block, whatever its columns are. `None` where there is no block.
pub fn block_rows(bytes: &[u8]) -> Option<usize> {
    let mut input = Input::new(bytes, NativeLimits::default());
    input.columns().ok().filter(|columns| *columns > 0)?;
    input.rows().ok()
}

/// Reads one block in the form of the HTTP interface, without BlockInfo.
///
/// # Errors
/// Fails where the bytes end too early or are no Native block, a limit is exceeded, or a type is not known.
pub fn decode_native(bytes: &[u8], limits: NativeLimits) -> Result<NativeBlock, NativeError> {
    let mut input = Input::new(bytes, limits);
    let columns = input.columns()?;
    let rows = input.rows()?;
    if columns == 0 && rows > 0 {
        return Err(NativeError::Malformed("rows without columns"));
    }
    let mut decoded = NativeBlock { names: Vec::new(), types: Vec::new(), block: Block::default(), consumed_bytes: 0 };
    for _ in 0..columns {
        decoded.names.push(input.text()?.to_string());
        let data_type = DataType::parse(input.text()?).map_err(NativeError::Type)?;
        let mut column = Column::empty(&data_type);
        read_column(&mut input, &data_type, rows, &mut column)?;
        decoded.block.columns.push(column);
        decoded.types.push(data_type);
    }
    decoded.block.rows = rows;
    decoded.consumed_bytes = input.consumed_bytes();
    Ok(decoded)
}

/// Reads all that [`Block::write_columns`] has written. Values of LowCardinality types have no dictionary, as
/// in every block: [`DataType::native_name`] is the type to give.
///
/// # Errors
/// Fails where the bytes end too early or too late, don't fit the types, or exceed a limit.
pub fn decode_columns(bytes: &[u8], types: &[DataType], limits: NativeLimits) -> Result<Block, NativeError> {
    let mut input = Input::new(bytes, limits);
    let rows = input.rows()?;
    let mut block = Block { rows, columns: Vec::with_capacity(types.len()) };
    for data_type in types {
        let mut column = Column::empty(data_type);
        read_column(&mut input, data_type, rows, &mut column)?;
        block.columns.push(column);
    }
    match input.at_end() {
        true => Ok(block),
        false => Err(NativeError::Malformed("more bytes than its columns have")),
    }
}
