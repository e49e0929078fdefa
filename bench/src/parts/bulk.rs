//! Large inserts: 100,000 rows of JSONEachRow in one request, straight and through the gateway. The gateway parses them
//! and sends blocks, so ClickHouse should have less to do, and the whole should not be slower.

use std::time::Instant;

use super::goals::Goals;
use super::{fresh_table, Part};
use crate::error::BenchError;
use crate::load::{create_table, insert_query, row_body, RowFormat};
use crate::report::{figure, median, paired_ratio, Section, Table};
use crate::sql::Sql;
use crate::stack::{Stack, StackOptions};

const TABLE: &str = "bench.bulk";

#[derive(Debug, Clone, clap::Args)]
pub struct BulkOptions {
    #[arg(long, default_value_t = 100_000)]
    pub rows: u64,
    /// Of each way, alternately.
    #[arg(long, default_value_t = 6)]
    pub rounds: u32,
    /// Inserts per round, one after the other: enough for the first, which has to be admitted, not to count.
    #[arg(long, default_value_t = 10)]
    pub inserts: u32,
}

#[derive(Debug, Clone, Copy, Default)]
struct Round {
    seconds: f64,
    clickhouse_cpu_seconds: f64,
    gateway_cpu_seconds: f64,
}

impl Part for BulkOptions {
    fn measure(&self, stack: &Stack, _: &StackOptions) -> Result<Section, BenchError> {
        let body = row_body(self.rows);
        let gateway = stack.require_gateway()?;
        // One of each that does not count: code paths and caches are warm for both.
        self.round(stack, &stack.clickhouse, &["async_insert=0"], &body)?;
        self.round(stack, gateway, GATEWAY_SETTINGS, &body)?;
        let mut direct = Vec::new();
        let mut through = Vec::new();
        for _ in 0..self.rounds {
            direct.push(self.round(stack, &stack.clickhouse, &["async_insert=0"], &body)?);
            through.push(self.round(stack, gateway, GATEWAY_SETTINGS, &body)?);
        }
        Ok(Section {
            name: "bulk",
            title: "Large inserts",
            command: format!("bench/run bulk --rows {} --rounds {} --inserts {}", self.rows, self.rounds, self.inserts),
            body: self.report(&direct, &through, body.len()),
            charts: Vec::new(),
        })
    }
}

const GATEWAY_SETTINGS: &[&str] = &["async_insert=1", "wait_for_async_insert=1"];

impl BulkOptions {
    fn round(&self, stack: &Stack, server: &Sql, settings: &[&str], body: &[u8]) -> Result<Round, BenchError> {
        fresh_table(&stack.clickhouse, TABLE, &create_table(TABLE, ""))?;
        // Merges would fall on whichever way comes next.
        stack.clickhouse.execute(&format!("SYSTEM STOP MERGES {TABLE}"))?;
        let query = insert_query(TABLE, RowFormat::JsonEachRow, settings);
        let before = stack.snapshot();
        let began = Instant::now();
        for _ in 0..self.inserts {
            server.post(&query, body)?;
        }
        let seconds = began.elapsed().as_secs_f64();
        let after = stack.snapshot();
        let stored = stack.clickhouse.number(&format!("SELECT count() FROM {TABLE}"))?;
        stack.clickhouse.execute(&format!("DROP TABLE {TABLE} SYNC"))?;
        let sent = self.rows * u64::from(self.inserts);
        if stored != sent {
            return Err(BenchError::Unsound(format!("{sent} rows were acknowledged, {stored} are there")));
        }
        let (clickhouse_cpu_seconds, gateway_cpu_seconds) =
            (after.clickhouse_cpu_since(&before), after.gateway_cpu_since(&before));
        Ok(Round { seconds, clickhouse_cpu_seconds, gateway_cpu_seconds })
    }

    fn report(&self, direct: &[Round], through: &[Round], body_bytes: usize) -> String {
        let rows = (self.rows * u64::from(self.inserts)) as f64;
        let seconds = |rounds: &[Round]| median(rounds.iter().map(|round| round.seconds));
        // The kernel counts CPU in steps of 10 ms: their sum is good where a single round's figure is not.
        let clickhouse = |rounds: &[Round]| mean(rounds, |round| round.clickhouse_cpu_seconds);
        let mut table = Table::new(["way", "rows/s", "ms per insert", "CPU ms in ClickHouse", "CPU ms in the gateway"]);
        for (way, rounds) in [("direct", direct), ("through the gateway", through)] {
            let per_insert_ms = |seconds: f64| figure(seconds * 1000.0 / f64::from(self.inserts));
            table.row([
                way.to_owned(),
                figure(rows / seconds(rounds)),
                per_insert_ms(seconds(rounds)),
                per_insert_ms(clickhouse(rounds)),
                per_insert_ms(mean(rounds, |round| round.gateway_cpu_seconds)),
            ]);
        }
        let mut goals = Goals::new();
        let all = |rounds: &[Round]| rounds.iter().map(|round| round.seconds).collect::<Vec<_>>();
        goals.at_least("rows/s through the gateway to direct", 1.0, paired_ratio(&all(direct), &all(through)));
        goals.at_most("ClickHouse's CPU through the gateway to direct", 1.0, clickhouse(through) / clickhouse(direct));
        format!(
            "{} rows of JSONEachRow, {} MB, in one request, answered when stored; one connection.\n\n{}\n{}",
            figure(self.rows as f64),
            figure(body_bytes as f64 / 1e6),
            table.to_markdown(),
            goals.to_markdown()
        )
    }
}

fn mean(rounds: &[Round], of: impl Fn(&Round) -> f64) -> f64 {
    rounds.iter().map(of).sum::<f64>() / rounds.len().max(1) as f64
}
