//! One-row inserts that are acknowledged on disk and stored in DuckDB.

use super::goals::Goals;
use super::inserts::{InsertsOptions, Mode};
use super::inserts_table::{one_line, Measured};
use super::Part;
use crate::error::BenchError;
use crate::load::RowFormat;
use crate::report::{count, figure, median, Section, Table};
use crate::stack::{Stack, StackOptions};

const METHOD: &str =
    "One-row inserts as above, into a gateway with a DuckDB behind it. What was acknowledged is looked up in DuckDB \
    afterwards, id by id.\n\n";
const MODES: [Mode; 3] = [Mode::Stored, Mode::Disk, Mode::Memory];

#[derive(Debug, Clone, clap::Args)]
pub struct DuckDbOptions {
    #[arg(long, default_value_t = 2.0)]
    pub seconds: f64,
    #[arg(long, default_value_t = 200)]
    pub connections: u32,
    /// Of each mode, alternately.
    #[arg(long, default_value_t = 5)]
    pub rounds: u32,
}

impl Part for DuckDbOptions {
    fn measure(&self, _: &Stack, options: &StackOptions) -> Result<Section, BenchError> {
        let stack = Stack::on_duckdb(options)?;
        let mut measured: Vec<(Mode, Vec<Measured>)> = MODES.iter().map(|mode| (*mode, Vec::new())).collect();
        for _ in 0..self.rounds {
            for (mode, runs) in &mut measured {
                let one = self.inserts().run_into_duckdb(&stack, *mode, self.connections)?;
                eprintln!("duckdb, {}", one_line(&one));
                runs.push(one);
            }
        }
        stack.close()?;
        Ok(Section {
            name: "duckdb",
            title: "Small inserts into DuckDB",
            command: format!(
                "bench/run duckdb --seconds {} --connections {} --rounds {}",
                self.seconds, self.connections, self.rounds
            ),
            body: self.report(&measured),
            charts: Vec::new(),
        })
    }
}

impl DuckDbOptions {
    fn inserts(&self) -> InsertsOptions {
        InsertsOptions {
            seconds: self.seconds,
            count: None,
            warmup_seconds: 0.5,
            connections: vec![self.connections],
            rounds: 1,
            modes: MODES.to_vec(),
            threads: 1,
            settings: Vec::new(),
            format: RowFormat::JsonEachRow,
        }
    }

    fn report(&self, measured: &[(Mode, Vec<Measured>)]) -> String {
        let mut table =
            Table::new(["ack level", "connections", "inserts/s", "p50 ms", "p99 ms", "gateway's CPU, us per insert"]);
        let mut goals = Goals::new();
        for (mode, runs) in measured {
            let rate = median(runs.iter().map(Measured::requests_per_second));
            table.row([
                mode.to_string(),
                self.connections.to_string(),
                count(rate),
                figure(median(runs.iter().map(Measured::p50_ms))),
                figure(median(runs.iter().map(Measured::p99_ms))),
                figure(median(runs.iter().map(Measured::gateway_microseconds_per_insert))),
            ]);
            if *mode == Mode::Disk {
                goals.at_least("inserts/s into DuckDB, acknowledged as disk", 20_000.0, rate);
            }
        }
        format!("{METHOD}{}\n{}", table.to_markdown(), goals.to_markdown())
    }
}
