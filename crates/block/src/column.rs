use std::ops::Range;

use bytes::Bytes;

use crate::types::DataType;
use crate::varint::{read_varint, varint_length};

/// The values of one column (or of a part of a nested one), in the layout of a Native block.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Column {
    /// Little-endian values, all of `width` bytes.
    Fixed { width: usize, data: Vec<u8> },
    /// For every value its length as a varint, then its bytes.
    Strings { rows: usize, data: Vec<u8> },
    /// One byte per row, 1 for NULL; NULL rows still have a (default) value inside.
    Nullable { nulls: Vec<u8>, inner: Box<Column> },
    /// For every row the number of inner values up to its end.
    Array { offsets: Vec<u64>, inner: Box<Column> },
    /// Never empty; all elements have the same number of rows.
    Tuple { elements: Vec<Column> },
    /// For every row the position of its alternative, or `NULL_DISCRIMINATOR`; an alternative has only its own rows.
    Variant { discriminators: Vec<u8>, alternatives: Vec<Column> },
}

pub(crate) const NULL_DISCRIMINATOR: u8 = 255;

/// Of a value that is short in text: far more than any table needs, but for long FixedStrings.
pub(crate) const MAX_ZERO_BYTES: usize = 1024;

impl Column {
    pub(crate) fn empty(data_type: &DataType) -> Self {
        if let Some(width) = data_type.fixed_width() {
            return Column::Fixed { width, data: Vec::new() };
        }
        match data_type {
            DataType::LowCardinality(inner) => Column::empty(inner),
            DataType::Nullable(inner) => Column::Nullable { nulls: Vec::new(), inner: Box::new(Column::empty(inner)) },
            DataType::Array(inner) => Column::array(Column::empty(inner)),
            DataType::Map(key, value) => {
                Column::array(Column::Tuple { elements: vec![Column::empty(key), Column::empty(value)] })
            }
            DataType::Tuple(tuple) => Column::Tuple { elements: tuple.elements.iter().map(Column::empty).collect() },
            DataType::Variant(alternatives) => Column::Variant {
                discriminators: Vec::new(),
                alternatives: alternatives.iter().map(Column::empty).collect(),
            },
            DataType::Custom(custom) => Column::empty(&custom.inner),
            _ => Column::Strings { rows: 0, data: Vec::new() },
        }
    }

    /// An empty column of the same layout.
    pub(crate) fn like(&self) -> Self {
        match self {
            Column::Fixed { width, .. } => Column::Fixed { width: *width, data: Vec::new() },
            Column::Strings { .. } => Column::Strings { rows: 0, data: Vec::new() },
            Column::Nullable { inner, .. } => Column::Nullable { nulls: Vec::new(), inner: Box::new(inner.like()) },
            Column::Array { inner, .. } => Column::array(inner.like()),
            Column::Tuple { elements } => Column::Tuple { elements: elements.iter().map(Column::like).collect() },
            Column::Variant { alternatives, .. } => Column::Variant {
                discriminators: Vec::new(),
                alternatives: alternatives.iter().map(Column::like).collect(),
            },
        }
    }

    fn array(inner: Column) -> Self {
        Column::Array { offsets: Vec::new(), inner: Box::new(inner) }
    }

