//! Tests with random inserts, withdrawals, flushes and faults, against the allowed outcomes of each insert.
//!
//! A seed decides the operations (`ops.rs`) and the sink's answers (`weather.rs`). At the end, `oracle.rs`
//! compares the calls that the sink has seen with the outcome that each sender was told. The seeds of a test
//! run side by side: the gatherer's back-off takes the time, not the work.

mod ops;
mod oracle;
mod weather;

use tokio::task::JoinSet;

use ops::Run;

async fn run_seeds(seeds: std::ops::Range<u64>) {
    let mut runs = JoinSet::new();
    for seed in seeds {
        runs.spawn(async move {
            let run = tokio::spawn(Run::of(seed)).await;
            run.map_err(|_| seed)
        });
    }
    let mut failed = Vec::new();
    let mut faults = 0;
    while let Some(run) = runs.join_next().await {
        match run.expect("the run is caught") {
            Ok(seen) => faults += seen.faults,
            Err(seed) => failed.push(seed),
        }
    }
    assert!(failed.is_empty(), "failed seeds: {failed:?}");
    assert!(faults > 200, "only {faults} faults: the model tests too little");
}

#[tokio::test]
async fn every_insert_ends_as_it_was_told() {
    run_seeds(0..200).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_insert_ends_as_it_was_told_on_several_threads() {
    run_seeds(1000..1100).await;
}
