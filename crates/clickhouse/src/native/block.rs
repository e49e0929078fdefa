//! Blocks as a client sends them, taken apart as they come in.
//!
//! What comes out is a block as HTTP's `FORMAT Native` has it, without BlockInfo, marks of serialisation and sparse columns:
//! that is what readers of inserts read. The bytes of values are the same in both, so they are copied, not parsed; only
//! where they end has to be found, and for that every type has to be known. A block may come in pieces of any size, and no
//! piece is looked at twice: what is still to come stands as a stack of steps.

use std::sync::Arc;

use windrow_columns::wire::{write_varint, DICTIONARY_VERSION, NULL_DISCRIMINATOR, PLAIN_DISCRIMINATORS};
use windrow_columns::DataType;

use crate::native::input::{Fault, Input};
use crate::native::revision;

const MAX_COLUMNS: usize = 100_000;
const MAX_ROWS: u64 = 1_000_000_000_000;
const MAX_NAME_BYTES: usize = 1 << 20;
/// Of a sparse column: so many values follow that are the type's default, and that was all.
const SPARSE_END: u64 = 1 << 62;

/// How the values of a type lie one after the other.
#[derive(Debug)]
enum Shape {
    Fixed(usize),
    String,
    Nullable(Arc<Shape>),
    Array(Arc<Shape>),
    Tuple(Vec<Arc<Shape>>),
    /// Of its keys.
    LowCardinality(Arc<Shape>),
    Variant(Vec<Arc<Shape>>),
}

impl Shape {
    fn of(data_type: &DataType) -> Result<Arc<Shape>, Fault> {
        let shape = match data_type {
            DataType::String => Shape::String,
            DataType::Nullable(inner) => Shape::Nullable(Shape::of(inner)?),
            DataType::Array(inner) => Shape::Array(Shape::of(inner)?),
            DataType::Map(key, value) => Shape::Array(Arc::new(Shape::Tuple(vec![Shape::of(key)?, Shape::of(value)?]))),
            // One of no elements has a byte in each row.
            DataType::Tuple(tuple) if tuple.elements.is_empty() => Shape::Fixed(1),
            DataType::Tuple(tuple) => Shape::Tuple(tuple.elements.iter().map(Shape::of).collect::<Result<_, _>>()?),
            DataType::LowCardinality(inner) => match &**inner {
                DataType::Nullable(inner) => Shape::LowCardinality(Shape::of(inner)?),
                inner => Shape::LowCardinality(Shape::of(inner)?),
            },
            DataType::Variant(types) => Shape::Variant(types.iter().map(Shape::of).collect::<Result<_, _>>()?),
            DataType::Custom(custom) => return Shape::of(&custom.inner),
            other => match other.fixed_width() {
                Some(width) => Shape::Fixed(width),
                None => return Err(Fault::Unsupported("a type whose values Windrow can't find the end of")),
            },
        };
        Ok(Arc::new(shape))
    }

    /// What stands in front of a column for these, in this order.
    fn prefix(&self, steps: &mut Vec<Step>) {
        match self {
            Shape::Fixed(_) | Shape::String => {}
            Shape::Nullable(inner) | Shape::Array(inner) => inner.prefix(steps),
            Shape::Tuple(elements) => elements.iter().rev().for_each(|element| element.prefix(steps)),
            Shape::LowCardinality(_) => steps.push(Step::Word(DICTIONARY_VERSION)),
            Shape::Variant(types) => {
                types.iter().rev().for_each(|inner| inner.prefix(steps));
                steps.push(Step::Word(PLAIN_DISCRIMINATORS));
            }
        }
    }

    /// How many kinds of serialisation stand behind the mark of a column.
    fn kinds(&self) -> usize {
        match self {
            Shape::Tuple(elements) => 1 + elements.iter().map(|element| element.kinds()).sum::<usize>(),
            _ => 1,
        }
    }
}

/// What is still to come of a block; the last of the steps comes first.
#[derive(Debug)]
enum Step {
    Info,
    Counts,
    Column,
    /// A number that can only be this.
    Word(u64),
    /// So many bytes, whatever they are.
    Copy(u64),
    /// So many values of this shape.
    Values(Arc<Shape>, u64),
    /// So many strings.
    Strings(u64),
    /// So many end offsets, and then values up to the last.
    Offsets(Arc<Shape>, u64),
    /// A dictionary, its keys and so many positions.
    Dictionary(Arc<Shape>),
    /// How many positions there are, and they.
    Positions {
        bytes: u64,
    },
    /// A row's type each, and then the values of each type.
    Discriminators(Vec<Arc<Shape>>, u64),
    Sparse {
        shape: Arc<Shape>,
        rows: u64,
        seen: u64,
        positions: Vec<u64>,
    },
    /// The values behind `start` are those of the sparse rows at `positions`.
    Spread {
        shape: Arc<Shape>,
        rows: u64,
        positions: Vec<u64>,
        start: usize,
    },
}

