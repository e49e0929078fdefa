//! Tests that compare one gateway with four that share its load, each with a policy of its own: the parts
//! that they make, and how much longer inserts wait for it.
//!
//! Each gateway is simulated alone with its own inserts of a table: the backend is assumed to be quick enough
//! that the flushes of gateways don't slow each other down.

use super::arrivals::{even, poisson, Loop};
use super::books::Outcome;
use super::engine;
use super::scenarios::{Scenario, QUICK, SEED};
use super::windrow;

const GATEWAYS: usize = 4;

struct Compared {
    name: String,
    one: Outcome,
    /// The figures of one of four gateways that holds as if it were alone; `stretched` has those with a
    /// longer hold.
    each_alone: Outcome,
    stretched: Outcome,
}

impl Compared {
    fn new(name: String, one: &Scenario, each: &Scenario) -> Compared {
        let run = |scenario: &Scenario, gateways| {
            engine::run(scenario, &mut windrow::Tables::among(scenario.limits, scenario.tables(), gateways))
        };
        Compared { name, one: run(one, 1), each_alone: run(each, 1), stretched: run(each, GATEWAYS) }
    }

    fn times_the_parts(&self, four: &Outcome) -> f64 {
        GATEWAYS as f64 * four.parts_per_s / self.one.parts_per_s
    }

    fn row(&self) -> String {
        format!(
            "| {} | {:.1} | {:.2} | {:.2} | {:.0} | {:.0} | {:.0} | {:.0} |",
            self.name,
            self.one.parts_per_s,
            self.times_the_parts(&self.each_alone),
            self.times_the_parts(&self.stretched),
            self.one.wait_p50_ms,
            self.stretched.wait_p50_ms,
            self.one.wait_p99_ms,
            self.stretched.wait_p99_ms,
        )
    }
}

fn open(rate: f64, evenly: bool, waits: bool) -> Scenario {
    let count = (rate * 600.0).clamp(4_000.0, 60_000.0) as usize;
    let open = if evenly { even(0, rate, count) } else { poisson(SEED, 0, rate, count) };
    let mut scenario = Scenario { open, open_waits: waits, ..Scenario::new("open".into(), Some(rate), QUICK) };
    scenario.cut_the_ends();
    scenario
}

fn loops(writers: usize) -> Scenario {
    let writer = |i: usize| Loop {
        table: Some(0),
        starts_at_us: 1_000 + i as u64 * 100,
        pause_at_least_us: 300,
        pause_extra_mean_us: 1_000.0,
    };
    let loops = (0..writers).map(writer).collect();
    let mut scenario = Scenario { loops, loops_end_us: 60_000_000, ..Scenario::new("loops".into(), None, QUICK) };
    scenario.cut_the_ends();
    scenario
}

fn compare() -> Vec<Compared> {
    let mut all = Vec::new();
    for rate in [0.4, 2.0, 10.0, 20.0, 50.0, 100.0, 200.0, 1_000.0, 5_000.0] {
        let share = rate / GATEWAYS as f64;
        for (kind, evenly, waits) in
            [("random", false, true), ("random, not waiting", false, false), ("even", true, true)]
        {
            let name = format!("{kind}, {rate}/s");
            all.push(Compared::new(name, &open(rate, evenly, waits), &open(share, evenly, waits)));
        }
    }
    for writers in [4, 8, 40, 400] {
        all.push(Compared::new(format!("{writers} loops"), &loops(writers), &loops(writers / GATEWAYS)));
    }
    all
}

#[test]
fn four_gateways_make_fewer_than_twice_the_parts_of_one() {
    let all = compare();
    println!(
        "| load | parts/s of one | four alone, times | stretched, times | p50 ms | stretched | p99 ms | stretched |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    all.iter().for_each(|compared| println!("{}", compared.row()));
    for compared in &all {
        // Where each insert is a part of its own all the same, nobody waits for it.
        match compared.stretched.inserts_per_part < 1.05 {
            true => assert!(
                compared.stretched.wait_p50_ms <= compared.each_alone.wait_p50_ms + 1.0,
                "{}: {:?}",
                compared.name,
                compared.stretched
            ),
            false => {
                let times = compared.times_the_parts(&compared.stretched);
                assert!(times < 2.0, "{}: {times} times the parts of one gateway", compared.name);
            }
        }
    }
}
