//! The experiments of "Asynchronous Data Inserts in ClickHouse" (Schreiber and Bonuccelli, 2023) on this product, with
//! time compressed. Every duration of theirs is multiplied by one factor: the probes' interval, the flush time, and how
//! long ClickHouse keeps merged parts and when it looks for them. So the parts' curves keep their shape, while the load
//! grows by the same factor. Synchronous inserts go straight into ClickHouse, the others through the gateway.

use std::time::Duration;

use super::article_charts;
use super::goals::Goals;
use super::sampler::{sample_while, Sample};
use super::{fresh_table, parts_created, Part};
use crate::error::BenchError;
use crate::load::{self, check_stored, create_table, insert_query, LoadOutcome, Plan, RowFormat, RowsOfRun};
use crate::report::{count, figure, Section, Table};
use crate::sql::Sql;
use crate::stack::{Stack, StackOptions};

const TABLE: &str = "bench.upclick";
/// The article's own figures.
const PROBE_INTERVAL_SECONDS: f64 = 10.0;
const OLD_PARTS_LIFETIME_SECONDS: f64 = 480.0;
const CLEANUP_DELAY_SECONDS: f64 = 30.0;
/// ClickHouse's default in 2023; today's is ten times as high.
const TOO_MANY_PARTS: u32 = 300;

#[derive(Debug, Clone, clap::Args)]
pub struct ArticleOptions {
    /// What the article's durations are multiplied by.
    #[arg(long, default_value_t = 0.1)]
    pub scale: f64,
    /// How long each of the experiments runs.
    #[arg(long, default_value_t = 40.0)]
    pub seconds: f64,
    /// Of the gateway. The article's ClickHouse had only `fixed`.
    #[arg(long, default_value = "fixed", value_parser = ["fixed", "adaptive", "balanced"])]
    pub policy: String,
    /// Between two looks at system.parts and /proc.
    #[arg(long, default_value_t = 250)]
    pub sample_ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Synchronous,
    Waiting,
    NotWaiting,
}

#[derive(Debug, Clone, Copy)]
pub struct Experiment {
    pub kind: Kind,
    pub writers: u32,
    /// The article's, uncompressed; 0 for synchronous inserts.
    pub flush_ms: u64,
    /// Not the article's: everyone inserts again as soon as it is answered, with settings as they come.
    pub at_full_speed: bool,
}

const fn paced(kind: Kind, writers: u32, flush_ms: u64) -> Experiment {
    Experiment { kind, writers, flush_ms, at_full_speed: false }
}

const fn at_full_speed(kind: Kind) -> Experiment {
    Experiment { kind, writers: 200, flush_ms: 0, at_full_speed: true }
}

const EXPERIMENTS: [Experiment; 7] = [
    paced(Kind::Synchronous, 200, 0),
    paced(Kind::Waiting, 200, 1_000),
    paced(Kind::Waiting, 500, 1_000),
    paced(Kind::NotWaiting, 500, 5_000),
    paced(Kind::NotWaiting, 500, 30_000),
    at_full_speed(Kind::Synchronous),
    at_full_speed(Kind::Waiting),
];

impl Experiment {
    pub fn name(&self) -> String {
        match self.kind {
            Kind::Synchronous if self.at_full_speed => format!("{} writers at full speed, straight", self.writers),
            _ if self.at_full_speed => format!("{} writers at full speed, through Windrow", self.writers),
            Kind::Synchronous => format!("{} writers, synchronous", self.writers),
            Kind::Waiting => format!("{} writers, waiting, flush after {} s", self.writers, self.flush_ms / 1000),
            Kind::NotWaiting => {
                format!("{} writers, not waiting, flush after {} s", self.writers, self.flush_ms / 1000)
            }
        }
    }

    /// Beside a line of a chart.
    fn short_name(&self) -> String {
        let (writers, flush) = (self.writers, self.flush_ms / 1000);
        match self.kind {
            Kind::Synchronous => format!("{writers} writers, straight"),
            Kind::Waiting => format!("{writers} through Windrow, waiting"),
            Kind::NotWaiting => format!("{writers} …, not waiting, {flush} s"),
        }
    }
}

