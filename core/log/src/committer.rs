//! The committer writes. It takes a group, writes it with one call, syncs, and wakes the callers who wait;
//! meanwhile the next group gathers. Between groups it removes old segments.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

use super::durable::{block_on, GroupOutcome};
use super::error::CommitError;
use super::format::KIND_CLOSED;
use super::queue::{Entry, PendingGroup, Room};
use super::rewrite::Rewrite;
use super::segment::Active;
use super::{LogOptions, RecordId, Shared};
use crate::disk::Disk;

/// The writer of a log's appended records. While it does not run, no record becomes durable.
pub struct Committer<D: Disk> {
    pub(super) disk: D,
    pub(super) shared: Arc<Shared>,
    pub(super) options: LogOptions,
    /// The segment that is written to; with `None` the next group begins a segment.
    pub(super) active: Option<Active>,
    pub(super) next_number: u64,
    pub(super) buffer: Vec<u8>,
    /// True if the last try to remove something failed. It is not repeated before the next group.
    pub(super) chores_paused: bool,
    pub(super) rewrite: Option<Rewrite>,
    /// The number of groups for which rewriting still waits, after a failure.
    pub(super) rewrite_pause: u32,
    /// The number of the first segment that can't be read. It and the later ones are not rewritten.
    pub(super) damaged_from: u64,
    /// Files whose records another file has.
    pub(super) covered: VecDeque<String>,
    pub(super) marked_closed: bool,
    /// The argument of [`keep_room_for_ends`](Self::keep_room_for_ends).
    pub(super) end_bytes: u64,
    /// The number of records of the last group.
    last_records: usize,
}

/// The number of records from which a group makes the next one wait. A sync costs some 60 us of CPU, however
/// much it writes. If one group answers so many writers, the next one waits for their next records, as long
/// as the last group took: they would have waited for another sync otherwise.
const MANY_RECORDS: usize = 16;
/// The longest such wait. On a disk that takes longer for a group, the disk's time dominates, and the next
/// group does not wait.
const LONGEST_GATHERING: Duration = Duration::from_micros(500);

/// The largest buffer that is kept between groups, in bytes.
const KEPT_BUFFER_BYTES: usize = 4 << 20;

impl<D: Disk> Committer<D> {
    pub(super) fn new(
        disk: D,
        shared: Arc<Shared>,
        options: LogOptions,
        active: Option<Active>,
        next_number: u64,
    ) -> Committer<D> {
        Committer {
            disk,
            shared,
            options,
            active,
            next_number,
            buffer: Vec::new(),
            chores_paused: false,
            rewrite: None,
            rewrite_pause: 0,
            damaged_from: u64::MAX,
            covered: VecDeque::new(),
            marked_closed: false,
            end_bytes: 0,
            last_records: 0,
        }
    }

    /// Sets the most bytes that all records about one other record take together. Each segment keeps enough
    /// room to finish the records of the segment that has most of them.
    pub fn keep_room_for_ends(&mut self, end_bytes: u64) {
        self.end_bytes = end_bytes;
    }

