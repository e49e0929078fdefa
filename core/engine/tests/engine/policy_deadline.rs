//! Tests of `deadline` in a simulated pipeline: latency and parts, at several rates, with a sink that stalls
//! sometimes.

use windrow_engine::policy::{DeadlineLimits, DeadlinePolicy, Lane, Micros, Verdict};

/// The time that a sink takes for a batch.
#[derive(Clone, Copy)]
struct Cost {
    fixed_us: u64,
    per_row_ns: u64,
    /// The number of flushes in a hundred that take three times as long.
    stalls: u64,
}

#[derive(Clone, Copy)]
struct Scenario {
    name: &'static str,
    max_latency_ms: u64,
    rows_per_s: u64,
    cost: Cost,
    /// The age of rows when they come.
    age_us: u64,
    /// The number of rows that wait at the beginning.
    backlog: u64,
}

#[derive(Debug)]
struct Outcome {
    p50_ms: f64,
    p99_ms: f64,
    parts_per_s: f64,
    rows_per_part: f64,
}

const CHUNK_US: u64 = 10_000;
const LENGTH_US: u64 = 120_000_000;
const MAX_ROWS: u64 = 500_000;

/// A batch on its way, with its end, its sealing, and the number of its rows for each time of writing.
struct Flight {
    ends_at: u64,
    sealed_at: u64,
    rows: Vec<(u64, u64)>,
}

/// Runs a scenario. Rows come every 10 ms, at most as fast as they can be read; a batch is on its way while
/// the next is gathered.
fn run(scenario: &Scenario, seed: u64) -> Outcome {
    let limits = DeadlineLimits {
        max_latency: Micros::from_millis(scenario.max_latency_ms),
        max_rows: MAX_ROWS,
        max_bytes: u64::MAX,
        flush_interval: None,
    };
    let (mut policy, mut random) = (DeadlinePolicy::new(limits), fastrand::Rng::with_seed(seed));
    let chunk = scenario.rows_per_s * CHUNK_US / 1_000_000;
    let mut backlog = scenario.backlog;
    let mut open: Vec<(u64, u64)> = Vec::new();
    let mut flight: Option<Flight> = None;
    let (mut latencies, mut parts, mut stored) = (Vec::new(), 0u64, 0u64);
    let (mut now, mut next_chunk) = (0, 0);
    while now < LENGTH_US {
        if let Some(Flight { sealed_at, rows, .. }) = flight.take_if(|flight| flight.ends_at <= now) {
            let count = rows.iter().map(|(_, rows)| rows).sum();
            policy.flush_ended(Micros(now), count, Micros(now - sealed_at));
            latencies.extend(rows.iter().map(|(written_at, rows)| ((now as i64 - *written_at as i64) / 1000, *rows)));
            (parts, stored) = (parts + 1, stored + count);
        }
        // What is gathered behind a full batch waits.
        let held: u64 = open.iter().map(|(_, rows)| rows).sum();
        if now >= next_chunk && held < MAX_ROWS {
            let caught_up = backlog.min(20 * chunk.max(1_000));
            backlog -= caught_up;
            let rows = chunk + caught_up;
            let age = if caught_up > 0 { 60_000_000 } else { scenario.age_us };
            policy.gather(Micros(now), rows, rows * 100, Micros(age));
            open.push(((now + LENGTH_US).saturating_sub(age), rows));
            next_chunk = now + CHUNK_US;
        }
        let lane = if flight.is_some() { Lane::Busy } else { Lane::Free };
        let verdict = policy.decide(Micros(now), lane);
        if matches!(verdict, Verdict::Seal(_)) && flight.is_none() {
            let rows: Vec<_> =
                std::mem::take(&mut open).into_iter().map(|(at, rows)| (at.saturating_sub(LENGTH_US), rows)).collect();
            let count: u64 = rows.iter().map(|(_, rows)| rows).sum();
            let factor = if random.u64(..100) < scenario.cost.stalls { 3 } else { 1 };
            let noise_us = random.u64(..=scenario.cost.fixed_us / 2);
            let took = factor * (scenario.cost.fixed_us + noise_us + count * scenario.cost.per_row_ns / 1000);
            policy.sealed(Micros(now));
            flight = Some(Flight { ends_at: now + took, sealed_at: now, rows });
        }
        let ends_at = flight.as_ref().map_or(u64::MAX, |flight| flight.ends_at);
        let wake = match verdict {
            Verdict::HoldUntil(at) => at.0,
            _ => u64::MAX,
        };
        now = next_chunk.max(now + 1).min(ends_at.max(now + 1)).min(wake.max(now + 1));
    }
    latencies.sort_unstable();
    let quantile = |share: f64| {
        let mut left = (stored as f64 * share) as u64;
        let found = latencies.iter().find(|(_, rows)| {
            let is_here = left < *rows;
            left = left.saturating_sub(*rows);
            is_here
        });
        found.map_or(0.0, |(latency_ms, _)| *latency_ms as f64)
    };
    Outcome {
        p50_ms: quantile(0.5),
        p99_ms: quantile(0.99),
        parts_per_s: parts as f64 * 1e6 / LENGTH_US as f64,
        rows_per_part: stored as f64 / parts.max(1) as f64,
    }
}

