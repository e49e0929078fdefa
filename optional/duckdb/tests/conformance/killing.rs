//! A process that stores batches is killed at random moments, and another one goes on from there: each batch
//! is there once.
//!
//! A batch that a process did not report as stored may be stored or not. The next process stores it again
//! under the same id.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use windrow_clickhouse::Credentials;
use windrow_engine::sink::Sink;

use crate::duckdb::{open, InDuckDb};
use crate::suite::{batch, Kind, Store};

const ARGUMENT: &str = "store-until-killed";
const KILLS: u32 = 50;
const ROWS: i64 = 3;

/// Runs in the process that is going to be killed: stores one batch after the other from a number on, and
/// reports each.
pub async fn store_if_asked() -> bool {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, argument, path, first] = &arguments[..] else { return false };
    if argument != ARGUMENT {
        return false;
    }
    let sink = windrow_duckdb::DuckDbSink::new(open(Some(path.into())));
    let credentials = Credentials { user: "default".into(), password: String::new() };
    for number in first.parse::<i64>().expect("a number").. {
        let batch = batch(number as u128 + 1, "killed", credentials.clone(), vec![number; ROWS as usize]);
        sink.store(&batch).await.expect("nothing is wrong with it");
        println!("{number}");
    }
    true
}

pub async fn each_batch_is_there_once(folder: &Path) {
    let path = folder.join("killed.db");
    let store = InDuckDb::new(&path).await;
    store.create("killed", Kind::Plain).await;
    store.database.close().await;
    drop(store);
    fastrand::seed(60_411);
    let mut next = 0;
    for _ in 0..KILLS {
        next = killed_at_a_random_moment(&path, next);
    }
    let store = InDuckDb::new(&path).await;
    let mut found: BTreeMap<i64, u64> = store.values("killed").await;
    // The last process may have stored one that it did not tell.
    let untold = found.remove(&next);
    assert!(untold.is_none_or(|count| count == ROWS as u64), "{untold:?}");
    assert_eq!(found, (0..next).map(|number| (number, ROWS as u64)).collect());
    assert!(next > i64::from(KILLS), "{next} batches were stored");
}

/// Kills a process at a random moment, and returns the number of the first batch that it did not report as stored.
fn killed_at_a_random_moment(path: &Path, first: i64) -> i64 {
    let mut child = start(path, first);
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut told = || lines.next().and_then(|line| line.ok()?.parse::<i64>().ok());
    let mut next = first;
    for _ in 0..fastrand::u32(1..8) {
        next = told().expect("it stores until it is killed") + 1;
    }
    let moment = Instant::now() + Duration::from_micros(fastrand::u64(0..4000));
    while Instant::now() < moment {
        std::hint::spin_loop();
    }
    child.kill().expect("it runs");
    while let Some(number) = told() {
        next = number + 1;
    }
    child.wait().expect("it was killed");
    next
}

fn start(path: &Path, first: i64) -> Child {
    let itself = std::env::current_exe().expect("a path");
    let mut command = Command::new(itself);
    command.arg(ARGUMENT).arg(path).arg(first.to_string()).stdout(Stdio::piped());
    command.spawn().expect("it starts")
}
