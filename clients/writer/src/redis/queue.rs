//! The queue of operations that Redis has to be told, and their order.
//!
//! New appends are sent in the order of their positions, behind each other. Records of rows that Redis has do
//! not wait for appends: a record frees the room that they may be waiting for. Rows that are written again,
//! in a lane that took the place of a lost one, come before all else: records are about rows that are there.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Instant;

use super::lane_index::Change;
use super::state::{LaneNumber, Piece};
use crate::id::BatchId;
use crate::rows::Body;

/// The most operations of one pipeline; `FLIGHT_BYTES` is the most bytes of rows.
const FLIGHT_OPS: usize = 1024;
const FLIGHT_BYTES: usize = 8 * 1024 * 1024;

pub(super) struct Pending {
    pub(super) piece: Piece,
    pub(super) deadline: Instant,
    /// True if the rest of the append is in the piece behind it.
    pub(super) has_more: bool,
    /// True if the piece may be in Redis: it is not added to any more, and has to be withdrawn before it is
    /// refused.
    pub(super) was_sent: bool,
}

/// Rows that Redis had confirmed in a lane that was lost before another had it.
pub(super) struct Again {
    pub(super) first: u64,
    pub(super) rows: Body,
    /// The batch that the rows are, if they are one: it is recorded with them.
    pub(super) batch: Option<BatchId>,
}

pub(super) enum Op {
    Append(Pending),
    /// Rows that were refused: they are deleted from Redis if they had come there.
    Withdraw {
        positions: Range<u64>,
        was_sent: bool,
    },
    Again(Again),
    /// Positions of which there are no rows in the lane.
    Skip(Range<u64>),
    /// A lane whose rows were all written again.
    Discard(LaneNumber),
    Record {
        lane: LaneNumber,
        serial: u64,
        change: Change,
    },
    /// An adopted batch whose rows are to be read. This operation goes alone.
    Read(BatchId),
}

#[derive(Default)]
pub(super) struct Queue {
    pub(super) again: VecDeque<Op>,
    pub(super) records: VecDeque<Op>,
    /// Appends and withdrawals.
    pub(super) rows: VecDeque<Op>,
}

impl Queue {
    pub(super) fn is_empty(&self) -> bool {
        self.again.is_empty() && self.records.is_empty() && self.rows.is_empty()
    }

    /// Takes the operations of the next pipeline. While the bucket is full, one append asks whether it still is.
    pub(super) fn take_flight(&mut self, is_full: bool) -> Vec<Op> {
        let mut flight = Flight { ops: Vec::new(), bytes: 0 };
        if !self.again.is_empty() {
            flight.take(&mut self.again, |_| true);
            return flight.ops;
        }
        if matches!(self.records.front(), Some(Op::Read(_))) {
            return self.records.drain(..1).collect();
        }
        flight.take(&mut self.records, |op| !matches!(op, Op::Read(_)));
        let mut is_first = true;
        flight.take(&mut self.rows, |op| {
            let is_append = matches!(op, Op::Append(_));
            !(is_full && is_append) || std::mem::take(&mut is_first)
        });
        flight.ops
    }

    /// Puts back operations that were not applied: they are the first to be sent again.
    pub(super) fn put_back(&mut self, flight: Vec<Op>) {
        for op in flight.into_iter().rev() {
            let queue = match op {
                Op::Append(_) | Op::Withdraw { .. } => &mut self.rows,
                Op::Again(_) | Op::Skip(_) | Op::Discard(_) => &mut self.again,
                Op::Record { .. } | Op::Read(_) => &mut self.records,
            };
            queue.push_front(op);
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.rows.iter().find_map(|op| match op {
            Op::Append(pending) => Some(pending.deadline),
            _ => None,
        })
    }

    /// Returns the position of the first of the rows that are on their way.
    pub(super) fn first_position(&self) -> Option<u64> {
        self.rows.front().and_then(|op| match op {
            Op::Append(pending) => Some(pending.piece.first),
            Op::Withdraw { positions, .. } => Some(positions.start),
            _ => None,
        })
    }

    /// Drops the records of a lane that is not this writer's any more.
    pub(super) fn forget_records(&mut self, of: LaneNumber) {
        self.records.retain(|op| !is_record_of(op, of));
    }

    /// Says whether Redis has still to be told something of a lane's batches.
    pub(super) fn has_records(&self, of: LaneNumber) -> bool {
        self.records.iter().any(|op| is_record_of(op, of))
    }

    pub(super) fn discards(&self, of: LaneNumber) -> bool {
        self.again.iter().any(|op| matches!(op, Op::Discard(lane) if *lane == of))
    }
}

fn is_record_of(op: &Op, of: LaneNumber) -> bool {
    matches!(op, Op::Record { lane, .. } if *lane == of)
}

struct Flight {
    ops: Vec<Op>,
    bytes: usize,
}

impl Flight {
    fn take(&mut self, queue: &mut VecDeque<Op>, mut goes: impl FnMut(&Op) -> bool) {
        while self.ops.len() < FLIGHT_OPS && self.bytes < FLIGHT_BYTES && queue.front().is_some_and(&mut goes) {
            let Some(mut op) = queue.pop_front() else { return };
            match &mut op {
                Op::Append(pending) => {
                    pending.was_sent = true;
                    self.bytes += pending.piece.chunk.bytes.len();
                }
                Op::Again(again) => self.bytes += again.rows.rows().bytes().len(),
                Op::Withdraw { was_sent, .. } => *was_sent = true,
                Op::Skip(_) | Op::Discard(_) | Op::Record { .. } | Op::Read(_) => {}
            }
            self.ops.push(op);
        }
    }
}

/// Queues a withdrawal. Rows that were never sent leave nothing to be deleted: one withdrawal passes over all
/// of them, however long Redis is away.
pub(super) fn push_withdrawal(ops: &mut VecDeque<Op>, positions: Range<u64>, was_sent: bool) {
    if let (false, Some(Op::Withdraw { positions: last, was_sent: false })) = (was_sent, ops.back_mut()) {
        if last.end == positions.start {
            last.end = positions.end;
            return;
        }
    }
    ops.push_back(Op::Withdraw { positions, was_sent });
}