    /// Works until the log is closed or its last handle is gone, and all records are written. Blocks, so it
    /// needs a thread of its own.
    pub fn run(mut self) {
        loop {
            self.take_turns();
            if self.shared.queue.is_closed() {
                return;
            }
            let shared = self.shared.clone();
            block_on(std::future::poll_fn(|context| match shared.queue.has_work(context.waker()) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }));
        }
    }

    /// Takes turns while there is something to do. See [`MANY_RECORDS`].
    fn take_turns(&mut self) {
        loop {
            let began = Instant::now();
            if !self.turn() {
                return;
            }
            let took = began.elapsed();
            if std::mem::take(&mut self.last_records) >= MANY_RECORDS && took <= LONGEST_GATHERING {
                thread::sleep(took);
            }
        }
    }

    /// Writes one group, or does another piece of work that is due. Returns false where there was nothing to do.
    pub fn turn(&mut self) -> bool {
        if let Some(group) = self.shared.queue.take() {
            self.chores_paused = false;
            self.rewrite_pause = self.rewrite_pause.saturating_sub(1);
            self.commit(group);
            if self.do_chore() {
                self.shared.queue.ask_for_chores();
            }
            return true;
        }
        self.shared.queue.take_chores();
        if self.do_chore() {
            // There may be more of it.
            self.shared.queue.ask_for_chores();
            return true;
        }
        self.mark_closed()
    }

    fn commit(&mut self, group: PendingGroup) {
        self.last_records = group.entries.len();
        let outcome = self.write_group(&group.entries);
        self.shared.counters.groups.fetch_add(1, Ordering::Relaxed);
        if outcome.ordinary.is_err() || outcome.reserve.is_err() {
            self.shared.counters.failed_groups.fetch_add(1, Ordering::Relaxed);
        }
        self.shared.queue.settle(group.bytes, self.used_bytes());
        for mut entry in group.entries {
            if let Some(then) = entry.then.take() {
                then(entry.id, outcome.of(entry.id, entry.room));
            }
        }
        group.completion.complete(outcome);
    }

    fn write_group(&mut self, entries: &[Entry]) -> GroupOutcome {
        let (needless, needed) = self.part_needless(entries.iter().collect(), &[]);
        let outcome = match self.make_room(&needed) {
            Ok(()) => self.write(&needed),
            Err(full) => return self.write_reserve(needless, needed, full),
        };
        self.skip(&needless);
        GroupOutcome { left_out: ids_of(&needless), ..GroupOutcome::all(outcome) }
    }

    /// Writes the records that free room even though the group has no room, if the active segment has kept
    /// some for them.
    fn write_reserve<'a>(
        &mut self,
        mut needless: Vec<&'a Entry>,
        entries: Vec<&'a Entry>,
        full: CommitError,
    ) -> GroupOutcome {
        let (reserve, ordinary): (Vec<&Entry>, Vec<&Entry>) =
            entries.into_iter().partition(|entry| entry.room == Room::Reserve);
        let (more, reserve) = self.part_needless(reserve, &ids_of(&ordinary));
        needless.extend(more);
        needless.sort_unstable_by_key(|entry| entry.id);
        let outcome = match self.make_room(&reserve) {
            Ok(()) => self.write(&reserve),
            Err(error) => {
                self.skip(&reserve);
                Err(error)
            }
        };
        self.skip(&ordinary);
        self.skip(&needless);
        GroupOutcome { ordinary: Err(full), reserve: outcome, left_out: ids_of(&needless) }
    }

    /// Separates the entries that are about other records of which none is in the log or will be. The records
    /// in `refused` can't be written.
    fn part_needless<'a>(&self, entries: Vec<&'a Entry>, refused: &[RecordId]) -> (Vec<&'a Entry>, Vec<&'a Entry>) {
        let index = self.shared.index();
        let may_be_there = |id: &RecordId| index.may_have(id.0) && refused.binary_search(id).is_err();
        entries.into_iter().partition(|entry| !entry.about.is_empty() && !entry.about.iter().any(may_be_there))
    }

    /// Writes and syncs entries for which there is room.
    fn write(&mut self, entries: &[&Entry]) -> Result<(), CommitError> {
        if entries.is_empty() {
            return Ok(());
        }
        let Some(mut active) = self.active.take() else { return Err(CommitError::Closed) };
        let encoded = active.encode(entries, &mut self.buffer);
        let began = Instant::now();
        let written = active.file.write_at(active.end, &self.buffer).and_then(|()| active.file.sync());
        let counters = &self.shared.counters;
        counters.syncs.fetch_add(1, Ordering::Relaxed);
        counters.sync_micros.fetch_add(began.elapsed().as_micros() as u64, Ordering::Relaxed);
        if let Err(error) = written {
            tracing::error!(segment = %active.name(), %error, "the log's disk failed; the segment is left behind");
            active.forget(&encoded);
            // The next segment says where this one ends. As long as it isn't there, a start might take the group for
            // valid.
            let mut index = self.shared.index();
            index.uncertain = entries.iter().map(|entry| entry.id.0).collect();
            index.has_active = false;
            drop(index);
            self.skip(entries);
            let certain = self.begin_segment(0, 0).is_ok();
            return Err(CommitError::io(&error, certain));
        }
        self.shared.counters.written_bytes.fetch_add(self.buffer.len() as u64, Ordering::Relaxed);
        active.end += self.buffer.len() as u64;
        self.shared.index().commit(&encoded, active.end);
        self.active = Some(active);
        if self.buffer.capacity() > KEPT_BUFFER_BYTES {
            self.buffer = Vec::new();
        }
        Ok(())
    }

    fn skip(&self, entries: &[&Entry]) {
        let mut index = self.shared.index();
        entries.iter().for_each(|entry| index.skip(entry.id.0));
    }

    /// Writes the record that closes a log. It shows the next opening that nothing is missing behind it.
    fn mark_closed(&mut self) -> bool {
        if self.marked_closed || !self.shared.queue.is_closed() {
            return false;
        }
        self.marked_closed = true;
        let is_uncertain = !self.shared.index().uncertain.is_empty();
        if is_uncertain {
            // The last chance to tell the next opening where the segment before ends.
            let _ = self.begin_segment(0, 0);
        }
        if self.active.is_some() {
            let mark = Entry {
                id: RecordId(0),
                kind: KIND_CLOSED,
                room: Room::Reserve,
                context: None,
                payload: Vec::new(),
                about: Vec::new(),
                then: None,
            };
            if self.has_room(&[&mark]) {
                // If it can't be written, the next opening finds the log as a crash leaves it.
                let _ = self.write(&[&mark]);
            }
        }
        true
    }

    pub(super) fn used_bytes(&self) -> u64 {
        let file_bytes = self.shared.index().totals().file_bytes;
        let free_bytes = self.active.as_ref().map_or(0, |active| active.bytes - active.end);
        file_bytes - free_bytes
    }

    pub(super) fn rewrite_bytes(&self) -> u64 {
        self.rewrite.as_ref().map_or(0, Rewrite::bytes)
    }
}

impl<D: Disk> Drop for Committer<D> {
    /// Ends the groups that are still pending, so that no caller waits for a group that will never be written.
    fn drop(&mut self) {
        self.shared.queue.close();
        while let Some(group) = self.shared.queue.take() {
            for entry in group.entries {
                if let Some(then) = entry.then {
                    then(entry.id, Err(CommitError::Closed));
                }
            }
            group.completion.complete(GroupOutcome::all(Err(CommitError::Closed)));
        }
    }
}

fn ids_of(entries: &[&Entry]) -> Vec<RecordId> {
    entries.iter().map(|entry| entry.id).collect()
}
