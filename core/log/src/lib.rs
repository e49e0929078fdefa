//! A log: a folder of segments of checksummed records, written in groups. The log's user defines the meaning
//! of a record's bytes.
//!
//! [`Disk`] has all the calls that a log makes to a disk; [`Folder`] is the real one.
//!
//! # Parts
//!
//! Any thread may append: a record gets its id and a place in the next group under one short lock
//! (`queue.rs`). The [`Committer`], on a thread of its own, takes a group, writes it with one call, syncs the
//! file, and wakes all callers who wait for it (`committer.rs`, `durable.rs`). Meanwhile the next group
//! gathers; no caller waits for a timer, and a sync that takes long only makes groups larger.
//!
//! A record is live until it is released. The release is only remembered in memory (`contents.rs`,
//! `index.rs`); after a restart a later record, which the log's user wrote, shows that the record is done. So
//! segments are removed from the front only, each durably before the next: a record that says that another is
//! done never goes before that one (`chores.rs`). For the same reason, a record that makes others done is to
//! be released after them. Where little of old segments is still needed, that part is copied (`rewrite.rs`).
//!
//! # When there is no room
//!
//! Each segment keeps a part for records that free room: enough to finish the records of the segment that has
//! most of them. Where the disk has no room for a whole segment, these records may begin a smaller one. A
//! record about records that could not be written is left out (`append_about`): it would take room that other
//! records need.
//!
//! # After a crash
//!
//! Each group has a number, and is written only after the group before was synced. So a bad record with a
//! later group behind it is damage; a bad record without one is a *torn tail*, of which nothing was
//! acknowledged. The length of all segments but the last is known, because their successor's header says it,
//! and there every bad record is damage (`chain.rs`, `reading.rs`). After a failed write or sync the segment
//! is left as it is: the header of the next one says how many of its bytes are valid.
//!
//! The bytes are described in docs/internals/journal.md.

mod chain;
mod chores;
mod committer;
mod contents;
mod context;
mod disk;
mod durable;
mod error;
mod folder;
mod format;
mod index;
mod inspect;
mod queue;
mod reader;
mod reading;
mod recovery;
mod repair;
mod rewrite;
mod salvage;
mod scan;
mod segment;
#[cfg(any(test, feature = "simulation"))]
#[path = "../tests/simulation/mod.rs"]
pub mod simulation;
mod usage;

use std::fmt;
use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

pub use committer::Committer;
pub use context::{Context, ContextKey};
pub use disk::{Disk, DiskFile};
pub use durable::Durable;
pub use error::{Bound, CommitError, Corruption, LogFull, OpenError, ReadError};
pub use folder::{Folder, FolderFile};
pub use inspect::{inspect, InspectedSegment, Inspection, KindFigures};
pub use queue::Room;
pub use reader::{OwnedRecord, Reader};
pub use reading::Recovered;
pub use recovery::{look, open};
pub use repair::{repair, Repaired};
pub use salvage::Damage;
pub use usage::Usage;

use durable::{Completion, GroupOutcome};
use index::Index;
use queue::{Bounds, Entry, Placed, Queue};

/// The permanent id of a record; later records have higher ids, also after a restart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordId(pub u64);

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[derive(Clone, Copy, Debug)]
pub struct LogOptions {
    /// Room that a segment takes on the disk, in bytes, unless a record needs more.
    pub segment_bytes: u64,
    /// The most bytes that all segments may take.
    pub max_bytes: u64,
    /// Bytes that are kept for records that free room.
    pub reserve_bytes: u64,
}

impl LogOptions {
    /// Returns options that fit together: a log has at least some segments, and room in them.
    fn settled(self) -> LogOptions {
        let max_bytes = self.max_bytes.max(64 << 10);
        let segment_bytes = self.segment_bytes.min(format::MAX_SEGMENT_BYTES).min(max_bytes / 8).max(4 << 10);
        let reserve_bytes = self.reserve_bytes.min(max_bytes / 8);
        LogOptions { segment_bytes, max_bytes, reserve_bytes }
    }

