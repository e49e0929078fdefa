//! One shard of ClickHouse's queue, written from its rules and independently of the crate under test.

use std::collections::{BTreeMap, VecDeque};

use windrow_engine::policy::{CountLimit, FlushLimits};

use super::engine::{Flush, Push, Queue};

const POLL_US: u64 = 10_000;

struct Batch {
    deadline_us: u64,
    inserts: Vec<usize>,
}

pub struct Shard {
    limits: FlushLimits,
    timeout_ms: u64,
    last_insert_us: Option<u64>,
    flushes_us: [Option<u64>; 2],
    open: BTreeMap<usize, Batch>,
    /// The time of the deadline thread's last look; it looks again after `POLL_US`.
    looked_us: u64,
    order: Order,
    waiting: VecDeque<Flush>,
    running: usize,
}

/// The order of a table's flushes: they overlap, as in ClickHouse, or go one after another, as in Windrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Overlapping,
    OneByOne,
}

impl Shard {
    pub fn new(limits: FlushLimits, order: Order) -> Self {
        let timeout_ms = limits.busy_timeout_min_ms.min(limits.busy_timeout_max_ms);
        Shard {
            limits,
            timeout_ms,
            last_insert_us: None,
            flushes_us: [None; 2],
            open: BTreeMap::new(),
            looked_us: 0,
            order,
            waiting: VecDeque::new(),
            running: 0,
        }
    }

    fn next_timeout_ms(&self, now: u64) -> u64 {
        let max = self.limits.busy_timeout_max_ms;
        let min = self.limits.busy_timeout_min_ms.max(1).min(max);
        let timeout = self.timeout_ms;
        let (Some(last), [Some(f1), Some(f2)]) = (self.last_insert_us, self.flushes_us) else {
            return timeout.clamp(min, max);
        };
        let down = ((timeout as f64 / (1.0 + self.limits.decrease_rate)).trunc() as u64).min(timeout - 1);
        let up = ((timeout as f64 * (1.0 + self.limits.increase_rate)).trunc() as u64).max(timeout + 1);
        let next = if last + min * 1000 > now {
            up
        } else if last + down * 1000 < now && f1 + down * 1000 < f2 {
            down
        } else {
            timeout
        };
        next.clamp(min, max)
    }

    fn is_lonely(&self, now: u64) -> bool {
        let pause = self.limits.busy_timeout_max_ms * 1000;
        match (self.last_insert_us, self.flushes_us) {
            (Some(last), [Some(f1), Some(f2)]) => last + pause < now && f1 + pause < f2,
            _ => false,
        }
    }

    /// Sends every batch that is past its deadline, as the deadline thread does while it holds the lock.
    fn look(&mut self, now: u64, started: &mut Vec<Flush>) {
        self.looked_us = now;
        while let Some(table) = self.open.iter().find(|(_, batch)| batch.deadline_us < now).map(|(table, _)| *table) {
            self.send(table, started);
        }
    }

    fn start(&mut self, started: &mut Vec<Flush>) {
        while self.order == Order::Overlapping || self.running == 0 {
            let Some(flush) = self.waiting.pop_front() else {
                return;
            };
            self.running += 1;
            started.push(flush);
        }
    }

    fn send(&mut self, table: usize, started: &mut Vec<Flush>) {
        if let Some(batch) = self.open.remove(&table) {
            self.waiting.push_back(Flush { table, inserts: batch.inserts });
            self.start(started);
        }
    }
}

impl Queue for Shard {
    fn push(&mut self, now: u64, push: Push, started: &mut Vec<Flush>) {
        let timeout_ms = self.next_timeout_ms(now);
        let lonely = self.is_lonely(now);
        let deadline_us = now + timeout_ms * 1000;
        let batch = self.open.entry(push.table).or_insert_with(|| Batch { deadline_us, inserts: Vec::new() });
        batch.inserts.push(push.insert);
        let counts = self.limits.count_limit != CountLimit::Off;
        let full = counts && batch.inserts.len() as u64 >= self.limits.max_query_number;
        self.last_insert_us = Some(now);
        self.timeout_ms = timeout_ms;
        if full || lonely {
            self.send(push.table, started);
        } else if self.open.values().any(|batch| batch.deadline_us < now) {
            self.look(now, started);
        }
    }

    fn next_wake_us(&self) -> Option<u64> {
        let deadline = self.open.values().map(|batch| batch.deadline_us).min()?;
        // Strictly after the deadline, on the beat that the last look started.
        let beats = deadline.saturating_sub(self.looked_us) / POLL_US + 1;
        Some(self.looked_us + beats * POLL_US)
    }

    fn wake(&mut self, now: u64, started: &mut Vec<Flush>) {
        self.look(now, started);
    }

    fn flush_ended(&mut self, now: u64, _flush: &Flush, _took_us: u64, started: &mut Vec<Flush>) {
        self.running -= 1;
        self.start(started);
        self.flushes_us = [self.flushes_us[1], Some(now)];
    }
}
