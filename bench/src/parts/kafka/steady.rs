//! How late rows are under a steady load: from their message's timestamp until they can be found.
//!
//! Every row is looked at, and nothing is asked while they come. ClickHouse notes in `system.part_log` when it has added a part to its table, from
//! when on queries see its rows; a row knows by its block's number which part brought it, also after merges.

use std::time::{Duration, Instant};

use super::dashboards::{self, Asked};
use super::messages::Format;
use super::reader::{Reader, Route, Side};
use super::target::{Engine, Target};
use super::Bench;
use crate::broker::{BrokerClient, Producer};
use crate::error::BenchError;
use crate::process::usage;

const JOINED_WITHIN: Duration = Duration::from_secs(90);
/// At the load, before what counts.
const WARM_UP: Duration = Duration::from_secs(5);
const CAUGHT_UP_WITHIN: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(20);

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
    /// Of one CPU.
    pub gateway_cpu_percent: Option<f64>,
    pub clickhouse_cpu_percent: f64,
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
    let number = bench.next_run();
    let topic = bench.create_topic(&format!("steady-{number}"))?;
    let name = format!("bench.kafka_steady_{number}");
    let sql = &bench.stack.clickhouse;
    let target = Target::create(sql, name, Engine::MergeTree, format, true)?;
    let group = format!("steady-{number}");
    let route = Route { broker: bench.broker, topic: &topic, group: &group, format, target: &target };
    let reader = Reader::start(load.side, &route, bench.stack, bench.options)?;
    let mut client = BrokerClient::connect(&bench.broker.address)?;
    wait_for("its members", JOINED_WITHIN, || client.is_stable(&group))?;

    let mut producer = Producer::begin(&bench.broker.address, &topic, messages_per_second(load, format))?;
    let write = |message: u64, out: &mut Vec<u8>| format.write(bench.hour, message, out);
    producer.run_for(WARM_UP, &write)?;
    let mut measured = || {
        let (from_ms, sent_before) = (producer.now_ms(), producer.sent());
        producer.run_for(Duration::from_secs_f64(seconds), &write)?;
        let rows = (producer.sent() - sent_before) * format.rows_per_message();
        Ok::<_, BenchError>(Window { from_ms, until_ms: producer.now_ms(), rows })
    };
    let gateway_cpu = || reader.pid().map(|pid| usage(pid).cpu_seconds);
    let (before, gateway_before, began) = (bench.usages(), gateway_cpu(), Instant::now());
    let (window, asked) = match load.with_queries {
        false => (measured()?, None),
        true => {
            let (window, asked) = dashboards::ask_while(sql, &target.name, measured)?;
            (window?, Some(asked))
        }
    };
    let wall = began.elapsed().as_secs_f64();
    let percent = |cpu_seconds: f64| 100.0 * cpu_seconds / wall;
    let gateway_cpu_percent = gateway_cpu().zip(gateway_before).map(|(after, before)| percent(after - before));
    let clickhouse_cpu_percent = percent(bench.usages().clickhouse - before.clickhouse);

    let sent = producer.sent();
    producer.end()?;
    wait_for("all rows", CAUGHT_UP_WITHIN, || Ok(client.committed(&group, &topic)? >= sent))?;
    let gateway_peak_bytes = reader.peak_resident_bytes();
    reader.stop()?;
    let rows = sent * format.rows_per_message();
    target.check(sql, rows, bench.views_of(rows))?;
    let steady = Steady {
        parts_per_second: parts(bench, &target, window)? as f64 / window.seconds(),
        gateway_cpu_percent,
        clickhouse_cpu_percent,
        gateway_peak_bytes,
        asked,
        lateness: lateness(bench, &target, window)?,
    };
    target.drop(sql)?;
    bench.delete_topic(&topic)?;
    Ok(steady)
}

fn messages_per_second(load: Load, format: Format) -> f64 {
    load.rows_per_second / format.rows_per_message() as f64
}

fn wait_for(
    what: &str,
    patience: Duration,
    mut there: impl FnMut() -> Result<bool, BenchError>,
) -> Result<(), BenchError> {
    let until = Instant::now() + patience;
    while !there()? {
        if Instant::now() > until {
            return Err(BenchError::Unsound(format!("{what} were not there within {patience:?}")));
        }
        std::thread::sleep(POLL);
    }
    Ok(())
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
