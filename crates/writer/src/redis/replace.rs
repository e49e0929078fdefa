//! A writer whose lane was lost goes on in another.
//!
//! Either another process thought it dead (it was stopped for longer than its lease) and has its rows now: then they
//! are that one's, and this writer only waits to hear that they are stored. Or Redis itself has forgotten them (it was
//! started again without its data): then what is still in this process's memory is written there once more.

use super::connection::ConnectionError;
use super::lane::Lane;
use super::lane_index::Members;
use super::link::Link;
use super::scripts::Verdict;
use super::state::{GivenAway, HeldRows, Op, Piece, State};
use super::worker::{enter_own, Shared};
use crate::id::BatchId;
use crate::rows::{Body, Chunk};

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

/// Writes everything that is known here into the new lane.
pub(super) fn restore(shared: &Shared, link: &mut Link, lane: &Lane) -> Result<Option<u64>, ConnectionError> {
    let (pieces, batches, end) = {
        let state = shared.lock();
        (pieces_in_hand(&state), batches_in_hand(&state), end_of_known(&state))
    };
    let first = pieces.first().map_or(end, |piece| piece.first);
    register(shared, link, lane, first)?;
    let mut change = super::lane_index::Change::default();
    change.writes.extend(batches.iter().cloned());
    let verdicts = link.judge(&shared.bucket, |pipeline| {
        let mut next = first;
        for piece in &pieces {
            if piece.first > next {
                pipeline.withdraw(lane, &(next..piece.first));
            }
            pipeline.append(lane, piece.first, piece.rows());
            next = piece.positions().end;
        }
        if end > next {
            pipeline.withdraw(lane, &(next..end));
        }
        pipeline.record(lane, 1, &change);
    })?;
    if verdicts.iter().any(|verdict| *verdict != Verdict::Done) {
        return Err(ConnectionError::Refused("Redis has no room for the rows that it has forgotten".into()));
    }
    let mut state = shared.lock();
    let former = state.own;
    enter_own(&mut state, lane.clone());
    let own = state.own;
    state.lanes[own].serial = 1;
    for piece in &pieces {
        let rows = piece.positions();
        state.lanes[own].index.add_entry(rows.start, rows.end - rows.start);
    }
    for (id, members) in batches {
        state.lanes[own].index.add_recorded(id, members);
        if let Some(batch) = state.batches.get_mut(&id) {
            (batch.lane, batch.is_recorded) = (own, true);
        }
    }
    state.ops.retain(|op| !matches!(op, Op::Record { lane, .. } if *lane == former));
    // What became done meanwhile is still in the lane: as nobody's, it would be sent again after a crash.
    let done: Vec<BatchId> = state.lanes[own].index.live_batches();
    for id in done {
        if !state.batches.contains_key(&id) {
            let change = state.lanes[own].index.done(id);
            state.record(own, change);
        }
    }
    Ok(None)
}

fn register(shared: &Shared, link: &mut Link, lane: &Lane, first: u64) -> Result<(), ConnectionError> {
    let destination = shared.destination.to_bytes();
    link.judge(&shared.bucket, |pipeline| pipeline.register(lane, &shared.process, &destination, first)).map(|_| ())
}

/// Sealed and waiting rows of this writer, in order.
fn pieces_in_hand(state: &State) -> Vec<Piece> {
    let bodies = state.batches.values().filter(|batch| batch.lane == state.own);
    let mut pieces: Vec<Piece> = bodies
        .filter_map(|batch| Some(copy(batch.members.start, batch.body.as_ref()?.as_ref().ok()?)))
        .chain(state.waiting.iter().chain(&state.half).map(copy_piece))
        .collect();
    pieces.sort_by_key(|piece| piece.first);
    pieces
}

fn batches_in_hand(state: &State) -> Vec<(BatchId, Members)> {
    let own = state.batches.iter().filter(|(_, batch)| batch.lane == state.own);
    own.map(|(id, batch)| (*id, Members { rows: batch.members.clone(), is_done: false })).collect()
}

/// Where the rows begin of which Redis has not confirmed anything.
fn end_of_known(state: &State) -> u64 {
    let queued = state.ops.iter().find_map(|op| match op {
        Op::Append(pending) => Some(pending.piece.first),
        Op::Withdraw { positions, .. } => Some(positions.start),
        _ => None,
    });
    queued.unwrap_or(state.next_position)
}

fn copy(first: u64, body: &Body) -> Piece {
    let mut piece = Piece { first, chunk: Chunk::default() };
    piece.chunk.push(body.rows());
    piece
}

fn copy_piece(piece: &Piece) -> Piece {
    let mut copied = Piece { first: piece.first, chunk: Chunk::default() };
    copied.chunk.push(piece.rows());
    copied
}

fn held(piece: &Piece) -> HeldRows {
    HeldRows { positions: piece.positions(), held_bytes: piece.held_bytes() }
}