/// What a block was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockEnd {
    pub columns: usize,
    pub rows: u64,
}

impl BlockEnd {
    /// It has neither columns nor rows: nothing more comes.
    pub fn is_last(self) -> bool {
        self.columns == 0 && self.rows == 0
    }
}

/// What rows have at least, so that a block that is too large is known by its head. One of another number of columns is not.
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
    /// What comes out is wanted as it has to be; else only where blocks end.
    keeps: bool,
    steps: Vec<Step>,
    columns: usize,
    columns_left: usize,
    rows: u64,
    /// The types of earlier columns: the next block has the same.
    shapes: Vec<(Box<str>, Arc<Shape>)>,
}

impl BlockReader {
    /// Of a connection of this revision. No column is unfolded past `max_bytes`.
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
            shapes: Vec::new(),
        }
    }

    /// Of blocks whose rows are likely to be of this shape.
    pub fn expecting(self, expected: RowShape) -> BlockReader {
        BlockReader { expected, ..self }
    }

    /// For who only looks for the ends of blocks, and clears `out` whenever he likes.
    pub fn discarding(self) -> BlockReader {
        BlockReader { keeps: false, ..self }
    }

    pub fn begin(&mut self) {
        self.steps.clear();
        self.steps.extend([Step::Counts, Step::Info]);
    }

    /// Reads on. Tells how many of `bytes` it has taken, and what the block was if it has ended; all that is taken and
    /// belongs to a block of rows is appended to `out`. What is not taken has to come again, with more behind it.
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

    /// False: it has put back what is left of it, and takes more bytes.
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
            Step::Spread { shape, rows, positions, start } => spread(&shape, rows, &positions, start, out)?,
            step => return self.small_step(step, input, out),
        }
        Ok(true)
    }

    /// If the last step put something in front of this one, that comes first; it is not done all the same.
    fn put_back_if(&mut self, left: u64, step: impl FnOnce(u64) -> Step) -> bool {
        if left == 0 {
            return true;
        }
        self.steps.push(step(left));
        false
    }

    /// A step that is done when all of its bytes are there, and put back when they are not.
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
                let expected = if columns == self.expected.columns { self.expected.bytes } else { 0 };
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
                let values = bytes.last_chunk().map_or(0, |last| u64::from_le_bytes(*last));
                out.extend_from_slice(bytes);
                self.steps.push(Step::Values(shape.clone(), values));
            }
            Step::Dictionary(keys) => {
                let (flags, size) = (input.u64()?, input.u64()?);
                let width = windrow_columns::wire::position_bytes(flags);
                let width = width.ok_or(Fault::Unsupported("a dictionary that is shared between blocks"))?;
                out.extend_from_slice(&flags.to_le_bytes());
                out.extend_from_slice(&size.to_le_bytes());
                self.steps.push(Step::Positions { bytes: width as u64 });
                self.steps.push(Step::Values(keys.clone(), size));
            }
            Step::Positions { bytes } => {
                let rows = input.u64()?;
                out.extend_from_slice(&rows.to_le_bytes());
                self.steps.push(Step::Copy(bytes_of(rows, *bytes as usize)? as u64));
            }
            Step::Discriminators(types, rows) => {
                let marks = input.take(bytes_of(*rows, 1)?)?;
                let mut counts = vec![0; types.len()];
                for mark in marks.iter().filter(|mark| **mark != NULL_DISCRIMINATOR) {
                    *counts.get_mut(usize::from(*mark)).ok_or(Fault::Malformed("a Variant of no type"))? += 1;
                }
                out.extend_from_slice(marks);
                let values = types.iter().zip(counts).rev().filter(|(_, count)| *count > 0);
                self.steps.extend(values.map(|(shape, count)| Step::Values(shape.clone(), count)));
            }
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
            Step::Copy(_) | Step::Strings(_) | Step::Values(..) | Step::Spread { .. } => unreachable!("no small steps"),
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
        input.bytes(MAX_NAME_BYTES, "the name of a column")?;
        let type_text = input.text(MAX_NAME_BYTES, "the type of a column")?;
        let header_bytes = header.between(input);
        let has_custom = self.revision >= revision::CUSTOM_SERIALIZATION && input.bool()?;
        let at = self.columns - self.columns_left;
        // Of a column without values, any type will do.
        let shape = if self.rows > 0 || has_custom { Some(self.shape(at, type_text)?) } else { None };
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

    fn shape(&mut self, column: usize, type_text: &str) -> Result<Arc<Shape>, Fault> {
        if let Some((known, shape)) = self.shapes.get(column) {
            if **known == *type_text {
                return Ok(shape.clone());
            }
        }
        let data_type = DataType::parse(type_text);
        let data_type = data_type.map_err(|_| Fault::Unsupported("a type that Windrow doesn't know"))?;
        let shape = Shape::of(&data_type)?;
        self.shapes.truncate(column);
        if self.shapes.len() == column {
            self.shapes.push((type_text.into(), shape.clone()));
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
                    self.steps.push(Step::Dictionary(keys.clone()));
                }
            }
            Shape::Variant(types) => self.steps.push(Step::Discriminators(types.clone(), rows)),
        }
        Ok(())
    }

    /// Returns how many strings are left. Of one that has begun, the rest is to be copied before them.
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

    /// Puts the rest of a string in front of what is to come, and says that the present step has nothing left of its own.
    fn rest_of_string(&mut self, bytes: u64) -> u64 {
        self.steps.push(Step::Copy(bytes));
        0
    }

    /// What a sparse column is made of.
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

