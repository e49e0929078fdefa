//! Tests of deaths, restarts and ends of the engine, seen from the process that guards it.

use std::time::Duration;

use tokio::sync::watch;
use windrow_embedded::{Embedded, EngineState, StopOutcome};

use crate::support::{kill, query, DataDir, Watched};

const GRACE: Duration = Duration::from_secs(60);

async fn wait_for(state: &mut watch::Receiver<EngineState>, wanted: impl FnMut(&EngineState) -> bool) -> EngineState {
    state.wait_for(wanted).await.expect("the guard lives").clone()
}

fn is_up_as_another(than: u32) -> impl FnMut(&EngineState) -> bool {
    move |state| matches!(state, EngineState::Up { pid, .. } if *pid != than)
}

/// Matches any state but that of this engine. The states in between may pass unseen, so no test waits for one
/// of them.
fn is_not(that: u32) -> impl FnMut(&EngineState) -> bool {
    move |state| !matches!(state, EngineState::Up { pid, .. } if *pid == that)
}

#[tokio::test(flavor = "multi_thread")]
async fn it_comes_back_on_the_same_port_with_its_data() {
    let data = DataDir::new();
    let embedded = data.start().await;
    let endpoint = embedded.endpoint();
    query(endpoint, "CREATE TABLE t (a UInt64) ENGINE = MergeTree ORDER BY a").expect("created");
    let mut state = embedded.state();
    for round in 1..=3 {
        query(endpoint, "INSERT INTO t VALUES (7)").expect("inserted");
        let pid = embedded.pid().expect("it is up");
        kill(pid);
        wait_for(&mut state, is_up_as_another(pid)).await;
        assert_eq!(query(endpoint, "SELECT count() FROM t"), Ok(round.to_string()));
    }
    assert_eq!(embedded.stop(GRACE).await, StopOutcome::Clean);
    assert_eq!(*state.borrow(), EngineState::Stopped);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_writes_what_tables_keep_in_memory() {
    let data = DataDir::new();
    let embedded = data.start().await;
    let endpoint = embedded.endpoint();
    query(endpoint, "CREATE TABLE t (a UInt64) ENGINE = MergeTree ORDER BY a").expect("created");
    query(endpoint, "CREATE TABLE b AS t ENGINE = Buffer(default, t, 1, 1000, 1000, 10000, 10000, 1000000, 1000000)")
        .expect("created");
    query(endpoint, "INSERT INTO b VALUES (5)").expect("inserted");
    let watched = Watched::new(embedded.pid().expect("it is up"));
    assert_eq!(embedded.stop(GRACE).await, StopOutcome::Clean);
    watched.wait_for_end();
    let again = data.start().await;
    assert_eq!(query(again.endpoint(), "SELECT a FROM t").as_deref(), Ok("5"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_engine_is_killed_at_the_end_of_the_grace() {
    let data = DataDir::new();
    let embedded = data.start().await;
    let pid = embedded.pid().expect("it is up");
    // SAFETY: no memory is involved.
    unsafe { libc::kill(pid as libc::pid_t, libc::SIGSTOP) };
    assert_eq!(embedded.stop(Duration::from_millis(500)).await, StopOutcome::Killed);
}

#[tokio::test(flavor = "multi_thread")]
async fn it_ends_when_its_handle_is_dropped() {
    let data = DataDir::new();
    let embedded = data.start().await;
    let watched = Watched::new(embedded.pid().expect("it is up"));
    drop(embedded);
    watched.wait_for_end();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_while_it_is_down_does_not_wait_for_it() {
    let data = DataDir::new();
    let embedded = data.start().await;
    let mut state = embedded.state();
    let pid = embedded.pid().expect("it is up");
    kill(pid);
    if let EngineState::Down { reason, .. } = wait_for(&mut state, is_not(pid)).await {
        assert!(reason.contains("signal: 9"), "{reason}");
    }
    let outcome = embedded.stop(GRACE).await;
    // It may have come back in between.
    assert!(matches!(outcome, StopOutcome::WasDown | StopOutcome::Clean), "{outcome:?}");
    assert_eq!(*state.borrow(), EngineState::Stopped);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_that_fails_is_tried_again() {
    let data = DataDir::new();
    let mut options = data.options();
    // Runs once, fails twice, then runs again.
    let count = "echo x >>\"$0.runs\"; case $(grep -c x \"$0.runs\") in 2|3) echo 'no luck' >&2; exit 4;; esac";
    options.engine = Some(data.binary(count));
    let embedded = Embedded::start(options).await.expect("the first time it works");
    let pid = embedded.pid().expect("it is up");
    let mut state = embedded.state();
    kill(pid);
    wait_for(&mut state, is_up_as_another(pid)).await;
    query(embedded.endpoint(), "SELECT 1").expect("it answers");
    let runs = std::fs::read_to_string(data.0.join("clickhouse.runs")).expect("a file");
    assert_eq!(runs.lines().count(), 4);
    assert_eq!(embedded.stop(GRACE).await, StopOutcome::Clean);
}