const QUICK: Cost = Cost { fixed_us: 20_000, per_row_ns: 300, stalls: 0 };
const STALLING: Cost = Cost { fixed_us: 50_000, per_row_ns: 500, stalls: 1 };

fn steady() -> Vec<Scenario> {
    let base = Scenario { name: "", max_latency_ms: 1_000, rows_per_s: 0, cost: QUICK, age_us: 20_000, backlog: 0 };
    let mut scenarios = Vec::new();
    for rows_per_s in [100, 10_000, 300_000] {
        scenarios.push(Scenario { name: "quick sink", rows_per_s, ..base });
        scenarios.push(Scenario { name: "stalls", rows_per_s, cost: STALLING, ..base });
        scenarios.push(Scenario { name: "5 s", rows_per_s, max_latency_ms: 5_000, cost: STALLING, ..base });
    }
    // At a rate where one stall of the slower sink takes most of the second, nothing could be done about it.
    scenarios.push(Scenario { name: "quick sink", rows_per_s: 600_000, ..base });
    scenarios.push(Scenario { name: "5 s", rows_per_s: 600_000, max_latency_ms: 5_000, cost: STALLING, ..base });
    scenarios
}

fn row(scenario: &Scenario, outcome: &Outcome) -> String {
    let Outcome { p50_ms, p99_ms, parts_per_s, rows_per_part } = outcome;
    let Scenario { name, max_latency_ms, rows_per_s, .. } = scenario;
    format!("| {name} | {max_latency_ms} | {rows_per_s} | {p50_ms:.0} | {p99_ms:.0} | {parts_per_s:.2} | {rows_per_part:.0} |")
}

#[test]
fn the_latency_is_kept_with_few_parts() {
    println!(
        "| sink | max_latency, ms | rows/s | p50, ms | p99, ms | parts/s | rows/part |\n|---|---|---|---|---|---|---|"
    );
    for scenario in steady() {
        for seed in 0..3 {
            let outcome = run(&scenario, seed);
            println!("{}", row(&scenario, &outcome));
            let max_latency_s = scenario.max_latency_ms as f64 / 1e3;
            assert!(outcome.p99_ms < scenario.max_latency_ms as f64, "seed {seed}: {}", row(&scenario, &outcome));
            let are_few = outcome.parts_per_s <= 2.0 / max_latency_s || outcome.rows_per_part >= MAX_ROWS as f64;
            assert!(are_few, "seed {seed}: {}", row(&scenario, &outcome));
        }
    }
}

#[test]
fn rows_that_are_always_old_make_no_more_parts() {
    let base = steady().remove(1);
    let (fresh, old) = (run(&base, 1), run(&Scenario { age_us: 600_000_000, ..base }, 1));
    assert!(old.parts_per_s <= fresh.parts_per_s * 1.1, "{old:?} {fresh:?}");
}

#[test]
fn who_is_behind_stores_large_batches() {
    let behind = Scenario {
        name: "behind",
        max_latency_ms: 1_000,
        rows_per_s: 10_000,
        cost: QUICK,
        age_us: 20_000,
        backlog: 200_000_000,
    };
    let outcome = run(&behind, 1);
    println!("{}", row(&behind, &outcome));
    assert!(outcome.rows_per_part > 0.8 * MAX_ROWS as f64, "{outcome:?}");
}
