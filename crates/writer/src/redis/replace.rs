//! A writer whose lane was lost goes on in another.
//!
//! Either another process thought it dead (it was stopped for longer than its lease) and has its rows now: then they
//! are that one's, and this writer only waits to hear that they are stored. Or Redis itself has forgotten them (it was
//! started again without its data): then what is still in this process's memory is written there once more.

use super::connection::ConnectionError;
use super::lane::Lane;
use super::lane_index::{Change, Members};
use super::link::Link;
use super::scripts::Verdict;
use super::state::{GivenAway, HeldRows, LaneNumber, Op, Piece, State};
use super::worker::{enter_own, Shared};
use crate::id::BatchId;
use crate::rows::{Chunk, Rows};

/// Rows before `first_unknown` lie in the lane that is another's now. Says before which position rows are kept.
pub(super) fn give_away(
    shared: &Shared,
    link: &mut Link,
    lane: &Lane,
    first_unknown: u64,
) -> Result<Option<u64>, ConnectionError> {
    let first = {
        let state = shared.lock();
        let queued = state.ops.iter().find_map(|op| match op {
            Op::Append(pending) => Some(pending.piece.first).filter(|first| *first >= first_unknown),
            Op::Withdraw { positions, .. } => Some(positions.start).filter(|first| *first >= first_unknown),
            _ => None,
        });
        queued.unwrap_or(state.next_position)
    };
    register(shared, link, lane, first)?;
    let mut state = shared.lock();
    let former = state.own;
    let mut kept_before = None;
    let mut ops = std::mem::take(&mut state.ops);
    ops.retain(|op| !matches!(op, Op::Record { lane, .. } if *lane == former));
    while let Some(op) = ops.pop_front() {
        match op {
            // It came there before the lane was lost.
            Op::Append(pending) if pending.piece.first < first => kept_before = state.confirm(pending).or(kept_before),
            Op::Withdraw { ref positions, .. } if positions.start < first => {}
            op => state.ops.push_back(op),
        }
    }
    let mut rows: Vec<HeldRows> = state.forget_waiting().iter().map(held).collect();
    rows.extend(state.half.drain(..).map(|piece| held(&piece)));
    let unrecorded: Vec<BatchId> = state
        .batches
        .iter()
        .filter(|(_, batch)| batch.lane == former && !batch.is_recorded)
        .map(|(id, _)| *id)
        .collect();
    for id in unrecorded {
        let batch = state.batches.remove(&id);
        rows.extend(
            batch.map(|batch| HeldRows { positions: batch.sealed.positions, held_bytes: batch.sealed.held_bytes }),
        );
    }
    let lost = state.lanes[former].lane.clone();
    state.given_away.push(GivenAway { lane: lost, rows });
    enter_own(&mut state, lane.clone());
    Ok(kept_before)
}

/// What of this writer's rows is known when its lane is restored. It is written as it is until Redis has confirmed all of
/// it: entries that another attempt cuts otherwise would stand beside those that had arrived.
pub(super) struct InHand {
    /// Sealed and waiting rows, in order.
    pieces: Vec<Piece>,
    batches: Vec<(BatchId, Members)>,
    /// Where the rows begin of which Redis has not confirmed anything.
    end: u64,
}

/// Writes what is in hand into the new lane.
pub(super) fn restore(
    shared: &Shared,
    link: &mut Link,
    lane: &Lane,
    in_hand: &InHand,
) -> Result<Option<u64>, ConnectionError> {
    let first = in_hand.pieces.first().map_or(in_hand.end, |piece| piece.first);
    register(shared, link, lane, first)?;
    let change = Change { writes: in_hand.batches.clone(), ..Change::default() };
    let verdicts = link.judge(&shared.bucket, |pipeline| {
        let mut next = first;
        for piece in &in_hand.pieces {
            if piece.first > next {
                pipeline.withdraw(lane, &(next..piece.first));
            }
            pipeline.append(lane, piece.first, piece.rows());
            next = piece.positions().end;
        }
        if in_hand.end > next {
            pipeline.withdraw(lane, &(next..in_hand.end));
        }
        pipeline.record(lane, 1, &change);
    })?;
    if verdicts.iter().any(|verdict| *verdict != Verdict::Done) {
        return Err(ConnectionError::Refused("Redis has no room for the rows that it has forgotten".into()));
    }
    shared.lock().restored(lane.clone(), in_hand);
    Ok(None)
}

