//! The seeds that are run, and the least that they have to show.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::sabotage::{self, Sabotage};
use super::scenario::Scenario;
use super::{simulate, Report};

/// The number of seeds in `make test`.
const SEEDS: u64 = 5_000;
const SEEDS_OF_A_CLUSTER: u64 = 1_000;

/// Figures of many seeds together.
#[derive(Debug, Default)]
struct Sum {
    seeds: u64,
    acknowledged: u64,
    calls: u64,
    lost_calls: u64,
    lives: u64,
    dead_letters: u64,
    first_shard: [u64; 2],
    attempts: u64,
    repeats: u64,
    hops: u64,
    stored_tokens: u64,
    survived: u64,
}

impl Sum {
    fn add(&mut self, report: &Report) {
        self.seeds += 1;
        self.acknowledged += report.acknowledged as u64;
        self.calls += report.calls;
        self.lost_calls += report.lost_calls;
        self.lives += report.lives as u64;
        self.dead_letters += report.dead_letters as u64;
        self.attempts += report.tokens.attempts;
        self.repeats += report.tokens.repeats;
        self.hops += report.tokens.hops;
        self.stored_tokens += report.stored_tokens;
        self.survived += report.survived;
        for (sum, count) in self.first_shard.iter_mut().zip(report.first_shard) {
            *sum += count as u64;
        }
    }
}

