//! The state of a Redis buffer, under one lock: rows on their way, rows that wait, batches, lanes. It does no I/O.
//!
//! Rows go through: *pending* (queued, perhaps sent, not confirmed), *half* (a piece of an append of which
//! the rest is not confirmed), *waiting* (kept), *sealed* (in a batch; its record is queued). A batch is made
//! of whole entries: a writer of an earlier release that takes the lane over looks only for entries of which
//! no batch has any row.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use super::lane::Lane;
use super::lane_index::{Change, LaneIndex};
use super::queue::{push_withdrawal, Op, Pending, Queue};
use crate::buffer::{BufferError, LeftOvers, Open, Sealed};
use crate::destination::Destination;
use crate::id::BatchId;
use crate::rows::{Body, Chunk, Rows};

/// The most bytes of an entry, unless a single row is larger: small enough to go between others', large
/// enough to cost nothing.
const MAX_ENTRY_BYTES: usize = 1024 * 1024;

/// Some rows of this writer, by the position of the first.
pub(super) struct Piece {
    pub(super) first: u64,
    pub(super) chunk: Chunk,
}

impl Piece {
    pub(super) fn rows(&self) -> Rows<'_> {
        Rows::new(&self.chunk.bytes, &self.chunk.lengths)
    }

    pub(super) fn positions(&self) -> Range<u64> {
        self.first..self.first + self.chunk.lengths.len() as u64
    }

    pub(super) fn held_bytes(&self) -> u64 {
        self.rows().held_bytes()
    }
}

/// The number of a lane in `State::lanes`. Lanes don't change their numbers.
pub(super) type LaneNumber = usize;

pub(super) struct LaneState {
    pub(super) lane: Lane,
    pub(super) index: LaneIndex,
    pub(super) serial: u64,
    /// True if another process has the lane, or it is empty and was left.
    pub(super) is_gone: bool,
    pub(super) destination: Option<Arc<Destination>>,
}

pub(super) struct Batch {
    pub(super) lane: LaneNumber,
    pub(super) sealed: Sealed,
    pub(super) members: Range<u64>,
    /// The rows; those of an adopted batch, as soon as they were read.
    pub(super) body: Option<Result<Body, BufferError>>,
    pub(super) is_recorded: bool,
    is_asked_for: bool,
}

/// Rows that another process took while this one was thought dead.
pub(super) struct RowsTakenByOther {
    pub(super) lane: Lane,
    pub(super) rows: Vec<HeldRows>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct HeldRows {
    pub(super) positions: Range<u64>,
    pub(super) held_bytes: u64,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) next_position: u64,
    pub(super) queue: Queue,
    /// True if the bucket had no room when it was asked last.
    pub(super) is_full: bool,
    pub(super) half: Vec<Piece>,
    pub(super) waiting: VecDeque<Piece>,
    waiting_rows: u64,
    waiting_bytes: u64,
    /// The lane of this writer's own rows.
    pub(super) own: LaneNumber,
    pub(super) lanes: Vec<LaneState>,
    pub(super) batches: HashMap<BatchId, Batch>,
    pub(super) given_away: Vec<RowsTakenByOther>,
    pub(super) found: LeftOvers,
    pub(super) is_closed: bool,
}

/// The largest size of batches.
#[derive(Debug, Clone, Copy)]
pub(super) struct BatchLimits {
    pub(super) rows: usize,
    pub(super) bytes: usize,
}

impl State {
    /// Queues rows, together with others if the last entry has not been sent. Returns the position of the
    /// first row.
    pub(super) fn append(&mut self, mut rows: Rows<'_>, limits: BatchLimits, deadline: Instant) -> u64 {
        let first = self.next_position;
        self.next_position += rows.count() as u64;
        let max_bytes = limits.bytes.min(MAX_ENTRY_BYTES);
        if let Some(Op::Append(last)) = self.queue.rows.back_mut() {
            let chunk = &mut last.piece.chunk;
            let fits = chunk.lengths.len() + rows.count() <= limits.rows
                && chunk.bytes.len() + rows.bytes().len() <= max_bytes;
            if fits && !last.was_sent {
                chunk.push(rows);
                return first;
            }
        }
        let mut position = first;
        while !rows.is_empty() {
            let (now, later) = rows.split_at(rows.fitting(limits.rows, max_bytes, 1));
            let mut piece = Piece { first: position, chunk: Chunk::default() };
            piece.chunk.push(now);
            position += now.count() as u64;
            let has_more = !later.is_empty();
            self.queue.rows.push_back(Op::Append(Pending { piece, deadline, has_more, was_sent: false }));
            rows = later;
        }
        first
    }

