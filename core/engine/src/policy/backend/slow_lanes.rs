//! Lanes whose last flush took far longer than others: behind a lock, or with its own retries.

use std::collections::{BTreeMap, HashMap};

use super::LaneId;

/// The most lanes that are remembered. A lane that is gone, or gets no inserts any more, never comes in time
/// again, so above this number the lane that was late longest ago is dropped. If that lane is still there, it
/// takes a slot for one lease and is known again. More such lanes at a time are no exception: the backend
/// itself is slow then.
const MOST: usize = 1_000;

#[derive(Clone, Debug, Default)]
pub(super) struct SlowLanes {
    next: u64,
    lanes: HashMap<LaneId, u64>,
    /// Lanes by the order in which they were late last.
    by_age: BTreeMap<u64, LaneId>,
}

impl SlowLanes {
    pub(super) fn contains(&self, lane: LaneId) -> bool {
        self.lanes.contains_key(&lane)
    }

    pub(super) fn was_late(&mut self, lane: LaneId) {
        self.came_in_time(lane);
        self.lanes.insert(lane, self.next);
        self.by_age.insert(self.next, lane);
        self.next += 1;
        if self.by_age.len() > MOST {
            self.by_age.pop_first().map(|(_, oldest)| self.lanes.remove(&oldest));
        }
    }

    pub(super) fn came_in_time(&mut self, lane: LaneId) {
        self.lanes.remove(&lane).map(|age| self.by_age.remove(&age));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_that_was_late_longest_ago_is_dropped() {
        let mut slow_lanes = SlowLanes::default();
        for lane in 0..MOST as u64 {
            slow_lanes.was_late(LaneId(lane));
        }
        // Late again: it is no longer the oldest.
        slow_lanes.was_late(LaneId(0));
        slow_lanes.was_late(LaneId(MOST as u64));
        assert!(slow_lanes.contains(LaneId(0)) && !slow_lanes.contains(LaneId(1)));
        assert_eq!((slow_lanes.lanes.len(), slow_lanes.by_age.len()), (MOST, MOST));
    }

    #[test]
    fn nothing_is_left_of_one_that_came_in_time() {
        let mut slow_lanes = SlowLanes::default();
        slow_lanes.was_late(LaneId(1));
        slow_lanes.came_in_time(LaneId(1));
        assert!(!slow_lanes.contains(LaneId(1)) && slow_lanes.by_age.is_empty());
    }
}
