//! What the runs of one-row inserts say: medians per way and number of connections, and the promises beside them.

use super::goals::Goals;
use super::inserts::Mode;
use super::megabytes;
use crate::load::{LoadOutcome, Stored};
use crate::report::{count, figure, median, paired_ratio, Table};
use crate::stack::Snapshot;

/// One run.
pub struct Measured {
    mode: Mode,
    connections: u32,
    requests_per_second: f64,
    p50_ms: f64,
    p95_ms: f64,
    p99_ms: f64,
    max_ms: f64,
    acknowledged: u64,
    refused: u64,
    first_error: Option<String>,
    server_cpu_seconds: f64,
    clickhouse_cpu_seconds: f64,
    load_cpu_seconds: f64,
    server_resident_bytes: u64,
    pub stored: Option<Stored>,
    pub parts: u64,
}

impl Measured {
    pub fn new(mode: Mode, connections: u32, load: LoadOutcome, before: Snapshot, after: Snapshot) -> Self {
        Measured {
            mode,
            connections,
            requests_per_second: load.requests_per_second(),
            p50_ms: load.latency.quantile_ms(0.5),
            p95_ms: load.latency.quantile_ms(0.95),
            p99_ms: load.latency.quantile_ms(0.99),
            max_ms: load.latency.max_ms(),
            acknowledged: load.acknowledged(),
            refused: load.unacknowledged(),
            server_cpu_seconds: after.gateway_cpu_since(&before),
            clickhouse_cpu_seconds: after.clickhouse_cpu_since(&before),
            load_cpu_seconds: load.cpu_seconds,
            server_resident_bytes: after.gateway.resident_bytes,
            first_error: load.first_error,
            stored: None,
            parts: 0,
        }
    }

    pub fn requests_per_second(&self) -> f64 {
        self.requests_per_second
    }

    pub fn p50_ms(&self) -> f64 {
        self.p50_ms
    }

    pub fn p99_ms(&self) -> f64 {
        self.p99_ms
    }

    pub fn gateway_microseconds_per_insert(&self) -> f64 {
        self.microseconds_per_insert(self.server_cpu_seconds)
    }

    fn rows_per_part(&self) -> f64 {
        self.stored.map_or(0, |stored| stored.rows) as f64 / (self.parts as f64).max(1.0)
    }

    fn microseconds_per_insert(&self, cpu_seconds: f64) -> f64 {
        cpu_seconds * 1e6 / (self.acknowledged as f64).max(1.0)
    }
}

/// For those who watch.
pub fn one_line(one: &Measured) -> String {
    format!(
        "{} connections, {}: {} requests/s, p50 {} ms, p99 {} ms, {} parts, {} refused{}",
        one.connections,
        one.mode,
        figure(one.requests_per_second),
        figure(one.p50_ms),
        figure(one.p99_ms),
        one.parts,
        one.refused,
        one.first_error.as_ref().map(|text| format!(" (first: {text})")).unwrap_or_default(),
    )
}

pub fn body(measured: &[Measured]) -> String {
    let mut text = String::from(
        "Every id was looked up afterwards: none acknowledged was missing, none was there twice, every value was as sent.\n\n",
    );
    text.push_str(&speed_table(measured).to_markdown());
    text.push_str("\nWhat an insert cost, in microseconds of CPU. On a machine that others use as well, this says more than the speed:\n\n");
    text.push_str(&cost_table(measured).to_markdown());
    let goals = goals(measured).to_markdown();
    if !goals.is_empty() {
        text.push_str(&format!("\n{goals}"));
    }
    text
}

fn speed_table(measured: &[Measured]) -> Table {
    let mut table = Table::new([
        "connections",
        "way",
        "requests/s",
        "of the limit",
        "× direct",
        "p50 ms",
        "p95 ms",
        "p99 ms",
        "max ms",
        "parts",
        "rows/part",
        "refused",
    ]);
    for (connections, mode) in groups(measured) {
        let runs = Runs::of(measured, connections, mode);
        let ratio_to = |other: Mode| {
            let ratio = runs.ratio_to(&Runs::of(measured, connections, other), |one| one.requests_per_second);
            ratio.map_or("–".to_owned(), figure)
        };
        let of_inserts = |text: String| if runs.any(|one| one.stored.is_some()) { text } else { "–".to_owned() };
        table.row([
            connections.to_string(),
            way(mode).to_owned(),
            figure(runs.median(|one| one.requests_per_second)),
            ratio_to(Mode::Empty),
            of_inserts(ratio_to(Mode::Direct)),
            figure(runs.median(|one| one.p50_ms)),
            figure(runs.median(|one| one.p95_ms)),
            figure(runs.median(|one| one.p99_ms)),
            figure(runs.median(|one| one.max_ms)),
            of_inserts(count(runs.median(|one| one.parts as f64))),
            of_inserts(figure(runs.median(Measured::rows_per_part))),
            count(runs.median(|one| one.refused as f64)),
        ]);
        if mode == Mode::Direct {
            table.row(asynchronous_bound(connections));
        }
    }
    table
}

/// ClickHouse's own asynchronous inserts can't be measured here: the embedded engine has no queue for them.
fn asynchronous_bound(connections: u32) -> Vec<String> {
    let mut cells = vec!["–".to_owned(); 12];
    cells[0] = connections.to_string();
    cells[1] = "(bound of ClickHouse's own async_insert)".to_owned();
    cells[2] = figure(f64::from(connections) * ASYNCHRONOUS_FLUSHES_PER_SECOND);
    cells
}

