//! The replacement of a lost lane: its writer goes on in another lane.
//!
//! Either another process thought the writer dead (it was stopped for longer than its lease) and has its rows
//! now: then the rows are that process's, and this writer only waits to hear that they are stored. Or Redis
//! itself has forgotten the rows (it was started again without its data, or with older data): then those that
//! are still in this process's memory are written there once more. It may be both: of a lane that another
//! has, Redis says how far it goes, and rows behind that are forgotten.
//!
//! All of that is one change of what is known here, under one lock. Rows that have to be written again are
//! queued like everything else, before the rest; so a lane that is lost while that is under way is treated
//! like any lost lane.

use std::ops::Range;

use super::lane::Lane;
use super::queue::{Again, Op};
use super::scripts::Verdict;
use super::state::{HeldRows, LaneNumber, LaneState, Piece, RowsTakenByOther, State};
use crate::buffer::BufferError;
use crate::id::BatchId;
use crate::rows::{Body, Chunk};

/// The way in which a lane was lost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Loss {
    /// Another process has the lane: rows before this position lie in it, and are that process's now.
    Taken { before: u64 },
    /// Redis doesn't know the lane.
    Forgotten,
    /// The lane is still this writer's, but Redis has an earlier state of it.
    Behind,
}

impl Loss {
    pub(super) fn of(verdict: &Verdict) -> Option<Loss> {
        let Verdict::Lost { owner, next_row } = verdict else { return None };
        Some(match owner.is_empty() {
            true => Loss::Forgotten,
            false => Loss::Taken { before: next_row.unwrap_or(0) },
        })
    }
}

impl State {
    /// Says whether this writer has the lane, or is about to discard it.
    pub(super) fn has_lane(&self, name: &str) -> bool {
        let mut named = self.lanes.iter().enumerate().filter(|(_, state)| state.lane.name == name);
        named.any(|(number, state)| !state.is_gone || self.queue.discards(number))
    }

    /// Enters a lane that has just been registered as the one of this writer's own rows.
    pub(super) fn enter_own(&mut self, lane: Lane) {
        self.own = self.lanes.len();
        self.lanes.push(LaneState { lane, index: Default::default(), serial: 0, is_gone: false, destination: None });
    }

    /// Goes on in a new lane. Returns the position before which rows are kept.
    pub(super) fn move_to(&mut self, lane: Lane, loss: Loss) -> Option<u64> {
        let former = self.own;
        let taken_before = if let Loss::Taken { before } = loss { before } else { 0 };
        let kept_before = self.take_arrived(taken_before);
        self.queue.again.retain(|op| matches!(op, Op::Discard(_)));
        if loss == Loss::Behind {
            self.queue.again.push_back(Op::Discard(former));
        }
        self.give_up(former, taken_before);
        self.enter_own(lane);
        self.write_again(former, taken_before);
        kept_before
    }

    /// Confirms appends without an answer that came there before the lane was lost.
    fn take_arrived(&mut self, taken_before: u64) -> Option<u64> {
        let mut kept_before = None;
        for op in std::mem::take(&mut self.queue.rows) {
            match op {
                Op::Append(pending) if pending.piece.first < taken_before => {
                    kept_before = self.confirm(pending).or(kept_before);
                }
                Op::Withdraw { positions, .. } if positions.start < taken_before => {}
                op => self.queue.rows.push_back(op),
            }
        }
        kept_before
    }

    /// Gives up the rows of a lane that another process has now. Batches of this writer's rows that were
    /// recorded are sent here, too, under the same id.
    pub(super) fn give_up(&mut self, number: LaneNumber, taken_before: u64) {
        let mut rows = Vec::new();
        if number == self.own {
            let is_taken = |piece: &Piece| piece.positions().end <= taken_before;
            rows.extend(self.divide_waiting(is_taken).iter().map(held));
            let (taken, left): (Vec<_>, Vec<_>) = self.half.drain(..).partition(is_taken);
            rows.extend(taken.iter().map(held));
            self.half = left;
        }
        self.batches.retain(|_, batch| {
            if batch.lane != number || batch.members.end > taken_before {
                return true;
            }
            let is_own = !batch.sealed.positions.is_empty();
            if is_own && !batch.is_recorded {
                rows.push(HeldRows { positions: batch.sealed.positions.clone(), held_bytes: batch.sealed.held_bytes });
            }
            is_own && batch.is_recorded
        });
        self.queue.forget_records(number);
        self.give_away(number, rows);
    }