    pub(crate) fn rows(&self) -> usize {
        match self {
            Column::Fixed { width, data } => data.len() / width,
            Column::Strings { rows, .. } => *rows,
            Column::Nullable { nulls, .. } => nulls.len(),
            Column::Array { offsets, .. } => offsets.len(),
            Column::Tuple { elements } => elements.first().map_or(0, Column::rows),
            Column::Variant { discriminators, .. } => discriminators.len(),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        match self {
            Column::Fixed { data, .. } | Column::Strings { data, .. } => data.len(),
            Column::Nullable { nulls, inner } => nulls.len() + inner.bytes(),
            Column::Array { offsets, inner } => offsets.len() * 8 + inner.bytes(),
            Column::Tuple { elements } => elements.iter().map(Column::bytes).sum(),
            Column::Variant { discriminators, alternatives } => {
                discriminators.len() + alternatives.iter().map(Column::bytes).sum::<usize>()
            }
        }
    }

    pub(crate) fn clear(&mut self) {
        match self {
            Column::Fixed { data, .. } => data.clear(),
            Column::Strings { rows, data } => {
                *rows = 0;
                data.clear();
            }
            Column::Nullable { nulls, inner } => {
                nulls.clear();
                inner.clear();
            }
            Column::Array { offsets, inner } => {
                offsets.clear();
                inner.clear();
            }
            Column::Tuple { elements } => elements.iter_mut().for_each(Column::clear),
            Column::Variant { discriminators, alternatives } => {
                discriminators.clear();
                alternatives.iter_mut().for_each(Column::clear);
            }
        }
    }

    /// Appends all rows of a column of the same type.
    pub(crate) fn append(&mut self, other: &Column) {
        if let (Column::Strings { rows, data }, Column::Strings { rows: more_rows, data: more }) = (&mut *self, other) {
            // No need to walk the values when all of them are taken.
            *rows += more_rows;
            data.extend_from_slice(more);
        } else {
            self.append_range(other, 0..other.rows());
        }
    }

    /// Appends some rows of a column of the same type.
    pub(crate) fn append_range(&mut self, other: &Column, range: Range<usize>) {
        match (self, other) {
            (Column::Fixed { width, data }, Column::Fixed { data: more, width: other_width }) => {
                assert_eq!(width, other_width, "blocks are only joined when their columns have the same types");
                data.extend_from_slice(&more[range.start * *width..range.end * *width]);
            }
            (Column::Strings { rows, data }, Column::Strings { data: more, .. }) => {
                *rows += range.len();
                data.extend_from_slice(&more[string_range(more, range)]);
            }
            (Column::Nullable { nulls, inner }, Column::Nullable { nulls: more_nulls, inner: more }) => {
                nulls.extend_from_slice(&more_nulls[range.clone()]);
                inner.append_range(more, range);
            }
            (Column::Array { offsets, inner }, Column::Array { offsets: more_offsets, inner: more }) => {
                let first = if range.start == 0 { 0 } else { more_offsets[range.start - 1] };
                let last = if range.end == 0 { 0 } else { more_offsets[range.end - 1] };
                let base = offsets.last().copied().unwrap_or(0);
                offsets.extend(more_offsets[range].iter().map(|offset| offset - first + base));
                if first == 0 && last as usize == more.rows() {
                    inner.append(more);
                } else {
                    inner.append_range(more, first as usize..last as usize);
                }
            }
            (Column::Tuple { elements }, Column::Tuple { elements: more }) => {
                assert_eq!(elements.len(), more.len(), "blocks are only joined when their columns have the same types");
                for (element, more) in elements.iter_mut().zip(more) {
                    element.append_range(more, range.clone());
                }
            }
            (
                Column::Variant { discriminators, alternatives },
                Column::Variant { discriminators: more_discriminators, alternatives: more },
            ) => {
                assert_eq!(
                    alternatives.len(),
                    more.len(),
                    "blocks are only joined when their columns have the same types"
                );
                let (before, taken) = (&more_discriminators[..range.start], &more_discriminators[range]);
                discriminators.extend_from_slice(taken);
                for (index, (alternative, more)) in alternatives.iter_mut().zip(more).enumerate() {
                    let count = |marks: &[u8]| marks.iter().filter(|mark| usize::from(**mark) == index).count();
                    let start = count(before);
                    alternative.append_range(more, start..start + count(taken));
                }
            }
            _ => panic!("blocks are only joined when their columns have the same types"),
        }
    }

    /// Whether `range` lies within the rows.
    pub(crate) fn covers(&self, range: &Range<usize>) -> bool {
        range.start <= range.end && range.end <= self.rows()
    }

    /// Bytes of every value, if all have the same.
    pub(crate) fn width(&self) -> Option<usize> {
        match self {
            Column::Fixed { width, .. } => Some(*width),
            _ => None,
        }
    }

    /// Bytes that `push_zero` appends.
    pub(crate) fn zero_bytes(&self) -> usize {
        match self {
            Column::Fixed { width, .. } => *width,
            Column::Strings { .. } => 1,
            Column::Nullable { inner, .. } => 1 + inner.zero_bytes(),
            Column::Array { .. } => 8,
            Column::Tuple { elements } => elements.iter().map(Column::zero_bytes).sum(),
            Column::Variant { .. } => 1,
        }
    }

    /// Whether a few bytes of a payload can stand for a zero that takes so many that a payload of them is too much.
    pub(crate) fn zero_is_large(&self) -> bool {
        self.zero_bytes() > MAX_ZERO_BYTES
    }

    /// The default of a type as the column's own zero: 0, '', NULL, [] and so on.
    pub(crate) fn push_zero(&mut self) {
        match self {
            Column::Fixed { width, data } => data.resize(data.len() + *width, 0),
            Column::Strings { rows, data } => {
                *rows += 1;
                data.push(0);
            }
            Column::Nullable { nulls, inner } => {
                nulls.push(1);
                inner.push_zero();
            }
            Column::Array { offsets, .. } => offsets.push(offsets.last().copied().unwrap_or(0)),
            Column::Tuple { elements } => elements.iter_mut().for_each(Column::push_zero),
            Column::Variant { discriminators, .. } => discriminators.push(NULL_DISCRIMINATOR),
        }
    }

    /// Writes what stands before all values: for each Variant, how its discriminators are written (0: one byte each). A
    /// column of no rows has no such prefix.
    pub(crate) fn write_prefix(&self, out: &mut Vec<u8>) {
        match self {
            Column::Fixed { .. } | Column::Strings { .. } => {}
            Column::Nullable { inner, .. } | Column::Array { inner, .. } => inner.write_prefix(out),
            Column::Tuple { elements } => elements.iter().for_each(|element| element.write_prefix(out)),
            Column::Variant { alternatives, .. } => {
                out.extend_from_slice(&[0; 8]);
                alternatives.iter().for_each(|alternative| alternative.write_prefix(out));
            }
        }
    }

    /// Writes the column's streams one after the other.
    pub(crate) fn write_native(&self, out: &mut Vec<u8>) {
        match self {
            Column::Fixed { data, .. } | Column::Strings { data, .. } => out.extend_from_slice(data),
            Column::Nullable { nulls, inner } => {
                out.extend_from_slice(nulls);
                inner.write_native(out);
            }
            Column::Array { offsets, inner } => {
                out.extend(offsets.iter().flat_map(|offset| offset.to_le_bytes()));
                inner.write_native(out);
            }
            Column::Tuple { elements } => elements.iter().for_each(|element| element.write_native(out)),
            Column::Variant { discriminators, alternatives } => {
                out.extend_from_slice(discriminators);
                alternatives.iter().for_each(|alternative| alternative.write_native(out));
            }
        }
    }

    /// Hands over the column's streams without copying the values.
    pub(crate) fn into_native(self, out: &mut Vec<Bytes>) {
        match self {
            Column::Fixed { data, .. } | Column::Strings { data, .. } => out.push(data.into()),
            Column::Nullable { nulls, inner } => {
                out.push(nulls.into());
                inner.into_native(out);
            }
            Column::Array { offsets, inner } => {
                out.push(offsets.iter().flat_map(|offset| offset.to_le_bytes()).collect::<Vec<u8>>().into());
                inner.into_native(out);
            }
            Column::Tuple { elements } => elements.into_iter().for_each(|element| element.into_native(out)),
            Column::Variant { discriminators, alternatives } => {
                out.push(discriminators.into());
                alternatives.into_iter().for_each(|alternative| alternative.into_native(out));
            }
        }
    }
}

/// Where the bytes of some rows of a string stream lie. The stream has no index: it is walked from the start, which
/// only happens when a batch is split.
fn string_range(data: &[u8], rows: Range<usize>) -> Range<usize> {
    let mut at = 0;
    let mut start = 0;
    for row in 0..rows.end {
        if row == rows.start {
            start = at;
        }
        let length = read_varint(&data[at..]).expect("only whole strings are kept in a column");
        at += varint_length(length) + length as usize;
    }
    if rows.is_empty() {
        start = at;
    }
    start..at
}
