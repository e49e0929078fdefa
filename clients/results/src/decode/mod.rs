//! Reads the bytes of a result into blocks, as they come in.
//!
//! The server is asked for `client_protocol_version=54405`, by which a block begins with its info, a time has
//! its zone and a `LowCardinality` its dictionary, while nothing is sparse; and for
//! `output_format_native_use_flattened_dynamic_and_json_serialization=1`. Without the latter, Dynamic and
//! JSON are read as long as none of their values went without a column of its own.
//!
//! ```text
//! block:  info (field numbers, each with its value, to a 0), number of columns, number of rows, columns
//! column: name, type; if there are rows: prefixes, data
//! ```
//! A result of no rows has no bytes at all.
//!
//! Bytes may be cut anywhere. Each is copied once from the input into its column; only the beginning of a
//! number or a name is left over between two pushes, so the work is linear in the bytes and the depth of the
//! types. No more room is made than twice what came, or 16 MiB for a column, whatever is announced.

mod error;
mod input;
mod json;
mod low_cardinality;
mod offsets;
mod qbit;
mod reader;
mod strings;
mod variant;

pub use error::{ColumnName, DecodeError, Problem};

use std::sync::Arc;

use input::{Input, Progress};
use reader::Reader;

use crate::column::{Block, Column, Header};
use windrow_columns::DataType;

/// The largest number of rows: offsets and positions are of 32 bits.
const MAX_ROWS: u64 = i32::MAX as u64;
const MAX_COLUMNS: u64 = 1 << 20;
const MAX_NAME_BYTES: usize = 16 << 20;
/// Bytes that were read and are not cleared away before all bytes were read.
const KEPT_BYTES: usize = 64 << 10;

/// Reads a result block by block.
///
/// ```
/// use windrow_results::{BlockDecoder, Column};
///
/// let mut decoder = BlockDecoder::new();
/// decoder.push(b"\x01\x00\x02\xff\xff\xff\xff\x00\x01\x02\x01x\x05UInt8\x07");
/// assert_eq!(decoder.next(), Ok(None));
/// decoder.push(b"\x08");
/// let block = decoder.next().unwrap().unwrap();
/// assert_eq!(block.columns, [Column::Fixed { width: 1, data: vec![7, 8] }]);
/// assert_eq!(decoder.finish(), Ok(()));
/// ```
#[derive(Default)]
pub struct BlockDecoder {
    input: Vec<u8>,
    at: usize,
    header: Option<Known>,
    unfinished: Option<Unfinished>,
    failed: Option<DecodeError>,
}

/// The header of the blocks so far, with the types as they were spelled.
struct Known {
    header: Arc<Header>,
    type_names: Vec<String>,
}

/// A block whose head was read.
struct Unfinished {
    columns_announced: usize,
    rows: usize,
    /// The block's own header, filled only from the first column on that is not as in the block before.
    own: Option<Known>,
    columns: Vec<Column>,
    current: Option<Current>,
}

struct Current {
    reader: Reader,
    stage: Stage,
}

#[derive(Clone, Copy)]
enum Stage {
    Prefix,
    Data,
}

