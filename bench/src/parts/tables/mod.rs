//! Small inserts spread over many tables: what is left of the speed of one table, what ClickHouse is asked besides, and
//! what memory the gateway takes.
//!
//! All tables are made before anything is measured and stay: runs into the same tables are told apart by the numbers of
//! their connections. Few tables are inserted into evenly, one number after the other. Very many are inserted into by
//! Zipf, as real ones are, and get a gateway and a ClickHouse of their own, so that the memory is theirs alone.

mod axes;
mod axes_table;
mod goals;
mod ground;
mod idle;
mod making;
mod report;
mod run;
mod window;

use std::time::Duration;

use super::inserts::Mode;
use super::Part;
use crate::error::BenchError;
use crate::report::Section;
use crate::stack::{Stack, StackOptions};
use ground::Ground;
use idle::Idle;
use report::Measured;
use run::{Bench, Times};

/// From so many tables on, inserts are spread by Zipf.
const ZIPF_FROM: u32 = 10_000;

#[derive(Debug, Clone, clap::Args)]
pub struct TablesOptions {
    /// How long each run is measured.
    #[arg(long, default_value_t = 6.0)]
    pub seconds: f64,
    #[arg(long, default_value_t = 2.0)]
    pub warmup_seconds: f64,
    /// How often each mode is run; the medians are reported.
    #[arg(long, default_value_t = 1)]
    pub rounds: u32,
    /// Numbers of tables. From 10,000 on, inserts are spread by Zipf.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 10, 100, 1000, 10_000])]
    pub tables: Vec<u32>,
    #[arg(long, default_value_t = 200)]
    pub connections: u32,
    /// Of direct, stored, disk and memory.
    #[arg(long, value_delimiter = ',', value_enum, default_values_t = [Mode::Stored, Mode::Disk, Mode::Direct])]
    pub modes: Vec<Mode>,
    /// Also what else may be many: users, settings, connections, bytes, columns.
    #[arg(long)]
    pub axes: bool,
    /// Beside those that insert, in the case of many connections.
    #[arg(long, default_value_t = 19_800)]
    pub idle_connections: u32,
}

/// All that was measured.
#[derive(Default)]
struct Results {
    runs: Vec<Measured>,
    idle: Vec<Idle>,
    axes: Option<axes::Axes>,
}

impl Part for TablesOptions {
    fn measure(&self, stack: &Stack, options: &StackOptions) -> Result<Section, BenchError> {
        self.refuse_what_makes_no_sense(stack)?;
        let mut results = Results::default();
        let (many, few): (Vec<u32>, Vec<u32>) = self.tables.iter().partition(|tables| **tables >= ZIPF_FROM);
        self.measure_few(stack, &few, &mut results)?;
        for tables in many {
            let stack = Stack::open(options, &[])?;
            self.measure_many(&stack, tables, &mut results)?;
            stack.close()?;
        }
        if self.axes {
            results.axes = Some(axes::measure(self, options)?);
        }
        Ok(Section {
            name: "tables",
            title: "Many tables",
            command: self.command(),
            body: report::body(self, &results),
            charts: Vec::new(),
        })
    }
}

impl TablesOptions {
    fn command(&self) -> String {
        let join = |list: Vec<String>| list.join(",");
        format!(
            "bench/run tables --seconds {} --warmup-seconds {} --rounds {} --tables {} --connections {} --modes {}{}",
            self.seconds,
            self.warmup_seconds,
            self.rounds,
            join(self.tables.iter().map(u32::to_string).collect()),
            self.connections,
            join(self.modes.iter().map(Mode::to_string).collect()),
            match self.axes {
                true => format!(" --axes --idle-connections {}", self.idle_connections),
                false => String::new(),
            },
        )
    }

    fn refuse_what_makes_no_sense(&self, stack: &Stack) -> Result<(), BenchError> {
        stack.require_gateway()?;
        let known = |mode: &Mode| matches!(mode, Mode::Direct | Mode::Stored | Mode::Disk | Mode::Memory);
        if let Some(mode) = self.modes.iter().find(|mode| !known(mode)) {
            return Err(BenchError::Setup(format!(
                "--modes {mode} has no tables: choose of direct,stored,disk,memory"
            )));
        }
        match self.tables.contains(&0) || self.connections == 0 {
            true => Err(BenchError::Setup("there must be a table and a connection".into())),
            false => Ok(()),
        }
    }

    fn measure_few(&self, stack: &Stack, points: &[u32], results: &mut Results) -> Result<(), BenchError> {
        let bench = Bench::new(stack, self.connections);
        making::create_tables(&stack.clickhouse, points.iter().copied().max().unwrap_or(0))?;
        for &tables in points {
            let ground = Ground::tables(tables, false);
            bench.touch(&ground)?;
            self.measure_modes(&bench, &ground, results)?;
        }
        bench.refuse_rows_of_nobody()
    }

    fn measure_many(&self, stack: &Stack, tables: u32, results: &mut Results) -> Result<(), BenchError> {
        let bench = Bench::new(stack, self.connections);
        making::create_tables(&stack.clickhouse, tables)?;
        let ground = Ground::tables(tables, true);
        let idle = idle::measure(&bench, &ground)?;
        eprintln!("{}", idle.one_line());
        results.idle.push(idle);
        self.measure_modes(&bench, &ground, results)?;
        bench.refuse_rows_of_nobody()
    }

    fn measure_modes(&self, bench: &Bench<'_>, ground: &Ground, results: &mut Results) -> Result<(), BenchError> {
        for _ in 0..self.rounds {
            for &mode in &self.modes {
                let one = Measured::new(ground, mode, bench.run(ground, mode, self.times())?);
                eprintln!("{}", one.one_line(&format!("tables: {}", ground.targets)));
                results.runs.push(one);
            }
        }
        Ok(())
    }

    fn times(&self) -> Times {
        Times { warmup: Duration::from_secs_f64(self.warmup_seconds), window: Duration::from_secs_f64(self.seconds) }
    }
}
