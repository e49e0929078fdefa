//! The last hour in steps of a second, for the dashboard's charts. It takes [`STEPS`] samples of 27 numbers
//! of 4 bytes, 389 KB, whatever the load is.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{json, Map, Value};
use windrow_engine::{Gatherer, JournalUsage, LatencyCounts, TableFigures};

use super::process::{process_usage, ProcessUsage};
use crate::backend::BackendSink;
use crate::metrics::TallyCounts;
use crate::protocol::SignalCounts;
use crate::state::State;

const STEP: Duration = Duration::from_secs(1);
const STEPS: usize = 3600;
/// Number of steps between two tallies. Tallies are kept for a minute.
const TALLY_STEPS: usize = 5;
const TALLIES: usize = 60 / TALLY_STEPS;

/// Names of the series, in the order of a sample's numbers.
const NAMES: [&str; 24] = [
    "inserts_per_second",
    "rows_per_second",
    "payload_bytes_per_second",
    "flushes_per_second",
    "rows_per_flush",
    "inserts_per_flush",
    "parts_per_second",
    "parts_active",
    "insert_p50_seconds",
    "insert_p99_seconds",
    "flush_p50_seconds",
    "flush_p99_seconds",
    "journal_bytes",
    "journal_written_bytes_per_second",
    "journal_syncs_per_second",
    "journal_sync_seconds",
    "backlog_inserts",
    "backlog_bytes",
    "held_bytes",
    "oldest_insert_seconds",
    "failed_inserts_per_second",
    "errors_per_second",
    "forwarded_per_second",
    "dead_letters",
];
/// Names of the process's own series, which follow the others in a sample.
const PROCESS_NAMES: [&str; 3] = ["connections", "cpu_cores", "memory_bytes"];
/// Names of the series about parts, which only ClickHouse has.
const OF_PARTS: [&str; 2] = ["parts_per_second", "parts_active"];

/// A number for each series; NaN where the number is not known.
type Sample = [f32; NAMES.len() + PROCESS_NAMES.len()];

pub(super) struct History {
    ring: Mutex<Ring>,
}

struct Ring {
    samples: VecDeque<Sample>,
    /// Time of the last sample, in milliseconds since 1970.
    last_ms: u64,
    /// Tallies of the last minute, the oldest first.
    tallies: VecDeque<Tallied>,
}

/// Counts at one moment, from which the figures of the last minute are computed.
#[derive(Clone)]
pub(super) struct Tallied {
    pub(super) at: Instant,
    pub(super) counts: TallyCounts,
    pub(super) otlp: Vec<SignalCounts>,
}

/// Values of the counters at one moment.
struct Counted {
    at: Instant,
    figures: TableFigures,
    journal: JournalUsage,
    inserts: LatencyCounts,
    flushes: LatencyCounts,
    errors: u64,
    forwarded: u64,
    process: Option<ProcessUsage>,
}

impl Default for History {
    fn default() -> History {
        // At the start nothing has been counted.
        let start = Tallied { at: Instant::now(), counts: TallyCounts::default(), otlp: Vec::new() };
        let tallies = VecDeque::from([start]);
        History { ring: Mutex::new(Ring { samples: VecDeque::with_capacity(STEPS), last_ms: 0, tallies }) }
    }
}

impl History {
    /// Takes a sample each second, for as long as the future is polled.
    pub(super) async fn record(&self, gatherer: &Gatherer<BackendSink>, state: &State) {
        let mut ticks = tokio::time::interval(STEP);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        ticks.tick().await;
        let mut before = Counted::now(gatherer, state, STEP);
        for step in 0_usize.. {
            ticks.tick().await;
            let now = Counted::now(gatherer, state, before.at.elapsed());
            let sample = sample(&before, &now, gatherer, state);
            before = now;
            let mut ring = self.lock();
            ring.add(sample, now_ms());
            if step % TALLY_STEPS == 0 {
                if ring.tallies.len() == TALLIES {
                    ring.tallies.pop_front();
                }
                let (counts, otlp) = (state.metrics.tally_counts(), state.otlp_counts());
                ring.tallies.push_back(Tallied { at: Instant::now(), counts, otlp });
            }
        }
    }

