//! The scenarios of the simulation.

use std::ops::Range;

use windrow_engine::policy::FlushLimits;

use super::arrivals::{bursty, even, poisson, Loop, OpenArrival, Popularity};

pub const RATES: [f64; 15] =
    [1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0, 10_000.0, 20_000.0];
pub const SEED: u64 = 0x77_69_6e_64_72_6f_77;

#[derive(Clone, Copy, Debug)]
pub struct FlushCost {
    pub fixed_us: u64,
    pub per_insert_us: u64,
}

impl FlushCost {
    pub fn of(&self, inserts: usize) -> u64 {
        self.fixed_us + self.per_insert_us * inserts as u64
    }
}

pub const QUICK: FlushCost = FlushCost { fixed_us: 5_000, per_insert_us: 2 };
const SLOW: FlushCost = FlushCost { fixed_us: 40_000, per_insert_us: 2 };

/// Tables whose flushes take long, as behind a lock.
#[derive(Clone, Debug)]
pub struct HeldUp {
    pub tables: Range<usize>,
    pub delay_us: u64,
}

#[derive(Clone, Debug)]
pub struct Scenario {
    pub name: String,
    pub rate: Option<f64>,
    pub seed: u64,
    pub limits: FlushLimits,
    pub cost: FlushCost,
    /// The number of the backend's CPUs; with `None` flushes don't slow each other down.
    pub cpus: Option<u64>,
    /// Time that a flush takes in addition, without keeping a CPU busy.
    pub delay_us: u64,
    pub held_up: Option<HeldUp>,
    pub open: Vec<OpenArrival>,
    pub open_waits: bool,
    pub loops: Vec<Loop>,
    pub loops_end_us: u64,
    pub popularity: Popularity,
    /// The measured time. Only batches that open within it count: at the start averages are still being
    /// learned, at the end a batch is cut off.
    pub measured_us: Range<u64>,
    /// True if batches of the count limit arrive faster than one flush at a time can store them.
    pub needs_overlap: bool,
}

impl Scenario {
    pub fn new(name: String, rate: Option<f64>, cost: FlushCost) -> Self {
        Scenario {
            name,
            rate,
            seed: SEED,
            limits: FlushLimits::default(),
            cost,
            cpus: None,
            delay_us: 0,
            held_up: None,
            open: Vec::new(),
            open_waits: true,
            loops: Vec::new(),
            loops_end_us: 0,
            popularity: Popularity::even(1),
            measured_us: 0..u64::MAX,
            needs_overlap: false,
        }
    }

    pub fn cut_the_ends(&mut self) {
        let last_us = self.open.last().map_or(0, |last| last.at_us);
        let twentieth = self.loops_end_us.max(last_us) / 20;
        self.measured_us = twentieth..twentieth * 19;
    }

    pub fn delay_us(&self, table: usize) -> u64 {
        match &self.held_up {
            Some(held_up) if held_up.tables.contains(&table) => held_up.delay_us,
            _ => self.delay_us,
        }
    }

    /// Returns the number of tables. If only one is measured, it is table 0.
    pub fn tables(&self) -> usize {
        let open = self.open.iter().map(|arrival| arrival.table);
        let loops = self.loops.iter().filter_map(|writer| writer.table);
        open.chain(loops).max().map_or(1, |last| last + 1).max(self.popularity.tables())
    }
}

pub fn all() -> Vec<Scenario> {
    let mut all = Vec::new();
    for (cost, suffix) in [(QUICK, ""), (SLOW, ", slow sink")] {
        all.extend(RATES.map(|rate| steady(rate, cost, suffix)));
        all.extend(RATES.map(|rate| evenly(rate, cost, suffix)));
        all.extend(RATES.map(|rate| in_bursts(rate, cost, suffix)));
        all.extend([1, 10, 200, 1000].map(|writers| lock_step(writers, cost, suffix)));
        all.extend([1.0, 2.0, 5.0].map(|rate| among_many_tables(rate, cost, suffix)));
    }
    all.extend(RATES.map(|rate| Scenario {
        name: "random, not waiting".into(),
        open_waits: false,
        ..steady(rate, QUICK, "")
    }));
    for scenario in &mut all {
        scenario.cut_the_ends();
    }
    all
}

/// Returns the number of inserts. At low rates the hold swings slowly while it finds its length, and a p99
/// needs more inserts to settle; the highest rates need enough batches.
fn count(rate: f64) -> usize {
    if rate <= 20.0 {
        return 60_000;
    }
    (rate * 20.0).clamp(20_000.0, 200_000.0) as usize
}

pub fn steady(rate: f64, cost: FlushCost, suffix: &str) -> Scenario {
    let open = poisson(SEED, 0, rate, count(rate));
    Scenario {
        open,
        needs_overlap: needs_overlap(rate, cost),
        ..Scenario::new(format!("random{suffix}"), Some(rate), cost)
    }
}

fn evenly(rate: f64, cost: FlushCost, suffix: &str) -> Scenario {
    let open = even(0, rate, count(rate));
    Scenario {
        open,
        needs_overlap: needs_overlap(rate, cost),
        ..Scenario::new(format!("even{suffix}"), Some(rate), cost)
    }
}

/// Returns a scenario of half a second with inserts, half a second without.
fn in_bursts(rate: f64, cost: FlushCost, suffix: &str) -> Scenario {
    let open = bursty(SEED, 0, rate, count(rate), 1e6, 0.5);
    Scenario {
        open,
        needs_overlap: needs_overlap(rate * 2.0, cost),
        ..Scenario::new(format!("bursts{suffix}"), Some(rate), cost)
    }
}

fn needs_overlap(peak_rate: f64, cost: FlushCost) -> bool {
    let most = FlushLimits::default().max_query_number;
    let capacity = most as f64 * 1e6 / cost.of(most as usize) as f64;
    peak_rate >= capacity
}

fn lock_step(writers: usize, cost: FlushCost, suffix: &str) -> Scenario {
    let writer = |i: usize| Loop {
        table: Some(0),
        starts_at_us: 1_000 + i as u64 * 20,
        pause_at_least_us: 300,
        pause_extra_mean_us: 1_000.0,
    };
    let name = if writers == 1 { "one blocking loop".into() } else { format!("{writers} blocking loops") };
    Scenario {
        loops: (0..writers).map(writer).collect(),
        loops_end_us: 60_000_000,
        needs_overlap: needs_overlap(writers as f64 * 1e6 / 1_300.0, cost),
        ..Scenario::new(name + suffix, None, cost)
    }
}

/// Returns a scenario of one writer that waits, while seven other tables of the same ClickHouse shard get 20
/// inserts a second each.
fn among_many_tables(rate: f64, cost: FlushCost, suffix: &str) -> Scenario {
    let seconds = 1_000.0;
    let mut open: Vec<_> =
        (1..8).flat_map(|table| poisson(SEED + table as u64, table, 20.0, (20.0 * seconds) as usize)).collect();
    open.sort_by_key(|arrival| arrival.at_us);
    let writer = Loop { table: Some(0), starts_at_us: 1_000, pause_at_least_us: 300, pause_extra_mean_us: 1e6 / rate };
    Scenario {
        open,
        loops: vec![writer],
        loops_end_us: (seconds * 1e6) as u64,
        ..Scenario::new(format!("one writer, busy neighbours{suffix}"), Some(rate), cost)
    }
}