    fn bounds(self) -> Bounds {
        // Copying what is left of old segments into a new one takes room before it frees any.
        let reserve_bytes = self.max_bytes - self.segment_bytes;
        Bounds {
            max_bytes: self.max_bytes,
            ordinary_bytes: reserve_bytes - self.reserve_bytes,
            reserve_bytes,
            group_bytes: (self.segment_bytes / 8).clamp(4 << 10, 4 << 20),
        }
    }
}

/// The kinds that users of a log may give their records.
pub const KINDS: std::ops::RangeInclusive<u8> = 1..=126;

struct Shared {
    queue: Queue,
    index: Mutex<Index>,
    counters: Counters,
    next_context: AtomicU64,
}

#[derive(Default)]
struct Counters {
    groups: AtomicU64,
    failed_groups: AtomicU64,
    syncs: AtomicU64,
    sync_micros: AtomicU64,
    written_bytes: AtomicU64,
}

impl Shared {
    fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A handle to a log. Cheap to clone; when the last one is gone, the log is closed.
#[derive(Clone)]
pub struct Log {
    shared: Arc<Shared>,
    _closes: Arc<CloseOnDrop>,
}

struct CloseOnDrop(Arc<Shared>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.queue.close();
    }
}

/// A record that has its place in the log, but need not be on the disk yet.
pub struct Appended {
    pub id: RecordId,
    pub durable: Durable,
}

impl Log {
    fn new(shared: Arc<Shared>) -> Log {
        Log { _closes: Arc::new(CloseOnDrop(shared.clone())), shared }
    }

    /// Creates a context from bytes that many records will share.
    pub fn context(&self, bytes: Vec<u8>) -> Context {
        Context::new(self.shared.next_context.fetch_add(1, Ordering::Relaxed), bytes.into())
    }

    /// Appends a record. Its place among all others is decided when this returns, whether or not the caller
    /// awaits `durable`.
    ///
    /// # Errors
    /// Fails where the payload is too large, or the log's bound on the disk or the bound of waiting bytes is
    /// reached.
    ///
    /// # Panics
    /// If the kind is none of [`KINDS`].
    pub fn append(
        &self,
        kind: u8,
        context: Option<&Context>,
        payload: Vec<u8>,
        room: Room,
    ) -> Result<Appended, LogFull> {
        self.append_entry(self.entry(kind, context, payload, room))
    }

    /// Appends a record that says something about others, and so frees room. If none of them is in the log,
    /// because they could not be written, or are gone already, the record is left out, and counts as durable.
    ///
    /// # Errors
    /// Fails where the payload is too large, or the log has no room left even for records that free room.
    ///
    /// # Panics
    /// If the kind is none of [`KINDS`].
    pub fn append_about(&self, kind: u8, payload: Vec<u8>, about: Vec<RecordId>) -> Result<Appended, LogFull> {
        self.append_entry(Entry { about, ..self.entry(kind, None, payload, Room::Reserve) })
    }

    fn append_entry(&self, entry: Entry) -> Result<Appended, LogFull> {
        let room = entry.room;
        let placed = match self.shared.queue.push(entry)? {
            Ok(placed) => placed,
            Err(_) => closed(),
        };
        Ok(Appended { id: placed.id, durable: Durable::new(placed.completion, placed.id, room) })
    }

    /// Appends a record, and calls `then` when it is on the disk or surely isn't. `then` runs on the
    /// committer's thread, in the log's order, so it has to be quick; it may call the log, and may run before
    /// this returns.
    ///
    /// # Errors
    /// Fails where the payload is too large, or the log's bound on the disk or the bound of waiting bytes is
    /// reached.
    ///
    /// # Panics
    /// If the kind is none of [`KINDS`].
    pub fn append_then(
        &self,
        kind: u8,
        context: Option<&Context>,
        payload: Vec<u8>,
        room: Room,
        then: impl FnOnce(RecordId, Result<(), CommitError>) + Send + 'static,
    ) -> Result<RecordId, LogFull> {
        self.append_entry_then(Entry { then: Some(Box::new(then)), ..self.entry(kind, context, payload, room) })
    }

