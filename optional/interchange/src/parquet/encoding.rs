//! Decodes the encodings of values within a data page.

use super::hybrid;
use super::schema::Physical;
use super::values::LeafValues;
use crate::input::Input;

/// Appends `count` plain values.
pub(super) fn plain(input: &mut Input<'_>, count: usize, values: &mut LeafValues) -> Option<()> {
    match values {
        LeafValues::Bools(data) => {
            let bits = input.take(count.div_ceil(8))?;
            data.extend((0..count).map(|row| bits[row / 8] >> (row % 8) & 1));
        }
        LeafValues::Fixed { width, data } => data.extend_from_slice(input.take(count.checked_mul(*width)?)?),
        LeafValues::Strings { .. } => {
            for _ in 0..count {
                let length = input.u32()? as usize;
                values.push_bytes(input.take(length)?);
            }
        }
    }
    Some(())
}

/// Reads booleans as runs, after their length in bytes.
pub(super) fn run_booleans(input: &mut Input<'_>, count: usize, values: &mut LeafValues) -> Option<()> {
    let LeafValues::Bools(data) = values else { return None };
    let bytes = input.u32()? as usize;
    let numbers = hybrid::read(&mut Input::new(input.take(bytes)?), 1, count)?;
    data.extend(numbers.into_iter().map(|number| number as u8));
    Some(())
}

pub(super) fn delta_integers(
    input: &mut Input<'_>,
    count: usize,
    physical: Physical,
    values: &mut LeafValues,
) -> Option<()> {
    let LeafValues::Fixed { data, .. } = values else { return None };
    for number in deltas(input, count)? {
        match physical {
            Physical::Int32 => data.extend_from_slice(&(number as i32).to_le_bytes()),
            Physical::Int64 => data.extend_from_slice(&number.to_le_bytes()),
            _ => return None,
        }
    }
    Some(())
}

pub(super) fn delta_lengths(input: &mut Input<'_>, count: usize, values: &mut LeafValues) -> Option<()> {
    matches!(values, LeafValues::Strings { .. }).then_some(())?;
    for length in deltas(input, count)? {
        values.push_bytes(input.take(usize::try_from(length).ok()?)?);
    }
    Some(())
}

/// Reads strings that begin with a number of bytes of the string before. `room_bytes` limits the growth by
/// such repetition.
pub(super) fn delta_strings(
    input: &mut Input<'_>,
    count: usize,
    values: &mut LeafValues,
    room_bytes: usize,
) -> Option<()> {
    matches!(values, LeafValues::Strings { .. }).then_some(())?;
    let prefixes = deltas(input, count)?;
    let suffixes = deltas(input, count)?;
    let (mut last, mut total) = (Vec::new(), 0usize);
    for (prefix, suffix) in prefixes.into_iter().zip(suffixes) {
        let prefix = usize::try_from(prefix).ok().filter(|prefix| *prefix <= last.len())?;
        let suffix = input.take(usize::try_from(suffix).ok()?)?;
        last.truncate(prefix);
        last.extend_from_slice(suffix);
        total += last.len();
        if total > room_bytes {
            return None;
        }
        values.push_bytes(&last);
    }
    Some(())
}

/// Reads values of which the first bytes come first, then the second bytes, and so on.
pub(super) fn split_bytes(input: &mut Input<'_>, count: usize, values: &mut LeafValues) -> Option<()> {
    let LeafValues::Fixed { width, data } = values else { return None };
    let streams = input.take(count.checked_mul(*width)?)?;
    data.reserve(streams.len());
    for row in 0..count {
        data.extend((0..*width).map(|byte| streams[byte * count + row]));
    }
    Some(())
}

const MAX_BLOCK: u64 = 1 << 16;

/// Reads exactly `count` numbers as differences, bit-packed in small blocks.
fn deltas(input: &mut Input<'_>, count: usize) -> Option<Vec<i64>> {
    let block = input.varint()?;
    let parts = input.varint()?;
    let stated = input.varint()?;
    let first = input.zigzag()?;
    if stated != count as u64 {
        return None;
    }
    if count == 0 {
        return Some(Vec::new());
    }
    let sound = block > 0 && block <= MAX_BLOCK && parts > 0 && block % parts == 0 && (block / parts) % 32 == 0;
    if !sound {
        return None;
    }
    let per_part = (block / parts) as usize;
    let mut numbers = vec![first];
    while numbers.len() < count {
        let smallest = input.zigzag()?;
        let widths = input.take(parts as usize)?;
        for &width in widths {
            if numbers.len() == count {
                break;
            }
            let width = usize::from(width);
            let packed = input.take(per_part / 8 * width)?;
            add_part(packed, width, per_part.min(count - numbers.len()), smallest, &mut numbers)?;
        }
    }
    Some(numbers)
}

fn add_part(packed: &[u8], width: usize, count: usize, smallest: i64, numbers: &mut Vec<i64>) -> Option<()> {
    if width > 64 {
        return None;
    }
    let mut last = *numbers.last()?;
    for index in 0..count {
        let delta = bits(packed, index * width, width);
        last = last.wrapping_add(smallest).wrapping_add(delta as i64);
        numbers.push(last);
    }
    Some(())
}

fn bits(packed: &[u8], at: usize, width: usize) -> u64 {
    if width == 0 {
        return 0;
    }
    let start = at / 8;
    let mut window = [0; 16];
    let bytes = &packed[start..packed.len().min(start + 9)];
    window[..bytes.len()].copy_from_slice(bytes);
    let value = u128::from_le_bytes(window) >> (at % 8);
    (value & ((1u128 << width) - 1)) as u64
}
