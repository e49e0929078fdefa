//! Blocks as a client sends them, taken apart as they come in.
//!
//! The result is a block as HTTP's `FORMAT Native` has it, without BlockInfo, marks of serialisation and
//! sparse columns: readers of inserts expect that form. The bytes of values are the same in both, so they are
//! copied, not parsed. Only their end has to be found, and for that every type has to be known. A block may
//! come in pieces of any size, and no piece is looked at twice: a stack of steps holds the parts that are
//! still to come.

mod open;
mod shape;
mod state;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;

use windrow_columns::wire::{write_varint, NULL_DISCRIMINATOR};

use crate::native::input::{Fault, Input};
use crate::native::revision;
use open::Opened;
use shape::Shape;
use state::State;

const MAX_COLUMNS: usize = 100_000;
const MAX_ROWS: u64 = 1_000_000_000_000;
const MAX_NAME_BYTES: usize = 1 << 20;
/// A flag in the last number of a sparse column's positions: the rest of the number counts the default values
/// at the end.
const SPARSE_END: u64 = 1 << 62;
/// Stands in place of a revision for a payload in the format Native.
const OF_PAYLOAD: u64 = 0;

/// A part of a block that is still to come. The last step of the stack is done first.
#[derive(Debug)]
enum Step {
    Info,
    Counts,
    Column,
    /// A number with the only value that it may have.
    Word(u64),
    /// Bytes to be copied unread; their count.
    Copy(u64),
    /// Values of this shape; their count.
    Values(Arc<Shape>, u64),
    /// Strings; their count.
    Strings(u64),
    /// End offsets, and then the values up to the last offset; the count of offsets.
    Offsets(Arc<Shape>, u64),
    /// A dictionary, its keys and the position of each row; the count of rows.
    Dictionary(Arc<Shape>, u64),
    /// The count of positions, which has to be that of the rows, and the positions, each of so many bytes.
    Positions {
        bytes: u64,
        rows: u64,
    },
    /// The discriminator of each row, and then the values of each type.
    Discriminators(Vec<Arc<Shape>>, u64),
    /// The head that stands before the values of a JSON with these declared paths.
    JsonHead(Arc<[Arc<Shape>]>),
    /// The heads of several Dynamics, one after the other; their count.
    DynamicHeads(u64),
    /// The names of a Dynamic's types that are left, and then the heads of these types.
    TypeNames {
        left: u64,
        is_flat: bool,
        types: Vec<(Box<str>, Arc<Shape>)>,
    },
    /// The values of several Dynamics, one after the other; the count of Dynamics and of rows.
    Dynamics(u64, u64),
    /// The index of each row's type in a flat Dynamic, and then the values of each type.
    Indexes(Vec<Arc<Shape>>, u64),
    /// States of an aggregate function; their count.
    States(Arc<State>, u64),
    State(Arc<State>),
    Sparse {
        shape: Arc<Shape>,
        rows: u64,
        seen: u64,
        positions: Vec<u64>,
    },
    /// Moves the values after `start` to the rows at `positions` of a sparse column.
    Spread {
        shape: Arc<Shape>,
        rows: u64,
        positions: Vec<u64>,
        start: usize,
    },
}

/// The size of a block that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockEnd {
    pub columns: usize,
    pub rows: u64,
}

impl BlockEnd {
    /// Says whether the block has neither columns nor rows: no block comes after it.
    pub fn is_last(self) -> bool {
        self.columns == 0 && self.rows == 0
    }
}

/// The least bytes of a row with so many columns. With it, a block that is too large is refused at its head;
/// a block with another number of columns is not.
#[derive(Debug, Clone, Copy, Default)]
pub struct RowShape {
    pub columns: usize,
    pub bytes: usize,
}

/// Takes blocks apart, one after the other.
pub struct BlockReader {
    revision: u64,
    max_bytes: usize,
    expected: RowShape,
    /// Says whether the plain form of blocks is needed. If not, only the ends of blocks are looked for.
    keeps: bool,
    steps: Vec<Step>,
    columns: usize,
    columns_left: usize,
    rows: u64,
    /// The columns of this block and of earlier ones: the next block has the same.
    seen: Vec<KnownColumn>,
    /// The heads of the present column whose values have not begun yet.
    opened: VecDeque<Opened>,
    /// Bytes of the names of types in the present column.
    named_bytes: usize,
}

struct KnownColumn {
    name: Box<[u8]>,
    type_text: Box<str>,
    shape: Arc<Shape>,
}

