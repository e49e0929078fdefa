use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;

use crate::types::DataType;
use crate::wire::{read_varint, varint_length, NULL_DISCRIMINATOR};

/// The values of one column (or of a part of a nested one), in the layout of a Native block.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Column {
    /// Little-endian values, all of `width` bytes.
    Fixed { width: usize, data: Vec<u8> },
    /// Strings: for every value its length as a varint, then its bytes.
    Strings { rows: usize, data: Vec<u8> },
    /// One byte per row, 1 for NULL; NULL rows still have a (default) value in `inner`.
    Nullable { nulls: Vec<u8>, inner: Box<Column> },
    /// Arrays: for every row the number of inner values up to its end.
    Array { offsets: Vec<u64>, inner: Box<Column> },
    /// The elements, at least one; all have the same number of rows.
    Tuple { elements: Vec<Column> },
    /// Variants: for every row the position of its alternative, or `NULL_DISCRIMINATOR`; an alternative has
    /// only its own rows.
    Variant { discriminators: Vec<u8>, alternatives: Vec<Column> },
}

/// Limit of the bytes of a zero value that is short in text: far more than any table needs, except for long
/// FixedStrings.
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

    /// Returns an empty column of the same layout.
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

    /// Makes room for all rows of these columns of the same type.
    pub(crate) fn reserve(&mut self, more: &[&Column]) {
        let rows = more.iter().map(|column| column.rows()).sum();
        let bytes = more.iter().filter_map(|column| column.own_stream()).map(<[u8]>::len).sum();
        match self {
            Column::Fixed { data, .. } | Column::Strings { data, .. } => data.reserve_exact(bytes),
            Column::Nullable { nulls, .. } => nulls.reserve_exact(bytes),
            Column::Variant { discriminators, .. } => discriminators.reserve_exact(bytes),
            Column::Array { offsets, .. } => offsets.reserve_exact(rows),
            Column::Tuple { .. } => {}
        }
        for (at, inner) in self.inner_columns_mut().iter_mut().enumerate() {
            inner.reserve(&more.iter().filter_map(|column| column.inner_columns().get(at)).collect::<Vec<_>>());
        }
    }

    fn inner_columns_mut(&mut self) -> &mut [Column] {
        match self {
            Column::Fixed { .. } | Column::Strings { .. } => &mut [],
            Column::Nullable { inner, .. } | Column::Array { inner, .. } => std::slice::from_mut(inner),
            Column::Tuple { elements } => elements,
            Column::Variant { alternatives, .. } => alternatives,
        }
    }

    /// Appends all rows of a column of the same type.
    pub(crate) fn append(&mut self, other: &Column) {
        let all = 0..other.rows();
        self.append_ranges(other, std::slice::from_ref(&all));
    }

    /// Appends some rows of a column of the same type. The ranges ascend: `other` is walked once, however many they
    /// are.
    pub(crate) fn append_ranges(&mut self, other: &Column, ranges: &[Range<usize>]) {
        match (self, other) {
            (Column::Fixed { width, data }, Column::Fixed { data: more, width: other_width }) => {
                assert_eq!(width, other_width, "blocks are only joined when their columns have the same types");
                for range in ranges {
                    data.extend_from_slice(&more[range.start * *width..range.end * *width]);
                }
            }
            (Column::Strings { rows, data }, Column::Strings { rows: more_rows, data: more }) if matches!(ranges, [all] if *all == (0..*more_rows)) =>
            {
                // No need to walk the values when all of them are taken.
                *rows += more_rows;
                data.extend_from_slice(more);
            }
            (Column::Strings { rows, data }, Column::Strings { data: more, .. }) => {
                let mut walk = StringWalk { data: more, row: 0, at: 0 };
                for range in ranges {
                    *rows += range.len();
                    let start = walk.to(range.start);
                    data.extend_from_slice(&more[start..walk.to(range.end)]);
                }
            }
            (Column::Nullable { nulls, inner }, Column::Nullable { nulls: more_nulls, inner: more }) => {
                for range in ranges {
                    nulls.extend_from_slice(&more_nulls[range.clone()]);
                }
                inner.append_ranges(more, ranges);
            }
            (Column::Array { offsets, inner }, Column::Array { offsets: more_offsets, inner: more }) => {
                let inner_ranges: Vec<Range<usize>> =
                    ranges.iter().map(|range| append_offsets(offsets, more_offsets, range.clone())).collect();
                if matches!(&inner_ranges[..], [all] if *all == (0..more.rows())) {
                    inner.append(more);
                } else {
                    inner.append_ranges(more, &inner_ranges);
                }
            }
            (Column::Tuple { elements }, Column::Tuple { elements: more }) => {
                assert_eq!(elements.len(), more.len(), "blocks are only joined when their columns have the same types");
                for (element, more) in elements.iter_mut().zip(more) {
                    element.append_ranges(more, ranges);
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
                for range in ranges {
                    discriminators.extend_from_slice(&more_discriminators[range.clone()]);
                }
                for (index, (alternative, more)) in alternatives.iter_mut().zip(more).enumerate() {
                    alternative.append_ranges(more, &ranges_of_alternative(more_discriminators, index, ranges));
                }
            }
            _ => panic!("blocks are only joined when their columns have the same types"),
        }
    }

    /// Notes where all strings end, in the order in which `truncate` looks for them.
    pub(crate) fn note_strings(&self, ends: &mut Vec<StringsEnd>) {
        match self {
            Column::Fixed { .. } => {}
            Column::Strings { rows, data } => ends.push(StringsEnd::of(*rows, data)),
            Column::Nullable { inner, .. } | Column::Array { inner, .. } => inner.note_strings(ends),
            Column::Tuple { elements: parts } | Column::Variant { alternatives: parts, .. } => {
                parts.iter().for_each(|part| part.note_strings(ends));
            }
        }
    }

    /// Drops all rows but the first ones, also where a row was begun and not finished. `ends` were noted at a
    /// moment at which the column had no more than these rows.
    pub(crate) fn truncate(&mut self, rows: usize, ends: &mut std::slice::Iter<'_, StringsEnd>) {
        match self {
            Column::Fixed { width, data } => data.truncate(rows * *width),
            Column::Strings { rows: all, data } => {
                let end = ends.next().expect("every column of strings was noted");
                if *all > rows {
                    data.truncate(strings_end(data, *end, rows));
                    *all = rows;
                }
            }
            Column::Nullable { nulls, inner } => {
                nulls.truncate(rows);
                inner.truncate(rows, ends);
            }
            Column::Array { offsets, inner } => {
                offsets.truncate(rows);
                inner.truncate(offsets.last().map_or(0, |end| *end as usize), ends);
            }
            Column::Tuple { elements } => elements.iter_mut().for_each(|element| element.truncate(rows, ends)),
            Column::Variant { discriminators, alternatives } => {
                discriminators.truncate(rows);
                for (index, alternative) in alternatives.iter_mut().enumerate() {
                    let kept = discriminators.iter().filter(|mark| usize::from(**mark) == index).count();
                    alternative.truncate(kept, ends);
                }
            }
        }
    }

    /// Says whether `range` lies within the rows.
    pub(crate) fn covers(&self, range: &Range<usize>) -> bool {
        range.start <= range.end && range.end <= self.rows()
    }

    /// Returns the width in bytes that all values have, if they have the same.
    pub(crate) fn width(&self) -> Option<usize> {
        match self {
            Column::Fixed { width, .. } => Some(*width),
            _ => None,
        }
    }

    /// Returns the number of bytes that `push_zero` appends.
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

    /// Says whether a few bytes of a payload can stand for so large a zero that a payload of many such zeros
    /// takes too much memory.
    pub(crate) fn zero_is_large(&self) -> bool {
        self.zero_bytes() > MAX_ZERO_BYTES
    }

    /// Appends the column's own zero, which is the default of a type: 0, '', NULL, [] and so on.
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

    /// Writes the part that stands before all values: for each Variant the form of its discriminators (0: one
    /// byte each). A column of no rows has no such prefix.
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

    /// Lends the streams of a column that is in several blocks, one after the other.
    pub(crate) fn native_pieces<'a>(blocks: &[&'a Column], out: &mut Vec<Cow<'a, [u8]>>) {
        let Some(first) = blocks.first() else { return };
        if let Column::Array { .. } = first {
            out.push(Cow::from(joined_offsets(blocks)));
        } else {
            out.extend(blocks.iter().filter_map(|column| column.own_stream()).map(Cow::from));
        }
        for inner in 0..first.inner_columns().len() {
            let inner: Vec<&Column> = blocks.iter().map(|column| &column.inner_columns()[inner]).collect();
            Column::native_pieces(&inner, out);
        }
    }

    /// Returns the bytes of this column itself, without inner columns, if Native has the same bytes.
    fn own_stream(&self) -> Option<&[u8]> {
        match self {
            Column::Fixed { data, .. } | Column::Strings { data, .. } => Some(data),
            Column::Nullable { nulls, .. } => Some(nulls),
            Column::Variant { discriminators, .. } => Some(discriminators),
            Column::Array { .. } | Column::Tuple { .. } => None,
        }
    }

    fn inner_columns(&self) -> &[Column] {
        match self {
            Column::Fixed { .. } | Column::Strings { .. } => &[],
            Column::Nullable { inner, .. } | Column::Array { inner, .. } => std::slice::from_ref(inner),
            Column::Tuple { elements } => elements,
            Column::Variant { alternatives, .. } => alternatives,
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

/// The number of strings that a stream had, and the place where they ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct StringsEnd {
    rows: usize,
    bytes: usize,
}

impl StringsEnd {
    pub(crate) fn of(rows: usize, data: &[u8]) -> Self {
        StringsEnd { rows, bytes: data.len() }
    }

    pub(crate) fn rows(self) -> usize {
        self.rows
    }

    pub(crate) fn bytes(self) -> usize {
        self.bytes
    }
}

/// Returns the end of the first `rows` strings, of which there are more than at `known`.
pub(crate) fn strings_end(data: &[u8], known: StringsEnd, rows: usize) -> usize {
    StringWalk { data, row: known.rows, at: known.bytes }.to(rows)
}

/// Returns the offsets of arrays in several blocks as the offsets of one block.
fn joined_offsets(blocks: &[&Column]) -> Vec<u8> {
    let mut base = 0;
    let mut joined = Vec::with_capacity(8 * blocks.iter().map(|column| column.rows()).sum::<usize>());
    for column in blocks {
        let Column::Array { offsets, .. } = column else {
            panic!("blocks are only joined when their columns have the same types")
        };
        joined.extend(offsets.iter().flat_map(|offset| (base + offset).to_le_bytes()));
        base += offsets.last().copied().unwrap_or(0);
    }
    joined
}

/// A walk through the values of a string stream, which has no index. The walk goes forwards only, and is only
/// needed where a batch is split.
struct StringWalk<'a> {
    data: &'a [u8],
    row: usize,
    at: usize,
}

