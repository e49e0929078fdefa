//! Columns that are built elsewhere: the entrance for readers outside of this crate.
//!
//! A reader hands over whole columns in ClickHouse's Native layout, as many rows at a time as it likes. They
//! are checked against the plan here, so that a mistake out there can't make a block whose columns disagree.
//! Columns that are left out, wanted as default or given only now and then are handled by the same rules as
//! for every other format.

use super::outcome::{NotParsed, NotParsedReason, Parsed};
use super::rows::Rows;
use crate::column::{strings_end, Column, StringsEnd};
use crate::plan::ReadPlan;
use crate::types::DataType;
use crate::wire::write_varint;

/// Values of one column, or of a part of a nested one. A LowCardinality is its inner type, a Map is an Array
/// of Tuples.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnData {
    /// Little-endian values, all of the type's width.
    Fixed(Vec<u8>),
    Strings(StringData),
    /// One byte per row, 1 for NULL; a NULL row has a value inside all the same.
    Nullable {
        nulls: Vec<u8>,
        inner: Box<ColumnData>,
    },
    /// Arrays: for every row the number of inner values up to its end.
    Array {
        offsets: Vec<u64>,
        inner: Box<ColumnData>,
    },
    Tuple(Vec<ColumnData>),
}

/// Strings, each behind its length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StringData {
    rows: usize,
    data: Vec<u8>,
}

impl StringData {
    pub fn with_capacity(rows: usize, bytes: usize) -> Self {
        StringData { rows: 0, data: Vec::with_capacity(bytes + rows + rows / 8) }
    }

    #[inline]
    pub fn push(&mut self, value: &[u8]) {
        write_varint(&mut self.data, value.len() as u64);
        self.data.extend_from_slice(value);
        self.rows += 1;
    }

    /// Repeats all strings behind a noted end, `times` times more.
    pub fn repeat_from(&mut self, end: StringsEnd, times: usize) {
        let (rows, bytes) = (self.rows - end.rows(), end.bytes()..self.data.len());
        self.data.reserve(bytes.len() * times);
        (0..times).for_each(|_| self.data.extend_from_within(bytes.clone()));
        self.rows += rows * times;
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the end of the strings, to be noted so that strings can be taken back.
    pub fn end(&self) -> StringsEnd {
        StringsEnd::of(self.rows, &self.data)
    }

    /// Drops all but the first strings. `known` is an end that was noted when there were no more than these.
    pub fn truncate(&mut self, rows: usize, known: StringsEnd) {
        if self.rows > rows {
            self.data.truncate(strings_end(&self.data, known, rows));
            self.rows = rows;
        }
    }

    /// Returns the bytes of all values with their lengths.
    pub fn bytes(&self) -> usize {
        self.data.len()
    }
}

impl ColumnData {
    /// Returns values without rows, in the layout of a type.
    pub fn empty(data_type: &DataType) -> Self {
        match data_type {
            DataType::LowCardinality(inner) => ColumnData::empty(inner),
            DataType::Nullable(inner) => {
                ColumnData::Nullable { nulls: Vec::new(), inner: Box::new(ColumnData::empty(inner)) }
            }
            DataType::Array(inner) => ColumnData::array(ColumnData::empty(inner)),
            DataType::Map(key, value) => {
                ColumnData::array(ColumnData::Tuple(vec![ColumnData::empty(key), ColumnData::empty(value)]))
            }
            DataType::Tuple(tuple) => ColumnData::Tuple(tuple.elements.iter().map(ColumnData::empty).collect()),
            other if other.fixed_width().is_some() => ColumnData::Fixed(Vec::new()),
            _ => ColumnData::Strings(StringData::default()),
        }
    }

    fn array(inner: ColumnData) -> Self {
        ColumnData::Array { offsets: Vec::new(), inner: Box::new(inner) }
    }
}

/// A block that is put together column by column.
pub struct BlockBuilder<'p> {
    rows: Rows<'p>,
}

