//! One-row inserts from many connections: straight into ClickHouse, through the gateway at each ack level, and into
//! handlers that do nothing, which is the limit that HTTP on this machine sets.

use std::time::Duration;

use super::inserts_table::{self, Measured};
use super::{fresh_table, parts_created, Part};
use crate::error::BenchError;
use crate::load::{
    self, check_stored, create_duckdb_table, create_table, insert_query, LoadOutcome, Plan, RowFormat, RowsOfRun,
    Stored,
};
use crate::process::usage;
use crate::report::Section;
use crate::stack::{Limit, LimitServer, Snapshot, Stack, StackOptions};

const TABLE: &str = "bench.inserts";
const GRACE: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, clap::Args)]
pub struct InsertsOptions {
    /// How long each run is measured.
    #[arg(long, default_value_t = 2.0)]
    pub seconds: f64,
    /// End each run already when every connection has inserted so many rows.
    #[arg(long)]
    pub count: Option<u64>,
    #[arg(long, default_value_t = 0.5)]
    pub warmup_seconds: f64,
    #[arg(long, value_delimiter = ',', default_values_t = [16, 200, 1000])]
    pub connections: Vec<u32>,
    /// How often each mode is run; the medians are reported.
    #[arg(long, default_value_t = 5)]
    pub rounds: u32,
    #[arg(long, value_delimiter = ',', value_enum, default_values_t = Mode::ALL)]
    pub modes: Vec<Mode>,
    /// Of the load generator.
    #[arg(long, default_value_t = 1)]
    pub threads: u32,
    /// Added to the URL of inserts through the gateway: name=value.
    #[arg(long = "setting")]
    pub settings: Vec<String>,
    #[arg(long, value_enum, default_value_t = RowFormat::JsonEachRow)]
    pub format: RowFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Mode {
    /// An empty handler on the gateway's HTTP layer.
    Empty,
    /// An empty handler on axum.
    Axum,
    /// Straight into ClickHouse, which inserts synchronously.
    Direct,
    /// A handler that appends each row to a file and syncs it.
    SyncEach,
    /// Through the gateway; answered when the row is in ClickHouse.
    Stored,
    /// Through the gateway; answered when the row is in the journal and synced.
    Disk,
    /// Through the gateway; answered when the row is parsed and in memory.
    Memory,
}

impl std::fmt::Display for Mode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Mode::Empty => "empty",
            Mode::Axum => "axum",
            Mode::Direct => "direct",
            Mode::SyncEach => "sync-each",
            Mode::Stored => "stored",
            Mode::Disk => "disk",
            Mode::Memory => "memory",
        })
    }
}

impl Mode {
    const ALL: [Mode; 6] = [Mode::Empty, Mode::Axum, Mode::Direct, Mode::Stored, Mode::Disk, Mode::Memory];

    pub fn needs_gateway(self) -> bool {
        matches!(self, Mode::Stored | Mode::Disk | Mode::Memory)
    }

    pub fn settings(self) -> &'static [&'static str] {
        match self {
            Mode::Empty | Mode::Axum | Mode::Direct | Mode::SyncEach => &["async_insert=0"],
            Mode::Stored => &["async_insert=1", "wait_for_async_insert=1"],
            Mode::Disk => &["async_insert=1", "wait_for_async_insert=0", "windrow_ack=disk"],
            Mode::Memory => &["async_insert=1", "wait_for_async_insert=0", "windrow_ack=memory"],
        }
    }
}

impl Part for InsertsOptions {
    fn measure(&self, stack: &Stack, options: &StackOptions) -> Result<Section, BenchError> {
        let modes: Vec<Mode> =
            self.modes.iter().copied().filter(|mode| !mode.needs_gateway() || stack.gateway.is_some()).collect();
        let mut measured = Vec::new();
        for &connections in &self.connections {
            for round in 0..self.rounds {
                for &mode in &modes {
                    let one = self.run(stack, options, mode, connections)?;
                    eprintln!("round {}, {}", round + 1, inserts_table::one_line(&one));
                    measured.push(one);
                }
            }
        }
        Ok(Section {
            name: "inserts",
            title: "Many small inserts",
            command: self.command(),
            body: inserts_table::body(&measured),
            charts: Vec::new(),
        })
    }
}

impl InsertsOptions {
    fn command(&self) -> String {
        let join = |list: Vec<String>| list.join(",");
        format!(
            "bench/run inserts --seconds {} --rounds {} --connections {} --modes {}{}{}{}",
            self.seconds,
            self.rounds,
            join(self.connections.iter().map(u32::to_string).collect()),
            join(self.modes.iter().map(Mode::to_string).collect()),
            self.count.map(|count| format!(" --count {count}")).unwrap_or_default(),
            self.settings.iter().map(|setting| format!(" --setting {setting}")).collect::<String>(),
            if self.format == RowFormat::JsonEachRow { String::new() } else { format!(" --format {}", self.format) },
        )
    }

