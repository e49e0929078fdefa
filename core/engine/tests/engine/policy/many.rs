//! Scenarios with many tables on one backend: each as if it were alone, and with the policy above them.

use windrow_engine::policy::{BackendPolicy, CountLimit, FlushLimits};

use super::arrivals::{spread, Loop, Popularity};
use super::books::Books;
use super::engine::record;
use super::report::Contrast;
use super::scenarios::{FlushCost, Scenario, SEED};
use super::windrow;

pub const CPUS: u64 = 2;
/// The cost of a part, measured on ClickHouse 26.7: from 2 to 4 ms of a CPU for one row, and little more for
/// a few hundred.
pub const PART: FlushCost = FlushCost { fixed_us: 3_000, per_insert_us: 2 };
const SLOW_DELAY_US: u64 = 40_000;
const WRITERS: usize = 200;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sink {
    Quick,
    Slow,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    Even,
    Zipf,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    Waiting(f64),
    NotWaiting(f64),
    Writers(usize),
}

pub const LOADS: [Load; 7] = [
    Load::Waiting(200.0),
    Load::Waiting(2_000.0),
    Load::Waiting(20_000.0),
    Load::NotWaiting(200.0),
    Load::NotWaiting(2_000.0),
    Load::NotWaiting(20_000.0),
    Load::Writers(WRITERS),
];

impl Spread {
    pub fn over(self, tables: usize) -> Popularity {
        match self {
            Spread::Even => Popularity::even(tables),
            Spread::Zipf => Popularity::zipf(tables, 1.0),
        }
    }
}

/// The length of a scenario. Inserts that no client waits for are held for up to a minute.
const SECONDS: u64 = 60;

pub fn all() -> Vec<Scenario> {
    let mut all = Vec::new();
    for sink in [Sink::Quick, Sink::Slow] {
        for load in LOADS {
            for tables in [1, 10, 100, 1_000, 10_000] {
                all.push(scenario(load, Spread::Even, tables, sink));
                if tables > 1 {
                    all.push(scenario(load, Spread::Zipf, tables, sink));
                }
            }
        }
    }
    all
}

pub fn scenario(load: Load, how: Spread, tables: usize, sink: Sink) -> Scenario {
    let spread_name = if how == Spread::Zipf { ", Zipf" } else { "" };
    let sink_name = if sink == Sink::Slow { ", slow sink" } else { "" };
    let name = match load {
        Load::Waiting(rate) => format!("{rate}/s, waiting{spread_name}{sink_name}"),
        Load::NotWaiting(rate) => format!("{rate}/s, not waiting{spread_name}{sink_name}"),
        Load::Writers(writers) => format!("{writers} writers{spread_name}{sink_name}"),
    };
    let mut scenario = empty(name, how.over(tables), sink, SECONDS);
    match load {
        Load::Waiting(rate) | Load::NotWaiting(rate) => {
            let count = rate * SECONDS as f64;
            scenario.open = spread(SEED, &scenario.popularity, rate, count as usize);
            scenario.open_waits = load == Load::Waiting(rate);
        }
        Load::Writers(writers) => scenario.loops = (0..writers).map(anywhere).collect(),
    }
    scenario
}

/// Returns a scenario of a backend with tables, and no inserts yet.
pub fn empty(name: String, popularity: Popularity, sink: Sink, seconds: u64) -> Scenario {
    let end_us = seconds * 1_000_000;
    Scenario {
        // As in the gateway, unless somebody asks for it.
        limits: FlushLimits { count_limit: CountLimit::Off, ..FlushLimits::default() },
        cpus: Some(CPUS),
        delay_us: if sink == Sink::Slow { SLOW_DELAY_US } else { 0 },
        loops_end_us: end_us,
        popularity,
        measured_us: end_us / 3..end_us,
        ..Scenario::new(name, None, PART)
    }
}

/// Returns a writer that goes from table to table.
fn anywhere(index: usize) -> Loop {
    Loop { table: None, starts_at_us: 1_000 + index as u64 * 20, pause_at_least_us: 1_000, pause_extra_mean_us: 0.0 }
}

pub fn compare(scenario: &Scenario) -> Contrast {
    Contrast {
        name: scenario.name.clone(),
        tables: scenario.tables(),
        alone: alone(scenario).load(),
        in_turn: in_turn(scenario).load(),
    }
}

pub fn alone(scenario: &Scenario) -> Books {
    record(scenario, &mut windrow::Tables::new(scenario.limits, scenario.tables()))
}

pub fn in_turn(scenario: &Scenario) -> Books {
    let mut policy = BackendPolicy::new();
    policy.set_cpus(scenario.cpus.map_or(1, |cpus| cpus as u32));
    record(scenario, &mut windrow::Tables::with_turns(scenario.limits, scenario.tables(), policy))
}