    /// Notes that a piece is in Redis. With the last piece of an append all of its rows are kept: returns the
    /// position before which they are.
    pub(super) fn confirm(&mut self, pending: Pending) -> Option<u64> {
        self.half.push(pending.piece);
        if pending.has_more {
            return None;
        }
        let own = self.own;
        let mut before = 0;
        for piece in self.half.drain(..) {
            let positions = piece.positions();
            self.lanes[own].index.add_entry(positions.clone());
            self.waiting_rows += positions.end - positions.start;
            self.waiting_bytes += piece.chunk.bytes.len() as u64;
            before = positions.end;
            self.waiting.push_back(piece);
        }
        Some(before)
    }

    /// Turns appends whose time is over into withdrawals. Returns the rows that are refused by that.
    pub(super) fn expire(&mut self, now: Instant) -> Vec<HeldRows> {
        let mut refused = Vec::new();
        let mut kept = VecDeque::with_capacity(self.queue.rows.len());
        let mut is_in_refused = false;
        for op in std::mem::take(&mut self.queue.rows) {
            let Op::Append(pending) = op else {
                kept.push_back(op);
                continue;
            };
            let is_refused = is_in_refused || pending.deadline <= now;
            is_in_refused = is_refused && pending.has_more;
            if !is_refused {
                kept.push_back(Op::Append(pending));
                continue;
            }
            // Those that went before it in the same append lie in Redis.
            for piece in self.half.drain(..) {
                refused.push(HeldRows { positions: piece.positions(), held_bytes: piece.held_bytes() });
                kept.push_back(Op::Withdraw { positions: piece.positions(), was_sent: true });
            }
            refused.push(HeldRows { positions: pending.piece.positions(), held_bytes: pending.piece.held_bytes() });
            push_withdrawal(&mut kept, pending.piece.positions(), pending.was_sent);
        }
        self.queue.rows = kept;
        refused
    }

    /// Returns the counts of rows that wait. Where the bucket is full, no more rows will come, so those that
    /// wait make a full batch: others wait for the room that they take.
    pub(super) fn open(&self, limits: BatchLimits) -> Open {
        let by_rows = self.waiting_rows / limits.rows.max(1) as u64;
        let by_bytes = self.waiting_bytes / limits.bytes.max(1) as u64;
        let by_room = u64::from(self.is_full && self.waiting_rows > 0);
        Open { rows: self.waiting_rows, full_batches: by_rows.max(by_bytes).max(by_room) }
    }

    /// Takes the oldest entries that wait, as many as a batch may have. No entry is larger than that. Rows
    /// behind a gap, left by some that were refused, are in another batch.
    fn take_waiting(&mut self, limits: BatchLimits) -> Option<Piece> {
        let mut batch = self.waiting.pop_front()?;
        while let Some(next) = self.waiting.front() {
            let is_next = next.first == batch.positions().end;
            let fits = batch.chunk.lengths.len() + next.chunk.lengths.len() <= limits.rows
                && batch.chunk.bytes.len() + next.chunk.bytes.len() <= limits.bytes;
            if !is_next || !fits {
                break;
            }
            batch.chunk.push(next.rows());
            self.waiting.pop_front();
        }
        self.waiting_rows -= batch.chunk.lengths.len() as u64;
        self.waiting_bytes -= batch.chunk.bytes.len() as u64;
        Some(batch)
    }

    pub(super) fn seal(&mut self, id: BatchId, limits: BatchLimits) -> Option<Sealed> {
        let piece = self.take_waiting(limits)?;
        let (positions, held_bytes) = (piece.positions(), piece.held_bytes());
        let sealed = Sealed {
            id,
            rows: positions.end - positions.start,
            positions: positions.clone(),
            held_bytes,
            destination: None,
        };
        let own = self.own;
        let change = self.lanes[own].index.seal(id, positions.clone());
        self.record(own, change);
        self.add_batch(own, sealed.clone(), positions, Some(Ok(Body::of(piece.chunk))), false);
        Some(sealed)
    }

    pub(super) fn add_batch(
        &mut self,
        lane: LaneNumber,
        sealed: Sealed,
        members: Range<u64>,
        body: Option<Result<Body, BufferError>>,
        is_recorded: bool,
    ) {
        let id = sealed.id;
        self.batches.insert(id, Batch { lane, sealed, members, body, is_recorded, is_asked_for: false });
    }

