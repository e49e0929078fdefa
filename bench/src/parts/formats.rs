//! One-row inserts in binary formats through the gateway, beside the same rows in JSONEachRow.

use super::goals::Goals;
use super::inserts::{InsertsOptions, Mode};
use super::inserts_table::Measured;
use super::Part;
use crate::error::BenchError;
use crate::load::RowFormat;
use crate::report::{count, figure, median, paired_ratio, Section, Table};
use crate::stack::{Stack, StackOptions};

#[derive(Debug, Clone, clap::Args)]
pub struct FormatsOptions {
    #[arg(long, default_value_t = 2.0)]
    pub seconds: f64,
    #[arg(long, default_value_t = 200)]
    pub connections: u32,
    /// Of each format, alternately.
    #[arg(long, default_value_t = 7)]
    pub rounds: u32,
}

impl Part for FormatsOptions {
    fn measure(&self, stack: &Stack, options: &StackOptions) -> Result<Section, BenchError> {
        let mut measured: Vec<(RowFormat, Vec<Measured>)> =
            RowFormat::ALL.iter().map(|format| (*format, Vec::new())).collect();
        for _ in 0..self.rounds {
            for (format, runs) in &mut measured {
                let one = self.inserts(*format).run(stack, options, Mode::Memory, self.connections)?;
                eprintln!("{format}: {} requests/s", count(one.requests_per_second()));
                runs.push(one);
            }
        }
        Ok(Section {
            name: "formats",
            title: "One row in binary formats",
            command: format!(
                "bench/run formats --seconds {} --connections {} --rounds {}",
                self.seconds, self.connections, self.rounds
            ),
            body: self.report(&measured),
            charts: Vec::new(),
        })
    }
}

impl FormatsOptions {
    fn inserts(&self, format: RowFormat) -> InsertsOptions {
        InsertsOptions {
            seconds: self.seconds,
            count: None,
            warmup_seconds: 0.5,
            connections: vec![self.connections],
            rounds: 1,
            modes: vec![Mode::Memory],
            threads: 1,
            settings: Vec::new(),
            format,
        }
    }

    fn report(&self, measured: &[(RowFormat, Vec<Measured>)]) -> String {
        let mut table = Table::new(["format", "bytes", "requests/s", "× JSONEachRow", "gateway's CPU, us per insert"]);
        let mut goals = Goals::new();
        let speeds = |runs: &[Measured]| runs.iter().map(Measured::requests_per_second).collect::<Vec<_>>();
        let json = speeds(&measured[0].1);
        for (format, runs) in measured {
            let ratio = paired_ratio(&speeds(runs), &json);
            table.row([
                format.to_string(),
                format.row_bytes().to_string(),
                count(median(speeds(runs))),
                figure(ratio),
                figure(median(runs.iter().map(Measured::gateway_microseconds_per_insert))),
            ]);
            if *format != RowFormat::JsonEachRow {
                goals.at_least(&format!("{format}, requests/s to JSONEachRow's"), 1.0, ratio);
            }
        }
        format!(
            "Ack level memory, {} connections; the rows are looked up afterwards as above.\n\n{}\n{}",
            self.connections,
            table.to_markdown(),
            goals.to_markdown()
        )
    }
}
