//! The backend's CPUs, which the running flushes share evenly.
//!
//! With `k` flushes each one advances at the rate `min(1, cpus / k)`. So time is kept twice: in microseconds,
//! and in the work that a flush would have done since the start, which is the same for all of them. A flush
//! ends at a fixed amount of that work, so nothing has to be computed again when others start or end.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

pub struct Cpus {
    /// The number of CPUs; with `None` there is one for each flush, so flushes don't slow each other down.
    count: Option<u64>,
    now_us: u64,
    /// Work that each flush has done since the start, in nanoseconds of one CPU.
    done_ns: u64,
    /// Flights by the work at which they end.
    flights: BinaryHeap<Reverse<(u64, usize)>>,
    measured_us: Range<u64>,
    busy_us: u64,
}

impl Cpus {
    pub fn new(count: Option<u64>, measured_us: Range<u64>) -> Self {
        Cpus { count, now_us: 0, done_ns: 0, flights: BinaryHeap::new(), measured_us, busy_us: 0 }
    }

    pub fn begin(&mut self, now_us: u64, flight: usize, work_us: u64) {
        self.advance(now_us);
        self.flights.push(Reverse((self.done_ns + work_us * 1_000, flight)));
    }

    pub fn next_end_us(&self) -> Option<u64> {
        let Reverse((ends_ns, _)) = self.flights.peek()?;
        let (flights, at_once) = self.shares();
        Some(self.now_us + (ends_ns.saturating_sub(self.done_ns) * flights).div_ceil(at_once * 1_000))
    }

    /// Ends a flush whose work is done by now.
    pub fn end(&mut self, now_us: u64) -> Option<usize> {
        self.advance(now_us);
        let Reverse((ends_ns, flight)) = *self.flights.peek()?;
        (ends_ns <= self.done_ns).then(|| self.flights.pop())?;
        Some(flight)
    }

    /// Returns the busy time of all CPUs together, within the measured time.
    pub fn busy_us(&self) -> u64 {
        self.busy_us
    }

    fn advance(&mut self, now_us: u64) {
        let (flights, at_once) = self.shares();
        let done_by_all_ns = (now_us - self.now_us) * 1_000 * at_once;
        self.done_ns += done_by_all_ns.checked_div(flights).unwrap_or(0);
        let measured = now_us.min(self.measured_us.end).saturating_sub(self.now_us.max(self.measured_us.start));
        self.busy_us += measured * at_once;
        self.now_us = now_us;
    }

    /// Returns the number of flushes, and the number of CPUs that they have together.
    fn shares(&self) -> (u64, u64) {
        let flights = self.flights.len() as u64;
        (flights, self.count.map_or(flights, |count| count.min(flights)))
    }
}
