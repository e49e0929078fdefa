//! Looks at parts and CPU at regular moments while something else runs.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use crate::error::BenchError;
use crate::stack::{Snapshot, Stack};

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    pub seconds: f64,
    pub active_parts: u64,
    pub all_parts: u64,
    /// Of all of the machine's CPUs, since the sample before.
    pub clickhouse_cpu_percent: f64,
    pub gateway_cpu_percent: f64,
}

/// Returns what `work` returned and what was seen meanwhile.
pub fn sample_while<T>(
    stack: &Stack,
    table: &str,
    every: Duration,
    work: impl FnOnce() -> T,
) -> Result<(T, Vec<Sample>), BenchError> {
    std::thread::scope(|scope| {
        let (finished, is_finished) = mpsc::channel::<()>();
        let sampler = scope.spawn(move || sample_until(stack, table, every, &is_finished));
        let result = work();
        drop(finished);
        let samples = sampler.join().map_err(|_| BenchError::Setup("the sampler panicked".into()))??;
        Ok((result, samples))
    })
}

fn sample_until(
    stack: &Stack,
    table: &str,
    every: Duration,
    is_finished: &mpsc::Receiver<()>,
) -> Result<Vec<Sample>, BenchError> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from) as f64;
    let start = Instant::now();
    let mut samples = Vec::new();
    let mut last = (start, stack.snapshot());
    loop {
        match is_finished.recv_timeout(every) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return Ok(samples),
        }
        let parts = count_parts(stack, table)?;
        let now = (Instant::now(), stack.snapshot());
        let percent = |cpu_seconds: f64| 100.0 * cpu_seconds / (now.0 - last.0).as_secs_f64() / cpus;
        let (before, after): (&Snapshot, &Snapshot) = (&last.1, &now.1);
        samples.push(Sample {
            seconds: (now.0 - start).as_secs_f64(),
            active_parts: parts.active,
            all_parts: parts.all,
            clickhouse_cpu_percent: percent(after.clickhouse_cpu_since(before)),
            gateway_cpu_percent: percent(after.gateway_cpu_since(before)),
        });
        last = now;
    }
}

struct Parts {
    active: u64,
    all: u64,
}

fn count_parts(stack: &Stack, table: &str) -> Result<Parts, BenchError> {
    let (database, name) = table.split_once('.').unwrap_or(("default", table));
    let answer = stack.clickhouse.query(&format!(
        "SELECT countIf(active), count() FROM system.parts WHERE database = '{database}' AND table = '{name}' FORMAT TSV"
    ))?;
    let mut numbers = answer.split_whitespace().filter_map(|field| field.parse().ok());
    match (numbers.next(), numbers.next()) {
        (Some(active), Some(all)) => Ok(Parts { active, all }),
        _ => Err(BenchError::Setup(format!("expected two numbers of parts, ClickHouse answered {answer:?}"))),
    }
}
