//! Reads one column of one block, as far as the bytes go.
//!
//! A reader is told its rows once the prefixes are read, which in Native stand in front of a column, those of
//! inner columns included. The reader takes every byte that it is shown, except for a number or a name of
//! which only the beginning is there, and begins nothing anew: however the bytes are cut, each is looked at
//! once.

use super::error::Problem;
use super::input::{done_or_wait, Gathered, Input, Progress};
use super::json::JsonReader;
use super::low_cardinality::LowCardinalityReader;
use super::offsets::OffsetsReader;
use super::qbit::QBitReader;
use super::strings::StringsReader;
use super::variant::{DynamicReader, VariantReader};
use crate::column::Column;
use windrow_columns::{DataType, TypeError};

pub(super) enum Reader {
    Fixed { width: usize, data: Gathered },
    Strings(StringsReader),
    Nullable { nulls: Gathered, inner: Box<Reader> },
    LowCardinality(LowCardinalityReader),
    Array(ArrayReader),
    Tuple(TupleReader),
    Variant(VariantReader),
    Dynamic(DynamicReader),
    Json(JsonReader),
    QBit(QBitReader),
    Nothing { rows: usize, placeholders: Skipped },
}

impl Reader {
    /// Makes the reader of a type. `depth` is the number of types around this one.
    pub(super) fn new(column_type: &DataType, depth: usize) -> Result<Reader, Problem> {
        if depth >= DataType::MAX_RESULT_DEPTH {
            return Err(Problem::Type(TypeError::TooDeepToRead));
        }
        let inner = |inner: &DataType| Reader::new(inner, depth + 1).map(Box::new);
        Ok(match column_type {
            DataType::String => Reader::Strings(StringsReader::default()),
            DataType::Nullable(of) => Reader::Nullable { nulls: Gathered::default(), inner: inner(of)? },
            DataType::LowCardinality(of) => match of.as_ref() {
                DataType::Nullable(of) => {
                    Reader::LowCardinality(LowCardinalityReader::new(Reader::new(of, depth + 1)?, true))
                }
                of => Reader::LowCardinality(LowCardinalityReader::new(Reader::new(of, depth + 1)?, false)),
            },
            DataType::Array(of) => Reader::Array(ArrayReader::new(inner(of)?, None)),
            DataType::Map(keys, values) => Reader::Array(ArrayReader::new(inner(keys)?, Some(inner(values)?))),
            DataType::Tuple(tuple) => {
                let elements = tuple.elements.iter().map(|element| Reader::new(element, depth + 1));
                Reader::Tuple(TupleReader::new(elements.collect::<Result<_, _>>()?))
            }
            DataType::Variant(alternatives) => Reader::Variant(VariantReader::new(alternatives, depth)?),
            DataType::Dynamic => Reader::Dynamic(DynamicReader::new(depth)),
            DataType::Json { typed_paths } => Reader::Json(JsonReader::new(typed_paths, depth)?),
            DataType::QBit { dimension, array } => Reader::QBit(QBitReader::new(*dimension, element_width(array)?)),
            DataType::Nothing => Reader::Nothing { rows: 0, placeholders: Skipped::default() },
            DataType::Custom(custom) => Reader::new(&custom.inner, depth)?,
            scalar => Reader::Fixed { width: width_of(scalar)?, data: Gathered::default() },
        })
    }

    pub(super) fn prefix(&mut self, input: &mut Input<'_>) -> Result<Progress, Problem> {
        match self {
            Reader::Fixed { .. } | Reader::Strings(_) | Reader::QBit(_) | Reader::Nothing { .. } => Ok(Progress::Done),
            Reader::Nullable { inner, .. } => inner.prefix(input),
            Reader::LowCardinality(reader) => reader.prefix(input),
            Reader::Array(reader) => reader.prefix(input),
            Reader::Tuple(reader) => reader.prefix(input),
            Reader::Variant(reader) => reader.prefix(input),
            Reader::Dynamic(reader) => reader.prefix(input),
            Reader::Json(reader) => reader.prefix(input),
        }
    }

    pub(super) fn begin(&mut self, block_rows: usize) {
        match self {
            Reader::Fixed { width, data } => data.begin(block_rows.saturating_mul(*width)),
            Reader::Strings(reader) => reader.begin(block_rows),
            Reader::Nullable { nulls, inner } => {
                nulls.begin(block_rows);
                inner.begin(block_rows);
            }
            Reader::LowCardinality(reader) => reader.begin(block_rows),
            Reader::Array(reader) => reader.offsets.begin(block_rows),
            Reader::Tuple(reader) => reader.begin(block_rows),
            Reader::Variant(reader) => reader.begin(block_rows),
            Reader::Dynamic(reader) => reader.begin(block_rows),
            Reader::Json(reader) => reader.begin(block_rows),
            Reader::QBit(reader) => reader.begin(block_rows),
            Reader::Nothing { rows, placeholders } => {
                *rows = block_rows;
                placeholders.missing = block_rows;
            }
        }
    }

    pub(super) fn read(&mut self, input: &mut Input<'_>) -> Result<Progress, Problem> {
        match self {
            Reader::Fixed { data, .. } => Ok(data.read(input)),
            Reader::Strings(reader) => reader.read(input),
            Reader::Nullable { nulls, inner } => {
                if nulls.read(input) == Progress::Waiting {
                    return Ok(Progress::Waiting);
                }
                inner.read(input)
            }
            Reader::LowCardinality(reader) => reader.read(input),
            Reader::Array(reader) => reader.read(input),
            Reader::Tuple(reader) => reader.read(input),
            Reader::Variant(reader) => reader.read(input),
            Reader::Dynamic(reader) => reader.read(input),
            Reader::Json(reader) => reader.read(input),
            Reader::QBit(reader) => reader.read(input),
            Reader::Nothing { placeholders, .. } => Ok(placeholders.read(input)),
        }
    }