/// What an experiment showed.
pub struct Observed {
    pub experiment: Experiment,
    pub samples: Vec<Sample>,
    load: LoadOutcome,
    rows: u64,
    parts: u64,
}

impl Observed {
    /// Beside a line of a chart.
    pub fn short_name(&self) -> String {
        let rate = figure(self.rows as f64 / self.load.window_seconds);
        match (self.experiment.at_full_speed, self.experiment.kind) {
            (true, Kind::Synchronous) => format!("straight: {rate} inserts/s"),
            (true, _) => format!("through Windrow: {rate} inserts/s"),
            _ => self.experiment.short_name(),
        }
    }
}

impl Part for ArticleOptions {
    fn environment(&self) -> Vec<String> {
        vec![format!("WINDROW_GATHER_FLUSH_POLICY={}", self.policy)]
    }

    fn measure(&self, stack: &Stack, _: &StackOptions) -> Result<Section, BenchError> {
        let mut observed = Vec::new();
        for experiment in EXPERIMENTS {
            let server = match experiment.kind {
                Kind::Synchronous => &stack.clickhouse,
                Kind::Waiting | Kind::NotWaiting => stack.require_gateway()?,
            };
            eprintln!("{} for {} s", experiment.name(), self.seconds);
            observed.push(self.observe(stack, server, experiment)?);
        }
        Ok(Section {
            name: "article",
            title: "The article's experiments",
            command: format!(
                "bench/run article --scale {} --seconds {} --policy {}",
                self.scale, self.seconds, self.policy
            ),
            body: self.report(&observed),
            charts: article_charts::charts(&observed, self.scale),
        })
    }
}

impl ArticleOptions {
    fn observe(&self, stack: &Stack, server: &Sql, experiment: Experiment) -> Result<Observed, BenchError> {
        let settings = if experiment.at_full_speed { String::new() } else { self.table_settings() };
        fresh_table(&stack.clickhouse, TABLE, &create_table(TABLE, &settings))?;
        let plan = self.plan(server, experiment);
        let (load, samples) = sample_while(stack, TABLE, Duration::from_millis(self.sample_ms), || load::run(&plan))?;
        let load = load?;
        if experiment.kind != Kind::Synchronous {
            server.execute("SYSTEM FLUSH ASYNC INSERT QUEUE")?;
        }
        let stored = check_stored(&stack.clickhouse, TABLE, &load)?;
        let parts = parts_created(&stack.clickhouse, TABLE)?;
        stack.clickhouse.execute(&format!("DROP TABLE {TABLE} SYNC"))?;
        if !stored.is_exact() {
            let name = experiment.name();
            return Err(BenchError::Unsound(format!(
                "{name}: of {} acknowledged rows: {stored:?}",
                load.acknowledged()
            )));
        }
        Ok(Observed { experiment, samples, load, rows: stored.rows, parts })
    }

    fn table_settings(&self) -> String {
        let scaled = |seconds: f64| (seconds * self.scale).round().max(1.0);
        format!(
            "old_parts_lifetime = {}, cleanup_delay_period = {}, max_cleanup_delay_period = {}, \
             cleanup_delay_period_random_add = 0, parts_to_throw_insert = {TOO_MANY_PARTS}, \
             parts_to_delay_insert = {TOO_MANY_PARTS}",
            scaled(OLD_PARTS_LIFETIME_SECONDS),
            scaled(CLEANUP_DELAY_SECONDS),
            scaled(CLEANUP_DELAY_SECONDS),
        )
    }

