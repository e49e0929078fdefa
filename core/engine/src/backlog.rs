//! Inserts that are in the journal and not in memory: an earlier run left them, or they were parked since
//! memory was full.
//!
//! Inserts of a table with a backlog are taken in the order in which they came. First come those that an
//! earlier run left; batches that it had attempted are sent as they were. When all of these have come to
//! their end, the parked inserts follow. The feeder (`feeder.rs`) puts them into buffers as memory allows.
//! Until then an insert that is only to be kept on disk is parked behind them. All other inserts wait for
//! their turn: until the inserts that came before them are in the buffers.
//!
//! A parked insert takes four bytes here: tens of millions may wait while a backend is away.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::sink::BatchId;
use windrow_log::{ContextKey, RecordId};

use crate::insert::InsertKind;
use crate::shape::Shape;

/// Largest number of inserts that are fed in one go.
const MOST_AT_ONCE: usize = 1024;

/// Queue of record ids, first in first out, with four bytes for each id.
#[derive(Default)]
pub(crate) struct Ids {
    runs: VecDeque<Run>,
    count: u64,
}

struct Run {
    base: u64,
    offsets: VecDeque<u32>,
}

impl Ids {
    const RUN: usize = 1 << 16;

    pub(crate) fn push(&mut self, id: RecordId) {
        self.count += 1;
        if let Some(run) = self.runs.back_mut().filter(|run| run.offsets.len() < Ids::RUN) {
            if let Some(offset) = id.0.checked_sub(run.base).and_then(|offset| u32::try_from(offset).ok()) {
                run.offsets.push_back(offset);
                return;
            }
        }
        self.runs.push_back(Run { base: id.0, offsets: VecDeque::from([0]) });
    }

    pub(crate) fn pop(&mut self) -> Option<RecordId> {
        let run = self.runs.front_mut()?;
        let id = run.base + u64::from(run.offsets.pop_front()?);
        self.count -= 1;
        if run.offsets.is_empty() {
            self.runs.pop_front();
        }
        Some(RecordId(id))
    }

    pub(crate) fn len(&self) -> u64 {
        self.count
    }

    fn first(&self) -> Option<RecordId> {
        let run = self.runs.front()?;
        Some(RecordId(run.base + u64::from(*run.offsets.front()?)))
    }

    /// Says whether there is a next id that is before `end`. Without an end, any next id will do.
    fn has_one_until(&self, end: Option<RecordId>) -> bool {
        self.first().is_some_and(|first| end.is_none_or(|end| first < end))
    }

    fn take_until(&mut self, end: Option<RecordId>) -> Vec<RecordId> {
        let next = || if self.has_one_until(end) { self.pop() } else { None };
        std::iter::from_fn(next).take(MOST_AT_ONCE).collect()
    }
}

/// A batch that an earlier run attempted: it is sent again with the same members under the same id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LeftPiece {
    /// The record of the piece itself.
    pub(crate) record: RecordId,
    pub(crate) batch: BatchId,
    pub(crate) members: Vec<RecordId>,
}

impl LeftPiece {
    /// Returns the first member, which gives the piece its place among what is left.
    pub(crate) fn first_member(&self) -> Option<RecordId> {
        self.members.iter().min().copied()
    }
}

/// The parts of a parked insert that the journal doesn't keep in full: its shape, with the sender's password,
/// and its kind.
#[derive(Clone)]
pub(crate) struct Sender {
    pub(crate) shape: Arc<Shape>,
    pub(crate) kind: Arc<InsertKind>,
}

/// Inserts of one table that an earlier run left.
#[derive(Default)]
pub(crate) struct Leftover {
    /// Pieces in the order of their first members.
    pub(crate) pieces: VecDeque<LeftPiece>,
    /// Inserts that are in no piece, in order.
    pub(crate) inserts: Ids,
    /// Number of inserts, with those in pieces.
    pub(crate) count: u64,
    pub(crate) bytes: u64,
}

