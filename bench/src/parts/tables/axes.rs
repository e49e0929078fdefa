//! What else may be many where there is one table: users, settings, connections, bytes of a row, columns. Each beside
//! the plain case of the same run.

use std::time::Duration;

use super::ground::{config_of_users, further_columns, Ground, Kind, LONG_TABLE, WIDE_TABLE};
use super::making::create_tables;
use super::report::Measured;
use super::run::{Bench, Times};
use super::TablesOptions;
use crate::error::BenchError;
use crate::load::{create_table, Exchange};
use crate::parts::idle::IdleOptions;
use crate::parts::inserts::Mode;
use crate::process::raise_open_files;
use crate::report::count;
use crate::stack::{DataDir, Stack, StackOptions};

const USERS: u32 = 1000;
const SHAPES: u32 = 1000;
/// Each is compared with the plain case of the same length only.
const TIMES: Times = Times { warmup: Duration::from_secs(1), window: Duration::from_secs(4) };
const MODES: [Mode; 2] = [Mode::Stored, Mode::Disk];
/// All connections may come, and those that do nothing are not closed before the end.
const CONNECTIONS: [&str; 2] = ["WINDROW_HTTP_MAX_CONNECTIONS=100000", "WINDROW_HTTP_KEEP_ALIVE_TIMEOUT_MS=600000"];
/// Beside the connections: those of the run itself, logs, sockets of a server.
const FURTHER_FILES: u64 = 500;

#[derive(Default)]
pub struct Axes {
    pub cases: Vec<Case>,
}

pub struct Case {
    pub what: String,
    pub outcome: Outcome,
}

pub enum Outcome {
    Measured(Vec<Measured>),
    /// Why not.
    Skipped(String),
}

/// On a gateway of its own: only there are so many users.
pub fn measure(tables: &TablesOptions, options: &StackOptions) -> Result<Axes, BenchError> {
    if options.clickhouse.is_some() {
        return Err(BenchError::Setup(
            "--axes needs a ClickHouse of its own, with its users: leave out --clickhouse".into(),
        ));
    }
    let folder = DataDir::create()?;
    let config = folder.write("windrow.toml", &config_of_users(USERS))?;
    let mut environment = vec![format!("WINDROW_CONFIG={}", config.display())];
    environment.extend(CONNECTIONS.map(str::to_owned));
    let stack = Stack::open(options, &environment)?;
    let axes = measure_all(tables, &stack)?;
    stack.close()?;
    Ok(axes)
}

fn measure_all(tables: &TablesOptions, stack: &Stack) -> Result<Axes, BenchError> {
    create_tables(&stack.clickhouse, 1)?;
    for (table, kind) in [(LONG_TABLE, Kind::LongRows), (WIDE_TABLE, Kind::ManyColumns)] {
        let create = create_table(table, "").replacen('(', &format!("({}, ", further_columns(kind)), 1);
        stack.clickhouse.execute(&create)?;
    }
    let bench = Bench::new(stack, tables.connections);
    let mut axes = Axes::default();
    let cases = [
        ("one table", Ground::tables(1, false)),
        ("1,000 users", Ground::of_kind(Kind::Users, USERS)),
        ("1,000 values of a setting", Ground::of_kind(Kind::Shapes, SHAPES)),
        ("rows of 10 kB", Ground::of_kind(Kind::LongRows, 1)),
        ("500 columns", Ground::of_kind(Kind::ManyColumns, 1)),
    ];
    for (what, ground) in cases {
        axes.add(what.to_owned(), Outcome::Measured(measure_case(&bench, what, &ground)?));
    }
    let what = format!("{} connections more, idle", count(f64::from(tables.idle_connections)));
    axes.add(what.clone(), beside_idle_connections(tables, &bench, &what)?);
    Ok(axes)
}

fn measure_case(bench: &Bench<'_>, what: &str, ground: &Ground) -> Result<Vec<Measured>, BenchError> {
    bench.touch(ground)?;
    let mut measured = Vec::new();
    for mode in MODES {
        let one = Measured::new(ground, mode, bench.run(ground, mode, TIMES)?);
        eprintln!("{}", one.one_line(what));
        measured.push(one);
    }
    Ok(measured)
}

fn beside_idle_connections(tables: &TablesOptions, bench: &Bench<'_>, what: &str) -> Result<Outcome, BenchError> {
    let wanted = u64::from(tables.idle_connections) + u64::from(tables.connections) + FURTHER_FILES;
    let limit = raise_open_files();
    if limit < wanted {
        return Ok(Outcome::Skipped(format!("only {limit} files may be open, {wanted} are needed")));
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(BenchError::io("starting the idle connections"))?;
    let idle = IdleOptions { connections: tables.idle_connections as usize };
    let open =
        runtime.block_on(idle.open(&Exchange::new(bench.stack.require_gateway()?.endpoint(), "query=SELECT%201")))?;
    let measured = measure_case(bench, what, &Ground::tables(1, false))?;
    drop(open);
    Ok(Outcome::Measured(measured))
}

impl Axes {
    fn add(&mut self, what: String, outcome: Outcome) {
        if let Outcome::Skipped(why) = &outcome {
            eprintln!("{what}: left out, {why}");
        }
        self.cases.push(Case { what, outcome });
    }

    /// Of the first case, which is the plain one.
    pub fn plain(&self, mode: Mode) -> Option<&Measured> {
        match &self.cases.first()?.outcome {
            Outcome::Measured(runs) => runs.iter().find(|one| one.mode == mode),
            Outcome::Skipped(_) => None,
        }
    }
}