impl<'p> BlockBuilder<'p> {
    /// Makes a builder. The longer the payload is, the more bytes may be made for values that it leaves out.
    ///
    /// # Errors
    /// Fails where the plan takes no payload at all.
    pub fn new(plan: &'p ReadPlan, payload_bytes: usize) -> Result<Self, NotParsed> {
        Ok(BlockBuilder { rows: Rows::new(plan, payload_bytes)? })
    }

    /// Appends the next `count` values of a column.
    ///
    /// # Errors
    /// Fails where the data does not have the column's layout or `count` rows, the rows gave the column
    /// twice, or earlier rows left it out for its DEFAULT expression.
    pub fn put(&mut self, column: usize, data: ColumnData, count: usize) -> Result<(), NotParsedReason> {
        self.rows.see(column)?;
        if count == 0 {
            return Ok(());
        }
        self.rows.give(column)?;
        let gathered = &mut self.rows.columns[column];
        let more = checked(data, gathered, count)?;
        if gathered.rows() == 0 {
            *gathered = more;
        } else {
            gathered.append(&more);
        }
        Ok(())
    }

    /// Appends `count` NULLs to a column that can't hold NULL.
    ///
    /// # Errors
    /// Fails where the rows gave the column twice, NULL may not stand for its default, or the values would
    /// take too much memory.
    pub fn put_nulls(&mut self, column: usize, count: usize) -> Result<(), NotParsedReason> {
        self.rows.see(column)?;
        (0..count).try_for_each(|_| self.rows.give_null(column))
    }

    /// Ends `count` rows. Columns that got nothing for these rows are left out by them.
    ///
    /// # Errors
    /// Fails where a column may not be left out, since earlier rows gave it, its default is not certain, or
    /// the values would take too much memory.
    pub fn end_rows(&mut self, count: usize) -> Result<(), NotParsedReason> {
        self.rows.end_rows(count)
    }

    pub fn not_parsed(&self, reason: NotParsedReason) -> NotParsed {
        self.rows.not_parsed(reason)
    }

    /// Returns the block with all rows.
    ///
    /// # Errors
    /// Fails where columns of one nested structure have arrays of different lengths.
    pub fn finish(self) -> Result<Parsed, NotParsed> {
        self.rows.finish()
    }
}

/// Returns `data` as a column of the same layout as `like`, if it has that layout and `count` rows.
fn checked(data: ColumnData, like: &Column, count: usize) -> Result<Column, NotParsedReason> {
    let column = match (data, like) {
        (ColumnData::Fixed(data), Column::Fixed { width, .. }) if data.len() == count.saturating_mul(*width) => {
            Column::Fixed { width: *width, data }
        }
        (ColumnData::Strings(StringData { rows, data }), Column::Strings { .. }) if rows == count => {
            Column::Strings { rows, data }
        }
        (ColumnData::Nullable { nulls, inner }, Column::Nullable { inner: inner_like, .. })
            if nulls.len() == count && nulls.iter().all(|null| *null <= 1) =>
        {
            Column::Nullable { nulls, inner: Box::new(checked(*inner, inner_like, count)?) }
        }
        (ColumnData::Array { offsets, inner }, Column::Array { inner: inner_like, .. })
            if offsets.len() == count && offsets.is_sorted() =>
        {
            let inner_count = usize::try_from(offsets.last().copied().unwrap_or(0));
            let inner_count = inner_count.map_err(|_| NotParsedReason::Value)?;
            Column::Array { offsets, inner: Box::new(checked(*inner, inner_like, inner_count)?) }
        }
        (ColumnData::Tuple(elements), Column::Tuple { elements: like }) if elements.len() == like.len() => {
            let elements = elements.into_iter().zip(like).map(|(element, like)| checked(element, like, count));
            Column::Tuple { elements: elements.collect::<Result<_, _>>()? }
        }
        _ => return Err(NotParsedReason::Value),
    };
    Ok(column)
}