    /// Returns the column that was read, when it is whole.
    pub(super) fn take(&mut self) -> Column {
        match self {
            Reader::Fixed { width, data } => Column::Fixed { width: *width, data: data.take() },
            Reader::Strings(reader) => reader.take(),
            Reader::Nullable { nulls, inner } => {
                let mut nulls = nulls.take();
                nulls.iter_mut().for_each(|null| *null = u8::from(*null != 0));
                Column::Nullable { nulls, inner: Box::new(inner.take()) }
            }
            Reader::LowCardinality(reader) => reader.take(),
            Reader::Array(reader) => reader.take(),
            Reader::Tuple(reader) => reader.take(),
            Reader::Variant(reader) => reader.take(),
            Reader::Dynamic(reader) => reader.take(),
            Reader::Json(reader) => reader.take(),
            Reader::QBit(reader) => reader.take(),
            Reader::Nothing { rows, .. } => Column::Nothing { rows: *rows },
        }
    }
}

fn width_of(scalar: &DataType) -> Result<usize, Problem> {
    scalar.fixed_width().ok_or_else(|| Problem::Type(TypeError::Unreadable(scalar.to_string())))
}

fn element_width(array: &DataType) -> Result<usize, Problem> {
    match array {
        DataType::Array(element) => width_of(element),
        other => width_of(other),
    }
}

/// A reader of `Array` and `Map`: the ends of the rows, then all elements.
pub(super) struct ArrayReader {
    offsets: OffsetsReader,
    /// The reader of the elements; for a Map, of the keys.
    inner: Box<Reader>,
    values: Option<Box<Reader>>,
    stage: ArrayStage,
}

#[derive(Clone, Copy)]
enum ArrayStage {
    Inner,
    Values,
    Offsets,
}

impl ArrayReader {
    fn new(inner: Box<Reader>, values: Option<Box<Reader>>) -> Self {
        ArrayReader { offsets: OffsetsReader::default(), inner, values, stage: ArrayStage::Inner }
    }

    fn prefix(&mut self, input: &mut Input<'_>) -> Result<Progress, Problem> {
        if let ArrayStage::Inner = self.stage {
            done_or_wait!(self.inner.prefix(input));
            self.stage = ArrayStage::Values;
        }
        if let Some(values) = &mut self.values {
            done_or_wait!(values.prefix(input));
        }
        self.stage = ArrayStage::Offsets;
        Ok(Progress::Done)
    }

    fn read(&mut self, input: &mut Input<'_>) -> Result<Progress, Problem> {
        if let ArrayStage::Offsets = self.stage {
            done_or_wait!(self.offsets.read(input));
            self.inner.begin(self.offsets.elements());
            if let Some(values) = &mut self.values {
                values.begin(self.offsets.elements());
            }
            self.stage = ArrayStage::Inner;
        }
        if let ArrayStage::Inner = self.stage {
            done_or_wait!(self.inner.read(input));
            self.stage = ArrayStage::Values;
        }
        match &mut self.values {
            Some(values) => values.read(input),
            None => Ok(Progress::Done),
        }
    }

    fn take(&mut self) -> Column {
        let offsets = self.offsets.take();
        let inner = Box::new(self.inner.take());
        match &mut self.values {
            Some(values) => Column::Map { offsets, keys: inner, values: Box::new(values.take()) },
            None => Column::Array { offsets, inner },
        }
    }
}

/// A reader of the elements' columns one after the other. A Tuple without elements has a byte for every row.
pub(super) struct TupleReader {
    elements: Vec<Reader>,
    /// The first element that isn't whole.
    at: usize,
    rows: usize,
    placeholders: Skipped,
}

impl TupleReader {
    fn new(elements: Vec<Reader>) -> Self {
        TupleReader { elements, at: 0, rows: 0, placeholders: Skipped::default() }
    }

    fn prefix(&mut self, input: &mut Input<'_>) -> Result<Progress, Problem> {
        while let Some(element) = self.elements.get_mut(self.at) {
            done_or_wait!(element.prefix(input));
            self.at += 1;
        }
        self.at = 0;
        Ok(Progress::Done)
    }

    fn begin(&mut self, rows: usize) {
        self.rows = rows;
        if self.elements.is_empty() {
            self.placeholders.missing = rows;
        }
        self.elements.iter_mut().for_each(|element| element.begin(rows));
    }

    fn read(&mut self, input: &mut Input<'_>) -> Result<Progress, Problem> {
        while let Some(element) = self.elements.get_mut(self.at) {
            done_or_wait!(element.read(input));
            self.at += 1;
        }
        Ok(self.placeholders.read(input))
    }

    fn take(&mut self) -> Column {
        Column::Tuple { rows: self.rows, elements: self.elements.iter_mut().map(Reader::take).collect() }
    }
}

/// Bytes that only say that there are rows.
#[derive(Default)]
pub(super) struct Skipped {
    missing: usize,
}

impl Skipped {
    fn read(&mut self, input: &mut Input<'_>) -> Progress {
        self.missing -= input.up_to(self.missing).len();
        if self.missing == 0 {
            Progress::Done
        } else {
            Progress::Waiting
        }
    }
}