/// Whether the column is sparse. All other kinds are for servers among each other.
fn read_kinds(shape: &Shape, input: &mut Input<'_>) -> Result<bool, Fault> {
    let kinds = input.take(shape.kinds())?;
    match kinds {
        [1] => Ok(true),
        kinds if kinds.iter().all(|kind| *kind == 0) => Ok(false),
        _ => Err(Fault::Unsupported("a serialisation that is neither plain nor sparse")),
    }
}

/// Puts the values that stand behind `start` where they belong, and defaults between them.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::input::write_string;

    fn block(revision: u64, columns: &[(&str, &str, &[u8])], rows: u64) -> Vec<u8> {
        let mut out = vec![1, 0, 2, 0xFF, 0xFF, 0xFF, 0xFF];
        if revision >= revision::OUT_OF_ORDER_BUCKETS {
            out.extend_from_slice(&[3, 0]);
        }
        out.push(0);
        write_varint(&mut out, columns.len() as u64);
        write_varint(&mut out, rows);
        for (name, data_type, values) in columns {
            write_string(&mut out, name);
            write_string(&mut out, data_type);
            if revision >= revision::CUSTOM_SERIALIZATION {
                out.push(0);
            }
            out.extend_from_slice(values);
        }
        out
    }

    fn plain(columns: &[(&str, &str, &[u8])], rows: u64) -> Vec<u8> {
        let mut out = Vec::new();
        write_varint(&mut out, columns.len() as u64);
        write_varint(&mut out, rows);
        for (name, data_type, values) in columns {
            write_string(&mut out, name);
            write_string(&mut out, data_type);
            out.extend_from_slice(values);
        }
        out
    }

    /// Reads a block that comes in pieces of so many bytes.
    fn in_pieces(revision: u64, bytes: &[u8], piece: usize) -> Result<(Vec<u8>, Option<BlockEnd>), Fault> {
        let mut reader = BlockReader::new(revision, 1 << 20);
        reader.begin();
        let (mut out, mut there, mut from) = (Vec::new(), Vec::new(), 0);
        loop {
            let (taken, end) = reader.read(&there, &mut out)?;
            there.drain(..taken);
            if end.is_some() || from == bytes.len() {
                assert!(there.is_empty() || end.is_none());
                return Ok((out, end));
            }
            let to = bytes.len().min(from + piece);
            there.extend_from_slice(&bytes[from..to]);
            from = to;
        }
    }

    fn columns() -> Vec<(&'static str, &'static str, Vec<u8>)> {
        let words = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
        let long = [vec![200, 1], vec![b'x'; 200], vec![0], vec![1, b'y']].concat();
        let dictionary = [words(&[0x600, 2]), vec![0, 1, b'a'], words(&[3]), vec![0, 1, 1]].concat();
        vec![
            ("n", "UInt32", vec![7; 12]),
            ("s", "String", long),
            ("m", "Nullable(UInt16)", [vec![0, 1, 0], vec![1; 6]].concat()),
            ("a", "Array(String)", [words(&[1, 1, 3]), vec![1, b'a', 0, 1, b'b']].concat()),
            ("t", "Tuple(a UInt8, b String)", [vec![1, 2, 3], vec![0, 0, 1, b'z']].concat()),
            ("p", "Map(String, UInt8)", [words(&[0, 1, 1]), vec![1, b'k'], vec![5]].concat()),
            ("l", "LowCardinality(String)", [words(&[1]), dictionary.clone()].concat()),
            ("al", "Array(LowCardinality(String))", [words(&[1, 3, 3, 3]), dictionary].concat()),
            ("none", "Array(LowCardinality(String))", words(&[1, 0, 0, 0])),
            ("v", "Variant(String, UInt8)", [words(&[0]), vec![1, 255, 0], vec![1, b'q'], vec![9]].concat()),
            ("f", "FixedString(2)", b"abcdef".to_vec()),
        ]
    }

    #[test]
    fn a_block_that_is_too_large_is_known_by_its_head() {
        let head = block(revision::NEWEST, &[("n", "UInt64", &[])], 200_000);
        let read = |columns| {
            let mut reader = BlockReader::new(revision::NEWEST, 1 << 20).expecting(RowShape { columns, bytes: 8 });
            reader.begin();
            reader.read(&head, &mut Vec::new()).map(|(_, end)| end)
        };
        assert_eq!(read(1), Err(Fault::TooLarge("an insert")));
        assert_eq!(read(2), Ok(None), "of other columns nothing is known");
    }

    #[test]
    fn a_block_comes_out_plain_in_whatever_pieces_it_comes() {
        let columns = columns();
        let columns: Vec<_> = columns.iter().map(|(name, kind, values)| (*name, *kind, values.as_slice())).collect();
        for revision in [revision::OLDEST, revision::CUSTOM_SERIALIZATION, revision::NEWEST] {
            let bytes = block(revision, &columns, 3);
            for piece in [1, 2, 3, 7, 100, bytes.len()] {
                let (out, end) = in_pieces(revision, &bytes, piece).unwrap();
                assert_eq!(end, Some(BlockEnd { columns: columns.len(), rows: 3 }), "{piece} at a time");
                assert_eq!(out, plain(&columns, 3), "{piece} at a time");
            }
            for end in 0..bytes.len() {
                assert_eq!(in_pieces(revision, &bytes[..end], 16).unwrap().1, None, "{end} bytes");
            }
        }
    }

    #[test]
    fn the_last_block_has_nothing() {
        let (out, end) = in_pieces(revision::NEWEST, &block(revision::NEWEST, &[], 0), 100).unwrap();
        assert!(out.is_empty() && end.is_some_and(BlockEnd::is_last));
        let header = block(revision::NEWEST, &[("n", "UInt32", &[]), ("l", "LowCardinality(String)", &[])], 0);
        let (_, end) = in_pieces(revision::NEWEST, &header, 100).unwrap();
        assert!(end.is_some_and(|end| !end.is_last()), "a block of no rows is not the end");
    }

    fn sparse(revision: u64, data_type: &str, gaps: &[u64], values: &[u8], rows: u64) -> Vec<u8> {
        let mut out = vec![0];
        write_varint(&mut out, 1);
        write_varint(&mut out, rows);
        write_string(&mut out, "n");
        write_string(&mut out, data_type);
        out.extend_from_slice(&[1, 1]);
        let (last, before) = gaps.split_last().unwrap();
        before.iter().for_each(|gap| write_varint(&mut out, *gap));
        write_varint(&mut out, *last | SPARSE_END);
        out.extend_from_slice(values);
        let _ = revision;
        out
    }

    #[test]
    fn sparse_columns_are_spread() {
        let revision = revision::NEWEST;
        let cases: [(&str, &[u8], Vec<u8>); 3] = [
            ("UInt16", &[1, 1, 2, 2], [0, 0, 0, 0, 1, 1, 0, 0, 2, 2, 0, 0].to_vec()),
            ("String", &[1, b'a', 2, b'b', b'c'], [&[0, 0, 1, b'a', 0, 2, b'b', b'c', 0][..]].concat()),
            ("Nullable(UInt8)", &[5, 6], [1, 1, 0, 1, 0, 1, 0, 0, 5, 0, 6, 0].to_vec()),
        ];
        for (data_type, values, dense) in cases {
            let bytes = sparse(revision, data_type, &[2, 1, 1], values, 6);
            for piece in [1, 3, 100] {
                let (out, end) = in_pieces(revision, &bytes, piece).unwrap();
                assert_eq!(out, plain(&[("n", data_type, &dense)], 6), "{data_type}");
                assert!(end.is_some());
            }
        }
    }

    #[test]
    fn what_can_not_be_is_refused() {
        let revision = revision::NEWEST;
        let faults = [
            sparse(revision, "UInt16", &[2, 1, 1], &[], 5),
            sparse(revision, "UInt16", &[1 << 40], &[], 1 << 40),
            sparse(revision, "UInt64", &[1 << 30], &[], 1 << 30),
            sparse(revision, "Array(UInt8)", &[0, 0], &[], 1),
            block(revision, &[("j", "JSON", &[])], 1),
            block(revision, &[("x", "Nonsense", &[])], 1),
            block(revision, &[("v", "Variant(String, UInt8)", &[0, 0, 0, 0, 0, 0, 0, 0, 2])], 1),
            block(revision, &[("l", "LowCardinality(String)", &[2, 0, 0, 0, 0, 0, 0, 0])], 1),
            vec![9],
        ];
        for bytes in faults {
            assert!(in_pieces(revision, &bytes, 100).is_err());
        }
    }
}
