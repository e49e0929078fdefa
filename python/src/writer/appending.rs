//! Encoded rows on their way into the buffer, and those that wait for room there, first come, first served.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use windrow_writer::{AppendError, Gathering, Kept, Rows};

use super::lock;
use super::ticket::{Ticket, Trouble};

/// The rows of one call.
pub(super) struct Appending {
    pub(super) bytes: Vec<u8>,
    pub(super) lengths: Vec<u32>,
    /// The number of rows that are in the buffer: of more rows than there can ever be room for, a piece is
    /// taken at a time.
    rows_taken: usize,
    bytes_taken: usize,
    ticket: Arc<Ticket>,
    until_stored: bool,
}

/// The number of pieces that the limit of bytes is divided into. Rows that are more than the limit are taken
/// in such pieces.
const PIECES_OF_LIMIT: u64 = 4;

impl Appending {
    pub(super) fn new(bytes: Vec<u8>, lengths: Vec<u32>, ticket: Arc<Ticket>, until_stored: bool) -> Appending {
        Appending { bytes, lengths, rows_taken: 0, bytes_taken: 0, ticket, until_stored }
    }

    fn rest(&self) -> Rows<'_> {
        Rows::new(&self.bytes[self.bytes_taken..], &self.lengths[self.rows_taken..])
    }

    /// Returns the rows that are appended next: all of them, if that can be.
    fn piece(&self, max_bytes: u64) -> Rows<'_> {
        let rest = self.rest();
        if rest.held_bytes() <= max_bytes {
            return rest;
        }
        let mut held = 0;
        let fits = |length: &&u32| {
            held += u64::from(**length) + 4;
            held <= max_bytes / PIECES_OF_LIMIT
        };
        let count = rest.lengths().iter().take_while(fits).count().max(1);
        rest.split_at(count).0
    }

    /// Appends as many rows as there is room for. Returns false if the rest waits.
    fn append(&mut self, gathering: &Arc<Gathering>, max_bytes: u64) -> bool {
        while self.rows_taken < self.lengths.len() {
            let piece = self.piece(max_bytes);
            let (rows, bytes) = (piece.count(), piece.bytes().len());
            match append_piece(gathering, piece, &self.ticket, self.until_stored) {
                Ok(()) => {
                    self.rows_taken += rows;
                    self.bytes_taken += bytes;
                }
                Err(AppendError::Full) => return false,
                Err(error) => {
                    self.ticket.report(Err(error.into()));
                    return true;
                }
            }
        }
        self.ticket.report(Ok(()));
        true
    }
}

/// Appends some rows. The ticket has one part more for each promise that is yet to come.
fn append_piece(
    gathering: &Arc<Gathering>,
    rows: Rows<'_>,
    ticket: &Arc<Ticket>,
    until_stored: bool,
) -> Result<(), AppendError> {
    let taken = if until_stored {
        let part = ticket.clone();
        ticket.add_part();
        let settled = Box::new(move |outcome: Result<(), _>| part.report(outcome.map_err(Trouble::Write)));
        // A call that isn't watched after all takes its part back.
        gathering.append_watched(rows, settled).inspect_err(|_| ticket.report(Ok(())))?
    } else {
        gathering.append(rows)?
    };
    if taken.kept == Kept::Later {
        let part = ticket.clone();
        ticket.add_part();
        gathering.on_kept(taken, Box::new(move |outcome| part.report(outcome.map_err(Trouble::Buffer))));
    }
    Ok(())
}

/// Calls that wait for room.
pub(super) struct Queue {
    gathering: Arc<Gathering>,
    max_bytes: u64,
    waiting: Mutex<VecDeque<Appending>>,
    /// The number of waiting calls, to be looked at without the lock.
    count: AtomicUsize,
    /// True if the first in line found no room.
    is_parked: AtomicBool,
    /// True if the gathering will tell of room.
    is_registered: AtomicBool,
}

impl Queue {
    pub(super) fn new(gathering: Arc<Gathering>, max_bytes: u64) -> Arc<Queue> {
        Arc::new(Queue {
            gathering,
            max_bytes,
            waiting: Mutex::default(),
            count: AtomicUsize::new(0),
            is_parked: AtomicBool::new(false),
            is_registered: AtomicBool::new(false),
        })
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.count.load(Ordering::SeqCst) == 0
    }

    /// Appends now, or behind those that wait. The caller must not hold the GIL.
    pub(super) fn push(self: &Arc<Self>, appending: Appending) {
        let is_first = {
            let mut waiting = lock(&self.waiting);
            waiting.push_back(appending);
            self.count.fetch_add(1, Ordering::SeqCst) == 0
        };
        if is_first {
            self.advance();
        }
    }

    /// Tries again where the buffer's own limit, of which nobody tells, was in the way. Says whether it is so
    /// still.
    pub(super) fn retry(self: &Arc<Self>) -> bool {
        let bytes = lock(&self.waiting).front().map(|first| first.piece(self.max_bytes).held_bytes());
        if bytes.is_some_and(|bytes| self.gathering.has_room(bytes)) {
            self.unpark();
        }
        self.is_parked.load(Ordering::SeqCst) && bytes.is_some_and(|bytes| self.gathering.has_room(bytes))
    }

    fn unpark(self: &Arc<Self>) {
        if self.is_parked.swap(false, Ordering::SeqCst) {
            self.advance();
        }
    }

    /// Appends the rows of waiting calls. The first in line stays in `count` while it is looked at: only one
    /// thread is here at a time, and calls that come meanwhile wait behind it.
    fn advance(self: &Arc<Self>) {
        loop {
            let Some(mut first) = lock(&self.waiting).pop_front() else { return };
            if first.append(&self.gathering, self.max_bytes) {
                if self.count.fetch_sub(1, Ordering::SeqCst) == 1 {
                    return;
                }
                continue;
            }
            let bytes = first.piece(self.max_bytes).held_bytes();
            lock(&self.waiting).push_front(first);
            self.is_parked.store(true, Ordering::SeqCst);
            if !self.is_registered.swap(true, Ordering::SeqCst) {
                let queue = self.clone();
                let call = move || {
                    queue.is_registered.store(false, Ordering::SeqCst);
                    queue.unpark();
                };
                // Where there is room it is the buffer's own limit that was in the way: asked for room, the gathering would
                // say so at once, and the append fail again, and so on. With 0 it tells when something has settled.
                let bytes = if self.gathering.has_room(bytes) { 0 } else { bytes };
                self.gathering.wait_for_room(bytes, Box::new(call));
            }
            return;
        }
    }
}