    pub(super) fn split(&mut self, id: BatchId, cuts: &[usize], ids: Vec<BatchId>) -> Result<Vec<Sealed>, BufferError> {
        let parent = self.batches.get(&id).ok_or(BufferError::UnknownBatch(id))?;
        if self.lanes[parent.lane].is_gone {
            return Err(self.leave_whole(id));
        }
        let Some(Ok(body)) = parent.body.clone() else { return Err(BufferError::NotYet) };
        let (lane, start, own_start) = (parent.lane, parent.members.start, parent.sealed.positions.clone());
        let destination = parent.sealed.destination.clone();
        let mut children = Vec::with_capacity(ids.len());
        let mut from = 0;
        for (index, child) in ids.into_iter().enumerate() {
            let to = cuts.get(index).copied().unwrap_or(body.count());
            let part = body.part(from..to);
            let at =
                |offset: usize| if own_start.is_empty() { own_start.start } else { own_start.start + offset as u64 };
            let held_bytes = if own_start.is_empty() { 0 } else { part.rows().held_bytes() };
            let (rows, positions) = ((to - from) as u64, at(from)..at(to));
            let sealed = Sealed { id: child, rows, positions, held_bytes, destination: destination.clone() };
            children.push((sealed, start + from as u64..start + to as u64, part));
            from = to;
        }
        let members = children.iter().map(|(sealed, members, _)| (sealed.id, members.clone())).collect();
        let change = self.lanes[lane].index.split(id, members);
        self.record(lane, change);
        self.batches.remove(&id);
        let sealed = children.iter().map(|(sealed, ..)| sealed.clone()).collect();
        for (sealed, members, part) in children {
            self.add_batch(lane, sealed, members, Some(Ok(part)), false);
        }
        Ok(sealed)
    }

    /// Returns a batch's rows, once its record is in Redis. Rows that have to be read are asked for.
    pub(super) fn load(&mut self, id: BatchId) -> Result<Body, BufferError> {
        let batch = self.batches.get_mut(&id).ok_or(BufferError::UnknownBatch(id))?;
        match &batch.body {
            Some(body) if batch.is_recorded || body.is_err() => body.clone(),
            Some(_) => Err(BufferError::NotYet),
            None => {
                if !batch.is_asked_for {
                    batch.is_asked_for = true;
                    self.queue.records.push_back(Op::Read(id));
                }
                Err(BufferError::NotYet)
            }
        }
    }

    pub(super) fn done(&mut self, id: BatchId) -> Result<(), BufferError> {
        let batch = self.batches.remove(&id).ok_or(BufferError::UnknownBatch(id))?;
        let change = self.lanes[batch.lane].index.done(id);
        self.record(batch.lane, change);
        Ok(())
    }

    pub(super) fn record(&mut self, lane: LaneNumber, change: Change) {
        let state = &mut self.lanes[lane];
        if !change.is_empty() && !state.is_gone {
            state.serial += 1;
            self.queue.records.push_back(Op::Record { lane, serial: state.serial, change });
        }
    }

    pub(super) fn recorded(&mut self, change: &Change) {
        for (id, _) in &change.writes {
            if let Some(batch) = self.batches.get_mut(id) {
                batch.is_recorded = true;
            }
        }
    }