impl BlockDecoder {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.input().extend_from_slice(bytes);
    }

    /// Returns the buffer in which the bytes wait. Bytes that are appended to it count as pushed; the rest of
    /// it is not to be touched.
    pub fn input(&mut self) -> &mut Vec<u8> {
        if self.at == self.input.len() {
            self.input.clear();
            self.at = 0;
        } else if self.at > KEPT_BYTES.max(self.input.len() / 2) {
            self.input.drain(..self.at);
            self.at = 0;
        }
        &mut self.input
    }

    /// Returns the next block, or `None` if more bytes are needed.
    ///
    /// # Errors
    /// Fails where the bytes are damaged, too large, or of a type that is not read. An error stays.
    #[allow(clippy::should_implement_trait, reason = "not an iterator: None is not the end")]
    pub fn next(&mut self) -> Result<Option<Block>, DecodeError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let bytes = std::mem::take(&mut self.input);
        let mut input = Input { bytes: &bytes, at: self.at };
        let outcome = self.advance(&mut input);
        self.at = input.at;
        self.input = bytes;
        if let Err(error) = &outcome {
            self.failed = Some(error.clone());
        }
        outcome
    }

    /// Checks that a result may end here.
    ///
    /// # Errors
    /// Fails where the bytes end inside a block, or with the error that an earlier call failed with.
    pub fn finish(&self) -> Result<(), DecodeError> {
        match &self.failed {
            Some(error) => Err(error.clone()),
            None if self.unfinished.is_none() && self.at == self.input.len() => Ok(()),
            None => Err(DecodeError::of_block(Problem::Truncated)),
        }
    }

    /// Returns the header of the latest block. `None` before the first block is whole, and to the end if the
    /// result has no rows.
    pub fn header(&self) -> Option<&Arc<Header>> {
        self.header.as_ref().map(|known| &known.header)
    }

    fn advance(&mut self, input: &mut Input<'_>) -> Result<Option<Block>, DecodeError> {
        loop {
            let mut block = match self.unfinished.take() {
                Some(block) => block,
                None => match block_head(input).map_err(DecodeError::of_block)? {
                    Some(block) => block,
                    None => return Ok(None),
                },
            };
            if block.read(self.header.as_ref(), input)? == Progress::Waiting {
                self.unfinished = Some(block);
                return Ok(None);
            }
            if block.columns_announced > 0 {
                return Ok(Some(self.finished(block)));
            }
        }
    }

    fn finished(&mut self, block: Unfinished) -> Block {
        let header = match (block.own, self.header.take()) {
            (Some(own), _) => self.header.insert(own).header.clone(),
            (None, Some(known)) => self.header.insert(known).header.clone(),
            // Only a block without columns has no header of its own when there was none before.
            (None, None) => Arc::new(Header { names: Vec::new(), types: Vec::new() }),
        };
        Block { header, rows: block.rows, columns: block.columns }
    }
}

/// Reads the info of a block, and the numbers of its columns and rows. Takes nothing unless all of it is
/// there.
fn block_head(input: &mut Input<'_>) -> Result<Option<Unfinished>, Problem> {
    let start = input.at;
    let head = read_block_head(input)?;
    if head.is_none() {
        input.at = start;
    }
    Ok(head)
}

fn read_block_head(input: &mut Input<'_>) -> Result<Option<Unfinished>, Problem> {
    let mut seen = 0;
    loop {
        let Some(field) = input.varint()? else { return Ok(None) };
        let bytes = match field {
            0 => break,
            // Whether these are the rows over a limit of groups.
            1 => 1,
            // The bucket of two-level aggregation.
            2 => 4,
            _ => return Err(Problem::Malformed("a block with unknown info")),
        };
        seen += 1;
        if seen > 2 {
            return Err(Problem::Malformed("a block with more info than there is"));
        }
        if input.up_to(bytes).len() < bytes {
            return Ok(None);
        }
    }
    let Some(columns) = input.varint()? else { return Ok(None) };
    let Some(rows) = input.varint()? else { return Ok(None) };
    if columns > MAX_COLUMNS {
        return Err(Problem::TooLarge("the columns"));
    }
    if rows > MAX_ROWS {
        return Err(Problem::TooLarge("the rows"));
    }
    let (columns_announced, rows) = (columns as usize, rows as usize);
    Ok(Some(Unfinished { columns_announced, rows, own: None, columns: Vec::new(), current: None }))
}