impl StringWalk<'_> {
    /// Returns the position where the bytes of `row` begin.
    fn to(&mut self, row: usize) -> usize {
        assert!(self.row <= row, "ranges of rows ascend");
        for _ in self.row..row {
            let length = read_varint(&self.data[self.at..]).expect("only whole strings are kept in a column");
            self.at += varint_length(length) + length as usize;
        }
        self.row = row;
        self.at
    }
}

/// Continues `offsets` with some rows of another array; returns the range of that array's elements that
/// belong to the rows.
fn append_offsets(offsets: &mut Vec<u64>, more: &[u64], rows: Range<usize>) -> Range<usize> {
    let end_of = |rows: usize| if rows == 0 { 0 } else { more[rows - 1] };
    let (first, last) = (end_of(rows.start), end_of(rows.end));
    let base = offsets.last().copied().unwrap_or(0);
    offsets.extend(more[rows].iter().map(|offset| offset - first + base));
    first as usize..last as usize
}

/// Returns the ranges of values of a Variant's alternative that belong to some of its rows.
fn ranges_of_alternative(discriminators: &[u8], index: usize, rows: &[Range<usize>]) -> Vec<Range<usize>> {
    let count = |marks: &[u8]| marks.iter().filter(|mark| usize::from(**mark) == index).count();
    let (mut row, mut value) = (0, 0);
    let of_rows = rows.iter().map(|range| {
        let start = value + count(&discriminators[row..range.start]);
        value = start + count(&discriminators[range.clone()]);
        row = range.end;
        start..value
    });
    of_rows.collect()
}
