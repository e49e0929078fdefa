//! One connection's life: insert until the window closes, count what came back.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use super::outcome::LoadOutcome;
use super::row::{write_row, Row};
use super::targets::Picker;
use super::{Answer, Exchange, Plan};
use crate::error::BenchError;

/// A server that refuses this many connections in a row is gone; going on would only burn the CPU of the others.
const MAX_FAILURES_IN_A_ROW: u32 = 20;

/// The moments that all connections share.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    pub start: Instant,
    pub measured_from: Instant,
    pub end: Instant,
}

impl Clock {
    pub fn starting_at(start: Instant, plan: &Plan) -> Self {
        let measured_from = start + plan.warmup;
        Clock { start, measured_from, end: measured_from + plan.window }
    }
}

/// `shared` belongs to all connections of a thread; it is never borrowed across an await. What it says is complete at
/// every moment, so a connection may be dropped in the middle of an exchange.
pub async fn run_connection(
    plan: &Plan,
    clock: Clock,
    conn: u32,
    mut exchange: Exchange,
    shared: &RefCell<LoadOutcome>,
) {
    let mut body = Vec::with_capacity(256);
    let mut failures_in_a_row = 0;
    let mut picker = plan.targets.as_deref().map(|targets| Picker::new(targets, conn));
    let mut pace = plan.interval.map(|interval| Pace::new(clock.start, interval, conn, plan.connections));
    for seq in 0..plan.inserts_per_connection.unwrap_or(u64::MAX) {
        if let Some(pace) = &mut pace {
            let missed = pace.wait().await;
            shared.borrow_mut().missed_intervals += missed;
        }
        let began = Instant::now();
        if began >= clock.end || failures_in_a_row == MAX_FAILURES_IN_A_ROW {
            return;
        }
        body.clear();
        let (target, prefix) = picker.as_mut().map(|picker| picker.pick(seq)).unzip();
        let row =
            Row { conn: plan.rows.first_conn + conn, seq, target: target.unwrap_or(0), fields: &plan.rows.fields };
        write_row(plan.format, &mut body, &row);
        shared.borrow_mut().ids[conn as usize].send(seq);
        let answer = match prefix {
            Some(prefix) => exchange.post_to(prefix, &body).await,
            None => exchange.post(&body).await,
        };
        failures_in_a_row = if answer.is_ok() { 0 } else { failures_in_a_row + 1 };
        shared.borrow_mut().take_answer(clock, conn, began, answer);
    }
}

impl LoadOutcome {
    fn take_answer(&mut self, clock: Clock, conn: u32, began: Instant, answer: Result<Answer, BenchError>) {
        match answer {
            Ok(Answer { status, error: None, .. }) => {
                self.count_status(status);
                self.ids[conn as usize].acknowledge();
                self.measure(clock, began, Instant::now());
            }
            Ok(Answer { status, error: Some(text), .. }) => {
                self.count_status(status);
                self.note_error(|| format!("{status}: {}", text.trim()));
            }
            Err(error) => {
                self.broken += 1;
                self.note_error(|| error.to_string());
            }
        }
    }

    fn measure(&mut self, clock: Clock, began: Instant, ended: Instant) {
        if ended < clock.measured_from {
            return;
        }
        self.latency.add(ended - began);
        if ended <= clock.end {
            self.acknowledged_in_window += 1;
        }
    }
}

/// Starts a connection's inserts on a schedule that does not slip when an answer is late.
struct Pace {
    next: Instant,
    interval: Duration,
}

impl Pace {
    fn new(start: Instant, interval: Duration, conn: u32, connections: u32) -> Self {
        Pace { next: start + interval * conn / connections.max(1), interval }
    }

    /// Waits for the next start; returns how many were missed because the insert before took too long.
    async fn wait(&mut self) -> u64 {
        let missed = missed_since(self.next, Instant::now(), self.interval);
        self.next += self.interval * missed;
        tokio::time::sleep_until(self.next.into()).await;
        self.next += self.interval;
        u64::from(missed)
    }
}

/// An insert that starts late, but within its interval, is not missed.
fn missed_since(next: Instant, now: Instant, interval: Duration) -> u32 {
    let late = now.saturating_duration_since(next);
    u32::try_from(late.as_nanos() / interval.as_nanos().max(1)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_intervals_are_missed() {
        let next = Instant::now();
        let interval = Duration::from_secs(1);
        let at = |ms| next + Duration::from_millis(ms);
        let missed: Vec<u32> = [0, 999, 1000, 3500].map(|ms| missed_since(next, at(ms), interval)).to_vec();
        assert_eq!(missed, [0, 0, 1, 3]);
    }
}
