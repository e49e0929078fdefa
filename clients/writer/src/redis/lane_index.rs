//! The index of a lane: its entries, its batches, and so the entries that may be released when a batch is
//! done. It does no I/O: it answers with the change to record in Redis.
//!
//! Rows are numbered through a lane. A batch is a range of them; a half of a batch that was cut may cover a
//! part of an entry only. An entry is released when all of its rows are done. Until then the batches that are
//! done, and had a part of it, stay recorded as done. Otherwise the next owner of the lane would take those
//! rows for unsent ones.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use crate::id::BatchId;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Members {
    pub(super) rows: Range<u64>,
    pub(super) is_done: bool,
}

/// The content of a record script. Entries go by the name of their field.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Change {
    pub(super) writes: Vec<(BatchId, Members)>,
    pub(super) forgets: Vec<BatchId>,
    pub(super) releases: Vec<String>,
}

impl Change {
    pub(super) fn is_empty(&self) -> bool {
        self.writes.is_empty() && self.forgets.is_empty() && self.releases.is_empty()
    }
}

struct EntryState {
    rows: u64,
    open_rows: u64,
}

#[derive(Default)]
pub(super) struct LaneIndex {
    entries: BTreeMap<u64, EntryState>,
    batches: HashMap<BatchId, Members>,
}