impl BlockReader {
    /// Makes a reader for a connection of this revision. No sparse column is unfolded past `max_bytes`.
    pub fn new(revision: u64, max_bytes: usize) -> BlockReader {
        BlockReader {
            revision,
            max_bytes,
            expected: RowShape::default(),
            keeps: true,
            steps: Vec::new(),
            columns: 0,
            columns_left: 0,
            rows: 0,
            seen: Vec::new(),
            opened: VecDeque::new(),
            named_bytes: 0,
        }
    }

    /// Makes a reader for a payload in the format Native, which has none of a connection's additions.
    pub fn of_payload(max_bytes: usize) -> BlockReader {
        BlockReader::new(OF_PAYLOAD, max_bytes)
    }

    /// Sets the shape that rows of the blocks are likely to have.
    pub fn expecting(self, expected: RowShape) -> BlockReader {
        BlockReader { expected, ..self }
    }

    /// Makes the reader look for the ends of blocks only. The caller may clear `out` at any time.
    pub fn discarding(self) -> BlockReader {
        BlockReader { keeps: false, ..self }
    }

    pub fn begin(&mut self) {
        self.steps.clear();
        self.steps.push(Step::Counts);
        if self.revision != OF_PAYLOAD {
            self.steps.push(Step::Info);
        }
    }

    /// Names and types of the columns of a block of rows that has ended.
    pub fn columns(&self) -> impl Iterator<Item = (&[u8], &str)> {
        self.seen.iter().take(self.columns).map(|seen| (&*seen.name, &*seen.type_text))
    }

