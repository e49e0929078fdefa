//! A `LowCardinality` unfolded: every row with its own value.

use crate::column::Column;

/// Returns the rows' values. A dictionary holds scalars only.
pub(super) fn unfolded(indices: &[u32], dictionary: &Column) -> Column {
    match dictionary {
        Column::Fixed { width, data } => Column::Fixed { width: *width, data: fixed(indices, *width, data) },
        Column::Strings { offsets, data } => strings(indices, offsets, data),
        // No decoder makes others.
        _ => Column::Nothing { rows: indices.len() },
    }
}

fn fixed(indices: &[u32], width: usize, data: &[u8]) -> Vec<u8> {
    let mut unfolded = Vec::with_capacity(indices.len() * width);
    for index in indices {
        let start = *index as usize * width;
        unfolded.extend_from_slice(&data[start..start + width]);
    }
    unfolded
}

fn strings(indices: &[u32], offsets: &[i32], data: &[u8]) -> Column {
    let range = |index: &u32| offsets[*index as usize] as usize..offsets[*index as usize + 1] as usize;
    let bytes = indices.iter().map(|index| range(index).len()).sum();
    let (mut ends, mut unfolded) = (Vec::with_capacity(indices.len() + 1), Vec::with_capacity(bytes));
    ends.push(0);
    for index in indices {
        unfolded.extend_from_slice(&data[range(index)]);
        ends.push(unfolded.len() as i32);
    }
    Column::Strings { offsets: ends, data: unfolded }
}
