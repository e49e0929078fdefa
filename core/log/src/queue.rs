//! Records on their way to the disk. Records that come while a group is being written and synced gather into
//! the next.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use super::context::Context;
use super::durable::Completion;
use super::error::{Bound, CommitError, LogFull};
use super::format::{record_bytes, MAX_PAYLOAD_BYTES};
use super::RecordId;

/// The part of the log's room that a record may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    Ordinary,
    /// All of the room, including the last part: for records that free room.
    Reserve,
}

/// The most bytes that may wait in memory for a slow disk.
const MAX_PENDING_BYTES: u64 = 128 << 20;

pub(crate) type Then = Box<dyn FnOnce(RecordId, Result<(), CommitError>) + Send>;

pub(crate) struct Entry {
    pub(crate) id: RecordId,
    pub(crate) kind: u8,
    pub(crate) room: Room,
    pub(crate) context: Option<Context>,
    pub(crate) payload: Vec<u8>,
    /// The records that this one says something about: if none of them is there, it says nothing.
    pub(crate) about: Vec<RecordId>,
    pub(crate) then: Option<Then>,
}

/// Records that are written and synced together.
#[derive(Default)]
pub(crate) struct PendingGroup {
    pub(crate) entries: Vec<Entry>,
    /// The bytes that the queue counts for the entries.
    pub(crate) bytes: u64,
    pub(crate) completion: Arc<Completion>,
}

/// Bounds of the bytes that may be appended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) max_bytes: u64,
    /// The bound for ordinary records. It excludes the room that is kept for records that free room, and for
    /// copying old segments.
    pub(crate) ordinary_bytes: u64,
    pub(crate) reserve_bytes: u64,
    pub(crate) group_bytes: u64,
}

pub(crate) struct Queue {
    state: Mutex<State>,
    bounds: Bounds,
}

struct State {
    groups: VecDeque<PendingGroup>,
    pending_bytes: u64,
    next_id: u64,
    /// Bytes that the segments take, without the free part of the active one.
    used_bytes: u64,
    active_segment: u64,
    closed: bool,
    /// True if the committer has something else to do than to write.
    chores: bool,
    waker: Option<Waker>,
    appended: u64,
    refused: u64,
}

/// Figures of the queue.
pub(crate) struct QueueUsage {
    pub(crate) pending_bytes: u64,
    pub(crate) used_bytes: u64,
    pub(crate) appended: u64,
    pub(crate) refused: u64,
    pub(crate) next_id: u64,
}

/// A record's id, and the completion of the group that it waits in.
pub(crate) struct Placed {
    pub(crate) id: RecordId,
    pub(crate) completion: Arc<Completion>,
}

impl Queue {
    pub(crate) fn new(bounds: Bounds, next_id: u64) -> Queue {
        let state = State {
            groups: VecDeque::new(),
            pending_bytes: 0,
            next_id,
            used_bytes: 0,
            active_segment: 0,
            closed: false,
            chores: false,
            waker: None,
            appended: 0,
            refused: 0,
        };
        Queue { state: Mutex::new(state), bounds }
    }

    pub(crate) fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// Adds an entry to the last group, or to a new one. If the log is closed, the entry is given back as the
    /// inner error.
    pub(crate) fn push(&self, mut entry: Entry) -> Result<Result<Placed, Entry>, LogFull> {
        let mut state = self.lock();
        if state.closed {
            return Ok(Err(entry));
        }
        let needed = needed_bytes(&entry, state.active_segment);
        let limit = match entry.room {
            Room::Ordinary => self.bounds.ordinary_bytes,
            Room::Reserve => self.bounds.reserve_bytes,
        };
        if entry.payload.len() > MAX_PAYLOAD_BYTES || state.used_bytes + state.pending_bytes + needed > limit {
            state.refused += 1;
            return Err(LogFull { max_bytes: self.bounds.max_bytes, bound: Bound::Disk });
        }
        let is_first = state.pending_bytes == 0;
        if entry.room == Room::Ordinary && !is_first && state.pending_bytes + needed > MAX_PENDING_BYTES {
            state.refused += 1;
            return Err(LogFull { max_bytes: MAX_PENDING_BYTES, bound: Bound::Queue });
        }
        let id = RecordId(state.next_id);
        entry.id = id;
        state.next_id += 1;
        state.appended += 1;
        state.pending_bytes += needed;
        let completion = state.add(entry, needed, self.bounds.group_bytes);
        let waker = state.waker.take();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
        Ok(Ok(Placed { id, completion }))
    }

    /// Takes the group that is to be written next.
    pub(crate) fn take(&self) -> Option<PendingGroup> {
        self.lock().groups.pop_front()
    }

    /// Notes that a group is written, or won't be.
    pub(crate) fn settle(&self, group_bytes: u64, used_bytes: u64) {
        let mut state = self.lock();
        state.pending_bytes -= group_bytes;
        state.used_bytes = used_bytes;
    }

    pub(crate) fn set_used(&self, used_bytes: u64, active_segment: u64) {
        let mut state = self.lock();
        state.used_bytes = used_bytes;
        state.active_segment = active_segment;
    }

    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        let waker = state.waker.take();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Makes the committer look for other work than writing.
    pub(crate) fn ask_for_chores(&self) {
        let mut state = self.lock();
        state.chores = true;
        let waker = state.waker.take();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }

    pub(crate) fn take_chores(&self) -> bool {
        std::mem::take(&mut self.lock().chores)
    }

    /// Says whether there is something to do; if not, `waker` is woken when there is.
    pub(crate) fn has_work(&self, waker: &Waker) -> bool {
        let mut state = self.lock();
        let has_work = !state.groups.is_empty() || state.chores || state.closed;
        if !has_work {
            state.waker = Some(waker.clone());
        }
        has_work
    }

    pub(crate) fn usage(&self) -> QueueUsage {
        let state = self.lock();
        QueueUsage {
            pending_bytes: state.pending_bytes,
            used_bytes: state.used_bytes,
            appended: state.appended,
            refused: state.refused,
            next_id: state.next_id,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn add(&mut self, entry: Entry, bytes: u64, group_bytes: u64) -> Arc<Completion> {
        match self.groups.back_mut() {
            Some(group) if group.bytes + bytes <= group_bytes => {
                group.bytes += bytes;
                group.entries.push(entry);
                group.completion.clone()
            }
            _ => {
                let group = PendingGroup { entries: vec![entry], bytes, completion: Arc::default() };
                let completion = group.completion.clone();
                self.groups.push_back(group);
                completion
            }
        }
    }
}

/// Returns the most bytes that the record will take, with its context if that has to be written first.
fn needed_bytes(entry: &Entry, active_segment: u64) -> u64 {
    let context = entry.context.as_ref().filter(|context| context.place_in(active_segment).is_none());
    let context_bytes = context.map_or(0, |context| record_bytes(context.bytes().len()));
    (record_bytes(entry.payload.len()) + context_bytes) as u64
}
