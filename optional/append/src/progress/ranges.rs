//! The numbers that have come, as ranges: most of the time it is one.

use std::collections::BTreeMap;

/// A set of numbers. Takes memory by its gaps, not by its size.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges {
    /// The last number of each range, by its first. No two ranges touch.
    last_of: BTreeMap<u64, u64>,
}

impl Ranges {
    pub(crate) fn contains(&self, number: u64) -> bool {
        self.last_of.range(..=number).next_back().is_some_and(|(_, &last)| last >= number)
    }

    /// Adds a number that is not in the set yet.
    pub(crate) fn insert(&mut self, number: u64) {
        debug_assert!(!self.contains(number));
        let last = match number.checked_add(1).and_then(|behind| self.last_of.remove(&behind)) {
            Some(last) => last,
            None => number,
        };
        let before = self.last_of.range_mut(..number).next_back().filter(|(_, last)| **last + 1 == number);
        match before {
            Some((_, end)) => *end = last,
            None => {
                self.last_of.insert(number, last);
            }
        }
    }

    /// Returns the lowest number that is not in the set.
    pub(crate) fn lowest_missing(&self) -> u64 {
        self.last_of.get(&0).map_or(0, |last| last + 1)
    }

    /// Returns the highest number in the set.
    pub(crate) fn highest(&self) -> Option<u64> {
        self.last_of.values().next_back().copied()
    }

    /// Returns the lowest ranges, both ends included.
    pub(crate) fn lowest(&self, max_ranges: usize) -> Vec<[u64; 2]> {
        self.last_of.iter().take(max_ranges).map(|(&first, &last)| [first, last]).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ranges_are_a_set() {
        for seed in 0..2000 {
            let mut random = fastrand::Rng::with_seed(seed);
            let (mut ranges, mut model) = (Ranges::default(), BTreeSet::new());
            for _ in 0..random.usize(..60) {
                let number = random.u64(..40);
                assert_eq!(ranges.contains(number), model.contains(&number), "seed {seed}");
                if model.insert(number) {
                    ranges.insert(number);
                }
                let missing = (0..).find(|number| !model.contains(number));
                assert_eq!(Some(ranges.lowest_missing()), missing, "seed {seed}");
                assert_eq!(ranges.highest(), model.last().copied(), "seed {seed}");
                let listed: Vec<u64> = ranges.lowest(99).iter().flat_map(|&[first, last]| first..=last).collect();
                assert!(listed.iter().eq(model.iter()), "seed {seed}: {listed:?}");
                assert!(
                    ranges.lowest(99).windows(2).all(|pair| pair[0][1] + 1 < pair[1][0]),
                    "seed {seed}: they touch"
                );
            }
        }
    }
}