    /// Returns the counts of a minute ago, or of the start.
    pub(super) fn tallied_before(&self) -> Option<Tallied> {
        self.lock().tallies.front().cloned()
    }

    /// Returns the samples that were taken after `since_ms`, as JSON.
    pub(super) fn json(&self, since_ms: u64, has_parts: bool) -> Value {
        let ring = self.lock();
        let step_ms = STEP.as_millis() as u64;
        let wanted = (ring.last_ms.saturating_sub(since_ms)).div_ceil(step_ms) as usize;
        let count = wanted.min(ring.samples.len());
        let samples = || ring.samples.iter().skip(ring.samples.len() - count);
        let mut series = Map::new();
        for (index, name) in NAMES.iter().chain(&PROCESS_NAMES).enumerate() {
            if has_parts || !OF_PARTS.contains(name) {
                series.insert((*name).to_owned(), samples().map(|sample| number(sample[index])).collect());
            }
        }
        let first_ms = (ring.last_ms + step_ms).saturating_sub(count as u64 * step_ms);
        json!({ "step_ms": step_ms, "first_ms": first_ms, "count": count, "series": series })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ring {
    /// Adds a sample, at the position that its time says. Positions without a sample, because the machine
    /// stood still, are filled with NaN. A clock that was set back or far ahead makes the ring begin anew.
    fn add(&mut self, sample: Sample, at_ms: u64) {
        let step_ms = STEP.as_millis() as u64;
        let steps = (at_ms + step_ms / 2).saturating_sub(self.last_ms) / step_ms;
        if steps == 0 && at_ms + step_ms < self.last_ms || steps > STEPS as u64 {
            self.samples.clear();
        }
        let steps = if self.samples.is_empty() { 1 } else { steps.max(1) };
        self.last_ms = if self.samples.is_empty() { at_ms } else { self.last_ms + steps * step_ms };
        for missing in (0..steps).rev() {
            if self.samples.len() == STEPS {
                self.samples.pop_front();
            }
            self.samples.push_back(if missing == 0 { sample } else { [f32::NAN; NAMES.len() + PROCESS_NAMES.len()] });
        }
    }
}

impl Counted {
    /// Reads the counters. `since` is the time since they were last read.
    fn now(gatherer: &Gatherer<BackendSink>, state: &State, since: Duration) -> Counted {
        let tallies = state.metrics.tally_counts();
        Counted {
            at: Instant::now(),
            figures: gatherer.tick_activity(since.as_secs_f64()),
            journal: gatherer.journal_usage().unwrap_or_default(),
            inserts: state.metrics.insert_latency.counts(),
            flushes: gatherer.flush_latency(),
            errors: tallies.errors.values().sum(),
            forwarded: tallies.forwarded.values().sum(),
            process: process_usage(),
        }
    }
}

fn sample(before: &Counted, now: &Counted, gatherer: &Gatherer<BackendSink>, state: &State) -> Sample {
    let seconds = (now.at - before.at).as_secs_f64().max(1e-3);
    let per_second = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds;
    let (figures, seen) = (&now.figures, &before.figures);
    let flushes = figures.flushes - seen.flushes;
    let per_flush =
        |now: u64, before: u64| if flushes == 0 { f64::NAN } else { (now - before) as f64 / flushes as f64 };
    let inserts = now.inserts.since(&before.inserts);
    let flush_times = now.flushes.since(&before.flushes);
    let quantile = |counts: &LatencyCounts, share| counts.quantile_seconds(share).unwrap_or(f64::NAN);
    let syncs = now.journal.syncs.saturating_sub(before.journal.syncs);
    let sync_seconds = now.journal.sync_micros.saturating_sub(before.journal.sync_micros) as f64 / 1e6;
    let held = gatherer.held_together();
    let used = now.process.zip(before.process);
    [
        per_second(figures.arrived.inserts, seen.arrived.inserts),
        per_second(figures.arrived.rows, seen.arrived.rows),
        per_second(figures.arrived.bytes, seen.arrived.bytes),
        per_second(figures.flushes, seen.flushes),
        per_flush(figures.flushed_rows, seen.flushed_rows),
        per_flush(figures.flushed_inserts, seen.flushed_inserts),
        per_second(figures.parts_created, seen.parts_created),
        held.parts_active as f64,
        quantile(&inserts, 0.5),
        quantile(&inserts, 0.99),
        quantile(&flush_times, 0.5),
        quantile(&flush_times, 0.99),
        now.journal.file_bytes as f64,
        per_second(now.journal.written_bytes, before.journal.written_bytes),
        syncs as f64 / seconds,
        if syncs == 0 { f64::NAN } else { sync_seconds / syncs as f64 },
        held.backlog_inserts as f64,
        held.backlog_bytes as f64,
        gatherer.held_bytes() as f64,
        held.oldest_seconds,
        per_second(figures.failed_inserts, seen.failed_inserts),
        per_second(now.errors, before.errors),
        per_second(now.forwarded, before.forwarded),
        state.dead_letters.amount().dead_letters as f64,
        state.metrics.connections.get() as f64,
        used.map_or(f64::NAN, |(now, before)| (now.cpu_seconds - before.cpu_seconds).max(0.0) / seconds),
        now.process.map_or(f64::NAN, |process| process.memory_bytes as f64),
    ]
    .map(|number| number as f32)
}

pub(super) fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

/// Returns a number as JSON, with four significant digits: more can't be seen in a chart.
fn number(value: f32) -> Value {
    if !value.is_finite() {
        return Value::Null;
    }
    if value == value.trunc() && value.abs() < 1e15 {
        return json!(value as i64);
    }
    let scale = 10_f64.powi(4 - f64::from(value.abs()).log10().ceil() as i32);
    json!((f64::from(value) * scale).round() / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(number: f32) -> Sample {
        [number; NAMES.len() + PROCESS_NAMES.len()]
    }

    #[test]
    fn an_hour_is_kept_and_no_more() {
        let history = History::default();
        for second in 0..STEPS as u64 + 10 {
            history.lock().add(filled(second as f32), 1_000_000 + second * 1000);
        }
        let all = history.json(0, true);
        assert_eq!(all["count"], STEPS);
        assert_eq!(all["first_ms"], 1_000_000 + 10 * 1000);
        assert_eq!(all["series"]["inserts_per_second"][0], 10);
        let last_ms = 1_000_000 + (STEPS as u64 + 9) * 1000;
        let last = history.json(last_ms - 2000, false);
        assert_eq!((&last["count"], &last["first_ms"]), (&json!(2), &json!(last_ms - 1000)));
        assert!(last["series"].get("parts_active").is_none());
        assert_eq!(history.json(last_ms, true)["count"], 0);
    }

    #[test]
    fn what_was_missed_is_a_gap() {
        let history = History::default();
        // A timer is never quite punctual.
        for (number, at_ms) in [(1.0, 5_000), (2.0, 8_001), (3.0, 8_999), (4.0, 10_003)] {
            history.lock().add(filled(number), at_ms);
        }
        assert_eq!(history.json(0, true)["series"]["held_bytes"], json!([1, null, null, 2, 3, 4]));
        assert_eq!(history.json(9_000, true)["first_ms"], 10_000);
        for clock_ms in [2_000, 900_000_000] {
            history.lock().add(filled(5.0), clock_ms);
            assert_eq!(history.json(0, true)["first_ms"], clock_ms);
        }
    }

    #[test]
    fn numbers_are_short() {
        for (value, shown) in
            [(0.0, "0"), (1.5, "1.5"), (0.001_234_567, "0.001235"), (12_345.678, "12350.0"), (f32::NAN, "null")]
        {
            assert_eq!(number(value).to_string(), shown);
        }
    }
}
