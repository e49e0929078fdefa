//! How fast a topic that is full already is read: rows between two commits, over the time between them.
//!
//! Offsets are committed when rows are stored, by the engine and by a pipeline alike, whatever table they go into; a
//! table of engine Null has no rows that could be counted. The first commit is where the time begins, so that joining
//! the group and gathering the first batch are not in it, and what was read by then but not yet committed stands
//! against the same at the other end. The last commits of a topic don't count: there the engine waits for messages that
//! don't come.
//!
//! The engine's consumers commit one after the other what they have flushed together, every few seconds: such commits
//! are one, or the time between would have a consumer's flush too many.

use std::time::{Duration, Instant};

use super::reader::{Reader, Route, Side};
use super::Bench;
use crate::broker::BrokerClient;
use crate::error::BenchError;
use crate::process::usage;

const POLL: Duration = Duration::from_millis(10);
/// Of the topic: commits beyond are not looked at.
const COUNTED_SHARE: f64 = 0.95;
/// Between the commits of the engine's consumers that belong together, at most.
const TOGETHER: Duration = Duration::from_millis(250);
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

/// Whoever reads is stopped at the first commit after `limit`; without one, all has to be stored, and is counted.
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
        rows_per_second: messages_per_second(&commits, together(side), held.messages)? * rows_per_message as f64,
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
        let ends = commits.first().zip(commits.last());
        let is_over = limit.zip(ends).is_some_and(|(limit, (first, last))| {
            last.at.duration_since(first.at) > limit && last.at.elapsed() > TOGETHER
        });
        if committed >= messages || is_over {
            return Ok(commits);
        }
        std::thread::sleep(POLL);
    }
}

/// A pipeline has one consumer, which commits by itself.
pub fn together(side: Side) -> Duration {
    match side {
        Side::KafkaEngine(_) => TOGETHER,
        Side::Windrow { .. } => Duration::ZERO,
    }
}

/// Between the first commits, of which none came later than `together` after another, and the last one that counts, of
/// so many messages.
pub fn messages_per_second(commits: &[Commit], together: Duration, messages: u64) -> Result<f64, BenchError> {
    let counted = |commit: &&Commit| commit.messages as f64 <= messages as f64 * COUNTED_SHARE;
    let apart = commits.windows(2).position(|pair| pair[1].at.duration_since(pair[0].at) > together);
    match (apart.map(|at| commits[at]), commits.iter().rev().find(counted)) {
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
        let rate = |commits: &[Commit], together: u64| {
            messages_per_second(commits, Duration::from_secs(together), 1000).map_err(|error| error.to_string())
        };
        assert_eq!(rate(&commits, 0).unwrap(), 800.0 / 3.0);
        // Those at 5 to 8 belong together, and there is but one more, which doesn't count.
        assert!(rate(&commits, 1).is_err());
        assert!(rate(&commits[3..], 0).is_err());
        assert!(rate(&[], 0).is_err());
    }

    #[test]
    fn commits_that_belong_together_are_one() {
        let began = Instant::now();
        let commit = |millis: u64, messages: u64| Commit { at: began + Duration::from_millis(millis), messages };
        let commits = [commit(0, 100), commit(10, 200), commit(2_010, 300), commit(2_020, 400), commit(4_010, 600)];
        assert_eq!(messages_per_second(&commits, TOGETHER, 10_000).unwrap(), 100.0);
    }
}
