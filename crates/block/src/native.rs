//! Native blocks read back. Everything comes from outside: lengths are checked against the bytes that are there before
//! anything is allocated for them.

use std::fmt::{self, Display, Formatter};

use crate::block::Block;
use crate::column::Column;
use crate::types::{DataType, TypeError};
use crate::varint::{read_varint, varint_length};

/// What a block may have at most.
#[derive(Clone, Copy, Debug)]
pub struct NativeLimits {
    pub max_columns: usize,
    pub max_rows: usize,
    /// Of a column's name or of its type.
    pub max_name_bytes: usize,
}

impl Default for NativeLimits {
    fn default() -> Self {
        NativeLimits { max_columns: 10_000, max_rows: 100_000_000, max_name_bytes: 1 << 20 }
    }
}

/// A block with the names and types that its bytes carried.
#[derive(Clone, Debug, PartialEq)]
pub struct NativeBlock {
    pub names: Vec<String>,
    pub types: Vec<DataType>,
    pub block: Block,
    /// How many bytes it took; another block may follow.
    pub consumed_bytes: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub enum NativeError {
    /// The bytes end within the block.
    Truncated,
    /// More columns, rows or longer names than allowed.
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

/// Reads one block in the form of the HTTP interface, without BlockInfo.
pub fn decode_native(bytes: &[u8], limits: NativeLimits) -> Result<NativeBlock, NativeError> {
    let mut input = Input { bytes, at: 0 };
    let columns = input.count(limits.max_columns, "columns")?;
    let rows = input.count(limits.max_rows, "rows")?;
    if columns == 0 && rows > 0 {
        return Err(NativeError::Malformed("rows without columns"));
    }
    let mut decoded = NativeBlock { names: Vec::new(), types: Vec::new(), block: Block::default(), consumed_bytes: 0 };
    for _ in 0..columns {
        decoded.names.push(input.text(limits.max_name_bytes)?);
        let data_type = DataType::parse(&input.text(limits.max_name_bytes)?).map_err(NativeError::Type)?;
        if contains_low_cardinality(&data_type) {
            return Err(NativeError::Type(TypeError::Unsupported("LowCardinality in a Native block".to_string())));
        }
        decoded.block.columns.push(input.column(Column::empty(&data_type), rows)?);
        decoded.types.push(data_type);
    }
    decoded.block.rows = rows;
    decoded.consumed_bytes = input.at;
    Ok(decoded)
}

/// It has a dictionary of its own, which Windrow never writes.
fn contains_low_cardinality(data_type: &DataType) -> bool {
    match data_type {
        DataType::LowCardinality(_) => true,
        DataType::Nullable(inner) | DataType::Array(inner) => contains_low_cardinality(inner),
        DataType::Map(key, value) => contains_low_cardinality(key) || contains_low_cardinality(value),
        DataType::Tuple(tuple) => tuple.elements.iter().any(contains_low_cardinality),
        _ => false,
    }
}

struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Input<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], NativeError> {
        let taken = self.bytes[self.at..].get(..length).ok_or(NativeError::Truncated)?;
        self.at += length;
        Ok(taken)
    }

    fn varint(&mut self) -> Result<u64, NativeError> {
        let rest = &self.bytes[self.at..];
        let Some(value) = read_varint(rest) else {
            let is_short = rest.len() < 10 && rest.iter().all(|byte| byte & 0x80 != 0);
            return Err(if is_short {
                NativeError::Truncated
            } else {
                NativeError::Malformed("a length of over 64 bits")
            });
        };
        let length = varint_length(value);
        if rest[length - 1] & 0x80 != 0 {
            return Err(NativeError::Malformed("a length not in its shortest form"));
        }
        self.at += length;
        Ok(value)
    }

    fn count(&mut self, limit: usize, what: &'static str) -> Result<usize, NativeError> {
        let count = self.varint()?;
        usize::try_from(count).ok().filter(|count| *count <= limit).ok_or(NativeError::OverLimit(what))
    }

    fn text(&mut self, limit: usize) -> Result<String, NativeError> {
        let length = self.count(limit, "bytes in a name")?;
        let bytes = self.take(length)?;
        String::from_utf8(bytes.to_vec()).map_err(|_| NativeError::Malformed("a name that is not UTF-8"))
    }

    fn column(&mut self, empty: Column, rows: usize) -> Result<Column, NativeError> {
        Ok(match empty {
            Column::Fixed { width, .. } => {
                let length = rows.checked_mul(width).ok_or(NativeError::Truncated)?;
                Column::Fixed { width, data: self.take(length)?.to_vec() }
            }
            Column::Strings { .. } => self.strings(rows)?,
            Column::Nullable { inner, .. } => {
                let nulls = self.take(rows)?.to_vec();
                if nulls.iter().any(|is_null| *is_null > 1) {
                    return Err(NativeError::Malformed("a NULL mark that is neither 0 nor 1"));
                }
                Column::Nullable { nulls, inner: Box::new(self.column(*inner, rows)?) }
            }
            Column::Array { inner, .. } => {
                let offsets = self.offsets(rows)?;
                let inner_rows = offsets.last().copied().unwrap_or(0);
                let inner_rows = usize::try_from(inner_rows).map_err(|_| NativeError::Truncated)?;
                Column::Array { offsets, inner: Box::new(self.column(*inner, inner_rows)?) }
            }
            Column::Tuple { elements } => {
                let elements = elements.into_iter().map(|element| self.column(element, rows));
                Column::Tuple { elements: elements.collect::<Result<_, _>>()? }
            }
        })
    }

    fn strings(&mut self, rows: usize) -> Result<Column, NativeError> {
        let start = self.at;
        for _ in 0..rows {
            let length = usize::try_from(self.varint()?).map_err(|_| NativeError::Truncated)?;
            self.take(length)?;
        }
        Ok(Column::Strings { rows, data: self.bytes[start..self.at].to_vec() })
    }

    fn offsets(&mut self, rows: usize) -> Result<Vec<u64>, NativeError> {
        let bytes = self.take(rows.checked_mul(8).ok_or(NativeError::Truncated)?)?;
        let offsets: Vec<u64> = bytes
            .chunks_exact(8)
            .map(|chunk| u64::from_le_bytes(chunk.try_into().expect("chunks are of eight bytes")))
            .collect();
        if offsets.is_sorted() {
            Ok(offsets)
        } else {
            Err(NativeError::Malformed("array offsets that go back"))
        }
    }
}