impl Leftover {
    /// Returns the place of the next piece: inserts before it go first.
    fn end_of_run(&self) -> Option<RecordId> {
        self.pieces.front().and_then(LeftPiece::first_member)
    }
}

#[derive(Default)]
pub(crate) struct Backlog {
    left: Leftover,
    /// Number of inserts of an earlier run that have not come to their end, fed or not.
    unsettled: u64,
    parked: Ids,
    /// Number of inserts that are being appended, and are not on the disk yet.
    parking: u64,
    /// Number of inserts that the feeder has taken out, and that are not in a buffer yet.
    feeding: u64,
    bytes: u64,
    /// Numbers of inserts that have entered the backlog, and (`fed`) that have been fed. They count inserts
    /// on the disk, and never fall: an insert that waits for others waits until as many are fed as had
    /// entered when it came.
    entered: u64,
    fed: u64,
    senders: BTreeMap<ContextKey, Sender>,
}

/// The feeder's next task.
pub(crate) enum ToFeed {
    Piece(LeftPiece),
    /// Inserts to be fed in this order.
    Inserts(Vec<RecordId>),
    /// No insert can be fed now. The feeder asks again when it is told to.
    Nothing,
    /// The backlog is gone, and this feeder is of no use any more.
    Over,
}

/// A place behind all inserts that had entered the backlog when the place was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Turn(u64);

impl Backlog {
    /// Creates an empty backlog. `entered` inserts had entered the table's backlogs before.
    pub(crate) fn new(entered: u64) -> Backlog {
        Backlog { entered, fed: entered, ..Backlog::default() }
    }

    pub(crate) fn of_leftover(leftover: Leftover) -> Backlog {
        let (unsettled, bytes) = (leftover.count, leftover.bytes);
        Backlog { left: leftover, unsettled, bytes, entered: unsettled, ..Backlog::default() }
    }

    pub(crate) fn entered(&self) -> u64 {
        self.entered
    }

    pub(crate) fn turn(&self) -> Turn {
        Turn(self.entered)
    }

    pub(crate) fn is_turn_of(&self, turn: Turn) -> bool {
        self.unsettled == 0 && self.fed >= turn.0
    }

    /// Notes that an insert is about to be parked.
    pub(crate) fn begin_parking(&mut self, bytes: u64) {
        self.parking += 1;
        self.bytes += bytes;
    }

    pub(crate) fn parked(&mut self, id: RecordId, context: ContextKey, sender: &Sender) {
        self.parking -= 1;
        self.entered += 1;
        self.parked.push(id);
        self.senders.entry(context).or_insert_with(|| sender.clone());
    }