    /// Appends a record as [`append_about`](Self::append_about) does, and calls `then` as
    /// [`append_then`](Self::append_then) does.
    ///
    /// # Errors
    /// Fails where the payload is too large, or the log has no room left even for records that free room.
    ///
    /// # Panics
    /// If the kind is none of [`KINDS`].
    pub fn append_about_then(
        &self,
        kind: u8,
        payload: Vec<u8>,
        about: Vec<RecordId>,
        then: impl FnOnce(RecordId, Result<(), CommitError>) + Send + 'static,
    ) -> Result<RecordId, LogFull> {
        let entry = self.entry(kind, None, payload, Room::Reserve);
        self.append_entry_then(Entry { about, then: Some(Box::new(then)), ..entry })
    }

    fn append_entry_then(&self, entry: Entry) -> Result<RecordId, LogFull> {
        match self.shared.queue.push(entry)? {
            Ok(placed) => Ok(placed.id),
            Err(entry) => {
                let id = closed().id;
                entry.then.into_iter().for_each(|then| then(id, Err(CommitError::Closed)));
                Ok(id)
            }
        }
    }

    fn entry(&self, kind: u8, context: Option<&Context>, payload: Vec<u8>, room: Room) -> Entry {
        assert!(KINDS.contains(&kind), "{kind} is a kind of record that the log keeps for itself");
        let id = RecordId::default();
        Entry { id, kind, room, context: context.cloned(), payload, about: Vec::new(), then: None }
    }

    /// Says whether a record could not be written since the log was opened.
    pub fn has_failed(&self) -> bool {
        self.shared.counters.failed_groups.load(Ordering::Relaxed) > 0
    }

    /// Says whether a record that was not released is not in the log, since it could not be written.
    pub fn is_missing(&self, id: RecordId) -> bool {
        self.shared.index().is_missing(id.0)
    }

    /// Removes from `ids` the records that are in none of the log's files and never will be.
    pub fn retain_there(&self, ids: &mut Vec<RecordId>) {
        let index = self.shared.index();
        ids.retain(|id| index.may_have(id.0));
    }

    /// Marks a record as not needed any more. Records that make others done are to be released after those
    /// others.
    pub fn release(&self, id: RecordId) {
        self.release_all([id]);
    }

    /// Releases records in the order given.
    pub fn release_all(&self, ids: impl IntoIterator<Item = RecordId>) {
        let mut index = self.shared.index();
        ids.into_iter().for_each(|id| index.release(id.0));
        let has_chores = index.front_is_dead();
        drop(index);
        if has_chores {
            self.shared.queue.ask_for_chores();
        }
    }

    /// Returns a reader of records one after the other, each near the one before. It keeps the bytes that it
    /// has read from the disk at once.
    pub fn reader(&self) -> Reader {
        Reader::new(self.shared.clone())
    }

    /// Reads one record that is on the disk and was not released. Blocks. For many records, use a
    /// [`Log::reader`].
    ///
    /// # Errors
    /// Fails where the record was released, is not on the disk yet, or can't be read.
    pub fn read(&self, id: RecordId) -> Result<OwnedRecord, ReadError> {
        self.reader().read(id)
    }

    /// Resolves when the committer has something to do; for callers that drive it with [`Committer::turn`].
    pub async fn work(&self) {
        poll_fn(|context| match self.shared.queue.has_work(context.waker()) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
    }

    /// Closes the log for new records. Records that were appended before are still written.
    pub fn close(&self) {
        self.shared.queue.close();
    }

    pub fn usage(&self) -> Usage {
        Usage::of(&self.shared)
    }
}

/// Returns the place of a record that came too late.
fn closed() -> Placed {
    let completion = Completion::default();
    completion.complete(GroupOutcome::all(Err(CommitError::Closed)));
    Placed { id: RecordId(u64::MAX), completion: Arc::new(completion) }
}
