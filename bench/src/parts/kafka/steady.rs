//! How late rows are under a steady load: from their message's timestamp until they can be found.
//!
//! Every row is looked at, and nothing is asked while they come. ClickHouse notes in `system.part_log` when it has
//! added a part to its table, from when on queries see its rows; a row knows by its block's number which part brought
//! it, also after merges.

use std::time::{Duration, Instant};

use super::dashboards::{self, Asked};
use super::messages::Format;
use super::reader::Side;
use super::running::{Cpu, Running};
use super::target::Target;
use super::Bench;
use crate::error::BenchError;

/// At the load, before what counts.
const WARM_UP: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy)]
pub struct Load {
    pub side: Side,
    pub rows_per_second: f64,
    pub with_queries: bool,
}

/// From messages' timestamps until their rows can be found.
#[derive(Debug, Clone, Copy)]
pub struct Lateness {
    pub p50_ms: f64,
    pub p95_ms: f64,
    pub p99_ms: f64,
    pub max_ms: f64,
}

#[derive(Debug, Clone, Copy)]
pub struct Steady {
    pub lateness: Lateness,
    pub parts_per_second: f64,
    /// How long after it was due a message was sent at most: part of its row's lateness, and nothing that a reader can
    /// help.
    pub sent_late_ms: f64,
    /// Of one CPU.
    pub cpu_percent: Cpu,
    pub gateway_peak_bytes: Option<u64>,
    pub asked: Option<Asked>,
}

/// What counts, by messages' timestamps.
#[derive(Debug, Clone, Copy)]
struct Window {
    from_ms: i64,
    until_ms: i64,
    rows: u64,
}

impl Window {
    fn seconds(&self) -> f64 {
        (self.until_ms - self.from_ms) as f64 / 1000.0
    }
}

pub fn measure(bench: &Bench<'_>, load: Load, format: Format, seconds: f64) -> Result<Steady, BenchError> {
    let running = Running::start(bench, load.side, format)?;
    let sql = &bench.stack.clickhouse;
    let mut producer = running.producer(load.rows_per_second / format.rows_per_message() as f64)?;
    producer.run_for(WARM_UP)?;
    let mut measured = || {
        let (from_ms, sent_before) = (producer.now_ms(), producer.sent());
        let latest = producer.run_for(Duration::from_secs_f64(seconds))?;
        let rows = (producer.sent() - sent_before) * format.rows_per_message();
        Ok::<_, BenchError>((Window { from_ms, until_ms: producer.now_ms(), rows }, latest))
    };
    let (before, began) = (running.cpu(), Instant::now());
    let ((window, latest), asked) = match load.with_queries {
        false => (measured()?, None),
        true => {
            let (measured, asked) = dashboards::ask_while(sql, &running.target.name, measured)?;
            (measured?, Some(asked))
        }
    };
    let cpu_percent = running.cpu().percent_since(before, began.elapsed());

    let (gateway_peak_bytes, target) = running.end(producer)?;
    let steady = Steady {
        parts_per_second: parts(bench, &target, window)? as f64 / window.seconds(),
        sent_late_ms: latest.as_secs_f64() * 1e3,
        cpu_percent,
        gateway_peak_bytes,
        asked,
        lateness: lateness(bench, &target, window)?,
    };
    target.drop(sql)?;
    Ok(steady)
}

/// New ones while the window lasted.
fn parts(bench: &Bench<'_>, target: &Target, window: Window) -> Result<u64, BenchError> {
    bench.stack.clickhouse.execute("SYSTEM FLUSH LOGS part_log")?;
    bench.stack.clickhouse.number(&format!(
        "SELECT count() FROM system.part_log WHERE {} AND toUnixTimestamp64Milli(event_time_microseconds) >= {} \
         AND toUnixTimestamp64Milli(event_time_microseconds) < {}",
        new_parts(target),
        window.from_ms,
        window.until_ms
    ))
}

fn new_parts(target: &Target) -> String {
    let (database, table) = target.name.split_once('.').unwrap_or(("default", &target.name));
    format!("database = '{database}' AND table = '{table}' AND event_type = 'NewPart'")
}

fn lateness(bench: &Bench<'_>, target: &Target, window: Window) -> Result<Lateness, BenchError> {
    // A part is called by its partition, and by its block's number twice.
    let query = format!(
        "WITH parts AS (SELECT toUInt64(splitByChar('_', part_name)[2]) AS block, event_time_microseconds AS added \
         FROM system.part_log WHERE {}), \
         stamps AS (SELECT _block_number AS block, ts, count() AS rows FROM {} \
         WHERE toUnixTimestamp64Milli(ts) >= {} AND toUnixTimestamp64Milli(ts) < {} GROUP BY block, ts) \
         SELECT sum(rows), quantilesExactWeighted(0.5, 0.95, 0.99)(late_us, rows) AS q, q[1], q[2], q[3], max(late_us) \
         FROM (SELECT rows, toUnixTimestamp64Micro(added) - 1000 * toUnixTimestamp64Milli(ts) AS late_us \
         FROM stamps INNER JOIN parts USING (block)) FORMAT JSONCompactEachRow \
         SETTINGS output_format_json_quote_64bit_integers = 0",
        new_parts(target),
        target.name,
        window.from_ms,
        window.until_ms
    );
    let answer = bench.stack.clickhouse.query(&query)?;
    let (rows, _, p50, p95, p99, max): (u64, serde_json::Value, f64, f64, f64, f64) = serde_json::from_str(&answer)
        .map_err(|_| BenchError::Unsound(format!("ClickHouse said of the rows' lateness: {answer:?}")))?;
    if rows != window.rows {
        return Err(BenchError::Unsound(format!("the way of {rows} rows is known, {} were sent", window.rows)));
    }
    Ok(Lateness { p50_ms: p50 / 1000.0, p95_ms: p95 / 1000.0, p99_ms: p99 / 1000.0, max_ms: max / 1000.0 })
}
