/// A set of column positions: which of a plan's columns a block carries.
///
/// Up to 64 columns need no allocation. Trailing zero words are never kept, so that equal sets compare equal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Present {
    first: u64,
    more: Vec<u64>,
}

impl Present {
    /// Returns the set of the positions `0..columns`.
    pub fn all(columns: usize) -> Self {
        let mut present = Self::default();
        for column in 0..columns {
            present.insert(column);
        }
        present
    }

    pub fn contains(&self, column: usize) -> bool {
        if column < 64 {
            return self.first >> column & 1 == 1;
        }
        self.more.get(column / 64 - 1).is_some_and(|word| word >> (column % 64) & 1 == 1)
    }

    pub fn insert(&mut self, column: usize) {
        if column < 64 {
            self.first |= 1 << column;
            return;
        }
        let word = column / 64 - 1;
        if word >= self.more.len() {
            self.more.resize(word + 1, 0);
        }
        self.more[word] |= 1 << (column % 64);
    }

    /// Returns the number of columns in the set.
    pub fn count(&self) -> usize {
        (self.first.count_ones() + self.more.iter().map(|word| word.count_ones()).sum::<u32>()) as usize
    }

    /// Returns the positions in the set, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        (0..64 * (1 + self.more.len())).filter(|column| self.contains(*column))
    }

    pub(crate) fn clear(&mut self) {
        self.first = 0;
        self.more.clear();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first == 0 && self.more.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::Present;

    #[test]
    fn positions_beyond_one_word_are_kept_and_compared() {
        let mut present = Present::default();
        for column in [3, 63, 64, 200] {
            assert!(!present.contains(column));
            present.insert(column);
            assert!(present.contains(column));
        }
        assert_eq!(present.iter().collect::<Vec<_>>(), [3, 63, 64, 200]);
        assert_eq!(present.count(), 4);
        assert_ne!(present, Present::all(4));
        assert_eq!(Present::all(130).count(), 130);
        assert_eq!(Present::all(130).iter().last(), Some(129));
    }
}
