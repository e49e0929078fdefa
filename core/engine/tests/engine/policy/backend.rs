//! The policy above the tables' own, driven as the gatherer does: a lane per table.

use windrow_engine::policy::{BackendPolicy, FlushId, LaneId, Micros, Urgency};

/// The rule that decides which table's flush is next.
pub enum Turns {
    /// No rule: each table flushes as if it were alone.
    None,
    Taken(Box<Taken>),
}

pub struct Taken {
    policy: BackendPolicy,
    waiting: Vec<Option<Urgency>>,
    flying: Vec<Option<FlushId>>,
}

impl Turns {
    pub fn taken(policy: BackendPolicy, tables: usize) -> Self {
        Turns::Taken(Box::new(Taken { policy, waiting: vec![None; tables], flying: vec![None; tables] }))
    }

    pub fn waits(&self, table: usize) -> bool {
        match self {
            Turns::None => false,
            Turns::Taken(taken) => taken.waiting[table].is_some(),
        }
    }

    /// Notes that the table is due, or that its waiting batch has become more urgent. Returns whether it has
    /// its turn at once.
    pub fn due(&mut self, now: u64, table: usize, urgency: Urgency) -> bool {
        let Turns::Taken(taken) = self else { return true };
        match &mut taken.waiting[table] {
            Some(told) => {
                if *told < urgency {
                    *told = urgency;
                    taken.policy.raise(LaneId(table as u64));
                }
                false
            }
            told => {
                *told = Some(urgency);
                let flush = taken.policy.due(Micros(now), LaneId(table as u64), urgency);
                flush.map(|flush| taken.fly(table, flush)).is_some()
            }
        }
    }

    /// Returns the table that has its turn.
    pub fn next(&mut self, now: u64) -> Option<usize> {
        let Turns::Taken(taken) = self else { return None };
        let (lane, flush) = taken.policy.next(Micros(now))?;
        taken.fly(lane.0 as usize, flush);
        Some(lane.0 as usize)
    }

    pub fn ended(&mut self, now: u64, table: usize) {
        let Turns::Taken(taken) = self else { return };
        if let Some(flush) = taken.flying[table].take() {
            taken.policy.ended(Micros(now), flush);
        }
    }

    pub fn next_wake_us(&self) -> Option<u64> {
        match self {
            Turns::None => None,
            Turns::Taken(taken) => taken.policy.next_wake().map(|at| at.0),
        }
    }
}

impl Taken {
    fn fly(&mut self, table: usize, flush: FlushId) {
        self.waiting[table] = None;
        self.flying[table] = Some(flush);
    }
}