    /// Takes out pieces that wait no longer, and keeps those that still do.
    pub(super) fn divide_waiting(&mut self, goes: impl Fn(&Piece) -> bool) -> Vec<Piece> {
        let (gone, left): (Vec<_>, Vec<_>) = self.waiting.drain(..).partition(goes);
        for piece in &gone {
            self.waiting_rows -= piece.chunk.lengths.len() as u64;
            self.waiting_bytes -= piece.chunk.bytes.len() as u64;
        }
        self.waiting = left.into();
        gone
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::address::RedisAddress;
    use super::super::lane::Bucket;
    use super::*;
    use std::time::Duration;

    pub(in super::super) const LIMITS: BatchLimits = BatchLimits { rows: 10, bytes: 100 };

    pub(in super::super) fn lane(name: &str) -> Lane {
        Bucket::new(&RedisAddress::parse("redis://").unwrap()).lane(name, "o")
    }

    pub(in super::super) fn state() -> State {
        let mut state = State::default();
        state.enter_own(lane("l"));
        state
    }

    pub(in super::super) fn append(state: &mut State, rows: usize, deadline: Instant) -> u64 {
        state.append(Rows::new(&vec![b'x'; rows], &vec![1; rows]), LIMITS, deadline)
    }

    /// Answers everything that is queued as Redis would. Returns the positions before which rows are kept.
    pub(in super::super) fn confirm_all(state: &mut State) -> Vec<u64> {
        let mut kept = Vec::new();
        while !state.queue.is_empty() {
            for op in state.queue.take_flight(false) {
                match op {
                    Op::Append(pending) => kept.extend(state.confirm(pending)),
                    Op::Record { change, .. } => state.recorded(&change),
                    Op::Again(again) => state.wrote_again(again.batch),
                    _ => {}
                }
            }
        }
        kept
    }

    #[test]
    fn what_waits_to_be_sent_is_joined_and_what_was_sent_is_not() {
        let (mut state, now) = (state(), Instant::now());
        assert_eq!([append(&mut state, 2, now), append(&mut state, 3, now)], [0, 2]);
        assert_eq!(state.queue.rows.len(), 1);
        if let Some(Op::Append(pending)) = state.queue.rows.front_mut() {
            pending.was_sent = true;
        }
        assert_eq!(append(&mut state, 1, now), 5);
        assert_eq!(state.queue.rows.len(), 2);
        assert_eq!(confirm_all(&mut state), [5, 6]);
    }

    #[test]
    fn a_large_append_is_kept_with_its_last_piece() {
        let (mut state, now) = (state(), Instant::now());
        append(&mut state, 25, now);
        assert_eq!(state.queue.rows.len(), 3);
        assert_eq!(confirm_all(&mut state), [25]);
        assert_eq!(state.open(LIMITS), Open { rows: 25, full_batches: 2 });
    }

    #[test]
    fn what_expires_is_refused_whole_and_withdrawn() {
        let (mut state, now) = (state(), Instant::now());
        let later = now + Duration::from_secs(60);
        append(&mut state, 25, now);
        append(&mut state, 3, later);
        let Some(Op::Append(first)) = state.queue.rows.pop_front() else { panic!("the first piece") };
        assert_eq!(state.confirm(first), None);
        let refused = state.expire(now);
        assert_eq!(refused.iter().map(|rows| rows.positions.clone()).collect::<Vec<_>>(), [0..10, 10..20, 20..28]);
        assert_eq!(refused.iter().map(|rows| rows.held_bytes).sum::<u64>(), 28 * 5);
        assert!(
            state.queue.rows.iter().all(|op| matches!(op, Op::Withdraw { .. })),
            "nothing is left to be sent but that"
        );
        assert!(confirm_all(&mut state).is_empty());
        assert_eq!(state.open(LIMITS).rows, 0);
    }

    #[test]
    fn withdrawals_of_what_was_never_sent_are_one() {
        let (mut state, now) = (state(), Instant::now());
        for _ in 0..100 {
            append(&mut state, 10, now);
            assert_eq!(state.expire(now).len(), 1);
        }
        assert_eq!(state.queue.rows.len(), 1);
    }

    #[test]
    fn batches_are_cut_between_rows_and_never_over_a_gap() {
        let (mut state, now) = (state(), Instant::now());
        append(&mut state, 14, now);
        confirm_all(&mut state);
        append(&mut state, 3, now);
        state.expire(now);
        append(&mut state, 5, now + Duration::from_secs(60));
        confirm_all(&mut state);
        let mut sealed = Vec::new();
        while let Some(batch) = state.seal(BatchId(sealed.len() as u128), LIMITS) {
            sealed.push(batch.positions);
        }
        assert_eq!(sealed, [0..10, 10..14, 17..22]);
        assert!(matches!(state.load(BatchId(0)), Err(BufferError::NotYet)), "not before it is recorded");
        confirm_all(&mut state);
        assert_eq!(state.load(BatchId(0)).unwrap().count(), 10);
    }

    #[test]
    fn pieces_of_a_batch_take_its_place() {
        let (mut state, now) = (state(), Instant::now());
        append(&mut state, 9, now);
        confirm_all(&mut state);
        state.seal(BatchId(1), LIMITS).unwrap();
        let ids = vec![BatchId(2), BatchId(3)];
        let children = state.split(BatchId(1), &[4], ids).unwrap();
        assert_eq!([children[0].positions.clone(), children[1].positions.clone()], [0..4, 4..9]);
        confirm_all(&mut state);
        assert_eq!(state.load(BatchId(3)).unwrap().count(), 5);
        assert!(matches!(state.load(BatchId(1)), Err(BufferError::UnknownBatch(_))));
        state.done(BatchId(2)).unwrap();
        state.done(BatchId(3)).unwrap();
        assert!(state.lanes[0].index.is_empty());
    }
}