impl State {
    pub(super) fn in_hand(&self) -> InHand {
        let own = || self.batches.iter().filter(|(_, batch)| batch.lane == self.own);
        let mut pieces: Vec<Piece> = own()
            .filter_map(|(_, batch)| Some(copy(batch.members.start, batch.body.as_ref()?.as_ref().ok()?.rows())))
            .chain(self.waiting.iter().chain(&self.half).map(|piece| copy(piece.first, piece.rows())))
            .collect();
        pieces.sort_by_key(|piece| piece.first);
        let batches = own().map(|(id, batch)| (*id, Members { rows: batch.members.clone(), is_done: false })).collect();
        let queued = self.ops.iter().find_map(|op| match op {
            Op::Append(pending) => Some(pending.piece.first),
            Op::Withdraw { positions, .. } => Some(positions.start),
            _ => None,
        });
        InHand { pieces, batches, end: queued.unwrap_or(self.next_position) }
    }

    /// The new lane has what was in hand. Batches that were sealed, cut or done meanwhile are not as they were written
    /// there: that is recorded now.
    fn restored(&mut self, lane: Lane, in_hand: &InHand) {
        let former = self.own;
        enter_own(self, lane);
        let own = self.own;
        self.lanes[own].serial = 1;
        for piece in &in_hand.pieces {
            let rows = piece.positions();
            self.lanes[own].index.add_entry(rows.start, rows.end - rows.start);
        }
        self.ops.retain(|op| !matches!(op, Op::Record { lane, .. } if *lane == former));
        for (id, members) in &in_hand.batches {
            self.lanes[own].index.add_recorded(*id, members.clone());
            if let Some(batch) = self.batches.get_mut(id) {
                (batch.lane, batch.is_recorded) = (own, true);
            }
        }
        let mut added = self.take_batches_of(former);
        for (id, members) in &in_hand.batches {
            if !self.batches.contains_key(id) {
                added = self.record_end(*id, members, added);
            }
        }
        for (id, members) in added {
            let change = self.lanes[own].index.seal(id, members.rows);
            self.record(own, change);
        }
    }

    /// Brings a lane's batches into the own one. They are in the order of their rows.
    fn take_batches_of(&mut self, former: LaneNumber) -> Vec<(BatchId, Members)> {
        let own = self.own;
        let mut taken = Vec::new();
        for (id, batch) in self.batches.iter_mut().filter(|(_, batch)| batch.lane == former) {
            batch.lane = own;
            taken.push((*id, Members { rows: batch.members.clone(), is_done: false }));
        }
        taken.sort_by_key(|(_, members)| members.rows.start);
        taken
    }

