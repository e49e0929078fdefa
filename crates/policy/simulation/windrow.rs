//! Windrow's side: the policy as the gatherer drives it, one shape per table.

use std::collections::VecDeque;

use windrow_policy::{Arrival, BufferPolicy, FlushEnd, FlushLimits, Lane, Micros, TablePolicy, Verdict};

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
}

impl Tables {
    pub fn new(limits: FlushLimits, count: usize) -> Self {
        let table = |_| {
            let mut policy = TablePolicy::new();
            let buffer = policy.open_buffer();
            Table { policy, buffer, inserts: Vec::new(), sealed: VecDeque::new(), in_flight: None, wake_us: None }
        };
        Tables { limits, tables: (0..count).map(table).collect() }
    }
}

impl Table {
    fn lane(&self) -> Lane {
        if self.in_flight.is_some() || !self.sealed.is_empty() {
            Lane::Busy
        } else {
            Lane::Free
        }
    }

    fn follow(&mut self, now: u64, verdict: Verdict, table: usize, started: &mut Vec<Flush>) {
        self.wake_us = None;
        match verdict {
            // Timers fire on whole milliseconds, and never early.
            Verdict::HoldUntil(at) => self.wake_us = Some(at.0.div_ceil(1000) * 1000),
            Verdict::HoldForFlush => {}
            Verdict::Seal(_) => {
                let next = self.policy.open_buffer();
                let buffer = std::mem::replace(&mut self.buffer, next);
                self.sealed.push_back(Sealed { buffer, inserts: std::mem::take(&mut self.inserts) });
                self.start_next(now, table, started);
            }
        }
    }

    fn start_next(&mut self, now: u64, table: usize, started: &mut Vec<Flush>) {
        if self.in_flight.is_some() {
            return;
        }
        if let Some(sealed) = self.sealed.pop_front() {
            self.policy.flush_started(Micros(now));
            self.in_flight = Some(sealed.buffer);
            started.push(Flush { table, inserts: sealed.inserts });
        }
    }

    fn ask(&mut self, now: u64, table: usize, started: &mut Vec<Flush>) {
        if !self.buffer.is_empty() {
            let verdict = self.policy.decide(Micros(now), &self.buffer, self.lane());
            self.follow(now, verdict, table, started);
        }
    }
}

impl Queue for Tables {
    fn push(&mut self, now: u64, push: Push, started: &mut Vec<Flush>) {
        let table = &mut self.tables[push.table];
        table.inserts.push(push.insert);
        let arrival = Arrival { writer: push.writer, waits: push.waits, rows: 1, bytes: 100 };
        let lane = table.lane();
        let verdict = table.policy.arrive(Micros(now), &mut table.buffer, &arrival, &self.limits, lane);
        table.follow(now, verdict, push.table, started);
    }

    fn next_wake_us(&self) -> Option<u64> {
        self.tables.iter().filter_map(|table| table.wake_us).min()
    }

    fn wake(&mut self, now: u64, started: &mut Vec<Flush>) {
        for (index, table) in self.tables.iter_mut().enumerate() {
            if table.wake_us == Some(now) {
                table.ask(now, index, started);
            }
        }
    }

    fn flush_ended(&mut self, now: u64, flush: &Flush, took_us: u64, started: &mut Vec<Flush>) {
        let table = &mut self.tables[flush.table];
        if let Some(buffer) = table.in_flight.take() {
            let end = FlushEnd { buffer: buffer.id(), duration: Micros(took_us), ok: true };
            table.policy.flush_ended(Micros(now), &end);
        }
        table.start_next(now, flush.table, started);
        table.ask(now, flush.table, started);
    }
}
