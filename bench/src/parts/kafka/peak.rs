//! How fast a topic that is full already is read: rows between two commits, over the time between them.
//!
//! Offsets are committed when rows are stored, by the engine and by a pipeline alike, whatever table they go into; a table of engine Null has
//! no rows that could be counted. The first commit is where the time begins, so that joining the group and gathering the first batch are not in
//! it, and what was read by then but not yet committed stands against the same at the other end. The last commits of a topic don't count: there the
//! engine waits for messages that don't come.

use std::time::{Duration, Instant};

use super::reader::{Reader, Route, Side};
use super::Bench;
use crate::broker::BrokerClient;
use crate::error::BenchError;
use crate::process::usage;

const POLL: Duration = Duration::from_millis(10);
/// Of the topic: commits beyond are not looked at.
const COUNTED_SHARE: f64 = 0.95;
const FIRST_COMMIT_WITHIN: Duration = Duration::from_secs(90);
const DRAINED_WITHIN: Duration = Duration::from_secs(180);

#[derive(Debug, Clone, Copy)]
pub struct Peak {
    pub rows_per_second: f64,
    /// For a million rows.
    pub gateway_cpu_seconds: Option<f64>,
    pub clickhouse_cpu_seconds: f64,
    pub broker_cpu_seconds: f64,
    pub gateway_peak_bytes: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
pub struct Commit {
    pub at: Instant,
    pub messages: u64,
}

/// Whoever reads is stopped after `limit`; without one, all has to be stored, and is counted.
pub fn measure(bench: &Bench<'_>, side: Side, route: &Route<'_>, limit: Option<Duration>) -> Result<Peak, BenchError> {
    let held = bench.filled(route.format)?;
    let rows_per_message = route.format.rows_per_message();
    let before = bench.usages();
    let reader = Reader::start(side, route, bench.stack, bench.options)?;
    let commits = watch(route, held.messages, limit)?;
    let gateway_cpu_seconds = reader.pid().map(|pid| usage(pid).cpu_seconds);
    let gateway_peak_bytes = reader.peak_resident_bytes();
    let after = bench.usages();
    let stored = commits.last().map_or(0, |commit| commit.messages) * rows_per_message;
    reader.stop()?;
    if stored == held.messages * rows_per_message {
        route.target.check(&bench.stack.clickhouse, stored, bench.views_of(stored))?;
    }
    let millions = stored as f64 / 1e6;
    Ok(Peak {
        rows_per_second: messages_per_second(&commits, held.messages)? * rows_per_message as f64,
        gateway_cpu_seconds: gateway_cpu_seconds.map(|seconds| seconds / millions),
        clickhouse_cpu_seconds: (after.clickhouse - before.clickhouse) / millions,
        broker_cpu_seconds: (after.broker - before.broker) / millions,
        gateway_peak_bytes,
    })
}

/// The group's commits until the topic has been read, or its time is over.
fn watch(route: &Route<'_>, messages: u64, limit: Option<Duration>) -> Result<Vec<Commit>, BenchError> {
    let mut client = BrokerClient::connect(&route.broker.address)?;
    let mut commits: Vec<Commit> = Vec::new();
    let began = Instant::now();
    loop {
        let (at, committed) = (Instant::now(), client.committed(route.group, route.topic)?);
        let before = commits.last().map_or(0, |commit| commit.messages);
        if committed > before {
            commits.push(Commit { at, messages: committed });
        }
        let late = match commits.first() {
            None => began.elapsed() > FIRST_COMMIT_WITHIN,
            Some(_) => began.elapsed() > DRAINED_WITHIN,
        };
        if late {
            return Err(BenchError::Unsound(format!(
                "{} of {messages} messages of {} were stored after {:?}",
                committed,
                route.topic.name,
                began.elapsed()
            )));
        }
        let over = limit.zip(commits.first()).is_some_and(|(limit, first)| first.at.elapsed() > limit);
        if committed >= messages || over {
            return Ok(commits);
        }
        std::thread::sleep(POLL);
    }
}

/// Between the first commit and the last one that counts, of so many messages.
pub fn messages_per_second(commits: &[Commit], messages: u64) -> Result<f64, BenchError> {
    let counted = |commit: &&Commit| commit.messages as f64 <= messages as f64 * COUNTED_SHARE;
    match (commits.first(), commits.iter().rev().find(counted)) {
        (Some(first), Some(last)) if first.at < last.at => {
            Ok((last.messages - first.messages) as f64 / (last.at - first.at).as_secs_f64())
        }
        _ => Err(BenchError::Unsound("there were too few commits: take more --rows, or more --seconds".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_leaves_out_the_beginning_and_the_end() {
        let began = Instant::now();
        let commit = |seconds: u64, messages: u64| Commit { at: began + Duration::from_secs(seconds), messages };
        let commits = [commit(5, 100), commit(6, 300), commit(7, 500), commit(8, 900), commit(20, 1000)];
        assert_eq!(messages_per_second(&commits, 1000).unwrap(), 800.0 / 3.0);
        assert!(messages_per_second(&commits[3..], 1000).is_err());
        assert!(messages_per_second(&[], 1000).is_err());
    }
}
