use super::input::BinaryInput;
use super::NotParsedReason;
use crate::column::Column;
use crate::wire::NULL_DISCRIMINATOR;

/// Reads one value into a column.
#[inline]
pub(super) fn read_value(input: &mut BinaryInput<'_>, column: &mut Column) -> Result<(), NotParsedReason> {
    match column {
        Column::Fixed { width, data } => read_fixed(input, *width, data),
        Column::Strings { rows, data } => {
            data.extend_from_slice(input.string_with_length()?);
            *rows += 1;
            Ok(())
        }
        nested => read_nested(input, nested),
    }
}

/// Reads a value of fixed width. A copy of a size known beforehand takes a move or two.
#[inline]
fn read_fixed(input: &mut BinaryInput<'_>, width: usize, data: &mut Vec<u8>) -> Result<(), NotParsedReason> {
    match width {
        1 => data.push(input.byte()?),
        2 => data.extend_from_slice(input.array::<2>()?),
        4 => data.extend_from_slice(input.array::<4>()?),
        8 => data.extend_from_slice(input.array::<8>()?),
        16 => data.extend_from_slice(input.array::<16>()?),
        _ => data.extend_from_slice(input.take(width)?),
    }
    Ok(())
}

/// Reads a nested value. The depth is that of the column's type, which is bounded.
fn read_nested(input: &mut BinaryInput<'_>, column: &mut Column) -> Result<(), NotParsedReason> {
    match column {
        Column::Nullable { nulls, inner } => {
            if input.byte()? == 0 {
                nulls.push(0);
                return read_value(input, inner);
            }
            input.fill(inner.zero_bytes())?;
            nulls.push(1);
            inner.push_zero();
            Ok(())
        }
        Column::Array { offsets, inner } => {
            let count = input.length()?;
            read_list(input, count, inner)?;
            offsets.push(offsets.last().copied().unwrap_or(0) + count as u64);
            Ok(())
        }
        Column::Tuple { elements } => elements.iter_mut().try_for_each(|element| read_value(input, element)),
        Column::Variant { discriminators, alternatives } => {
            let discriminator = input.byte()?;
            match alternatives.get_mut(usize::from(discriminator)) {
                Some(alternative) => read_value(input, alternative)?,
                None if discriminator == NULL_DISCRIMINATOR => {}
                None => return Err(NotParsedReason::Value),
            }
            discriminators.push(discriminator);
            Ok(())
        }
        Column::Fixed { .. } | Column::Strings { .. } => read_value(input, column),
    }
}

fn read_list(input: &mut BinaryInput<'_>, count: usize, inner: &mut Column) -> Result<(), NotParsedReason> {
    if let Column::Fixed { width, data } = inner {
        let bytes = count.checked_mul(*width).ok_or(NotParsedReason::Syntax)?;
        data.extend_from_slice(input.take(bytes)?);
        return Ok(());
    }
    // Every value takes a byte at least, so a count that is made up comes to the payload's end soon.
    (0..count).try_for_each(|_| read_value(input, inner))
}