    /// Reads on. Returns how many of `bytes` were taken, and the size of the block if it has ended. Taken
    /// bytes of a block of rows are appended to `out`. Bytes that were not taken have to come again, with
    /// more after them.
    ///
    /// # Errors
    /// Fails where the bytes are no block, the block is too large, or it has a type or a form that can't be
    /// read here.
    pub fn read(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(usize, Option<BlockEnd>), Fault> {
        let mut taken = 0;
        while let Some(step) = self.steps.pop() {
            let mut input = Input::new(&bytes[taken..]);
            let whole = self.step(step, &mut input, out)?;
            taken += input.at();
            if !whole {
                return Ok((taken, None));
            }
        }
        Ok((taken, Some(BlockEnd { columns: self.columns, rows: self.rows })))
    }

    /// Runs one step. Returns false if the step needs more bytes; what is left of it was put back on the stack.
    fn step(&mut self, step: Step, input: &mut Input<'_>, out: &mut Vec<u8>) -> Result<bool, Fault> {
        match step {
            Step::Copy(left) => {
                let there = input.rest(usize::try_from(left).unwrap_or(usize::MAX));
                out.extend_from_slice(there);
                return Ok(self.put_back_if(left - there.len() as u64, Step::Copy));
            }
            Step::Strings(left) => {
                let left = self.strings(left, input, out)?;
                return Ok(self.put_back_if(left, Step::Strings));
            }
            Step::Values(shape, rows) => self.values(&shape, rows)?,
            Step::Dynamics(dynamics, rows) => self.dynamic_values(dynamics, rows)?,
            Step::States(_, 0) => {}
            Step::States(state, left) => {
                self.steps.push(Step::States(state.clone(), left - 1));
                self.steps.push(Step::State(state));
            }
            Step::Spread { shape, rows, positions, start } => spread(&shape, rows, &positions, start, out)?,
            step => return self.small_step(step, input, out),
        }
        Ok(true)
    }

    /// Puts the rest of a step back on the stack, and says whether the step is done. A step that the last one
    /// has put on top comes first; the present step is not done all the same.
    fn put_back_if(&mut self, left: u64, step: impl FnOnce(u64) -> Step) -> bool {
        if left == 0 {
            return true;
        }
        self.steps.push(step(left));
        false
    }

    /// Runs a step that needs all of its bytes at once. It is put back on the stack when they are not all there.
    fn small_step(&mut self, mut step: Step, input: &mut Input<'_>, out: &mut Vec<u8>) -> Result<bool, Fault> {
        let start = input.clone();
        match self.whole_step(&mut step, input, out) {
            Err(Fault::Incomplete { .. }) => {
                // A sparse column keeps what it has read.
                if !matches!(step, Step::Sparse { .. }) {
                    *input = start;
                }
                self.steps.push(step);
                Ok(false)
            }
            result => result.map(|()| true),
        }
    }

    fn whole_step(&mut self, step: &mut Step, input: &mut Input<'_>, out: &mut Vec<u8>) -> Result<(), Fault> {
        match step {
            Step::Info => self.info(input)?,
            Step::Counts => {
                let columns = input.count(MAX_COLUMNS, "the number of columns")?;
                let rows = input.varint()?;
                if rows > MAX_ROWS {
                    return Err(Fault::TooLarge("the number of rows"));
                }
                if columns == 0 && rows > 0 {
                    // ClickHouse takes it for so many rows of defaults.
                    return Err(Fault::Unsupported("a block of rows without columns"));
                }
                // A row takes a byte at least; what takes less is bounded all the same.
                let expected = if columns == self.expected.columns { self.expected.bytes.max(1) } else { 1 };
                if bytes_of(rows, expected)? > self.max_bytes {
                    return Err(Fault::TooLarge("an insert"));
                }
                (self.columns, self.columns_left, self.rows) = (columns, columns, rows);
                if columns > 0 {
                    write_varint(out, columns as u64);
                    write_varint(out, rows);
                    self.steps.push(Step::Column);
                }
            }
            Step::Column => self.column(input, out)?,
            Step::Word(expected) => {
                if input.u64()? != *expected {
                    return Err(Fault::Unsupported("a form of LowCardinality or Variant that is only used on disk"));
                }
                out.extend_from_slice(&expected.to_le_bytes());
            }
            Step::Offsets(shape, rows) => {
                let bytes = input.take(bytes_of(*rows, 8)?)?;
                let mut values = 0;
                for offset in bytes.chunks_exact(8) {
                    let offset = u64::from_le_bytes(offset.try_into().expect("chunks are of eight bytes"));
                    if offset < values {
                        return Err(Fault::Unsupported("an Array that ends before it begins"));
                    }
                    values = offset;
                }
                out.extend_from_slice(bytes);
                self.steps.push(Step::Values(shape.clone(), values));
            }
            Step::Dictionary(keys, rows) => {
                let (flags, size) = (input.u64()?, input.u64()?);
                let width = windrow_columns::wire::position_bytes(flags);
                let width = width.ok_or(Fault::Unsupported("a dictionary that is shared between blocks"))?;
                out.extend_from_slice(&flags.to_le_bytes());
                out.extend_from_slice(&size.to_le_bytes());
                self.steps.push(Step::Positions { bytes: width as u64, rows: *rows });
                self.steps.push(Step::Values(keys.clone(), size));
            }
            Step::Positions { bytes, rows } => {
                if input.u64()? != *rows {
                    // It may come in several runs; nobody is known to send it so.
                    return Err(Fault::Unsupported("a dictionary whose values come in several runs"));
                }
                out.extend_from_slice(&rows.to_le_bytes());
                self.steps.push(Step::Copy(bytes_of(*rows, *bytes as usize)? as u64));
            }
            Step::Discriminators(types, rows) => {
                let marks = input.take(bytes_of(*rows, 1)?)?;
                let mut counts = vec![0; types.len()];
                for mark in marks.iter().filter(|mark| **mark != NULL_DISCRIMINATOR) {
                    *counts.get_mut(usize::from(*mark)).ok_or(Fault::Malformed("a Variant of no type"))? += 1;
                }
                out.extend_from_slice(marks);
                // Also of those that no row has: something may stand in front of their values.
                let values = types.iter().zip(counts).rev();
                self.steps.extend(values.map(|(shape, count)| Step::Values(shape.clone(), count)));
            }
            Step::JsonHead(declared) => self.json_head(declared, input, out)?,
            Step::DynamicHeads(heads) => self.dynamic_head(*heads, input, out)?,
            Step::TypeNames { left, is_flat, types } => self.type_name(*left, *is_flat, types, input, out)?,
            Step::Indexes(types, rows) => self.indexes(types, *rows, input, out)?,
            Step::Sparse { shape, rows, seen, positions } => {
                let max_positions = self.max_bytes / size_of::<u64>();
                loop {
                    // What has been read of a number is not taken before its end is there.
                    let mut next = input.clone();
                    let more = next.varint()?;
                    *input = next;
                    let gap = more & (SPARSE_END - 1);
                    *seen = seen.checked_add(gap).filter(|seen| *seen <= *rows).ok_or(Fault::Malformed(NOT_SPARSE))?;
                    if more & SPARSE_END != 0 {
                        break;
                    }
                    if positions.len() >= max_positions {
                        return Err(Fault::TooLarge("a sparse column"));
                    }
                    positions.push(*seen);
                    *seen += 1;
                }
                if *seen != *rows {
                    return Err(Fault::Malformed(NOT_SPARSE));
                }
                self.unfold(shape, *rows, std::mem::take(positions), out.len())?;
            }
            Step::State(state) => self.state(state, input, out)?,
            Step::Copy(_) | Step::Strings(_) | Step::Spread { .. } => unreachable!("no small steps"),
            Step::Values(..) | Step::Dynamics(..) | Step::States(..) => unreachable!("no small steps"),
        }
        Ok(())
    }

    fn info(&mut self, input: &mut Input<'_>) -> Result<(), Fault> {
        loop {
            match input.varint()? {
                0 => return Ok(()),
                1 => drop(input.byte()?),
                2 => drop(input.i32()?),
                3 => {
                    for _ in 0..input.count(MAX_COLUMNS, "the list of buckets")? {
                        input.i32()?;
                    }
                }
                _ => return Err(Fault::Malformed("a field that no BlockInfo has")),
            }
        }
    }

    fn column(&mut self, input: &mut Input<'_>, out: &mut Vec<u8>) -> Result<(), Fault> {
        let header = input.clone();
        let name = input.bytes(MAX_NAME_BYTES, "the name of a column")?;
        let type_text = input.text(MAX_NAME_BYTES, "the type of a column")?;
        let header_bytes = header.between(input);
        let has_custom = self.revision >= revision::CUSTOM_SERIALIZATION && input.bool()?;
        let at = self.columns - self.columns_left;
        // Of a column without values, any type will do.
        let shape = if self.rows > 0 || has_custom { Some(self.shape(at, name, type_text)?) } else { None };
        let is_sparse = match &shape {
            Some(shape) if has_custom => read_kinds(shape, input)?,
            _ => false,
        };
        out.extend_from_slice(header_bytes);
        self.columns_left -= 1;
        if self.columns_left > 0 {
            self.steps.push(Step::Column);
        }
        let Some(shape) = shape.filter(|_| self.rows > 0) else { return Ok(()) };
        self.opened.clear();
        self.named_bytes = 0;
        if is_sparse {
            let (rows, positions) = (self.rows, Vec::new());
            self.steps.push(Step::Sparse { shape, rows, seen: 0, positions });
        } else {
            let values = Step::Values(shape.clone(), self.rows);
            self.steps.push(values);
            shape.prefix(&mut self.steps);
        }
        Ok(())
    }

    fn shape(&mut self, column: usize, name: &[u8], type_text: &str) -> Result<Arc<Shape>, Fault> {
        if let Some(seen) = self.seen.get_mut(column).filter(|seen| *seen.type_text == *type_text) {
            if *seen.name != *name {
                seen.name = name.into();
            }
            return Ok(seen.shape.clone());
        }
        let (_, shape) = Shape::named(type_text)?;
        self.seen.truncate(column);
        if self.seen.len() == column {
            self.seen.push(KnownColumn { name: name.into(), type_text: type_text.into(), shape: shape.clone() });
        }
        Ok(shape)
    }

    fn values(&mut self, shape: &Arc<Shape>, rows: u64) -> Result<(), Fault> {
        match &**shape {
            Shape::Fixed(width) => self.steps.push(Step::Copy(bytes_of(rows, *width)? as u64)),
            Shape::String => self.steps.push(Step::Strings(rows)),
            Shape::Nullable(inner) => {
                self.steps.push(Step::Values(inner.clone(), rows));
                self.steps.push(Step::Copy(rows));
            }
            Shape::Array(inner) => self.steps.push(Step::Offsets(inner.clone(), rows)),
            Shape::Tuple(elements) => {
                self.steps.extend(elements.iter().rev().map(|element| Step::Values(element.clone(), rows)));
            }
            Shape::LowCardinality(keys) => {
                // A dictionary of an Array without elements is not there at all.
                if rows > 0 {
                    self.steps.push(Step::Dictionary(keys.clone(), rows));
                }
            }
            Shape::Variant(types) => self.steps.push(Step::Discriminators(types.clone(), rows)),
            Shape::Dynamic => self.dynamic_values(1, rows)?,
            Shape::Json(declared) => self.json_values(declared, rows)?,
            Shape::States(state) => self.steps.push(Step::States(state.clone(), rows)),
        }
        Ok(())
    }

    /// Copies whole strings and returns how many are left. If a string is there in part, its rest is to be
    /// copied before the others.
    fn strings(&mut self, mut left: u64, input: &mut Input<'_>, out: &mut Vec<u8>) -> Result<u64, Fault> {
        let start = input.clone();
        let mut whole = input.clone();
        while left > 0 {
            let mut next = whole.clone();
            let length = match next.varint() {
                Ok(length) => usize::try_from(length).map_err(|_| Fault::TooLarge("a string"))?,
                Err(Fault::Incomplete { .. }) => break,
                Err(fault) => return Err(fault),
            };
            left -= 1;
            if next.take(length).is_ok() {
                whole = next;
                continue;
            }
            // The rest of it comes later; so do those behind it.
            let there = next.rest(length).len();
            out.extend_from_slice(start.between(&next));
            *input = next;
            if left > 0 {
                self.steps.push(Step::Strings(left));
            }
            return Ok(self.rest_of_string((length - there) as u64));
        }
        out.extend_from_slice(start.between(&whole));
        *input = whole;
        Ok(left)
    }

    /// Puts the rest of a string before everything that is still to come, and returns zero: the present step
    /// has nothing left.
    fn rest_of_string(&mut self, bytes: u64) -> u64 {
        self.steps.push(Step::Copy(bytes));
        0
    }

    /// Puts the values of a sparse column on the stack, and their move to the right rows after them.
    fn unfold(&mut self, shape: &Arc<Shape>, rows: u64, positions: Vec<u64>, start: usize) -> Result<(), Fault> {
        let values = positions.len() as u64;
        let (inner, is_nullable) = match &**shape {
            Shape::Nullable(inner) if self.revision >= revision::NULLABLE_SPARSE_SERIALIZATION => (inner, true),
            _ => (shape, false),
        };
        let width = match &**inner {
            Shape::Fixed(width) => *width,
            Shape::String => 1,
            _ => return Err(Fault::Unsupported("a sparse column of this type")),
        };
        if bytes_of(rows, width + usize::from(is_nullable))? > self.max_bytes {
            return Err(Fault::TooLarge("a sparse column"));
        }
        let inner = inner.clone();
        if self.keeps {
            self.steps.push(Step::Spread { shape: shape.clone(), rows, positions, start });
        }
        self.steps.push(Step::Values(inner, values));
        Ok(())
    }
}

const NOT_SPARSE: &str = "a sparse column whose rows are not those of its block";

fn bytes_of(values: u64, width: usize) -> Result<usize, Fault> {
    let values = usize::try_from(values).ok();
    let bytes = values.and_then(|values| values.checked_mul(width)).filter(|bytes| isize::try_from(*bytes).is_ok());
    bytes.ok_or(Fault::TooLarge("a column"))
}

/// Says whether the column is sparse. Servers use all other kinds only among themselves.
fn read_kinds(shape: &Shape, input: &mut Input<'_>) -> Result<bool, Fault> {
    let kinds = input.take(shape.kinds())?;
    match kinds {
        [1] => Ok(true),
        kinds if kinds.iter().all(|kind| *kind == 0) => Ok(false),
        _ => Err(Fault::Unsupported("a serialisation that is neither plain nor sparse")),
    }
}

/// Puts the values after `start` into their rows, and defaults between them.
fn spread(shape: &Shape, rows: u64, positions: &[u64], start: usize, out: &mut Vec<u8>) -> Result<(), Fault> {
    let values = out.split_off(start);
    let rows = bytes_of(rows, 1)?;
    let inner = match shape {
        Shape::Nullable(inner) => {
            let nulls = out.len();
            out.resize(nulls + rows, 1);
            positions.iter().for_each(|position| out[nulls + *position as usize] = 0);
            inner
        }
        inner => inner,
    };
    match inner {
        Shape::Fixed(width) => {
            let begin = out.len();
            out.resize(begin + rows * width, 0);
            for (position, value) in positions.iter().zip(values.chunks_exact((*width).max(1))) {
                let at = begin + *position as usize * width;
                out[at..at + width].copy_from_slice(value);
            }
        }
        _ => {
            let (mut input, mut next) = (Input::new(&values), 0);
            for position in positions {
                let position = *position as usize;
                out.resize(out.len() + position - next, 0);
                let value = input.clone();
                let length = input.varint()?;
                input.take(length as usize)?;
                out.extend_from_slice(value.between(&input));
                next = position + 1;
            }
            out.resize(out.len() + rows - next, 0);
        }
    }
    Ok(())
}