    fn give_away(&mut self, number: LaneNumber, rows: Vec<HeldRows>) {
        if !rows.is_empty() {
            self.given_away.push(RowsTakenByOther { lane: self.lanes[number].lane.clone(), rows });
        }
    }

    /// Refuses to cut a batch whose lane is gone: nobody would know the pieces. The batch is left to the
    /// process that has the lane.
    pub(super) fn leave_whole(&mut self, id: BatchId) -> BufferError {
        // It is not known yet what became of the own lane.
        if self.batches.get(&id).is_some_and(|batch| batch.lane == self.own) {
            return BufferError::NotYet;
        }
        if let Some(batch) = self.batches.remove(&id) {
            let rows = HeldRows { positions: batch.sealed.positions, held_bytes: batch.sealed.held_bytes };
            let own = Some(rows).filter(|rows| !rows.positions.is_empty());
            self.give_away(batch.lane, own.into_iter().collect());
        }
        BufferError::UnknownBatch(id)
    }

    /// Queues the rows of the former lane that Redis doesn't have any more, for the own lane, in front of the
    /// operations that were queued for that. Sealed rows lie there as one entry for each batch.
    fn write_again(&mut self, former: LaneNumber, taken_before: u64) {
        let own = self.own;
        let index = &mut self.lanes[own].index;
        let mut again = Vec::new();
        for (id, batch) in &mut self.batches {
            let is_here = batch.lane == former && batch.members.end > taken_before;
            let Some(Ok(body)) = batch.body.clone().filter(|_| is_here) else { continue };
            batch.lane = own;
            index.add_entry(batch.members.clone());
            index.seal(*id, batch.members.clone());
            again.push(Again { first: batch.members.start, rows: body, batch: Some(*id) });
        }
        for piece in &self.waiting {
            index.add_entry(piece.positions());
            again.push(copy(piece));
        }
        again.extend(self.half.iter().map(copy));
        again.sort_by_key(|rows| rows.first);
        let discards = std::mem::take(&mut self.queue.again);
        let mut next = 0;
        for rows in again {
            self.skip(next..rows.first);
            next = rows.first + rows.rows.count() as u64;
            self.queue.again.push_back(Op::Again(rows));
        }
        self.skip(next..self.queue.first_position().unwrap_or(self.next_position));
        self.queue.again.extend(discards);
    }

    fn skip(&mut self, positions: Range<u64>) {
        if !positions.is_empty() {
            self.queue.again.push_back(Op::Skip(positions));
        }
    }

    /// Notes that rows are in the own lane again.
    pub(super) fn wrote_again(&mut self, batch: Option<BatchId>) {
        if let Some(batch) = batch.and_then(|id| self.batches.get_mut(&id)) {
            batch.is_recorded = true;
        }
    }
}

fn copy(piece: &Piece) -> Again {
    let mut chunk = Chunk::default();
    chunk.push(piece.rows());
    Again { first: piece.first, rows: Body::of(chunk), batch: None }
}

fn held(piece: &Piece) -> HeldRows {
    HeldRows { positions: piece.positions(), held_bytes: piece.held_bytes() }
}

#[cfg(test)]
// One range is meant.
#[allow(clippy::single_range_in_vec_init)]
mod tests {
    use std::time::{Duration, Instant};

    use super::super::state::tests::{append, confirm_all, lane, state, LIMITS};
    use super::*;

    fn positions_again(state: &State) -> Vec<(Range<u64>, Option<BatchId>)> {
        let ops = state.queue.again.iter().filter_map(|op| match op {
            Op::Again(again) => Some((again.first..again.first + again.rows.count() as u64, again.batch)),
            Op::Skip(positions) => Some((positions.clone(), None)),
            _ => None,
        });
        ops.collect()
    }

