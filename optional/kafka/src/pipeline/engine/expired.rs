//! Messages of a partition that had expired before they were fetched. They are passed over only when all
//! messages that were fetched before them are read.

use std::ops::Range;

#[derive(Debug, Default)]
pub(crate) struct Expired(Option<Range<i64>>);

impl Expired {
    /// Notes expired offsets. Nothing is fetched from the first of them on, until fetching goes on at their end.
    pub(crate) fn note(&mut self, offsets: Range<i64>) {
        self.0 = Some(offsets);
    }

    pub(crate) fn clear(&mut self) {
        self.0 = None;
    }

    /// Returns the offsets to pass over, if all messages before them are gathered.
    pub(crate) fn take(&mut self, gathered: i64) -> Option<Range<i64>> {
        let offsets = self.0.take_if(|offsets| offsets.start <= gathered)?;
        (gathered < offsets.end).then_some(gathered..offsets.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_wait_until_what_comes_before_is_gathered() {
        let mut expired = Expired::default();
        assert_eq!(expired.take(0), None);
        expired.note(30..50);
        assert_eq!(expired.take(10), None);
        assert_eq!(expired.take(29), None);
        assert_eq!(expired.take(30), Some(30..50));
        assert_eq!(expired.take(30), None, "once");
    }

    #[test]
    fn the_latest_word_counts() {
        let mut expired = Expired::default();
        expired.note(30..50);
        // It was started again from an earlier offset.
        expired.note(20..55);
        assert_eq!(expired.take(20), Some(20..55));
        expired.note(30..50);
        expired.clear();
        assert_eq!(expired.take(30), None);
    }

    #[test]
    fn what_was_gathered_all_the_same_is_not_passed_over() {
        let mut expired = Expired::default();
        expired.note(30..50);
        assert_eq!(expired.take(40), Some(40..50));
        expired.note(30..50);
        assert_eq!(expired.take(50), None);
        assert_eq!(expired.take(30), None);
    }
}