/// Under load its flush comes after async_insert_busy_timeout_max_ms, 200 ms, and a waiting connection has one insert
/// in it.
const ASYNCHRONOUS_FLUSHES_PER_SECOND: f64 = 5.0;

fn cost_table(measured: &[Measured]) -> Table {
    let mut table = Table::new([
        "connections",
        "way",
        "gateway or handler",
        "ClickHouse",
        "load generator",
        "together",
        "gateway's memory, MB",
    ]);
    for (connections, mode) in groups(measured) {
        let runs = Runs::of(measured, connections, mode);
        let cost = |of: fn(&Measured) -> f64| figure(runs.median(|one| one.microseconds_per_insert(of(one))));
        let unless = |idle: bool, text: String| if idle { "–".to_owned() } else { text };
        let is_limit = matches!(mode, Mode::Empty | Mode::Axum | Mode::SyncEach);
        let is_direct = mode == Mode::Direct;
        table.row([
            connections.to_string(),
            way(mode).to_owned(),
            unless(is_direct, cost(|one| one.server_cpu_seconds)),
            unless(is_limit, cost(|one| one.clickhouse_cpu_seconds)),
            cost(|one| one.load_cpu_seconds),
            cost(|one| one.server_cpu_seconds + one.clickhouse_cpu_seconds + one.load_cpu_seconds),
            unless(is_direct, figure(runs.median(|one| megabytes(one.server_resident_bytes)))),
        ]);
    }
    table
}

fn goals(measured: &[Measured]) -> Goals {
    let mut goals = Goals::new();
    let runs = |connections, mode| Runs::of(measured, connections, mode);
    let speed = |connections, mode: Mode, to: Mode| {
        runs(connections, mode).ratio_to(&runs(connections, to), |one| one.requests_per_second)
    };
    if let Some(ratio) = speed(200, Mode::Memory, Mode::Empty) {
        goals.at_least("memory, 200 connections, requests/s to the limit's", 0.7, ratio);
    }
    if let Some(ratio) = speed(200, Mode::Disk, Mode::Axum) {
        goals.at_least("disk, 200 connections, requests/s to the empty handler's on axum", 0.75, ratio);
    }
    if let Some(ratio) = runs(200, Mode::Memory).ratio_to(&runs(200, Mode::Empty), |one| one.p99_ms) {
        goals.at_most("memory, 200 connections, p99 to the limit's", 3.0, ratio);
    }
    if let Some(ratio) = speed(200, Mode::Stored, Mode::Direct) {
        goals.at_least("stored, 200 connections, requests/s to direct", 4.0, ratio);
        let rows = runs(200, Mode::Stored).median(Measured::rows_per_part);
        goals.at_least("stored, 200 connections, rows per part", 100.0, rows);
    }
    if let Some(ratio) = speed(1000, Mode::Stored, Mode::Direct) {
        goals.at_least("stored, 1,000 connections, requests/s to direct", 12.0, ratio);
    }
    for (connections, _) in groups(measured).into_iter().filter(|(_, mode)| *mode == Mode::Stored) {
        let bound = f64::from(connections) * ASYNCHRONOUS_FLUSHES_PER_SECOND;
        let what = format!("stored, {connections} connections, requests/s to the bound of ClickHouse's async_insert");
        goals.at_least(&what, 1.0, runs(connections, Mode::Stored).median(|one| one.requests_per_second) / bound);
    }
    goals
}

fn way(mode: Mode) -> &'static str {
    match mode {
        Mode::Empty => "limit: empty handler",
        Mode::Axum => "empty handler on axum",
        Mode::Direct => "direct: ClickHouse, synchronous",
        Mode::SyncEach => "handler that syncs each row",
        Mode::Stored => "gateway, ack stored",
        Mode::Disk => "gateway, ack disk",
        Mode::Memory => "gateway, ack memory",
    }
}

fn groups(measured: &[Measured]) -> Vec<(u32, Mode)> {
    let mut groups: Vec<(u32, Mode)> = measured.iter().map(|one| (one.connections, one.mode)).collect();
    groups.sort_unstable();
    groups.dedup();
    groups
}

/// The rounds of one way with one number of connections.
struct Runs<'a> {
    runs: Vec<&'a Measured>,
}

impl<'a> Runs<'a> {
    fn of(measured: &'a [Measured], connections: u32, mode: Mode) -> Self {
        Runs { runs: measured.iter().filter(|one| one.connections == connections && one.mode == mode).collect() }
    }

    fn median(&self, figure: impl Fn(&Measured) -> f64) -> f64 {
        median(self.runs.iter().map(|one| figure(one)))
    }

    /// Round by round. `None` unless both were run.
    fn ratio_to(&self, other: &Runs<'_>, figure: impl Fn(&Measured) -> f64) -> Option<f64> {
        let figures = |runs: &Runs<'_>| runs.runs.iter().map(|one| figure(one)).collect::<Vec<_>>();
        Some(paired_ratio(&figures(self), &figures(other))).filter(|ratio| *ratio > 0.0)
    }

    fn any(&self, condition: impl Fn(&Measured) -> bool) -> bool {
        self.runs.iter().any(|one| condition(one))
    }
}
