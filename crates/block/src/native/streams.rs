//! The streams of a column, as a Native block of revision 0 has them: first what every part of the type has to say
//! about its serialization, depth first, then the values. A column of no rows has neither.

use super::dictionary::{read_dictionary_version, read_low_cardinality};
use super::{Input, NativeError};
use crate::column::{Column, NULL_DISCRIMINATOR};
use crate::types::DataType;

/// Each row's discriminator has a byte of its own.
const VARIANT_BASIC: u64 = 0;

pub(crate) fn read_column(input: &mut Input<'_>, data_type: &DataType, rows: usize) -> Result<Column, NativeError> {
    if rows == 0 {
        return Ok(Column::empty(data_type));
    }
    read_prefixes(input, data_type)?;
    read_values(input, data_type, rows)
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
            if input.u64()? != VARIANT_BASIC {
                return Err(NativeError::Malformed("a Variant of an unknown kind"));
            }
            alternatives.iter().try_for_each(|alternative| read_prefixes(input, alternative))
        }
        _ => Ok(()),
    }
}

/// The values of a part of a type, of which there may be none.
pub(super) fn read_values(input: &mut Input<'_>, data_type: &DataType, rows: usize) -> Result<Column, NativeError> {
    if let Some(width) = data_type.fixed_width() {
        return Ok(Column::Fixed { width, data: input.take_values(rows, width)?.to_vec() });
    }
    Ok(match data_type.plain() {
        DataType::String => Column::Strings { rows, data: input.take_strings(rows)?.to_vec() },
        DataType::LowCardinality(inner) => read_low_cardinality(input, inner, rows)?,
        DataType::Nullable(inner) => {
            let nulls = read_null_marks(input, rows)?;
            Column::Nullable { nulls, inner: Box::new(read_values(input, inner, rows)?) }
        }
        DataType::Array(inner) => {
            let list = read_offsets(input, rows)?;
            Column::Array { inner: Box::new(read_values(input, inner, list.values)?), offsets: list.offsets }
        }
        DataType::Map(key, value) => {
            let list = read_offsets(input, rows)?;
            let pairs = vec![read_values(input, key, list.values)?, read_values(input, value, list.values)?];
            Column::Array { offsets: list.offsets, inner: Box::new(Column::Tuple { elements: pairs }) }
        }
        DataType::Tuple(tuple) => {
            let elements = tuple.elements.iter().map(|element| read_values(input, element, rows));
            Column::Tuple { elements: elements.collect::<Result<_, _>>()? }
        }
        DataType::Variant(alternatives) => read_variant(input, alternatives, rows)?,
        _ => return Err(NativeError::Malformed("a type that has no known layout")),
    })
}

fn read_variant(input: &mut Input<'_>, types: &[DataType], rows: usize) -> Result<Column, NativeError> {
    let discriminators = input.take(rows)?.to_vec();
    let mut counts = vec![0; types.len()];
    for discriminator in discriminators.iter().filter(|mark| **mark != NULL_DISCRIMINATOR) {
        let count = counts.get_mut(usize::from(*discriminator));
        *count.ok_or(NativeError::Malformed("a discriminator of no alternative"))? += 1;
    }
    let alternatives = types.iter().zip(counts).map(|(data_type, count)| read_values(input, data_type, count));
    Ok(Column::Variant { discriminators, alternatives: alternatives.collect::<Result<_, _>>()? })
}

fn read_null_marks(input: &mut Input<'_>, rows: usize) -> Result<Vec<u8>, NativeError> {
    let nulls = input.take(rows)?;
    if nulls.iter().any(|is_null| *is_null > 1) {
        return Err(NativeError::Malformed("a NULL mark that is neither 0 nor 1"));
    }
    Ok(nulls.to_vec())
}

struct Offsets {
    offsets: Vec<u64>,
    /// How many values the lists have together.
    values: usize,
}

fn read_offsets(input: &mut Input<'_>, rows: usize) -> Result<Offsets, NativeError> {
    let offsets: Vec<u64> = input
        .take_values(rows, 8)?
        .chunks_exact(8)
        .map(|chunk| u64::from_le_bytes(chunk.try_into().expect("chunks are of eight bytes")))
        .collect();
    if !offsets.is_sorted() {
        return Err(NativeError::Malformed("array offsets that go back"));
    }
    let values = offsets.last().copied().unwrap_or(0);
    let values = usize::try_from(values).map_err(|_| NativeError::Truncated)?;
    Ok(Offsets { offsets, values })
}