impl LaneIndex {
    pub(super) fn add_entry(&mut self, entry: Range<u64>) {
        let rows = entry.end - entry.start;
        self.entries.insert(entry.start, EntryState { rows, open_rows: rows });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Takes a batch as Redis has it recorded. If the batch is done, its rows are closed.
    pub(super) fn add_recorded(&mut self, id: BatchId, members: Members) {
        if members.is_done {
            self.close_rows(&members.rows);
        }
        self.batches.insert(id, members);
    }

    pub(super) fn seal(&mut self, id: BatchId, rows: Range<u64>) -> Change {
        let members = Members { rows, is_done: false };
        self.batches.insert(id, members.clone());
        Change { writes: vec![(id, members)], ..Change::default() }
    }

    /// Replaces a batch by its parts: the parent's rows are its children's from now on.
    pub(super) fn split(&mut self, parent: BatchId, children: Vec<(BatchId, Range<u64>)>) -> Change {
        let mut change = Change { forgets: vec![parent], ..Change::default() };
        self.batches.remove(&parent);
        for (id, rows) in children {
            change.writes.append(&mut self.seal(id, rows).writes);
        }
        change
    }

    /// Ends a batch: it is stored, or its rows were given back, and nobody needs them any more. Returns an
    /// empty change if that is known already.
    pub(super) fn done(&mut self, id: BatchId) -> Change {
        let Some(members) = self.batches.get_mut(&id).filter(|members| !members.is_done) else {
            return Change::default();
        };
        members.is_done = true;
        let members = members.clone();
        self.close_rows(&members.rows);
        let mut change = Change { releases: self.release_closed(), ..Change::default() };
        self.forget_released(&mut change);
        if !change.forgets.contains(&id) {
            change.writes.push((id, members));
        }
        change
    }

    /// Releases and forgets without a batch becoming done: completes a record that was cut short by a crash.
    pub(super) fn tidy(&mut self) -> Change {
        let mut change = Change { releases: self.release_closed(), ..Change::default() };
        self.forget_released(&mut change);
        change
    }

    pub(super) fn members(&self, id: BatchId) -> Option<&Members> {
        self.batches.get(&id)
    }

    /// Returns the batches that are not done, oldest rows first.
    pub(super) fn live_batches(&self) -> Vec<BatchId> {
        let mut live: Vec<_> = self.batches.iter().filter(|(_, members)| !members.is_done).collect();
        live.sort_by_key(|(_, members)| members.rows.start);
        live.into_iter().map(|(id, _)| *id).collect()
    }

    /// Returns rows of entries that no batch has, in order: written, never sealed. Writers of earlier
    /// releases sealed a part of an entry when a batch became full in it.
    pub(super) fn unsealed(&self) -> Vec<Range<u64>> {
        let mut sealed: Vec<&Range<u64>> = self.batches.values().map(|members| &members.rows).collect();
        sealed.sort_by_key(|rows| rows.start);
        let mut sealed = sealed.into_iter().peekable();
        let mut free = Vec::new();
        for (&first, entry) in &self.entries {
            let (mut at, end) = (first, first + entry.rows);
            while let Some(rows) = sealed.peek().filter(|rows| rows.start < end) {
                if at < rows.start {
                    free.push(at..rows.start);
                }
                at = at.max(rows.end);
                if rows.end > end {
                    break;
                }
                sealed.next();
            }
            if at < end {
                free.push(at..end);
            }
        }
        free
    }

    /// Returns the entries, as ranges of rows, that a range of rows lies in.
    pub(super) fn entries_of(&self, rows: &Range<u64>) -> Vec<Range<u64>> {
        let before = self.entries.range(..=rows.start).next_back();
        let behind = self.entries.range(rows.start + 1..rows.end.max(rows.start + 1));
        let all = before.into_iter().chain(behind).map(|(&first, entry)| first..first + entry.rows);
        all.filter(|entry| entry.end > rows.start).collect()
    }

    fn close_rows(&mut self, closed: &Range<u64>) {
        for entry in self.entries_of(closed) {
            let overlap = closed.end.min(entry.end) - closed.start.max(entry.start);
            if let Some(state) = self.entries.get_mut(&entry.start) {
                state.open_rows = state.open_rows.saturating_sub(overlap);
            }
        }
    }

    fn release_closed(&mut self) -> Vec<String> {
        let closed: Vec<u64> =
            self.entries.iter().filter(|(_, entry)| entry.open_rows == 0).map(|(&first, _)| first).collect();
        closed.iter().filter_map(|first| self.entries.remove(first).map(|entry| field(*first, entry.rows))).collect()
    }

    fn forget_released(&mut self, change: &mut Change) {
        let has_entries = |members: &Members| !self.entries_of(&members.rows).is_empty();
        let gone = self.batches.iter().filter(|(_, members)| members.is_done && !has_entries(members));
        change.forgets.extend(gone.map(|(id, _)| *id));
        change.forgets.iter().for_each(|id| {
            self.batches.remove(id);
        });
    }
}

/// Returns the name of an entry's field: its first row and how many it has.
pub(super) fn field(first_row: u64, rows: u64) -> String {
    format!("{first_row}:{rows}")
}

pub(super) fn parse_field(name: &str) -> Option<Range<u64>> {
    let (first, rows) = name.split_once(':')?;
    let (first, rows): (u64, u64) = (first.parse().ok()?, rows.parse().ok()?);
    Some(first..first.checked_add(rows)?).filter(|_| rows > 0)
}

impl Members {
    /// Returns the members as recorded in Redis: `L` live or `D` done, and the rows.
    pub(super) fn to_text(&self) -> String {
        format!("{}{}-{}", if self.is_done { 'D' } else { 'L' }, self.rows.start, self.rows.end)
    }

    pub(super) fn parse(text: &str) -> Option<Members> {
        let (is_done, rows) = match text.split_at_checked(1)? {
            ("L", rows) => (false, rows),
            ("D", rows) => (true, rows),
            _ => return None,
        };
        let (start, end) = rows.split_once('-')?;
        let rows: Range<u64> = start.parse().ok()?..end.parse().ok()?;
        (rows.start < rows.end).then_some(Members { rows, is_done })
    }
}

#[cfg(test)]
// One range is meant.
#[allow(clippy::single_range_in_vec_init)]
mod tests {
    use super::*;

    fn id(number: u128) -> BatchId {
        BatchId(number)
    }

    fn index() -> LaneIndex {
        let mut index = LaneIndex::default();
        [0..10, 10..15, 15..20].into_iter().for_each(|entry| index.add_entry(entry));
        index
    }

