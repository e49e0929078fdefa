//! The log alone against a disk that does its worst: random appends, releases, crashes and faults, and a model of what has to be
//! there after each of them.

mod model;
mod run;

use run::{Run, Scenario};

fn run_seeds(seeds: std::ops::Range<u64>, scenario: fn(u64) -> Scenario) {
    let (mut crashes, mut failed_commits, mut recovered) = (0, 0, 0);
    for seed in seeds {
        let seen = std::panic::catch_unwind(|| Run::of(scenario(seed))).unwrap_or_else(|_| panic!("seed {seed} fails"));
        crashes += seen.crashes;
        failed_commits += seen.failed_commits;
        recovered += seen.recovered;
    }
    assert!(crashes > 100 && recovered > 1000, "{crashes} crashes, {recovered} records recovered: too little happens");
    println!("{crashes} crashes, {failed_commits} failed commits, {recovered} records recovered");
}

#[test]
fn what_was_committed_is_there_after_crashes() {
    run_seeds(0..600, Scenario::calm);
}

#[test]
fn what_was_committed_is_there_after_crashes_and_faults() {
    run_seeds(1000..2500, Scenario::stormy);
}

#[test]
fn a_seed_repeats() {
    for seed in [7, 8, 9] {
        assert_eq!(Run::of(Scenario::stormy(seed)).trace, Run::of(Scenario::stormy(seed)).trace);
    }
}
