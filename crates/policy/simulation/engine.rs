//! Moves time from event to event and keeps the books.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fastrand::Rng;

use super::arrivals::exponential;
use super::scenarios::Scenario;

/// Writers of open arrivals are one-shot connections, told apart from the loops by their number.
const FIRST_ONE_SHOT: u64 = 1 << 32;

#[derive(Clone, Copy, Debug)]
pub struct Push {
    pub insert: usize,
    pub table: usize,
    pub writer: u64,
    pub waits: bool,
}

/// A batch whose flush begins now.
#[derive(Debug)]
pub struct Flush {
    pub table: usize,
    pub inserts: Vec<usize>,
}

/// What is compared: something that takes inserts and starts flushes.
pub trait Queue {
    fn push(&mut self, now_us: u64, push: Push, started: &mut Vec<Flush>);
    fn next_wake_us(&self) -> Option<u64>;
    fn wake(&mut self, now_us: u64, started: &mut Vec<Flush>);
    fn flush_ended(&mut self, now_us: u64, flush: &Flush, took_us: u64, started: &mut Vec<Flush>);
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcome {
    pub wait_p50_ms: f64,
    pub wait_p99_ms: f64,
    /// Until the flush began.
    pub held_mean_ms: f64,
    pub inserts_per_part: f64,
    pub parts_per_s: f64,
    pub inserts_per_s: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    FlushEnds { flight: usize },
    LoopInserts { index: usize },
}

struct Insert {
    arrived_us: u64,
    writer: Option<usize>,
}

struct Flight {
    flush: Flush,
    started_us: u64,
}

struct Run<'a> {
    scenario: &'a Scenario,
    events: BinaryHeap<Reverse<(u64, Event)>>,
    inserts: Vec<Insert>,
    flights: Vec<Flight>,
    rngs: Vec<Rng>,
    /// Of the batches of table 0 that opened within the measured time.
    waits_us: Vec<u64>,
    held_us: u64,
    parts: usize,
    last_stored_us: u64,
}

pub fn run(scenario: &Scenario, queue: &mut dyn Queue) -> Outcome {
    let mut run = Run::new(scenario);
    let mut open = scenario.open.iter().peekable();
    let mut started = Vec::new();
    loop {
        let next_open = open.peek().map(|arrival| arrival.at_us);
        let next_event = run.events.peek().map(|Reverse((at, _))| *at);
        let next_wake = queue.next_wake_us();
        let Some(now) = [next_event, next_open, next_wake].into_iter().flatten().min() else {
            break;
        };
        // What happens at the same time happens in this order, on both sides.
        if next_event == Some(now) {
            run.event(now, queue, &mut started);
        } else if next_open == Some(now) {
            let table = open.next().map_or(0, |arrival| arrival.table);
            run.push(now, table, None, queue, &mut started);
        } else {
            queue.wake(now, &mut started);
        }
        run.start(now, &mut started);
    }
    run.outcome()
}

impl<'a> Run<'a> {
    fn new(scenario: &'a Scenario) -> Self {
        let start = |(index, writer): (usize, &super::arrivals::Loop)| {
            Reverse((writer.starts_at_us, Event::LoopInserts { index }))
        };
        Run {
            scenario,
            events: scenario.loops.iter().enumerate().map(start).collect(),
            inserts: Vec::new(),
            flights: Vec::new(),
            rngs: (0..scenario.loops.len()).map(|i| Rng::with_seed(scenario.seed ^ (i as u64 + 1))).collect(),
            waits_us: Vec::new(),
            held_us: 0,
            parts: 0,
            last_stored_us: 0,
        }
    }

    fn event(&mut self, now: u64, queue: &mut dyn Queue, started: &mut Vec<Flush>) {
        match self.events.pop() {
            Some(Reverse((_, Event::FlushEnds { flight }))) => self.end(now, flight, queue, started),
            Some(Reverse((_, Event::LoopInserts { index }))) => {
                self.push(now, self.scenario.loops[index].table, Some(index), queue, started);
            }
            None => {}
        }
    }

    fn push(
        &mut self,
        now: u64,
        table: usize,
        looping: Option<usize>,
        queue: &mut dyn Queue,
        started: &mut Vec<Flush>,
    ) {
        let insert = self.inserts.len();
        self.inserts.push(Insert { arrived_us: now, writer: looping });
        let writer = looping.map_or(FIRST_ONE_SHOT + insert as u64, |index| index as u64);
        let waits = looping.is_some() || self.scenario.open_waits;
        queue.push(now, Push { insert, table, writer, waits }, started);
    }

    fn start(&mut self, now: u64, started: &mut Vec<Flush>) {
        for flush in started.drain(..) {
            let ends_at = now + self.scenario.cost.of(flush.inserts.len());
            self.events.push(Reverse((ends_at, Event::FlushEnds { flight: self.flights.len() })));
            self.flights.push(Flight { flush, started_us: now });
        }
    }

    fn end(&mut self, now: u64, flight: usize, queue: &mut dyn Queue, started: &mut Vec<Flush>) {
        let started_us = self.flights[flight].started_us;
        let flush = &self.flights[flight].flush;
        let first_arrived_us = flush.inserts.first().map_or(now, |first| self.inserts[*first].arrived_us);
        let measured = flush.table == 0 && self.scenario.measured_us.contains(&first_arrived_us);
        self.parts += usize::from(measured);
        for position in 0..self.flights[flight].flush.inserts.len() {
            let insert = self.flights[flight].flush.inserts[position];
            self.stored(now, started_us, insert, measured);
        }
        queue.flush_ended(now, &self.flights[flight].flush, now - started_us, started);
        self.flights[flight].flush.inserts = Vec::new();
    }

    fn stored(&mut self, now: u64, flush_started: u64, insert: usize, measured: bool) {
        let Insert { arrived_us, writer } = self.inserts[insert];
        if measured {
            self.waits_us.push(now - arrived_us);
            self.held_us += flush_started - arrived_us;
            self.last_stored_us = now;
        }
        let Some(index) = writer else {
            return;
        };
        let writer = &self.scenario.loops[index];
        let extra = exponential(&mut self.rngs[index], writer.pause_extra_mean_us) as u64;
        let next = now + writer.pause_at_least_us + extra;
        if next < self.scenario.loops_end_us {
            self.events.push(Reverse((next, Event::LoopInserts { index })));
        }
    }

    fn outcome(mut self) -> Outcome {
        self.waits_us.sort_unstable();
        let inserts = self.waits_us.len();
        let percentile = |share: f64| {
            let index = ((inserts as f64 * share).ceil() as usize).clamp(1, inserts);
            self.waits_us[index - 1] as f64 / 1e3
        };
        let seconds = (self.last_stored_us - self.scenario.measured_us.start) as f64 / 1e6;
        Outcome {
            wait_p50_ms: percentile(0.50),
            wait_p99_ms: percentile(0.99),
            held_mean_ms: self.held_us as f64 / 1e3 / inserts as f64,
            inserts_per_part: inserts as f64 / self.parts as f64,
            parts_per_s: self.parts as f64 / seconds,
            inserts_per_s: inserts as f64 / seconds,
        }
    }
}
