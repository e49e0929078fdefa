//! Windrow's side: the policies driven as the gatherer does, one shape per table.

use std::collections::{BTreeSet, VecDeque};

use windrow_engine::policy::{
    Arrival, BackendPolicy, BufferPolicy, FlushEnd, FlushLimits, Lane, Micros, Stretch, TablePolicy, Urgency, Verdict,
};

use super::backend::Turns;
use super::engine::{Flush, Push, Queue};

struct Sealed {
    buffer: BufferPolicy,
    inserts: Vec<usize>,
}

struct Table {
    policy: TablePolicy,
    buffer: BufferPolicy,
    inserts: Vec<usize>,
    sealed: VecDeque<Sealed>,
    in_flight: Option<BufferPolicy>,
    wake_us: Option<u64>,
}

pub struct Tables {
    limits: FlushLimits,
    tables: Vec<Table>,
    turns: Turns,
    /// The times at which tables are to be asked again.
    alarms: BTreeSet<(u64, usize)>,
    now_us: u64,
}

impl Tables {
    /// Creates tables of which each flushes as if it were alone.
    pub fn new(limits: FlushLimits, count: usize) -> Self {
        Tables {
            limits,
            tables: (0..count).map(|_| Table::new()).collect(),
            turns: Turns::None,
            alarms: BTreeSet::new(),
            now_us: 0,
        }
    }

    /// Creates the tables of one of several gateways.
    pub fn among(limits: FlushLimits, count: usize, gateways: usize) -> Self {
        let mut tables = Tables::new(limits, count);
        tables.tables.iter_mut().for_each(|table| table.policy.stretch(Stretch::among(gateways)));
        tables
    }

    pub fn with_turns(limits: FlushLimits, count: usize, policy: BackendPolicy) -> Self {
        Tables { turns: Turns::taken(policy, count), ..Tables::new(limits, count) }
    }

    fn follow(&mut self, now: u64, index: usize, verdict: Verdict, started: &mut Vec<Flush>) {
        let table = &mut self.tables[index];
        let wake_us = match verdict {
            // Timers fire on whole milliseconds, and never early.
            Verdict::HoldUntil(at) => Some(at.0.div_ceil(1000) * 1000),
            Verdict::HoldForFlush | Verdict::Seal(_) => None,
        };
        if table.wake_us != wake_us {
            table.wake_us.map(|at| self.alarms.remove(&(at, index)));
            wake_us.map(|at| self.alarms.insert((at, index)));
            table.wake_us = wake_us;
        }
        if let Verdict::Seal(reason) = verdict {
            if !reason.may_wait() {
                table.seal();
            }
            self.due(now, index, started);
        }
    }

    /// Notes that the table has a batch to flush, or a larger one while it waits for its turn.
    fn due(&mut self, now: u64, index: usize, started: &mut Vec<Flush>) {
        let table = &self.tables[index];
        if table.in_flight.is_some() {
            return;
        }
        if self.turns.due(now, index, table.urgency()) {
            self.fly(now, index, started);
        }
        self.give_turns(now, started);
    }

    fn give_turns(&mut self, now: u64, started: &mut Vec<Flush>) {
        while let Some(index) = self.turns.next(now) {
            self.fly(now, index, started);
        }
    }

    fn fly(&mut self, now: u64, index: usize, started: &mut Vec<Flush>) {
        let table = &mut self.tables[index];
        if table.sealed.is_empty() {
            table.seal();
        }
        if let Some(sealed) = table.sealed.pop_front() {
            table.policy.flush_started(Micros(now));
            table.in_flight = Some(sealed.buffer);
            started.push(Flush { table: index, inserts: sealed.inserts });
        }
    }

    fn ask(&mut self, now: u64, index: usize, started: &mut Vec<Flush>) {
        let lane = self.lane(index);
        let table = &mut self.tables[index];
        if !table.buffer.is_empty() {
            let verdict = table.policy.decide(Micros(now), &table.buffer, lane);
            self.follow(now, index, verdict, started);
        }
    }

    fn lane(&self, index: usize) -> Lane {
        let table = &self.tables[index];
        if table.in_flight.is_some() || !table.sealed.is_empty() || self.turns.waits(index) {
            Lane::Busy
        } else {
            Lane::Free
        }
    }
}

impl Table {
    fn new() -> Self {
        let mut policy = TablePolicy::new();
        let buffer = policy.open_buffer();
        Table { policy, buffer, inserts: Vec::new(), sealed: VecDeque::new(), in_flight: None, wake_us: None }
    }

    fn seal(&mut self) {
        let next = self.policy.open_buffer();
        let buffer = std::mem::replace(&mut self.buffer, next);
        self.sealed.push_back(Sealed { buffer, inserts: std::mem::take(&mut self.inserts) });
    }

    fn urgency(&self) -> Urgency {
        match self.sealed.is_empty() {
            true => self.buffer.urgency(),
            // It is full.
            false => Urgency::Urgent,
        }
    }
}

impl Queue for Tables {
    fn push(&mut self, now: u64, push: Push, started: &mut Vec<Flush>) {
        self.now_us = now;
        let lane = self.lane(push.table);
        let table = &mut self.tables[push.table];
        table.inserts.push(push.insert);
        let arrival = Arrival { writer: push.writer, waits: push.waits, back_after: None, rows: 1, bytes: 100 };
        let verdict = table.policy.arrive(Micros(now), &mut table.buffer, &arrival, &self.limits, lane);
        self.follow(now, push.table, verdict, started);
        if self.turns.waits(push.table) {
            self.due(now, push.table, started);
        }
    }

    fn next_wake_us(&self) -> Option<u64> {
        let alarm = self.alarms.first().map(|(at, _)| *at);
        let turn = self.turns.next_wake_us().map(|at| at.max(self.now_us + 1).div_ceil(1000) * 1000);
        [alarm, turn].into_iter().flatten().min()
    }

    fn wake(&mut self, now: u64, started: &mut Vec<Flush>) {
        self.now_us = now;
        while let Some((at, index)) = self.alarms.first().copied().filter(|(at, _)| *at <= now) {
            self.alarms.remove(&(at, index));
            self.tables[index].wake_us = None;
            self.ask(now, index, started);
        }
        self.give_turns(now, started);
    }

    fn flush_ended(&mut self, now: u64, flush: &Flush, took_us: u64, started: &mut Vec<Flush>) {
        self.now_us = now;
        self.turns.ended(now, flush.table);
        let table = &mut self.tables[flush.table];
        if let Some(buffer) = table.in_flight.take() {
            let end = FlushEnd { buffer: buffer.id(), duration: Micros(took_us), ok: true };
            table.policy.flush_ended(Micros(now), &end);
        }
        if !table.sealed.is_empty() {
            self.due(now, flush.table, started);
        }
        self.ask(now, flush.table, started);
        self.give_turns(now, started);
    }
}
