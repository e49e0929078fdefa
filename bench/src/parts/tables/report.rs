//! The page: a row per number of tables and way, what tables at rest cost, the other axes, and what the project
//! promises.

use super::ground::Ground;
use super::run::Run;
use super::window::Window;
use super::{axes_table, goals, idle, Results, TablesOptions};
use crate::parts::inserts::Mode;
use crate::parts::megabytes;
use crate::report::{count, figure, median, paired_ratio, Table};

const METHOD: &str = "\
Connections in a closed loop, each insert one row of JSONEachRow into one of the tables: into all of them equally often, or by Zipf \
(table n in proportion to 1/n, each connection with random numbers of its own). Every table had been inserted into once before. At ack level `disk`, CPU is counted until \
what was acknowledged is stored. Parts, questions and memory are those of the window alone; questions are what the gateway asks ClickHouse besides storing: SELECTs, and INSERTs \
without rows. Every row was looked up in all tables at once: none acknowledged was missing, none was there twice, in two tables, or in another's table.
";
const IDLE_METHOD: &str = "\
A fresh gateway: one insert at ack level `disk` into each table, all stored, and then a rest.
";
const NONE: &str = "–";

/// One run.
pub struct Measured {
    pub tables: u32,
    pub zipf: bool,
    pub mode: Mode,
    pub per_second: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
    pub clickhouse_us: f64,
    pub gateway_us: f64,
    pub window: Window,
    pub failed: u64,
    first_error: Option<String>,
    flush_seconds: f64,
}

impl Measured {
    pub fn new(ground: &Ground, mode: Mode, run: Run) -> Self {
        let load = run.load;
        let microseconds = |cpu_seconds: f64| cpu_seconds * 1e6 / (load.acknowledged() as f64).max(1.0);
        Measured {
            tables: ground.targets,
            zipf: ground.zipf,
            mode,
            per_second: load.requests_per_second(),
            p50_ms: load.latency.quantile_ms(0.5),
            p99_ms: load.latency.quantile_ms(0.99),
            clickhouse_us: microseconds(run.clickhouse_cpu_seconds),
            gateway_us: microseconds(run.gateway_cpu_seconds),
            window: run.window,
            failed: load.unacknowledged(),
            first_error: load.first_error,
            flush_seconds: run.flush_seconds,
        }
    }

    pub fn questions(&self) -> f64 {
        self.window.selects + self.window.empty_inserts
    }

    /// For those who watch.
    pub fn one_line(&self, what: &str) -> String {
        format!(
            "{what}, {}: {} inserts/s, p50 {} ms, p99 {} ms, {} parts/s, {} questions/s, gateway {} MB, flushed in {} s, {} failed{}",
            self.mode,
            figure(self.per_second),
            figure(self.p50_ms),
            figure(self.p99_ms),
            figure(self.window.parts),
            figure(self.questions()),
            figure(megabytes(self.window.gateway_bytes)),
            figure(self.flush_seconds),
            self.failed,
            self.first_error.as_ref().map(|text| format!(" (first: {text})")).unwrap_or_default(),
        )
    }
}

/// The rounds of one way with one number of tables.
pub struct Runs<'a> {
    runs: Vec<&'a Measured>,
}

impl<'a> Runs<'a> {
    pub fn of(measured: &'a [Measured], tables: u32, mode: Mode) -> Self {
        Runs { runs: measured.iter().filter(|one| (one.tables, one.mode) == (tables, mode)).collect() }
    }

    pub fn median(&self, of: impl Fn(&Measured) -> f64) -> Option<f64> {
        (!self.runs.is_empty()).then(|| median(self.runs.iter().map(|one| of(one))))
    }

    pub fn most(&self, of: impl Fn(&Measured) -> f64) -> Option<f64> {
        self.runs.iter().map(|one| of(one)).reduce(f64::max)
    }

    /// Round by round. `None` unless both were run.
    pub fn ratio_to(&self, other: &Runs<'_>, of: impl Fn(&Measured) -> f64) -> Option<f64> {
        let figures = |runs: &Runs<'_>| runs.runs.iter().map(|one| of(one)).collect::<Vec<_>>();
        Some(paired_ratio(&figures(self), &figures(other))).filter(|ratio| *ratio > 0.0)
    }
}

pub fn body(options: &TablesOptions, results: &Results) -> String {
    let mut text = format!("{METHOD}\n{}\n", points(options, &results.runs).to_markdown());
    if !results.idle.is_empty() {
        text.push_str(&format!("{IDLE_METHOD}\n{}\n", idle::table(&results.idle).to_markdown()));
    }
    if let Some(axes) = &results.axes {
        text.push_str(&axes_table::text(axes));
    }
    text.push_str(&goals::goals(results).to_markdown());
    text
}

fn points(options: &TablesOptions, measured: &[Measured]) -> Table {
    let mut table = Table::new([
        "tables",
        "spread",
        "way",
        "inserts/s",
        "× one table",
        "× direct",
        "p50 ms",
        "p99 ms",
        "ClickHouse's CPU, us per insert",
        "gateway's CPU, us per insert",
        "parts/s",
        "SELECTs/s",
        "empty INSERTs/s",
        "gateway's memory, MB",
        "failed",
    ]);
    for (&tables, &mode) in
        options.tables.iter().flat_map(|tables| options.modes.iter().map(move |mode| (tables, mode)))
    {
        let runs = Runs::of(measured, tables, mode);
        let Some(zipf) = runs.runs.first().map(|one| one.zipf) else { continue };
        let ratio_to = |tables, mode| or_none(runs.ratio_to(&Runs::of(measured, tables, mode), |one| one.per_second));
        let middle = |of: fn(&Measured) -> f64| or_none(runs.median(of));
        let of_gateway = |of: fn(&Measured) -> f64| if mode.needs_gateway() { middle(of) } else { NONE.to_owned() };
        table.row([
            count(f64::from(tables)),
            if zipf { "Zipf" } else { "even" }.to_owned(),
            mode.to_string(),
            middle(|one| one.per_second),
            ratio_to(1, mode),
            ratio_to(tables, Mode::Direct),
            middle(|one| one.p50_ms),
            middle(|one| one.p99_ms),
            middle(|one| one.clickhouse_us),
            of_gateway(|one| one.gateway_us),
            middle(|one| one.window.parts),
            of_gateway(|one| one.window.selects),
            of_gateway(|one| one.window.empty_inserts),
            of_gateway(|one| megabytes(one.window.gateway_bytes)),
            or_none(runs.median(|one| one.failed as f64).map(f64::round)),
        ]);
    }
    table
}

pub fn or_none(value: Option<f64>) -> String {
    value.map_or_else(|| NONE.to_owned(), figure)
}
