//! LowCardinality in a Native block: a version, then for every run of values a word of flags, the distinct
//! values (the first of them stands for NULL, whatever its bytes are), and for every row the position of its
//! value.
//!
//! Here each row gets its own copy, since blocks of many inserts would else need a dictionary in common.

use super::streams::read_values;
use super::{Input, NativeError};
use crate::column::Column;
use crate::types::DataType;
use crate::wire::{position_bytes, read_varint, varint_length, DICTIONARY_VERSION};

pub(super) fn read_dictionary_version(input: &mut Input<'_>) -> Result<(), NativeError> {
    match input.u64()? {
        DICTIONARY_VERSION => Ok(()),
        _ => Err(NativeError::Malformed("a dictionary of an unknown version")),
    }
}

pub(super) fn read_low_cardinality(
    input: &mut Input<'_>,
    inner: &DataType,
    rows: usize,
    column: &mut Column,
) -> Result<(), NativeError> {
    if rows == 0 {
        return Ok(());
    }
    let width = position_bytes(input.u64()?).ok_or(NativeError::Malformed("a dictionary of an unknown kind"))?;
    let key_count = usize::try_from(input.u64()?).map_err(|_| NativeError::Truncated)?;
    let key_type = match inner.plain() {
        DataType::Nullable(key_type) => key_type,
        plain => plain,
    };
    let mut keys = Column::empty(key_type);
    read_values(input, key_type, key_count, &mut keys)?;
    if input.u64()? != rows as u64 {
        // It may come in several runs; nobody is known to send it so.
        return Err(NativeError::Malformed("a dictionary's values in several runs"));
    }
    let positions = input.take_values(rows, width)?;
    match width {
        1 => unfold(input, keys, positions.iter().map(|byte| usize::from(*byte)), column),
        _ => unfold(input, keys, positions.chunks_exact(width).map(wide_position), column),
    }
}

fn wide_position(bytes: &[u8]) -> usize {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    usize::try_from(u64::from_le_bytes(word)).unwrap_or(usize::MAX)
}

fn unfold(
    input: &mut Input<'_>,
    mut keys: Column,
    positions: impl Iterator<Item = usize> + Clone,
    column: &mut Column,
) -> Result<(), NativeError> {
    match column {
        Column::Nullable { nulls, inner } => {
            nulls.extend(positions.clone().map(|position| u8::from(position == 0)));
            let spans = ValueSpans::of(&mut keys, true)?;
            spans.unfold(input, &keys, positions, inner)
        }
        column => ValueSpans::of(&mut keys, false)?.unfold(input, &keys, positions, column),
    }
}

#[derive(Clone, Copy)]
struct ValueSpan {
    start: usize,
    length: usize,
}

/// The places of a dictionary's values; a string's place includes its length before it.
struct ValueSpans {
    spans: Vec<ValueSpan>,
    longest: usize,
}

impl ValueSpans {
    /// Finds the places of all values. The value that stands for NULL becomes the type's zero.
    fn of(keys: &mut Column, first_is_null: bool) -> Result<Self, NativeError> {
        let spans = match keys {
            Column::Fixed { width, data } => {
                if first_is_null {
                    data.iter_mut().take(*width).for_each(|byte| *byte = 0);
                }
                (0..data.len() / *width).map(|key| ValueSpan { start: key * *width, length: *width }).collect()
            }
            Column::Strings { rows, data } => {
                let mut spans = string_places(data, *rows);
                if let Some(first) = spans.first_mut().filter(|_| first_is_null) {
                    *first = ValueSpan { start: data.len(), length: 1 };
                    data.push(0);
                }
                spans
            }
            _ => return Err(NativeError::Malformed("a dictionary of nested values")),
        };
        let longest = spans.iter().map(|span| span.length).max().unwrap_or(0);
        Ok(ValueSpans { spans, longest })
    }

    fn unfold(
        &self,
        input: &mut Input<'_>,
        keys: &Column,
        positions: impl Iterator<Item = usize> + Clone,
        column: &mut Column,
    ) -> Result<(), NativeError> {
        let mut bytes = 0usize;
        let mut count = 0;
        for position in positions.clone() {
            let span =
                self.spans.get(position).ok_or(NativeError::Malformed("a position outside of its dictionary"))?;
            bytes = bytes.saturating_add(span.length);
            count += 1;
        }
        input.unfold(bytes)?;
        match (keys, column) {
            (Column::Fixed { data: keys, .. }, Column::Fixed { data, .. }) => {
                self.copy(keys, positions, bytes, data);
            }
            (Column::Strings { data: keys, .. }, Column::Strings { rows, data }) => {
                self.copy(keys, positions, bytes, data);
                *rows += count;
            }
            _ => return Err(NativeError::Malformed("a dictionary of nested values")),
        }
        Ok(())
    }

    fn copy(&self, keys: &[u8], positions: impl Iterator<Item = usize>, bytes: usize, data: &mut Vec<u8>) {
        match self.longest {
            ..=8 => self.copy_short::<8>(keys, positions, bytes, data),
            9..=16 => self.copy_short::<16>(keys, positions, bytes, data),
            17..=32 => self.copy_short::<32>(keys, positions, bytes, data),
            _ => {
                data.reserve(bytes);
                for position in positions {
                    let span = self.spans[position];
                    data.extend_from_slice(&keys[span.start..span.start + span.length]);
                }
            }
        }
    }

    /// Copies whole blocks of `SIZE` bytes, each over the end of the one before: a move of known size is
    /// fast, and a copy of a few bytes more or less would be a call.
    fn copy_short<const SIZE: usize>(
        &self,
        keys: &[u8],
        positions: impl Iterator<Item = usize>,
        bytes: usize,
        data: &mut Vec<u8>,
    ) {
        let padded: Vec<[u8; SIZE]> = self.spans.iter().map(|span| padded(keys, *span)).collect();
        let mut at = data.len();
        let end = at + bytes;
        data.resize(end + SIZE, 0);
        for position in positions {
            data[at..at + SIZE].copy_from_slice(&padded[position]);
            at += self.spans[position].length;
        }
        data.truncate(end);
    }
}

fn padded<const SIZE: usize>(keys: &[u8], span: ValueSpan) -> [u8; SIZE] {
    let mut padded = [0; SIZE];
    padded[..span.length].copy_from_slice(&keys[span.start..span.start + span.length]);
    padded
}

fn string_places(data: &[u8], count: usize) -> Vec<ValueSpan> {
    let mut at = 0;
    let span = |_| {
        let length = read_varint(&data[at..]).expect("the strings were walked when they were taken");
        let span = ValueSpan { start: at, length: varint_length(length) + length as usize };
        at += span.length;
        span
    };
    (0..count).map(span).collect()
}
