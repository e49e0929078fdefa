//! LowCardinality in a Native block: a version, then for every run of values a word of flags, the distinct values (a
//! NULL is the first of them, whatever stands there), and for every row the position of its value.
//!
//! Here each row gets its own copy, since blocks of many inserts would else need a dictionary in common.

use std::ops::Range;

use super::streams::read_values;
use super::{Input, NativeError};
use crate::column::Column;
use crate::types::DataType;
use crate::varint::{read_varint, varint_length};

/// The only version there is.
const SHARED_DICTIONARIES_WITH_ADDITIONAL_KEYS: u64 = 1;
const HAS_ADDITIONAL_KEYS: u64 = 1 << 9;
const NEEDS_UPDATE: u64 = 1 << 10;

pub(super) fn read_dictionary_version(input: &mut Input<'_>) -> Result<(), NativeError> {
    match input.u64()? {
        SHARED_DICTIONARIES_WITH_ADDITIONAL_KEYS => Ok(()),
        _ => Err(NativeError::Malformed("a dictionary of an unknown version")),
    }
}

pub(super) fn read_low_cardinality(
    input: &mut Input<'_>,
    inner: &DataType,
    rows: usize,
) -> Result<Column, NativeError> {
    if rows == 0 {
        return Ok(Column::empty(inner));
    }
    let index_width = read_index_width(input)?;
    let key_count = usize::try_from(input.u64()?).map_err(|_| NativeError::Truncated)?;
    let (key_type, is_nullable) = match inner {
        DataType::Nullable(key_type) => (key_type.as_ref(), true),
        other => (other, false),
    };
    let keys = read_values(input, key_type, key_count)?;
    if input.u64()? != rows as u64 {
        // It may come in several runs; nobody is known to send it so.
        return Err(NativeError::Malformed("a dictionary's values in several runs"));
    }
    let positions = read_positions(input.take_values(rows, index_width)?, index_width, key_count)?;
    let values = Keys::new(&keys, is_nullable)?.unfold(input, &positions)?;
    if !is_nullable {
        return Ok(values);
    }
    let nulls = positions.iter().map(|position| u8::from(*position == 0)).collect();
    Ok(Column::Nullable { nulls, inner: Box::new(values) })
}

fn read_index_width(input: &mut Input<'_>) -> Result<usize, NativeError> {
    let flags = input.u64()?;
    match flags & !NEEDS_UPDATE {
        kind if kind & HAS_ADDITIONAL_KEYS != 0 && kind ^ HAS_ADDITIONAL_KEYS <= 3 => {
            Ok(1 << (kind ^ HAS_ADDITIONAL_KEYS))
        }
        _ => Err(NativeError::Malformed("a dictionary of an unknown kind")),
    }
}

fn read_positions(bytes: &[u8], width: usize, key_count: usize) -> Result<Vec<usize>, NativeError> {
    let positions: Vec<usize> = match width {
        1 => bytes.iter().map(|byte| usize::from(*byte)).collect(),
        _ => bytes.chunks_exact(width).map(wide_position).collect(),
    };
    if positions.iter().any(|position| *position >= key_count) {
        return Err(NativeError::Malformed("a position outside of its dictionary"));
    }
    Ok(positions)
}

fn wide_position(bytes: &[u8]) -> usize {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    usize::try_from(u64::from_le_bytes(word)).unwrap_or(usize::MAX)
}

/// A dictionary's values, to be copied by position.
struct Keys<'k> {
    data: &'k [u8],
    places: Places,
    /// What is stored in the place of NULL, which is the first value.
    null: Option<Vec<u8>>,
}

enum Places {
    Every(usize),
    /// Each with its length.
    Strings(Vec<Range<usize>>),
}

impl<'k> Keys<'k> {
    fn new(column: &'k Column, is_nullable: bool) -> Result<Self, NativeError> {
        let (data, places, zero) = match column {
            Column::Fixed { width, data } => (data, Places::Every(*width), vec![0; *width]),
            Column::Strings { rows, data } => (data, Places::Strings(string_places(data, *rows)), vec![0]),
            _ => return Err(NativeError::Malformed("a dictionary of nested values")),
        };
        Ok(Keys { data, places, null: is_nullable.then_some(zero) })
    }

    #[inline]
    fn value(&self, position: usize) -> &[u8] {
        match (&self.places, &self.null) {
            (_, Some(null)) if position == 0 => null,
            (Places::Every(width), _) => &self.data[position * width..(position + 1) * width],
            (Places::Strings(places), _) => &self.data[places[position].clone()],
        }
    }

    fn unfold(&self, input: &mut Input<'_>, positions: &[usize]) -> Result<Column, NativeError> {
        let bytes = positions.iter().fold(0usize, |sum, position| sum.saturating_add(self.value(*position).len()));
        input.unfold(bytes)?;
        let mut data = Vec::with_capacity(bytes);
        positions.iter().for_each(|position| data.extend_from_slice(self.value(*position)));
        Ok(match self.places {
            Places::Every(width) => Column::Fixed { width, data },
            Places::Strings(_) => Column::Strings { rows: positions.len(), data },
        })
    }
}

fn string_places(data: &[u8], count: usize) -> Vec<Range<usize>> {
    let mut at = 0;
    let place = |_| {
        let length = read_varint(&data[at..]).expect("the strings were walked when they were taken");
        let start = at;
        at += varint_length(length) + length as usize;
        start..at
    };
    (0..count).map(place).collect()
}
