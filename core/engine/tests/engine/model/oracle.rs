//! The allowed outcomes of an insert:
//!
//! 1. Told `Ok`: each row is stored exactly once.
//! 2. Told that it was refused, or taken back: no row is stored. Taken back: it is not even sent any more.
//! 3. Told that the outcome is unknown: there was a reason, and no row is stored twice.
//! 4. Left at ack level `memory`: stored, unless it was refused for good, or its outcome was unknown again and
//!    again; more than once only if an answer was lost and the table can't recognise a repeat.
//! 5. Each stored row was sent, to that shape. Within a shape each writer's rows were first stored in the order
//!    in which they were sent, except those that were refused for good and tried again.
//! 6. An id always means the same rows.
//! 7. In the end no memory is held, and the log has each insert once, with its status.

use std::collections::HashMap;

use windrow_clickhouse::ErrorCode;
use windrow_engine::{sink::BatchId, InsertStatus};

use super::ops::{Fate, Sent};
use super::weather::{is_culprit, ROWS_PER_INSERT};
use crate::support::{Answer, Call, Told, World};

/// The number of attempts of unknown outcome after which an insert is given up where no repeat is recognised.
const MOST_UNKNOWN: usize = 4;

/// Figures of a run.
pub struct Seen {
    pub faults: usize,
}

pub fn check(seed: u64, world: &World, sent: &[Sent]) -> Seen {
    let calls = world.sink.calls();
    for (number, insert) in sent.iter().enumerate() {
        let story = Story::of(insert, &calls);
        story.check(&format!("seed {seed}, insert {number}"));
    }
    check_calls(seed, sent, &calls);
    check_log(seed, world, sent, &calls);
    assert_eq!(world.gatherer.held_bytes(), 0, "seed {seed}");
    Seen { faults: calls.iter().filter(|call| call.answer != Some(Answer::Ok)).count() }
}

/// The calls to the sink with an insert.
struct Story<'a> {
    insert: &'a Sent,
    /// Calls that brought the insert, with their numbers.
    calls: Vec<(usize, &'a Call)>,
    /// The number of stored copies of each of its rows.
    copies: Vec<usize>,
    /// True if the sink panicked, maybe on a part of its batch: the outcome of the other parts is unknown
    /// then too.
    is_struck: bool,
}

impl<'a> Story<'a> {
    fn of(insert: &'a Sent, calls: &'a [Call]) -> Story<'a> {
        let with_it: Vec<_> =
            calls.iter().enumerate().filter(|(_, call)| call.rows.contains(&insert.rows[0])).collect();
        let copies = insert
            .rows
            .iter()
            .map(|row| calls.iter().flat_map(|call| &call.stored).filter(|stored| *stored == row).count());
        let first = with_it.first().map_or(0, |(number, _)| *number);
        let is_panic =
            |call: &Call| call.answer == Some(Answer::Panic) && *call.destination == *insert.shape.destination();
        let is_struck = calls[first..].iter().any(is_panic);
        Story { insert, calls: with_it, copies: copies.collect(), is_struck }
    }

    fn was_answered(&self, is_meant: impl Fn(Answer) -> bool) -> bool {
        self.calls.iter().any(|(_, call)| call.answer.is_some_and(&is_meant))
    }

    fn was_lost(&self) -> bool {
        self.was_answered(|answer| matches!(answer, Answer::LostAfterStoring | Answer::LostBeforeStoring))
    }

    fn check(&self, which: &str) {
        for (_, call) in &self.calls {
            assert_eq!(*call.destination, *self.insert.shape.destination(), "{which}: sent elsewhere");
            assert!(self.insert.rows.iter().all(|row| call.rows.contains(row)), "{which}: cut in two");
        }
        match &self.insert.fate {
            Fate::Left => self.check_left(which),
            Fate::Waiting(_) => panic!("{which}: never told"),
            Fate::Told(Ok(())) => assert!(self.copies.iter().all(|&copies| copies == 1), "{which}: {:?}", self.copies),
            Fate::Told(Err(Told::OutcomeUnknown)) => {
                assert!(self.was_lost() || self.is_struck, "{which}: unknown without a reason");
                self.check_once_at_most(which);
            }
            Fate::Told(Err(Told::Exception(code))) => self.check_refused(*code, &format!("{which}, {code}")),
            Fate::Told(Err(Told::Unreachable)) => panic!("{which}: given up, though the sink came back"),
            Fate::TakenBack { calls } => {
                assert!(self.copies.iter().all(|&copies| copies == 0), "{which}: stored, though taken back");
                assert!(self.calls.iter().all(|(number, _)| number < calls), "{which}: sent after it was taken back");
            }
            Fate::LetGo => self.check_once_at_most(which),
        }
    }

    fn check_once_at_most(&self, which: &str) {
        assert!(self.copies.iter().all(|&copies| copies <= 1), "{which}: stored twice: {:?}", self.copies);
    }

    fn check_refused(&self, code: ErrorCode, which: &str) {
        // A table that is gone after an answer was lost: what the lost attempt did is gone too.
        if !self.was_lost() && !self.was_answered(|answer| matches!(answer, Answer::FailedInPart(..))) {
            assert!(self.copies.iter().all(|&copies| copies == 0), "{which}: stored, though refused");
        }
        let is_guilty = is_culprit(self.insert.rows[0]);
        // Who has waited long enough for parts to be merged hears that there are too many, also if he waited behind.
        let had_a_reason = code == ErrorCode::TOO_MANY_PARTS
            || self.was_answered(|answer| {
                matches!(answer, Answer::Refused(ErrorCode::UNKNOWN_TABLE) | Answer::FailedInPart(..))
            });
        let answers: Vec<_> = self.calls.iter().map(|(_, call)| (&call.rows, call.answer)).collect();
        assert!(is_guilty || had_a_reason, "{which}: refused without a reason: {answers:?}");
        self.check_once_at_most(which);
    }

    fn check_left(&self, which: &str) {
        let unknown = |answer| matches!(answer, Some(Answer::LostAfterStoring | Answer::LostBeforeStoring));
        let unknown = self.calls.iter().filter(|(_, call)| unknown(call.answer)).count();
        let given_up = self.is_struck
            || unknown >= MOST_UNKNOWN && !self.insert.shape.destination().deduplicates
            || is_culprit(self.insert.rows[0])
            || self.was_answered(|answer| {
                matches!(answer, Answer::Refused(ErrorCode::UNKNOWN_TABLE) | Answer::FailedInPart(..))
            });
        assert!(given_up || self.copies.iter().all(|&copies| copies >= 1), "{which}: lost");
        let stored_and_lost = |(_, call): &&(usize, &Call)| call.answer == Some(Answer::LostAfterStoring);
        let repeats = match self.insert.shape.destination().deduplicates {
            true => 0,
            false => self.calls.iter().filter(stored_and_lost).count(),
        };
        assert!(self.copies.iter().all(|&copies| copies <= 1 + repeats), "{which}: stored twice: {:?}", self.copies);
    }
}