    pub(crate) fn not_parked(&mut self, bytes: u64) {
        self.parking -= 1;
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    pub(crate) fn sender(&self, context: ContextKey) -> Option<Sender> {
        self.senders.get(&context).cloned()
    }

    pub(crate) fn next(&mut self) -> ToFeed {
        let end = self.left.end_of_run();
        let mut ids = self.left.inserts.take_until(end);
        if ids.is_empty() {
            if let Some(piece) = self.left.pieces.pop_front() {
                self.feeding += piece.members.len() as u64;
                return ToFeed::Piece(piece);
            }
            if self.unsettled == 0 {
                ids = self.parked.take_until(None);
            }
        }
        if !ids.is_empty() {
            self.feeding += ids.len() as u64;
            return ToFeed::Inserts(ids);
        }
        match self.is_over() {
            true => ToFeed::Over,
            false => ToFeed::Nothing,
        }
    }

    /// Says whether more inserts of an earlier run are to be fed that belong together with the last ones: no
    /// piece lies between them.
    pub(crate) fn has_more_of_run(&self) -> bool {
        self.left.inserts.has_one_until(self.left.end_of_run())
    }

    pub(crate) fn fed(&mut self, inserts: u64, bytes: u64) {
        self.feeding -= inserts;
        self.fed += inserts;
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// Notes that inserts of an earlier run have come to their end.
    pub(crate) fn settled(&mut self, inserts: u64) {
        self.unsettled = self.unsettled.saturating_sub(inserts);
    }

    pub(crate) fn unsettled(&self) -> u64 {
        self.unsettled
    }

    /// Returns the number of inserts that are not in a buffer yet.
    pub(crate) fn inserts(&self) -> u64 {
        let in_pieces: usize = self.left.pieces.iter().map(|piece| piece.members.len()).sum();
        in_pieces as u64 + self.left.inserts.len() + self.parked.len() + self.parking + self.feeding
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    fn is_over(&self) -> bool {
        self.unsettled == 0 && self.inserts() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_come_out_as_they_went_in() {
        let mut random = fastrand::Rng::with_seed(7);
        let (mut ids, mut expected, mut next) = (Ids::default(), VecDeque::new(), 5u64);
        for _ in 0..300_000 {
            match random.u32(0..5) {
                0 => assert_eq!(ids.pop(), expected.pop_front()),
                jump => {
                    // Mostly the next one; rarely one that is far away.
                    next += if random.u32(0..10_000) == 0 { 1 << 33 } else { u64::from(jump) };
                    ids.push(RecordId(next));
                    expected.push_back(RecordId(next));
                }
            }
            assert_eq!(ids.len(), expected.len() as u64);
        }
        while let Some(id) = expected.pop_front() {
            assert_eq!(ids.pop(), Some(id));
        }
        assert_eq!(ids.pop(), None);
        assert!(ids.runs.is_empty());
    }

    #[test]
    fn what_is_in_no_piece_goes_in_its_place_between_the_pieces() {
        let mut left = Leftover { count: 7, ..Leftover::default() };
        let piece = |record: u64, members: [u64; 2]| LeftPiece {
            record: RecordId(record),
            batch: BatchId(u128::from(record)),
            members: members.map(RecordId).to_vec(),
        };
        left.pieces.extend([piece(20, [3, 2]), piece(21, [5, 9])]);
        [1, 4, 10].into_iter().for_each(|id| left.inserts.push(RecordId(id)));
        let mut backlog = Backlog::of_leftover(left);
        let mut met = Vec::new();
        loop {
            match backlog.next() {
                ToFeed::Piece(piece) => met.push(piece.members),
                ToFeed::Inserts(ids) => {
                    met.push(ids);
                    assert!(!backlog.has_more_of_run(), "they are sent before the next piece is fed");
                }
                ToFeed::Nothing | ToFeed::Over => break,
            }
        }
        assert_eq!(
            met,
            [&[1][..], &[3, 2], &[4], &[5, 9], &[10]].map(|ids| ids.iter().copied().map(RecordId).collect::<Vec<_>>())
        );
    }

    #[test]
    fn what_was_parked_waits_for_what_was_left() {
        let mut left = Leftover { count: 3, ..Leftover::default() };
        left.inserts.push(RecordId(9));
        let piece = LeftPiece { record: RecordId(4), batch: BatchId(1), members: vec![RecordId(1), RecordId(2)] };
        left.pieces.push_back(piece.clone());
        let mut backlog = Backlog::of_leftover(left);
        backlog.begin_parking(10);
        assert!(matches!(backlog.next(), ToFeed::Piece(next) if next == piece));
        assert!(matches!(backlog.next(), ToFeed::Inserts(ids) if ids == [RecordId(9)]));
        backlog.fed(3, 0);
        backlog.parking -= 1;
        backlog.entered += 1;
        backlog.parked.push(RecordId(12));
        let turn = backlog.turn();
        backlog.begin_parking(10);
        backlog.not_parked(10);
        backlog.settled(2);
        assert!(matches!(backlog.next(), ToFeed::Nothing), "one is on its way");
        backlog.settled(1);
        assert!(!backlog.is_turn_of(turn), "the parked one goes first");
        assert!(matches!(backlog.next(), ToFeed::Inserts(ids) if ids == [RecordId(12)]));
        assert!(matches!(backlog.next(), ToFeed::Nothing));
        backlog.fed(1, 10);
        assert!(backlog.is_turn_of(turn));
        assert!(matches!(backlog.next(), ToFeed::Over));
    }
}
