use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use fastrand::Rng;
use windrow_clickhouse::ErrorCode;

use crate::support::{Answer, Call};

/// The rate at which the sink fails. It changes during a run and is zero at the end of half of the runs.
#[derive(Clone, Default)]
pub struct Weather {
    faults_per_hundred: Arc<Mutex<u32>>,
}

/// The most faults in a row. Each one makes the gatherer wait longer; this many are enough for all that it
/// remembers.
const MOST_FAULTS_IN_A_ROW: u32 = 4;

/// The distance of the row numbers of two inserts. The rows of one insert lie within it.
pub const ROWS_PER_INSERT: u64 = 4;

/// Says whether the row is of an insert that the sink's system always refuses.
pub fn is_culprit(row: u64) -> bool {
    row / ROWS_PER_INSERT % 13 == 5
}

impl Weather {
    pub fn set(&self, faults_per_hundred: u32) {
        *self.faults_per_hundred.lock().unwrap() = faults_per_hundred;
    }

    /// Returns the script of a run's answers.
    pub fn script(&self, seed: u64) -> impl FnMut(usize, &Call) -> Answer + Send + 'static {
        let (weather, mut random) = (self.clone(), Rng::with_seed(seed ^ 0x5eed));
        let mut in_a_row = HashMap::new();
        move |_, call| {
            let in_a_row = in_a_row.entry(call.destination.clone()).or_insert(0);
            let is_due = random.u32(0..100) < *weather.faults_per_hundred.lock().unwrap();
            let is_fault = is_due && *in_a_row < MOST_FAULTS_IN_A_ROW;
            *in_a_row = if is_fault { *in_a_row + 1 } else { 0 };
            let answer = if is_fault { fault(&mut random, call) } else { Answer::Ok };
            match answer {
                // A system that gets to see a culprit stores nothing.
                Answer::Ok | Answer::FailedInPart(..) if call.rows.iter().any(|&row| is_culprit(row)) => {
                    Answer::Refused(ErrorCode::VIOLATED_CONSTRAINT)
                }
                Answer::LostAfterStoring if call.rows.iter().any(|&row| is_culprit(row)) => Answer::LostBeforeStoring,
                answer => answer,
            }
        }
    }
}

fn fault(random: &mut Rng, call: &Call) -> Answer {
    match random.u32(0..11) {
        0..=2 => Answer::NotSent,
        3 => Answer::RefusedSaying(ErrorCode::TOO_MANY_PARTS, "Too many parts (3000)."),
        4 => Answer::Refused(ErrorCode::MEMORY_LIMIT_EXCEEDED),
        5 => Answer::Refused(ErrorCode::UNKNOWN_TABLE),
        6 => Answer::FailedInPart(ErrorCode::VIOLATED_CONSTRAINT, random.usize(0..=call.rows.len())),
        7 | 8 => Answer::LostBeforeStoring,
        9 => Answer::LostAfterStoring,
        _ => Answer::Panic,
    }
}