    pub fn run(
        &self,
        stack: &Stack,
        options: &StackOptions,
        mode: Mode,
        connections: u32,
    ) -> Result<Measured, BenchError> {
        match mode {
            Mode::Empty => self.run_limit(LimitServer::start(options, Limit::Windrow)?, mode, connections),
            Mode::SyncEach => self.run_limit(LimitServer::start(options, Limit::SyncEach)?, mode, connections),
            Mode::Axum => self.run_limit(LimitServer::start(options, Limit::Axum)?, mode, connections),
            _ => self.run_inserts(stack, mode, connections),
        }
    }

    fn run_limit(&self, server: LimitServer, mode: Mode, connections: u32) -> Result<Measured, BenchError> {
        let mut plan = self.plan(mode, connections);
        plan.target = server.endpoint.clone();
        let load = load::run(&plan)?;
        refuse_failures(mode, &load)?;
        let after = Snapshot { gateway: usage(server.pid()), ..Snapshot::default() };
        Ok(Measured::new(mode, connections, load, Snapshot::default(), after))
    }

    fn run_inserts(&self, stack: &Stack, mode: Mode, connections: u32) -> Result<Measured, BenchError> {
        fresh_table(&stack.clickhouse, TABLE, &create_table(TABLE, ""))?;
        let server = if mode.needs_gateway() { stack.require_gateway()? } else { &stack.clickhouse };
        let mut plan = self.plan(mode, connections);
        plan.target = server.endpoint().clone();
        let before = stack.snapshot();
        let load = load::run(&plan)?;
        if mode.needs_gateway() {
            server.execute("SYSTEM FLUSH ASYNC INSERT QUEUE")?;
        }
        let after = stack.snapshot();
        let stored = check_stored(&stack.clickhouse, TABLE, &load)?;
        let parts = parts_created(&stack.clickhouse, TABLE)?;
        stack.clickhouse.execute(&format!("DROP TABLE {TABLE} SYNC"))?;
        refuse_losses(mode, &load, &stored)?;
        let mut measured = Measured::new(mode, connections, load, before, after);
        measured.stored = Some(stored);
        measured.parts = parts;
        Ok(measured)
    }

    /// The same with a DuckDB behind the gateway.
    pub fn run_into_duckdb(&self, stack: &Stack, mode: Mode, connections: u32) -> Result<Measured, BenchError> {
        let server = stack.require_gateway()?;
        server.execute(&format!("DROP TABLE IF EXISTS {TABLE}"))?;
        server.execute(&create_duckdb_table(TABLE))?;
        let mut plan = self.plan(mode, connections);
        plan.target = server.endpoint().clone();
        let before = stack.snapshot();
        let load = load::run(&plan)?;
        server.execute("SYSTEM FLUSH ASYNC INSERT QUEUE")?;
        let after = stack.snapshot();
        let stored = check_stored(server, TABLE, &load)?;
        refuse_losses(mode, &load, &stored)?;
        let mut measured = Measured::new(mode, connections, load, before, after);
        measured.stored = Some(stored);
        Ok(measured)
    }

    fn plan(&self, mode: Mode, connections: u32) -> Plan {
        let mut settings = mode.settings().to_vec();
        if mode.needs_gateway() {
            settings.extend(self.settings.iter().map(String::as_str));
        }
        Plan {
            target: crate::wire::Endpoint::without_user(""),
            query: insert_query(TABLE, self.format, &settings),
            targets: None,
            format: self.format,
            rows: RowsOfRun::default(),
            connections,
            threads: self.threads,
            warmup: Duration::from_secs_f64(self.warmup_seconds),
            window: Duration::from_secs_f64(self.window_seconds(mode, connections)),
            inserts_per_connection: self.count,
            interval: None,
            grace: GRACE,
        }
    }
}

/// ClickHouse takes 100 to 300 synchronous inserts a second here. So that every connection has its turn within the
/// window, the direct way is measured for longer the more connections there are.
const DIRECT_SECONDS_PER_CONNECTION: f64 = 0.008;

impl InsertsOptions {
    fn window_seconds(&self, mode: Mode, connections: u32) -> f64 {
        match mode {
            Mode::Direct => self.seconds.max(f64::from(connections) * DIRECT_SECONDS_PER_CONNECTION),
            _ => self.seconds,
        }
    }
}

pub fn refuse_failures(mode: Mode, load: &LoadOutcome) -> Result<(), BenchError> {
    match &load.first_error {
        Some(text) => {
            Err(BenchError::Unsound(format!("{mode}: {} inserts failed, first: {text}", load.unacknowledged())))
        }
        None => Ok(()),
    }
}

/// A figure for rows that did not arrive is no figure. Refusals are shown instead: they are an answer.
pub fn refuse_losses(mode: Mode, load: &LoadOutcome, stored: &Stored) -> Result<(), BenchError> {
    if stored.is_exact() && load.acknowledged() > 0 {
        return Ok(());
    }
    let error = load.first_error.as_deref().unwrap_or("none");
    Err(BenchError::Unsound(format!(
        "{mode}: of {} acknowledged rows {} are missing, {} doubled, {} foreign; first error: {error}",
        load.acknowledged(),
        stored.lost,
        stored.doubled,
        stored.foreign
    )))
}