    /// A batch that was written to the lane and is not there any more is done, or was cut, and some of its pieces may be
    /// done. What is none of its pieces is given back.
    fn record_end(
        &mut self,
        parent: BatchId,
        members: &Members,
        added: Vec<(BatchId, Members)>,
    ) -> Vec<(BatchId, Members)> {
        let own = self.own;
        let is_within = |piece: &Members| members.rows.start <= piece.rows.start && piece.rows.end <= members.rows.end;
        let (pieces, others): (Vec<_>, Vec<_>) = added.into_iter().partition(|(_, piece)| is_within(piece));
        if pieces.is_empty() {
            let change = self.lanes[own].index.done(parent);
            self.record(own, change);
            return others;
        }
        let mut children = Vec::new();
        let mut at = members.rows.start;
        // Behind the last piece comes an empty one, for what is done up to the batch's end.
        let end = members.rows.end..members.rows.end;
        let starts = pieces.iter().map(|(_, piece)| piece.rows.clone()).chain([end]);
        for (number, rows) in (1..).zip(starts) {
            if at < rows.start {
                // Never sent, the name of what is done: anything will do that no other batch is called.
                children
                    .push((BatchId(parent.0.wrapping_add(number)), Members { rows: at..rows.start, is_done: true }));
            }
            at = rows.end;
        }
        children.extend(pieces);
        let index = &mut self.lanes[own].index;
        let mut change = index.split(parent, Vec::new());
        children.iter().for_each(|(id, members)| index.add_recorded(*id, members.clone()));
        change.writes = children;
        let tidied = index.tidy();
        self.record(own, change);
        self.record(own, tidied);
        others
    }
}

fn register(shared: &Shared, link: &mut Link, lane: &Lane, first: u64) -> Result<(), ConnectionError> {
    let destination = shared.destination.to_bytes();
    link.judge(&shared.bucket, |pipeline| pipeline.register(lane, &shared.process, &destination, first)).map(|_| ())
}

fn copy(first: u64, rows: Rows<'_>) -> Piece {
    let mut piece = Piece { first, chunk: Chunk::default() };
    piece.chunk.push(rows);
    piece
}

fn held(piece: &Piece) -> HeldRows {
    HeldRows { positions: piece.positions(), held_bytes: piece.held_bytes() }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::super::state::tests::{append, confirm_all, lane, state, LIMITS};
    use super::*;

    #[test]
    fn what_changed_while_a_lane_was_restored_is_recorded_there() {
        let mut state = state();
        append(&mut state, 40, Instant::now());
        confirm_all(&mut state);
        let (ended, cut, sealed) = (BatchId(100), BatchId(200), BatchId(300));
        state.seal(ended, LIMITS);
        state.seal(cut, LIMITS);
        confirm_all(&mut state);
        let in_hand = state.in_hand();
        assert_eq!(in_hand.batches.len(), 2);

        state.done(ended).unwrap();
        let pieces = [BatchId(210), BatchId(220), BatchId(230)];
        state.split(cut, &[3, 6], pieces.to_vec()).unwrap();
        state.done(pieces[1]).unwrap();
        state.seal(sealed, LIMITS).unwrap();
        state.restored(lane("l+"), &in_hand);
        let own = state.own;
        assert!(state.ops.iter().all(|op| matches!(op, Op::Record { lane, .. } if *lane == own)));
        confirm_all(&mut state);
        let live = [pieces[0], pieces[2], sealed];
        for id in live {
            assert!(state.load(id).is_ok(), "{id:?} is recorded, and can be sent");
        }
        // As whoever takes the lane over would see it.
        let index = &state.lanes[own].index;
        assert_eq!(index.live_batches(), live);
        assert_eq!(index.unsealed().first(), Some(&(30..40)));
        assert_eq!(index.entries_of(&(0..40)), [10..20, 20..30, 30..40], "what is done is released");
        live.iter().for_each(|id| state.done(*id).unwrap());
        let index = &state.lanes[own].index;
        assert_eq!(index.entries_of(&(0..40)).first(), Some(&(30..40)));
        assert!(index.live_batches().is_empty());
    }

    #[test]
    fn a_batch_whose_pieces_are_all_done_is_done() {
        let mut state = state();
        append(&mut state, 10, Instant::now());
        confirm_all(&mut state);
        state.seal(BatchId(1), LIMITS);
        let in_hand = state.in_hand();
        state.split(BatchId(1), &[5], vec![BatchId(2), BatchId(3)]).unwrap();
        [2, 3].into_iter().for_each(|id| state.done(BatchId(id)).unwrap());
        state.restored(lane("l+"), &in_hand);
        assert!(state.lanes[state.own].index.is_empty());
    }
}
