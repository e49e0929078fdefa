//! Values of one column as its pages have them, without NULLs.

use windrow_columns::NotParsedReason;

use super::schema::Physical;
use crate::budget::Budget;

#[derive(Clone, Debug)]
pub(super) enum LeafValues {
    /// Booleans of one byte each.
    Bools(Vec<u8>),
    Fixed {
        width: usize,
        data: Vec<u8>,
    },
    Strings {
        ends: Vec<usize>,
        data: Vec<u8>,
    },
}

impl LeafValues {
    pub(super) fn empty(physical: Physical) -> Self {
        let fixed = |width| LeafValues::Fixed { width, data: Vec::new() };
        match physical {
            Physical::Bool => LeafValues::Bools(Vec::new()),
            Physical::Int32 | Physical::Float => fixed(4),
            Physical::Int64 | Physical::Double => fixed(8),
            Physical::FixedBytes(width) => fixed(width),
            Physical::Bytes => LeafValues::Strings { ends: Vec::new(), data: Vec::new() },
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            LeafValues::Bools(data) => data.len(),
            LeafValues::Fixed { width, data } => data.len() / width,
            LeafValues::Strings { ends, .. } => ends.len(),
        }
    }

    pub(super) fn push_bytes(&mut self, value: &[u8]) {
        if let LeafValues::Strings { ends, data } = self {
            data.extend_from_slice(value);
            ends.push(data.len());
        }
    }

    /// Appends the values of a dictionary at these positions.
    pub(super) fn look_up(
        &mut self,
        dictionary: &LeafValues,
        indices: &[u32],
        budget: &mut Budget,
    ) -> Result<(), NotParsedReason> {
        let count = dictionary.len();
        if indices.iter().any(|index| *index as usize >= count) {
            return Err(NotParsedReason::Syntax);
        }
        match (self, dictionary) {
            (LeafValues::Bools(data), LeafValues::Bools(known)) => {
                data.extend(indices.iter().map(|index| known[*index as usize]));
            }
            (LeafValues::Fixed { width, data }, LeafValues::Fixed { data: known, .. }) => {
                budget.take_values(indices.len(), *width)?;
                data.reserve(indices.len() * *width);
                for index in indices {
                    let start = *index as usize * *width;
                    data.extend_from_slice(&known[start..start + *width]);
                }
            }
            (LeafValues::Strings { ends, data }, LeafValues::Strings { ends: known_ends, data: known }) => {
                let start = |index: usize| if index == 0 { 0 } else { known_ends[index - 1] };
                let lengths = indices.iter().map(|index| known_ends[*index as usize] - start(*index as usize));
                let bytes = lengths.fold(0usize, usize::saturating_add);
                budget.take(bytes)?;
                data.reserve(bytes);
                for index in indices {
                    let index = *index as usize;
                    data.extend_from_slice(&known[start(index)..known_ends[index]]);
                    ends.push(data.len());
                }
            }
            _ => return Err(NotParsedReason::Syntax),
        }
        Ok(())
    }
}
