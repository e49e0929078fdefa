//! How many rows are stored for as long as one likes, while others write them: the producer and the broker's work of
//! taking messages share the machine with the reader, as they don't when a topic that is full already is read.
//!
//! The producer writes as fast as it can, but is never more than so many rows ahead of what is stored. So the rate at
//! which it writes is the one at which the reader just keeps up, whatever the reader is, and neither of them is given
//! more of the machine than it takes.

use std::time::{Duration, Instant};

use super::messages::Format;
use super::peak::{messages_per_second, together, Commit};
use super::reader::Side;
use super::running::{Cpu, Running};
use super::Bench;
use crate::error::BenchError;

/// Several times what the readers take for a batch.
const ROWS_AHEAD: u64 = 3_000_000;
/// Of one round of batches: as many as are due in 10 ms at this rate.
const ROWS_PER_SECOND: f64 = 1e6;
/// The first so many rows are written faster than the reader stores them.
const WARM_UP: Duration = Duration::from_secs(8);
const POLL: Duration = Duration::from_millis(10);

#[derive(Debug, Clone, Copy)]
pub struct Sustained {
    pub rows_per_second: f64,
    /// Of one CPU.
    pub cpu_percent: Cpu,
    pub gateway_peak_bytes: Option<u64>,
}

pub fn measure(bench: &Bench<'_>, side: Side, format: Format, seconds: f64) -> Result<Sustained, BenchError> {
    let mut running = Running::start(bench, side, format)?;
    let rows_per_message = format.rows_per_message();
    let mut producer = running.producer(ROWS_PER_SECOND / rows_per_message as f64)?;
    let began = Instant::now();
    let mut before = None;
    let mut commits: Vec<Commit> = Vec::new();
    while began.elapsed() < WARM_UP + Duration::from_secs_f64(seconds) {
        let (at, committed) = (Instant::now(), running.committed()?);
        if began.elapsed() >= WARM_UP {
            before.get_or_insert_with(|| (at, running.cpu()));
            if commits.last().is_none_or(|last| last.messages < committed) {
                commits.push(Commit { at, messages: committed });
            }
        }
        let may_be_sent = committed + ROWS_AHEAD / rows_per_message;
        while producer.sent() < may_be_sent && at.elapsed() < POLL {
            producer.send_now()?;
        }
        std::thread::sleep(POLL.saturating_sub(at.elapsed()));
    }
    let (since, cpu_before) = before.ok_or_else(|| BenchError::Unsound("nothing was stored in time".into()))?;
    let cpu_percent = running.cpu().percent_since(cpu_before, since.elapsed());
    let rate = messages_per_second(&commits, together(side), u64::MAX)?;
    let (gateway_peak_bytes, target) = running.end(producer)?;
    target.drop(&bench.stack.clickhouse)?;
    Ok(Sustained { rows_per_second: rate * rows_per_message as f64, cpu_percent, gateway_peak_bytes })
}