    fn plan(&self, server: &Sql, experiment: Experiment) -> Plan {
        let flush_ms = (experiment.flush_ms as f64 * self.scale).round().max(1.0);
        let settings = match experiment.kind {
            Kind::Synchronous => vec!["async_insert=0".to_owned()],
            _ if experiment.at_full_speed => Vec::new(),
            // The article's settings: 1 MB or 450 inserts for those who wait, no such limits for those who don't.
            Kind::Waiting => settings(1, flush_ms, 1_000_000, 450),
            Kind::NotWaiting => settings(0, flush_ms, 100_000_000, 450_000),
        };
        Plan {
            target: server.endpoint().clone(),
            query: insert_query(
                TABLE,
                RowFormat::JsonEachRow,
                &settings.iter().map(String::as_str).collect::<Vec<_>>(),
            ),
            targets: None,
            format: RowFormat::JsonEachRow,
            rows: RowsOfRun::default(),
            connections: experiment.writers,
            threads: 1,
            warmup: Duration::ZERO,
            window: Duration::from_secs_f64(self.seconds),
            inserts_per_connection: None,
            interval: (!experiment.at_full_speed).then(|| Duration::from_secs_f64(PROBE_INTERVAL_SECONDS * self.scale)),
            grace: Duration::from_secs(30),
        }
    }

    fn report(&self, observed: &[Observed]) -> String {
        let mut text = format!(
            "Durations are the article's times {}: a probe inserts every {} s, \"flush after 1 s\" is {} ms, merged parts are \
             kept for {} s. So ClickHouse gets {} times the article's inserts a second. Each experiment ran for {} s. The \
             flush policy is `{}`; the article's ClickHouse had only what is called `fixed` here. The two runs at full \
             speed are not the article's: each writer inserts its next row as soon as the one before is stored, with \
             ClickHouse's own limits of parts.\n\n",
            self.scale,
            figure(PROBE_INTERVAL_SECONDS * self.scale),
            1000.0 * self.scale,
            (OLD_PARTS_LIFETIME_SECONDS * self.scale).round(),
            figure(1.0 / self.scale),
            self.seconds,
            self.policy,
        );
        text.push_str(&table(observed).to_markdown());
        text.push('\n');
        text.push_str(&goals(observed).to_markdown());
        for figure in &article_charts::FIGURES {
            text.push_str(&format!("\n![{}](benchmarks/{})\n", figure.alternative, figure.file));
        }
        text
    }
}

fn settings(wait: u8, flush_ms: f64, max_data_size: u64, max_query_number: u64) -> Vec<String> {
    vec![
        "async_insert=1".to_owned(),
        format!("wait_for_async_insert={wait}"),
        format!("async_insert_busy_timeout_ms={flush_ms}"),
        format!("async_insert_max_data_size={max_data_size}"),
        format!("async_insert_max_query_number={max_query_number}"),
    ]
}

fn table(observed: &[Observed]) -> Table {
    let mut table = Table::new([
        "experiment",
        "rows",
        "refused",
        "late",
        "p50 ms",
        "p99 ms",
        "parts/s",
        "most active parts",
        "most parts at all",
        "ClickHouse CPU %",
        "gateway CPU %",
    ]);
    for one in observed {
        let most = |of: fn(&Sample) -> u64| one.samples.iter().map(of).max().unwrap_or(0) as f64;
        let mean = |of: fn(&Sample) -> f64| one.samples.iter().map(of).sum::<f64>() / one.samples.len().max(1) as f64;
        table.row([
            one.experiment.name(),
            count(one.rows as f64),
            one.load.unacknowledged().to_string(),
            one.load.missed_intervals.to_string(),
            figure(one.load.latency.quantile_ms(0.5)),
            figure(one.load.latency.quantile_ms(0.99)),
            figure(one.parts as f64 / one.load.window_seconds),
            count(most(|sample| sample.active_parts)),
            count(most(|sample| sample.all_parts)),
            figure(mean(|sample| sample.clickhouse_cpu_percent)),
            figure(mean(|sample| sample.gateway_cpu_percent)),
        ]);
    }
    table
}

/// The article's own statement about its asynchronous runs.
fn goals(observed: &[Observed]) -> Goals {
    let mut goals = Goals::new();
    for one in observed.iter().filter(|one| one.experiment.kind != Kind::Synchronous && !one.experiment.at_full_speed) {
        let most = one.samples.iter().map(|sample| sample.active_parts).max().unwrap_or(0);
        goals.at_most(&format!("active parts, {}", one.experiment.name()), 10.0, most as f64);
    }
    goals
}