    #[test]
    fn what_redis_has_forgotten_is_written_again_and_what_follows_is_recorded_behind_it() {
        let mut state = state();
        append(&mut state, 40, Instant::now());
        confirm_all(&mut state);
        let (ended, cut, sealed) = (BatchId(100), BatchId(200), BatchId(300));
        state.seal(ended, LIMITS);
        state.seal(cut, LIMITS);
        confirm_all(&mut state);
        state.done(ended).unwrap();
        state.seal(sealed, LIMITS).unwrap();
        append(&mut state, 3, Instant::now() + Duration::from_secs(60));
        state.move_to(lane("l+"), Loss::Forgotten);
        let written = [(0..10, None), (10..20, Some(cut)), (20..30, Some(sealed)), (30..40, None)];
        assert_eq!(positions_again(&state), written, "with what was sealed and not recorded, without what is done");
        assert!(matches!(state.load(sealed), Err(BufferError::NotYet)));

        let pieces = [BatchId(210), BatchId(220), BatchId(230)];
        state.split(cut, &[3, 6], pieces.to_vec()).unwrap();
        state.done(pieces[1]).unwrap();
        let last = BatchId(400);
        state.seal(last, LIMITS).unwrap();
        let flight = state.queue.take_flight(false);
        assert!(flight.iter().all(|op| matches!(op, Op::Again(_) | Op::Skip(_))));
        state.queue.put_back(flight);
        confirm_all(&mut state);
        let live = [pieces[0], pieces[2], sealed, last];
        for id in live {
            assert!(state.load(id).is_ok(), "{id:?} is recorded, and can be sent");
        }
        // As whoever takes the lane over would see it.
        let index = &state.lanes[state.own].index;
        assert_eq!(index.live_batches(), live);
        assert_eq!(index.unsealed(), [40..43]);
        live.iter().for_each(|id| state.done(*id).unwrap());
        assert_eq!(state.lanes[state.own].index.entries_of(&(0..43)), [40..43], "what is done is released");
    }

    #[test]
    fn a_lane_that_another_takes_while_it_is_written_again_is_one_that_was_lost() {
        let mut state = state();
        append(&mut state, 30, Instant::now());
        confirm_all(&mut state);
        let (first, second) = (BatchId(1), BatchId(2));
        state.seal(first, LIMITS);
        confirm_all(&mut state);
        state.seal(second, LIMITS);
        state.move_to(lane("l+"), Loss::Forgotten);
        // The first batch is there when the lane is lost.
        state.lanes[1].is_gone = true;
        state.move_to(lane("l++"), Loss::Taken { before: 10 });
        assert_eq!(positions_again(&state), [(0..10, None), (10..20, Some(second)), (20..30, None)]);
        assert!(state.load(first).is_ok(), "both know its id, and both send it");
        assert!(state.given_away.is_empty());
        assert_eq!(state.batches[&second].lane, 2);
    }

    #[test]
    fn every_row_is_taken_by_another_or_written_again() {
        for before in 0..=45 {
            let mut state = state();
            append(&mut state, 17, Instant::now());
            append(&mut state, 9, Instant::now());
            confirm_all(&mut state);
            state.seal(BatchId(1), LIMITS);
            confirm_all(&mut state);
            state.seal(BatchId(2), LIMITS);
            append(&mut state, 19, Instant::now() + Duration::from_secs(60));
            state.lanes[0].is_gone = true;
            state.move_to(lane("l+"), Loss::Taken { before });
            let mut rows = vec![0; 45];
            let mut count = |positions: Range<u64>| positions.for_each(|row| rows[row as usize] += 1);
            state.given_away.iter().flat_map(|given| &given.rows).for_each(|held| count(held.positions.clone()));
            state.batches.values().for_each(|batch| count(batch.members.clone()));
            state.waiting.iter().chain(&state.half).for_each(|piece| count(piece.positions()));
            for op in &state.queue.rows {
                if let Op::Append(pending) = op {
                    count(pending.piece.positions());
                }
            }
            assert_eq!(rows, [1; 45], "lost when {before} rows were there");
        }
    }

    #[test]
    fn a_batch_whose_lane_is_gone_is_not_cut() {
        let mut state = state();
        append(&mut state, 10, Instant::now());
        confirm_all(&mut state);
        state.seal(BatchId(1), LIMITS);
        confirm_all(&mut state);
        state.lanes[0].is_gone = true;
        let ids = || vec![BatchId(2), BatchId(3)];
        assert!(matches!(state.split(BatchId(1), &[5], ids()), Err(BufferError::NotYet)));
        state.move_to(lane("l+"), Loss::Taken { before: 10 });
        assert!(state.load(BatchId(1)).is_ok());
        assert!(matches!(state.split(BatchId(1), &[5], ids()), Err(BufferError::UnknownBatch(_))));
        assert!(matches!(state.load(BatchId(1)), Err(BufferError::UnknownBatch(_))));
        assert_eq!(state.given_away[0].rows[0].positions, 0..10, "its rows settle when they are stored there");
    }
}
