//! The rows that have come to their end, and the callers who wait for that.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::calls::{Calls, OnReached, OnSettled};
use crate::errors::WriteError;

/// Positions that are settled: all before `low`, and ranges behind it.
#[derive(Default)]
pub(super) struct Settled {
    low: u64,
    behind: BTreeMap<u64, u64>,
    watched: BTreeMap<u64, Watched>,
    flushes: Vec<Flush>,
}

/// One append that somebody waits for.
struct Watched {
    end: u64,
    left: u64,
    error: Option<Arc<WriteError>>,
    call: OnSettled,
}

struct Flush {
    before: u64,
    call: OnReached,
}

impl Settled {
    #[cfg(test)]
    pub(super) fn low(&self) -> u64 {
        self.low
    }

    /// Returns the number of rows that have come to their end.
    pub(super) fn count(&self) -> u64 {
        self.low + self.behind.iter().map(|(start, end)| end - start).sum::<u64>()
    }

    /// Waits for rows that have just been appended.
    pub(super) fn watch(&mut self, positions: Range<u64>, call: OnSettled) {
        let left = positions.end - positions.start;
        self.watched.insert(positions.start, Watched { end: positions.end, left, error: None, call });
    }

    /// Waits until all rows before a position are settled.
    pub(super) fn flush(&mut self, before: u64, call: OnReached, calls: &mut Calls) {
        match before <= self.low {
            true => calls.push(call),
            false => self.flushes.push(Flush { before, call }),
        }
    }

    /// Returns the position before which somebody waits for all rows.
    pub(super) fn flush_before(&self) -> u64 {
        self.flushes.iter().map(|flush| flush.before).max().unwrap_or(0)
    }

    pub(super) fn settle(&mut self, positions: Range<u64>, error: Option<&Arc<WriteError>>, calls: &mut Calls) {
        if positions.is_empty() {
            return;
        }
        self.tell_watchers(&positions, error, calls);
        self.behind.insert(positions.start, positions.end);
        while let Some(entry) = self.behind.first_entry() {
            if *entry.key() > self.low {
                break;
            }
            self.low = self.low.max(entry.remove());
        }
        let low = self.low;
        let (reached, later) = std::mem::take(&mut self.flushes).into_iter().partition(|flush| flush.before <= low);
        self.flushes = later;
        Vec::<Flush>::into_iter(reached).for_each(|flush| calls.push(flush.call));
    }

    /// Ends all waiting, since the writer ends. Callers who wait for rows are told that they were not stored.
    pub(super) fn let_go(self, error: &Arc<WriteError>, calls: &mut Calls) {
        for watched in self.watched.into_values() {
            calls.settled(watched.call, Err(watched.error.unwrap_or_else(|| error.clone())));
        }
        self.flushes.into_iter().for_each(|flush| calls.push(flush.call));
    }

    fn tell_watchers(&mut self, positions: &Range<u64>, error: Option<&Arc<WriteError>>, calls: &mut Calls) {
        let mut ended = Vec::new();
        // They don't overlap, so the first that ends before these rows ends the search.
        for (&start, watched) in self.watched.range_mut(..positions.end).rev() {
            if watched.end <= positions.start {
                break;
            }
            watched.left -= watched.end.min(positions.end) - start.max(positions.start);
            watched.error = watched.error.take().or_else(|| error.cloned());
            if watched.left == 0 {
                ended.push(start);
            }
        }
        for watched in ended.into_iter().rev().filter_map(|start| self.watched.remove(&start)) {
            calls.settled(watched.call, watched.error.map_or(Ok(()), Err));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    fn settle(settled: &mut Settled, positions: Range<u64>) {
        let mut calls = Calls::default();
        settled.settle(positions, None, &mut calls);
        calls.run_others();
    }

    #[test]
    fn rows_settle_in_any_order() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let mut settled = Settled::default();
        let mut calls = Calls::default();
        for (start, end) in [(0, 4), (4, 6), (6, 20)] {
            let told = told.clone();
            settled.watch(start..end, Box::new(move |_| told.lock().unwrap().push(start)));
        }
        let flushed = told.clone();
        settled.flush(10, Box::new(move || flushed.lock().unwrap().push(100)), &mut calls);
        settle(&mut settled, 3..10);
        assert_eq!((settled.low(), told.lock().unwrap().clone()), (0, vec![4]));
        settle(&mut settled, 0..3);
        assert_eq!((settled.low(), told.lock().unwrap().clone()), (10, vec![4, 0, 100]));
        settle(&mut settled, 10..20);
        assert_eq!((settled.low(), told.lock().unwrap().clone()), (20, vec![4, 0, 100, 6]));
        assert_eq!(settled.flush_before(), 0);
    }
}