/// Runs seeds side by side. Returns the lowest that fails.
fn run(
    seeds: Range<u64>,
    scenario: fn(u64) -> Scenario,
    sum: &Mutex<Sum>,
    sabotage: Option<Sabotage>,
) -> Option<Report> {
    let next = AtomicU64::new(seeds.start);
    let failed: Mutex<Option<Report>> = Mutex::default();
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    let work = || {
        let _broken = sabotage::commit(sabotage);
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return;
            }
            let report = simulate(scenario(seed), false);
            sum.lock().unwrap_or_else(PoisonError::into_inner).add(&report);
            if !report.complaints.is_empty() {
                next.store(seeds.end, Ordering::Relaxed);
                let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                if failed.as_ref().is_none_or(|failed| failed.seed > seed) {
                    *failed = Some(report);
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    failed.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn number_from(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().filter(|value| !value.is_empty()).map(|value| value.parse().expect("a number"))
}

fn fail(report: &Report) -> ! {
    let complaints: Vec<&str> = report.complaints.iter().map(String::as_str).take(10).collect();
    panic!("seed {} fails; `make simulate SEED={}` shows it\n{}", report.seed, report.seed, complaints.join("\n"));
}

#[test]
fn thousands_of_seeds_pass() {
    run_many(Scenario::of, SEEDS);
}

#[test]
fn thousands_of_seeds_of_a_cluster_pass() {
    let sum = run_many(Scenario::of_cluster, SEEDS_OF_A_CLUSTER);
    let is_enough = sum.first_shard.iter().all(|count| *count > sum.seeds)
        && [sum.repeats, sum.hops, sum.stored_tokens, sum.survived].iter().all(|count| *count > sum.seeds / 2);
    assert!(sum.seeds < 2 || is_enough, "too little happens to prove anything: {sum:?}");
}

/// Runs the seed that the environment names, the number of seeds that it gives, or as many as a test has the
/// time for.
fn run_many(scenario: fn(u64) -> Scenario, seeds: u64) -> Sum {
    if let Some(seed) = number_from("WINDROW_SIMULATION_SEED") {
        let report = simulate(scenario(seed), true);
        println!("seed {seed}: {report:?}");
        if !report.complaints.is_empty() {
            fail(&report);
        }
        return Sum::default();
    }
    let sum = Mutex::default();
    let seeds = 0..number_from("WINDROW_SIMULATION_SEEDS").unwrap_or(seeds);
    let failed = run(seeds, scenario, &sum, None);
    let sum = sum.into_inner().unwrap_or_else(PoisonError::into_inner);
    println!("{sum:?}");
    if let Some(report) = failed {
        fail(&report);
    }
    let is_enough = sum.lives > sum.seeds && sum.lost_calls > sum.seeds / 2 && sum.dead_letters > sum.seeds / 10;
    assert!(is_enough, "too little happens to prove anything: {sum:?}");
    sum
}

#[test]
fn a_shard_that_is_away_delays_no_part_for_the_other() {
    const SEEDS: u64 = 200;
    let sum = Mutex::default();
    let failed = run(0..SEEDS, Scenario::of_shard_away, &sum, None);
    let sum = sum.into_inner().unwrap_or_else(PoisonError::into_inner);
    println!("{sum:?}");
    if let Some(report) = failed {
        let complaints: Vec<&str> = report.complaints.iter().map(String::as_str).take(10).collect();
        panic!("seed {} of a shard that is away fails\n{}", report.seed, complaints.join("\n"));
    }
    assert!(sum.first_shard.iter().all(|count| *count > SEEDS), "too little happens to prove anything: {sum:?}");
}

/// The number of seeds in `make test`: each of them has fifty times as much to do.
const SEEDS_OF_MANY_TABLES: u64 = 40;

#[test]
fn three_hundred_tables_pass() {
    let sum = Mutex::default();
    let failed = run(0..SEEDS_OF_MANY_TABLES, Scenario::of_many_tables, &sum, None);
    let sum = sum.into_inner().unwrap_or_else(PoisonError::into_inner);
    println!("{sum:?}");
    if let Some(report) = failed {
        let complaints: Vec<&str> = report.complaints.iter().map(String::as_str).take(10).collect();
        panic!("seed {} of many tables fails\n{}", report.seed, complaints.join("\n"));
    }
    assert!(sum.acknowledged > sum.seeds * 500, "too little happens to prove anything: {sum:?}");
}

#[test]
fn a_seed_repeats() {
    for seed in 0..100 {
        let (once, again) = (simulate(Scenario::of(seed), false), simulate(Scenario::of(seed), false));
        assert_eq!(once.trace, again.trace, "seed {seed}");
        let cluster = || simulate(Scenario::of_cluster(seed), false);
        assert_eq!(cluster().trace, cluster().trace, "seed {seed} of a cluster");
    }
}

/// Asserts that the simulation notices a sabotage. The simulation has a value only if it notices each way of
/// breaking the promises, by one of `ENOUGH` seeds.
fn is_noticed(sabotage: Sabotage) {
    is_noticed_in(Scenario::of, sabotage);
}

fn is_noticed_in(scenario: fn(u64) -> Scenario, sabotage: Sabotage) {
    const ENOUGH: u64 = 300;
    let failed = run(0..ENOUGH, scenario, &Mutex::default(), Some(sabotage));
    let report = failed.unwrap_or_else(|| panic!("{ENOUGH} seeds don't notice: {sabotage:?}"));
    println!("{sabotage:?}: seed {}: {}", report.seed, report.complaints[0]);
}

#[test]
fn a_sync_that_is_skipped_is_noticed() {
    is_noticed(Sabotage::SkipsSync);
}

#[test]
fn an_acknowledgement_that_comes_early_is_noticed() {
    is_noticed(Sabotage::AcknowledgesEarly);
}

#[test]
fn an_id_that_is_forgotten_on_retry_is_noticed() {
    is_noticed(Sabotage::ForgetsIdOnRetry);
}

#[test]
fn an_id_that_is_forgotten_after_a_crash_is_noticed() {
    is_noticed(Sabotage::ForgetsIdAfterCrash);
}

#[test]
fn a_segment_that_is_dropped_early_is_noticed() {
    is_noticed(Sabotage::DropsSegmentsEarly);
}

#[test]
fn inserts_that_are_called_done_before_they_are_stored_are_noticed() {
    is_noticed(Sabotage::WritesDoneEarly);
}

#[test]
fn an_insert_that_is_acknowledged_before_all_its_parts_are_is_noticed() {
    is_noticed_in(Scenario::of_cluster, Sabotage::AcknowledgesParts);
}

#[test]
fn an_insert_that_is_not_handed_to_its_owner_is_noticed() {
    is_noticed_in(Scenario::of_cluster, Sabotage::LeavesTokens);
}