fn check_calls(seed: u64, sent: &[Sent], calls: &[Call]) {
    let mut rows_of: HashMap<BatchId, &[u64]> = HashMap::new();
    let mut latest = HashMap::new();
    for call in calls {
        assert!(!call.rows.is_empty(), "seed {seed}: an empty batch was sent");
        let rows = rows_of.entry(call.id).or_insert(&call.rows);
        assert_eq!(*rows, call.rows, "seed {seed}: batch {} changed", call.id);
        for row in &call.rows {
            let insert = sent.get((row / ROWS_PER_INSERT) as usize);
            assert!(insert.is_some_and(|insert| insert.rows.contains(row)), "seed {seed}: row {row} was never sent");
        }
        for row in &call.stored {
            let writer = sent[(row / ROWS_PER_INSERT) as usize].writer;
            let latest = latest.entry((call.destination.clone(), writer)).or_insert_with(Vec::new);
            let was_refused = calls
                .iter()
                .any(|call| call.answer == Some(Answer::Refused(ErrorCode::UNKNOWN_TABLE)) && call.rows.contains(row));
            if !was_refused && !latest.contains(row) {
                assert!(latest.last().is_none_or(|before| before < row), "seed {seed}: row {row} is out of order");
                latest.push(*row);
            }
        }
    }
}

fn check_log(seed: u64, world: &World, sent: &[Sent], calls: &[Call]) {
    let mut logged = HashMap::new();
    for (id, status) in world.logged() {
        assert_eq!(logged.insert(id.clone(), status), None, "seed {seed}: insert {id} is in the log twice");
    }
    for insert in sent {
        let status = logged.get(&insert.rows[0].to_string()).copied();
        let expected = match &insert.fate {
            Fate::Told(Ok(())) => Some(InsertStatus::Ok),
            Fate::TakenBack { .. } => None,
            // Whoever could have logged it is gone.
            _ if Story::of(insert, calls).is_struck => continue,
            Fate::Told(Err(_)) => Some(InsertStatus::FlushError),
            Fate::Left | Fate::LetGo | Fate::Waiting(_) => {
                assert!(status.is_some(), "seed {seed}: insert {:?} is not in the log", insert.rows);
                continue;
            }
        };
        assert_eq!(status, expected, "seed {seed}: insert {:?} in the log", insert.rows);
    }
}