    #[test]
    fn a_batch_releases_what_it_had_and_nothing_else() {
        let mut index = index();
        index.seal(id(1), 0..15);
        assert_eq!(index.unsealed(), [15..20]);
        let change = index.done(id(1));
        assert_eq!(
            change,
            Change { writes: vec![], forgets: vec![id(1)], releases: vec!["0:10".into(), "10:5".into()] }
        );
        assert_eq!(index.unsealed(), [15..20]);
        assert!(index.done(id(1)).is_empty(), "a second time is no time");
    }

    #[test]
    fn halves_share_an_entry_until_both_are_done() {
        let mut index = index();
        index.seal(id(1), 0..10);
        let change = index.split(id(1), vec![(id(2), 0..5), (id(3), 5..10)]);
        assert_eq!((change.forgets, change.writes.len()), (vec![id(1)], 2));
        let change = index.done(id(2));
        assert_eq!(change.writes, [(id(2), Members { rows: 0..5, is_done: true })]);
        assert!(change.releases.is_empty() && change.forgets.is_empty());
        let mut change = index.done(id(3));
        change.forgets.sort();
        assert_eq!(change, Change { writes: vec![], forgets: vec![id(2), id(3)], releases: vec!["0:10".into()] });
    }

    #[test]
    fn what_a_crash_left_is_told_apart() {
        let mut index = index();
        index.add_recorded(id(2), Members { rows: 0..5, is_done: true });
        index.add_recorded(id(3), Members { rows: 5..12, is_done: false });
        assert!(index.tidy().is_empty());
        assert_eq!(index.live_batches(), [id(3)]);
        assert_eq!(index.unsealed(), [12..15, 15..20], "also the rest of an entry in which a batch became full");
        assert_eq!(index.entries_of(&(5..12)), [0..10, 10..15]);
        assert_eq!(index.done(id(3)).releases, ["0:10"]);
    }

    /// Checks, whatever is recorded: each row of an entry is in a batch or unsealed, and when all rows are
    /// done all entries are released.
    #[test]
    fn no_row_is_overlooked() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..2000 {
            let mut index = LaneIndex::default();
            let (mut there, mut at) = (vec![0; 200], 0);
            while at < 150 {
                at += random.u64(0..3) * random.u64(0..5);
                let rows = random.u64(1..20);
                (at..at + rows).for_each(|row| there[row as usize] = 1);
                index.add_entry(at..at + rows);
                at += rows;
            }
            let mut at = 0;
            for number in 0..random.u128(0..20) {
                at += random.u64(0..3) * random.u64(0..9);
                let rows = at..at + random.u64(1..25);
                at = rows.end;
                index.add_recorded(id(number), Members { rows, is_done: random.bool() });
            }
            index.tidy();
            let sealed = |row: &u64| index.batches.values().any(|members| members.rows.contains(row));
            let is_there =
                |row: &u64| index.entries.iter().any(|(first, entry)| (*first..first + entry.rows).contains(row));
            let expected: Vec<u64> = (0..200).filter(|row| is_there(row) && !sealed(row)).collect();
            let unsealed = index.unsealed();
            assert_eq!(unsealed.iter().cloned().flatten().collect::<Vec<_>>(), expected);
            for (number, rows) in (1000..).zip(unsealed) {
                index.seal(id(number), rows);
            }
            for batch in index.live_batches() {
                index.done(batch);
            }
            assert!(index.is_empty() && index.batches.is_empty());
        }
    }

    #[test]
    fn members_and_fields_are_read_back_and_nothing_else_is() {
        let members = Members { rows: 0..5, is_done: true };
        assert_eq!(members.to_text(), "D0-5");
        assert_eq!(Members::parse("D0-5"), Some(members));
        for wrong in ["", "L", "X1-2", "L2-1", "L1-1", "L1", "L1-2,", "Lé"] {
            assert_eq!(Members::parse(wrong), None, "{wrong}");
        }
        assert_eq!(parse_field(&field(7, 3)), Some(7..10));
        for wrong in ["", "1", "1:0", "1:-1", "18446744073709551615:2", "a:b"] {
            assert_eq!(parse_field(wrong), None, "{wrong}");
        }
    }
}
