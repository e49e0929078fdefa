//! Sets of batch numbers, as ranges with both ends included.

use serde::Deserialize;

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct Numbers {
    ranges: Vec<[u64; 2]>,
}

impl Numbers {
    pub(crate) fn contains(&self, number: u64) -> bool {
        self.ranges.iter().any(|&[first, last]| (first..=last).contains(&number))
    }
}
