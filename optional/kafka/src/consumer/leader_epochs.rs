//! The epochs of the leaders that wrote the records read of a partition. With them, a later leader is asked
//! whether its log has these records.

use std::collections::VecDeque;

use crate::batch::Span;

/// Largest number of remembered epochs. An epoch ends with an election: there are few between what was read
/// and what is committed.
const MAX_REMEMBERED: usize = 100;

/// Epochs by offset. An epoch that is returned is exactly that of the record: with one that is too early, a
/// whole log would seem to be cut.
#[derive(Debug, Default)]
pub(crate) struct LeaderEpochs {
    /// Offsets from which on an epoch applies, ascending. The epoch is `None` where it is not known.
    from: VecDeque<(i64, Option<i32>)>,
    /// Offset from which on nothing is known.
    end: i64,
}

impl LeaderEpochs {
    /// Begins at an offset. `leader_epoch` is the epoch of the record before it, where a caller knows it
    /// better than the records that were read here.
    pub fn begin(&mut self, offset: i64, leader_epoch: Option<i32>) {
        match leader_epoch {
            Some(_) => self.from = VecDeque::from([(offset.saturating_sub(1), leader_epoch)]),
            None if offset > self.end => self.from.clear(),
            None => self.from.retain(|(from, _)| *from < offset),
        }
        self.end = offset;
    }

    /// Adds a batch that was read and follows those before.
    pub fn note(&mut self, batch: Span) {
        if batch.next_offset <= self.end {
            return;
        }
        let leader_epoch = Some(batch.leader_epoch).filter(|epoch| *epoch >= 0);
        // The first one is sent whole, also where reading began within it.
        let first_offset = batch.first_offset.max(self.end);
        let known = self.from.back().map(|(_, epoch)| *epoch);
        if known != Some(leader_epoch) {
            // Of what compaction has taken between two epochs, nobody knows which it was of.
            if first_offset > self.end && known.is_some() {
                self.from.push_back((self.end, None));
            }
            self.from.push_back((first_offset, leader_epoch));
        }
        self.end = batch.next_offset;
        while self.from.len() > MAX_REMEMBERED {
            self.from.pop_front();
        }
    }

    /// Returns the epoch of the record before this offset, or `None` if it is not known.
    pub fn before(&self, offset: i64) -> Option<i32> {
        let is_known = offset <= self.end;
        self.from.iter().rev().find(|(from, _)| is_known && *from < offset)?.1
    }

    /// Forgets epochs that end before this offset, since nobody will ask for them any more.
    pub fn forget_before(&mut self, offset: i64) {
        while self.from.get(1).is_some_and(|(from, _)| *from < offset) {
            self.from.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(start: i64, leader_epoch: Option<i32>, batches: &[(i64, i64, i32)]) -> LeaderEpochs {
        let mut epochs = LeaderEpochs::default();
        epochs.begin(start, leader_epoch);
        for (first_offset, next_offset, leader_epoch) in batches.iter().copied() {
            epochs.note(Span { first_offset, next_offset, leader_epoch });
        }
        epochs
    }

    fn before<const N: usize>(epochs: &LeaderEpochs, offsets: [i64; N]) -> [Option<i32>; N] {
        offsets.map(|offset| epochs.before(offset))
    }

    #[test]
    fn every_record_has_the_epoch_of_its_batch() {
        let epochs = read(0, None, &[(0, 10, 3), (10, 20, 3), (20, 25, 5)]);
        assert_eq!(
            before(&epochs, [0, 1, 10, 20, 21, 25, 26]),
            [None, Some(3), Some(3), Some(3), Some(5), Some(5), None]
        );
        let epochs = read(15, Some(2), &[(10, 20, 3)]);
        assert_eq!(before(&epochs, [14, 15, 16, 20]), [None, Some(2), Some(3), Some(3)]);
    }

    #[test]
    fn what_is_not_known_is_not_guessed() {
        // Compaction took what was between them, and perhaps a whole epoch.
        let epochs = read(0, None, &[(0, 10, 3), (20, 30, 3), (40, 50, 7), (50, 60, -1), (60, 70, 8)]);
        assert_eq!(
            before(&epochs, [20, 30, 31, 40, 41, 50, 51, 60, 61]),
            [Some(3), Some(3), None, None, Some(7), Some(7), None, None, Some(8)]
        );
        let first_is_gone = read(5, None, &[(20, 30, 3)]);
        assert_eq!(before(&first_is_gone, [5, 20, 21]), [None, None, Some(3)]);
    }

    #[test]
    fn what_was_read_is_known_also_where_reading_goes_on_before_its_end() {
        let mut epochs = read(0, None, &[(0, 10, 3), (10, 20, 4)]);
        epochs.begin(12, None);
        assert_eq!(before(&epochs, [10, 12, 13]), [Some(3), Some(4), None]);
        epochs.begin(10, None);
        assert_eq!(epochs.before(10), Some(3));
        // Behind what has expired.
        epochs.begin(11, None);
        assert_eq!(epochs.before(11), None);
        epochs.begin(11, Some(6));
        assert_eq!(before(&epochs, [10, 11]), [None, Some(6)]);
    }

    #[test]
    fn little_is_remembered() {
        let mut epochs = read(0, None, &[(0, 10, 3), (10, 20, 4), (20, 30, 5)]);
        epochs.forget_before(20);
        assert_eq!(before(&epochs, [10, 20, 21]), [None, Some(4), Some(5)]);
        epochs.forget_before(30);
        assert_eq!(before(&epochs, [20, 30]), [None, Some(5)]);
        let many: Vec<(i64, i64, i32)> = (0..1_000).map(|at| (at, at + 1, at as i32)).collect();
        let epochs = read(0, None, &many);
        assert_eq!(epochs.from.len(), MAX_REMEMBERED);
        assert_eq!(before(&epochs, [1, 999, 1_000]), [None, Some(998), Some(999)]);
    }
}
