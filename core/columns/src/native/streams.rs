//! The streams of a column, as a Native block of revision 0 has them: first the serialization of every part
//! of the type, depth first, then the values. A column of no rows has neither.
//!
//! Values go straight behind those that a column already has, so that many blocks become one without another
//! copy.

use super::dictionary::{read_dictionary_version, read_low_cardinality};
use super::{Input, NativeError};
use crate::column::Column;
use crate::types::DataType;
use crate::wire::{NULL_DISCRIMINATOR, PLAIN_DISCRIMINATORS};

/// Appends `rows` rows to a column in the type's layout. After an error the column is of no use.
pub(crate) fn read_column(
    input: &mut Input<'_>,
    data_type: &DataType,
    rows: usize,
    column: &mut Column,
) -> Result<(), NativeError> {
    if rows == 0 {
        return Ok(());
    }
    read_prefixes(input, data_type)?;
    read_values(input, data_type, rows, column)
}

fn read_prefixes(input: &mut Input<'_>, data_type: &DataType) -> Result<(), NativeError> {
    match data_type.plain() {
        DataType::LowCardinality(_) => read_dictionary_version(input),
        DataType::Array(inner) | DataType::Nullable(inner) => read_prefixes(input, inner),
        DataType::Map(key, value) => {
            read_prefixes(input, key)?;
            read_prefixes(input, value)
        }
        DataType::Tuple(tuple) => tuple.elements.iter().try_for_each(|element| read_prefixes(input, element)),
        DataType::Variant(alternatives) => {
            if input.u64()? != PLAIN_DISCRIMINATORS {
                return Err(NativeError::Malformed("a Variant of an unknown kind"));
            }
            alternatives.iter().try_for_each(|alternative| read_prefixes(input, alternative))
        }
        _ => Ok(()),
    }
}

/// Reads the values of a part of a type, of which there may be none.
pub(super) fn read_values(
    input: &mut Input<'_>,
    data_type: &DataType,
    rows: usize,
    column: &mut Column,
) -> Result<(), NativeError> {
    match (data_type.plain(), column) {
        (DataType::LowCardinality(inner), column) => read_low_cardinality(input, inner, rows, column)?,
        (_, Column::Fixed { width, data }) => data.extend_from_slice(input.take_values(rows, *width)?),
        (_, Column::Strings { rows: count, data }) => {
            data.extend_from_slice(input.take_strings(rows)?);
            *count += rows;
        }
        (DataType::Nullable(inner), Column::Nullable { nulls, inner: values }) => {
            read_null_marks(input, rows, nulls)?;
            read_values(input, inner, rows, values)?;
        }
        (DataType::Array(inner), Column::Array { offsets, inner: values }) => {
            let count = read_offsets(input, rows, offsets)?;
            read_values(input, inner, count, values)?;
        }
        (DataType::Map(key, value), Column::Array { offsets, inner }) => {
            let count = read_offsets(input, rows, offsets)?;
            read_elements(input, [&**key, &**value].into_iter(), count, inner)?;
        }
        (DataType::Tuple(tuple), column) => read_elements(input, tuple.elements.iter(), rows, column)?,
        (DataType::Variant(types), Column::Variant { discriminators, alternatives }) => {
            let counts = read_discriminators(input, rows, types.len(), discriminators)?;
            for ((data_type, count), alternative) in types.iter().zip(counts).zip(alternatives) {
                read_values(input, data_type, count, alternative)?;
            }
        }
        _ => return Err(NativeError::Malformed("a type that has no known layout")),
    }
    Ok(())
}

fn read_elements<'t>(
    input: &mut Input<'_>,
    types: impl Iterator<Item = &'t DataType>,
    rows: usize,
    column: &mut Column,
) -> Result<(), NativeError> {
    let Column::Tuple { elements } = column else {
        return Err(NativeError::Malformed("a type that has no known layout"));
    };
    types.zip(elements).try_for_each(|(data_type, element)| read_values(input, data_type, rows, element))
}

fn read_null_marks(input: &mut Input<'_>, rows: usize, nulls: &mut Vec<u8>) -> Result<(), NativeError> {
    let marks = input.take(rows)?;
    if marks.iter().fold(0, |all, mark| all | mark) > 1 {
        return Err(NativeError::Malformed("a NULL mark that is neither 0 nor 1"));
    }
    nulls.extend_from_slice(marks);
    Ok(())
}

/// Appends the offsets of `rows` lists; returns the number of values that they have together.
fn read_offsets(input: &mut Input<'_>, rows: usize, offsets: &mut Vec<u64>) -> Result<usize, NativeError> {
    let bytes = input.take_values(rows, 8)?;
    let base = offsets.last().copied().unwrap_or(0);
    let mut last = 0;
    offsets.reserve(rows);
    for chunk in bytes.chunks_exact(8) {
        let offset = u64::from_le_bytes(chunk.try_into().expect("chunks are of eight bytes"));
        if offset < last {
            return Err(NativeError::Malformed("array offsets that go back"));
        }
        last = offset;
        offsets.push(base.checked_add(offset).ok_or(NativeError::Truncated)?);
    }
    usize::try_from(last).map_err(|_| NativeError::Truncated)
}

/// Appends the discriminators of `rows` rows; returns the number of rows of each alternative.
fn read_discriminators(
    input: &mut Input<'_>,
    rows: usize,
    alternatives: usize,
    discriminators: &mut Vec<u8>,
) -> Result<Vec<usize>, NativeError> {
    let marks = input.take(rows)?;
    let mut counts = vec![0; alternatives];
    for mark in marks.iter().filter(|mark| **mark != NULL_DISCRIMINATOR) {
        let count = counts.get_mut(usize::from(*mark));
        *count.ok_or(NativeError::Malformed("a discriminator of no alternative"))? += 1;
    }
    discriminators.extend_from_slice(marks);
    Ok(counts)
}
