//! How fast a topic that is full already is read: rows between two commits, over the time between them.
//!
//! Offsets are committed when rows are stored, by the engine and by a pipeline alike, whatever table they go into; a table of engine Null has
//! no rows that could be counted. The first commit is where the time begins, so that joining the group and gathering the first batch are not in
//! it, and what was read by then but not yet committed stands against the same at the other end. The last commits of a topic don't count: there the
//! engine waits for messages that don't come.
//!
//! Each partition is counted by itself, and their rates are added up: the engine's consumers commit at their own times, each the partitions that
//! are its own, and between the first commit of one and the last of another there may be a flush more than the time between them is for.

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

/// What was seen of a group's commits.
#[derive(Debug, Default)]
pub struct Commits {
    /// Messages of each partition when it was asked last.
    latest: Vec<u64>,
    /// Of each partition when it was first seen that more is committed, and how much.
    seen: Vec<Vec<(Instant, u64)>>,
}

impl Commits {
    /// What is committed of each partition at some time. What was committed before the first time was so for nobody knows how long.
    pub fn note(&mut self, at: Instant, committed: Vec<u64>) {
        self.seen.resize_with(committed.len(), Vec::new);
        for ((seen, now), before) in self.seen.iter_mut().zip(&committed).zip(&self.latest) {
            if now > before {
                seen.push((at, *now));
            }
        }
        self.latest = committed;
    }

    pub fn messages(&self) -> u64 {
        self.latest.iter().sum()
    }

    fn began(&self) -> bool {
        self.seen.iter().any(|commits| !commits.is_empty())
    }

    /// Whether every partition was seen for longer than this.
    fn cover(&self, limit: Duration) -> bool {
        let is_covered = |commits: &Vec<(Instant, u64)>| match commits.as_slice() {
            [(first, _), .., (last, _)] => *last - *first > limit,
            _ => false,
        };
        !self.seen.is_empty() && self.seen.iter().all(is_covered)
    }

    /// Between each partition's first commit and its last one that counts; a partition has so many messages.
    pub fn messages_per_second(&self, messages: u64) -> Result<f64, BenchError> {
        let too_few = || BenchError::Unsound("there were too few commits: take more --rows, or more --seconds".into());
        if self.seen.is_empty() {
            return Err(too_few());
        }
        let rates = self.seen.iter().map(|commits| {
            let counted = |(_, committed): &&(Instant, u64)| *committed as f64 <= messages as f64 * COUNTED_SHARE;
            match (commits.first(), commits.iter().rev().find(counted)) {
                (Some((began, first)), Some((ended, last))) if began < ended => {
                    Ok((last - first) as f64 / (*ended - *began).as_secs_f64())
                }
                _ => Err(too_few()),
            }
        });
        rates.sum()
    }
}

/// Whoever reads is stopped when each partition was read for `limit` after its first commit; without one, all has to be stored, and is counted.
pub fn measure(bench: &Bench<'_>, side: Side, route: &Route<'_>, limit: Option<Duration>) -> Result<Peak, BenchError> {
    let held = bench.filled(route.format)?;
    let rows_per_message = route.format.rows_per_message();
    let before = bench.usages();
    let reader = Reader::start(side, route, bench.stack, bench.options)?;
    let commits = watch(route, held.messages, limit)?;
    let gateway_cpu_seconds = reader.pid().map(|pid| usage(pid).cpu_seconds);
    let gateway_peak_bytes = reader.peak_resident_bytes();
    let after = bench.usages();
    let stored = commits.messages() * rows_per_message;
    reader.stop()?;
    if stored == held.messages * rows_per_message {
        route.target.check(&bench.stack.clickhouse, stored, bench.views_of(stored))?;
    }
    let millions = stored as f64 / 1e6;
    let messages_per_second = commits.messages_per_second(held.messages / route.topic.partitions as u64)?;
    Ok(Peak {
        rows_per_second: messages_per_second * rows_per_message as f64,
        gateway_cpu_seconds: gateway_cpu_seconds.map(|seconds| seconds / millions),
        clickhouse_cpu_seconds: (after.clickhouse - before.clickhouse) / millions,
        broker_cpu_seconds: (after.broker - before.broker) / millions,
        gateway_peak_bytes,
    })
}

/// The group's commits until the topic has been read, or its time is over.
fn watch(route: &Route<'_>, messages: u64, limit: Option<Duration>) -> Result<Commits, BenchError> {
    let mut client = BrokerClient::connect(&route.broker.address)?;
    let mut commits = Commits::default();
    let began = Instant::now();
    loop {
        commits.note(Instant::now(), client.committed(route.group, route.topic)?);
        let patience = if commits.began() { DRAINED_WITHIN } else { FIRST_COMMIT_WITHIN };
        if began.elapsed() > patience {
            return Err(BenchError::Unsound(format!(
                "{} of {messages} messages of {} were stored after {:?}",
                commits.messages(),
                route.topic.name,
                began.elapsed()
            )));
        }
        let is_over = limit.is_some_and(|limit| commits.cover(limit));
        if commits.messages() >= messages || is_over {
            return Ok(commits);
        }
        std::thread::sleep(POLL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commits(began: Instant, seen: &[(u64, [u64; 2])]) -> Commits {
        let mut commits = Commits::default();
        for (millis, committed) in seen {
            commits.note(began + Duration::from_millis(*millis), committed.to_vec());
        }
        commits
    }

    #[test]
    fn the_rate_leaves_out_the_beginning_and_the_end() {
        let began = Instant::now();
        let seen = [
            (0, [0, 0]),
            (5_000, [100, 100]),
            (6_000, [300, 300]),
            (7_000, [300, 300]),
            (8_000, [900, 900]),
            (20_000, [1000, 1000]),
        ];
        assert_eq!(commits(began, &seen).messages_per_second(1000).unwrap(), 2.0 * 800.0 / 3.0);
        assert!(commits(began, &seen[..2]).messages_per_second(1000).is_err());
        // What was there at first is no commit.
        assert!(commits(began, &seen[1..3]).messages_per_second(1000).is_err());
        assert!(commits(began, &[]).messages_per_second(1000).is_err());
    }

    #[test]
    fn each_partition_has_its_own_times() {
        let began = Instant::now();
        // Two consumers with 100 messages in every two seconds, one of them later: from the first commit to the last there are five flushes.
        let seen = [(0, [0, 0]), (10, [100, 0]), (510, [100, 100]), (2_010, [200, 100]), (2_510, [200, 200])];
        assert_eq!(commits(began, &seen).messages_per_second(10_000).unwrap(), 100.0);
    }
}
