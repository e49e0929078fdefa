//! Rows that wait, grouped as they will be sealed.

use std::collections::VecDeque;

use super::options::DiskOptions;

/// The location of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RecordLocation {
    pub(super) segment: u64,
    pub(super) offset: u64,
}

/// Consecutive rows; the first of them is in the record at `place` or in one that follows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) place: RecordLocation,
    pub(super) first: u64,
    pub(super) rows: u64,
    pub(super) bytes: u64,
}

impl Group {
    pub(super) fn end(&self) -> u64 {
        self.first + self.rows
    }
}

pub(super) struct Groups {
    max_rows: u64,
    max_bytes: u64,
    /// Groups in order. The last one may still grow, unless it is full.
    waiting: VecDeque<Group>,
    is_last_full: bool,
    pub(super) rows: u64,
}

impl Groups {
    pub(super) fn new(options: &DiskOptions) -> Groups {
        let (max_rows, max_bytes) = (options.batch_rows as u64, options.batch_bytes as u64);
        Groups { max_rows, max_bytes, waiting: VecDeque::new(), is_last_full: false, rows: 0 }
    }

    pub(super) fn full(&self) -> u64 {
        self.waiting.len() as u64 - u64::from(!self.is_last_full && !self.waiting.is_empty())
    }

    /// Adds rows behind the others. Says whether a group has become full by them.
    pub(super) fn push(&mut self, added: Group) -> bool {
        let full_before = self.full();
        self.rows += added.rows;
        let last = self.waiting.back_mut().filter(|last| {
            let has_room = last.rows + added.rows <= self.max_rows && last.bytes + added.bytes <= self.max_bytes;
            !self.is_last_full && has_room && last.end() == added.first
        });
        match last {
            Some(last) => {
                last.rows += added.rows;
                last.bytes += added.bytes;
            }
            None => self.waiting.push_back(added),
        }
        let last = self.waiting.back();
        self.is_last_full = last.is_some_and(|last| last.rows >= self.max_rows || last.bytes >= self.max_bytes);
        self.full() > full_before
    }

    pub(super) fn pop(&mut self) -> Option<Group> {
        let group = self.waiting.pop_front()?;
        self.rows -= group.rows;
        self.is_last_full &= !self.waiting.is_empty();
        Some(group)
    }

    /// Puts back a group that could not be sealed.
    pub(super) fn put_back(&mut self, group: Group) {
        self.is_last_full |= self.waiting.is_empty();
        self.rows += group.rows;
        self.waiting.push_front(group);
    }
}
