//! The simulation, which moves time from event to event.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fastrand::Rng;

use super::arrivals::{exponential, Loop};
use super::books::{Books, Outcome, Part, Stored};
use super::cpus::Cpus;
use super::scenarios::Scenario;

/// The first writer id of open arrivals. Their writers are one-shot connections; loops have lower ids.
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

/// A queue under comparison, which takes inserts and starts flushes.
pub trait Queue {
    fn push(&mut self, now_us: u64, push: Push, started: &mut Vec<Flush>);
    fn next_wake_us(&self) -> Option<u64>;
    fn wake(&mut self, now_us: u64, started: &mut Vec<Flush>);
    fn flush_ended(&mut self, now_us: u64, flush: &Flush, took_us: u64, started: &mut Vec<Flush>);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The flush has had its share of the CPUs, and has then waited for another resource.
    FlushEnds {
        flight: usize,
    },
    LoopInserts {
        index: usize,
    },
}

struct Insert {
    arrived_us: u64,
    writer: Option<usize>,
}

struct Flight {
    flush: Flush,
    started_us: u64,
    work_us: u64,
}

struct Run<'a> {
    scenario: &'a Scenario,
    events: BinaryHeap<Reverse<(u64, Event)>>,
    inserts: Vec<Insert>,
    flights: Vec<Flight>,
    cpus: Cpus,
    rngs: Vec<Rng>,
    books: Books,
}

/// Returns the figures of table 0.
pub fn run(scenario: &Scenario, queue: &mut dyn Queue) -> Outcome {
    record(scenario, queue).outcome(0)
}

pub fn record(scenario: &Scenario, queue: &mut dyn Queue) -> Books {
    let mut run = Run::new(scenario);
    let mut open = scenario.open.iter().peekable();
    let mut started = Vec::new();
    loop {
        let next_open = open.peek().map(|arrival| arrival.at_us);
        let next_event = run.events.peek().map(|Reverse((at, _))| *at);
        let next_done = run.cpus.next_end_us();
        let next_wake = queue.next_wake_us();
        let Some(now) = [next_done, next_event, next_open, next_wake].into_iter().flatten().min() else {
            break;
        };
        // What happens at the same time happens in this order, on both sides.
        if next_done == Some(now) {
            run.work_done(now, queue, &mut started);
        } else if next_event == Some(now) {
            run.event(now, queue, &mut started);
        } else if next_open == Some(now) {
            let table = open.next().map_or(0, |arrival| arrival.table);
            run.push(now, table, None, queue, &mut started);
        } else {
            queue.wake(now, &mut started);
        }
        run.start(now, &mut started);
    }
    run.books.cpus_busy_us = run.cpus.busy_us();
    run.books
}

impl<'a> Run<'a> {
    fn new(scenario: &'a Scenario) -> Self {
        let start = |(index, writer): (usize, &Loop)| Reverse((writer.starts_at_us, Event::LoopInserts { index }));
        let measured_us = scenario.measured_us.clone();
        Run {
            scenario,
            events: scenario.loops.iter().enumerate().map(start).collect(),
            inserts: Vec::new(),
            flights: Vec::new(),
            cpus: Cpus::new(scenario.cpus, measured_us.clone()),
            rngs: (0..scenario.loops.len()).map(|i| Rng::with_seed(scenario.seed ^ (i as u64 + 1))).collect(),
            books: Books { measured_us, cpus: scenario.cpus, cpus_busy_us: 0, inserts: Vec::new(), parts: Vec::new() },
        }
    }

    fn work_done(&mut self, now: u64, queue: &mut dyn Queue, started: &mut Vec<Flush>) {
        let Some(flight) = self.cpus.end(now) else { return };
        match self.scenario.delay_us(self.flights[flight].flush.table) {
            0 => self.end(now, flight, queue, started),
            delay => self.events.push(Reverse((now + delay, Event::FlushEnds { flight }))),
        }
    }

    fn event(&mut self, now: u64, queue: &mut dyn Queue, started: &mut Vec<Flush>) {
        match self.events.pop() {
            Some(Reverse((_, Event::FlushEnds { flight }))) => self.end(now, flight, queue, started),
            Some(Reverse((_, Event::LoopInserts { index }))) => {
                let table = match self.scenario.loops[index].table {
                    Some(table) => table,
                    None => self.scenario.popularity.draw(&mut self.rngs[index]),
                };
                self.push(now, table, Some(index), queue, started);
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
            let work_us = self.scenario.cost.of(flush.inserts.len());
            self.cpus.begin(now, self.flights.len(), work_us);
            self.flights.push(Flight { flush, started_us: now, work_us });
        }
    }

    fn end(&mut self, now: u64, flight: usize, queue: &mut dyn Queue, started: &mut Vec<Flush>) {
        let Flight { flush, started_us, work_us } = &mut self.flights[flight];
        let first_arrived_us = flush.inserts.first().map_or(now, |first| self.inserts[*first].arrived_us);
        self.books.parts.push(Part {
            table: flush.table,
            opened_us: first_arrived_us,
            started_us: *started_us,
            ended_us: now,
            work_us: *work_us,
            inserts: flush.inserts.len(),
        });
        queue.flush_ended(now, flush, now - *started_us, started);
        let table = flush.table;
        for insert in std::mem::take(&mut flush.inserts) {
            self.stored(now, table, insert);
        }
    }

    fn stored(&mut self, now: u64, table: usize, insert: usize) {
        let Insert { arrived_us, writer } = self.inserts[insert];
        let waits = writer.is_some() || self.scenario.open_waits;
        self.books.inserts.push(Stored { table, waits, arrived_us, stored_us: now });
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
}