impl Unfinished {
    fn read(&mut self, known: Option<&Known>, input: &mut Input<'_>) -> Result<Progress, DecodeError> {
        if self.own.is_none() && known.is_some_and(|known| known.header.names.len() != self.columns_announced) {
            self.own = Some(Known::beginning_of(None, 0));
        }
        while self.columns.len() < self.columns_announced {
            if self.current.is_none() {
                match self.begin_column(known, input)? {
                    Some(current) => self.current = Some(current),
                    None => return Ok(Progress::Waiting),
                }
            }
            let Some(current) = &mut self.current else { return Ok(Progress::Waiting) };
            match current.read(self.rows, input) {
                Ok(Progress::Done) => self.columns.push(current.reader.take()),
                Ok(Progress::Waiting) => return Ok(Progress::Waiting),
                Err(problem) => return Err(self.in_column(known, problem)),
            }
            self.current = None;
        }
        Ok(Progress::Done)
    }

    /// Reads name and type of the next column. Takes nothing unless both are there.
    fn begin_column(&mut self, known: Option<&Known>, input: &mut Input<'_>) -> Result<Option<Current>, DecodeError> {
        let start = input.at;
        let name = input.text(MAX_NAME_BYTES).map_err(DecodeError::of_block)?;
        let type_name = match name {
            Some(_) => input.text(MAX_NAME_BYTES).map_err(DecodeError::of_block)?,
            None => None,
        };
        let (Some(name), Some(type_name)) = (name, type_name) else {
            input.at = start;
            return Ok(None);
        };
        let of_column = |problem| DecodeError {
            column: Some(ColumnName { name: name.to_string(), type_name: type_name.to_string() }),
            problem,
        };
        let index = self.columns.len();
        let as_before = self.own.is_none() && known.is_some_and(|known| known.has(index, name, type_name));
        if !as_before {
            let column_type = DataType::parse_result(type_name).map_err(Problem::Type).map_err(of_column)?;
            self.own.get_or_insert_with(|| Known::beginning_of(known, index)).push(name, type_name, column_type);
        }
        let reader = match self.own.as_ref().or(known) {
            Some(known) => Reader::new(&known.header.types[index], 0).map_err(of_column)?,
            None => return Ok(None),
        };
        Ok(Some(Current { reader, stage: Stage::Prefix }))
    }

    fn in_column(&self, known: Option<&Known>, problem: Problem) -> DecodeError {
        let index = self.columns.len();
        let column = self.own.as_ref().or(known).map(|known| ColumnName {
            name: known.header.names[index].clone(),
            type_name: known.type_names[index].clone(),
        });
        DecodeError { column, problem }
    }
}

impl Known {
    /// Returns a header with the first `columns` columns of the one that is known.
    fn beginning_of(known: Option<&Known>, columns: usize) -> Known {
        let (mut names, mut types, mut type_names) = (Vec::new(), Vec::new(), Vec::new());
        if let Some(known) = known {
            names.extend_from_slice(&known.header.names[..columns]);
            types.extend_from_slice(&known.header.types[..columns]);
            type_names.extend_from_slice(&known.type_names[..columns]);
        }
        Known { header: Arc::new(Header { names, types }), type_names }
    }

    fn push(&mut self, name: &str, type_name: &str, column_type: DataType) {
        // Nobody else has it before its block is whole, so nothing is copied.
        let header = Arc::make_mut(&mut self.header);
        header.names.push(name.to_string());
        header.types.push(column_type);
        self.type_names.push(type_name.to_string());
    }

    fn has(&self, index: usize, name: &str, type_name: &str) -> bool {
        self.header.names.get(index).is_some_and(|known| known == name) && self.type_names[index] == type_name
    }
}

impl Current {
    fn read(&mut self, rows: usize, input: &mut Input<'_>) -> Result<Progress, Problem> {
        if rows == 0 {
            self.reader.begin(0);
            return Ok(Progress::Done);
        }
        if let Stage::Prefix = self.stage {
            input::done_or_wait!(self.reader.prefix(input));
            self.reader.begin(rows);
            self.stage = Stage::Data;
        }
        self.reader.read(input)
    }
}
