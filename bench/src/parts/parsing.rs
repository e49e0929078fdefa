//! Payloads into blocks: the gateway's readers, in this process, against ClickHouse's own on the same bytes, by the CPU
//! time that each takes. ClickHouse writes into a table that keeps nothing, so that reading is nearly all it does; what
//! receiving the bytes costs it is measured by a format that doesn't look at them, and shown.

use std::hint::black_box;

use windrow_columns::{ColumnSpec, DataType, DefaultKind, Format, ReadPlan, ReadSettings};

use super::goals::Goals;
use super::{fresh_table, Part};
use crate::error::BenchError;
use crate::process::own_cpu_seconds;
use crate::report::{figure, median, Section, Table};
use crate::sql::Sql;
use crate::stack::{Stack, StackOptions};
use crate::wire::url_encode;

const TABLE: &str = "bench.parsing";
/// One core, nothing queued, nothing guessed.
const SETTINGS: &str = "&async_insert=0&max_threads=1&max_insert_threads=1&input_format_parallel_parsing=0";

#[derive(Debug, Clone, clap::Args)]
pub struct ParsingOptions {
    #[arg(long, default_value_t = 100_000)]
    pub rows: u64,
    /// Of each reader, alternately.
    #[arg(long, default_value_t = 5)]
    pub rounds: u32,
    /// What ClickHouse reads per round; Windrow reads four times as much. The kernel counts CPU in steps of 10 ms.
    #[arg(long, default_value_t = 80)]
    pub megabytes: u32,
}

/// A format with what the project promises of it: how many times faster than ClickHouse.
struct Goal {
    format: &'static str,
    times: f64,
}

const GOALS: [Goal; 5] = [
    Goal { format: "JSONEachRow", times: 1.5 },
    Goal { format: "CSV", times: 1.2 },
    Goal { format: "TSV", times: 1.2 },
    Goal { format: "RowBinary", times: 2.0 },
    Goal { format: "Native", times: 2.0 },
];

/// A table and what its rows are made of, as SQL over `number`.
struct Rows {
    name: &'static str,
    columns: &'static [(&'static str, &'static str, &'static str)],
}

const PLAIN: Rows = Rows {
    name: "numbers and text",
    columns: &[
        ("id", "UInt64", "number"),
        ("name", "String", "concat('name ', toString(number % 9973))"),
        ("value", "Float64", "number / 8"),
        ("at", "DateTime('UTC')", "toDateTime(1700000000 + number, 'UTC')"),
    ],
};
const MIXED: Rows = Rows {
    name: "nested and nullable",
    columns: &[
        ("id", "UUID", "reinterpretAsUUID(sipHash128(number))"),
        ("host", "LowCardinality(String)", "concat('host-', toString(number % 50))"),
        ("at", "DateTime64(3, 'UTC')", "toDateTime64(1700000000 + number / 1000, 3, 'UTC')"),
        ("labels", "Map(String, String)", "map('region', toString(number % 7), 'zone', 'b')"),
        ("code", "Nullable(Int32)", "if(number % 3 = 0, NULL, toInt32(number % 600))"),
        ("steps", "Array(UInt32)", "range(toUInt32(number % 4))"),
    ],
};

#[derive(Clone, Copy, Default)]
struct Cost {
    clickhouse_ms: f64,
    receiving_ms: f64,
    reader_ms: f64,
}

impl Part for ParsingOptions {
    fn measure(&self, stack: &Stack, _: &StackOptions) -> Result<Section, BenchError> {
        let mut table = Table::new([
            "rows",
            "format",
            "MB",
            "ClickHouse, CPU ms",
            "of it receiving",
            "Windrow's reader, CPU ms",
            "MB/s",
            "times as fast",
            "without receiving",
        ]);
        let mut goals = Goals::new();
        for rows in [PLAIN, MIXED] {
            let columns: Vec<String> = rows.columns.iter().map(|(name, kind, _)| format!("{name} {kind}")).collect();
            fresh_table(
                &stack.clickhouse,
                TABLE,
                &format!("CREATE TABLE {TABLE} ({}) ENGINE = Null", columns.join(", ")),
            )?;
            for goal in &GOALS {
                let payload = self.payload(&stack.clickhouse, &rows, goal.format)?;
                let cost = self.cost(stack, &rows, goal.format, &payload)?;
                let megabytes = payload.len() as f64 / 1e6;
                let times = cost.clickhouse_ms / cost.reader_ms;
                table.row([
                    rows.name.to_owned(),
                    goal.format.to_owned(),
                    figure(megabytes),
                    figure(cost.clickhouse_ms),
                    figure(cost.receiving_ms),
                    figure(cost.reader_ms),
                    figure(megabytes * 1000.0 / cost.reader_ms),
                    figure(times),
                    figure((cost.clickhouse_ms - cost.receiving_ms) / cost.reader_ms),
                ]);
                goals.at_least(&format!("{}, {}, times ClickHouse's speed", goal.format, rows.name), goal.times, times);
            }
        }
        stack.clickhouse.execute(&format!("DROP TABLE {TABLE} SYNC"))?;
        Ok(Section {
            name: "parsing",
            title: "Reading payloads",
            command: format!(
                "bench/run parsing --rows {} --rounds {} --megabytes {}",
                self.rows, self.rounds, self.megabytes
            ),
            body: format!("{}\n{}", table.to_markdown(), goals.to_markdown()),
            charts: Vec::new(),
        })
    }
}

impl ParsingOptions {
    fn payload(&self, clickhouse: &Sql, rows: &Rows, format: &str) -> Result<Vec<u8>, BenchError> {
        let values: Vec<String> = rows
            .columns
            .iter()
            .map(|(name, kind, value)| format!("CAST({value}, '{}') AS {name}", kind.replace('\'', "\\'")))
            .collect();
        let query = format!("SELECT {} FROM numbers({}) FORMAT {format}", values.join(", "), self.rows);
        let mut payload = Vec::new();
        clickhouse.stream("", query.as_bytes(), |data| payload.extend_from_slice(data))?;
        Ok(payload)
    }

    fn cost(&self, stack: &Stack, rows: &Rows, format: &str, payload: &[u8]) -> Result<Cost, BenchError> {
        let insert = format!("query={}{SETTINGS}", url_encode(&format!("INSERT INTO {TABLE} FORMAT {format}")));
        let receive = format!("query={}{SETTINGS}", url_encode("INSERT INTO FUNCTION null('x String') FORMAT RawBLOB"));
        let format = Format::named(format).ok_or_else(|| BenchError::Setup(format!("{format} is not read")))?;
        let plan = plan(rows, format)?;
        let mut costs = Vec::new();
        for round in 0..=self.rounds {
            let cost = Cost {
                clickhouse_ms: self.clickhouse_ms(stack, &insert, payload)?,
                receiving_ms: self.clickhouse_ms(stack, &receive, payload)?,
                reader_ms: self.reader_ms(format, &plan, payload)?,
            };
            // The first warms both.
            if round > 0 {
                costs.push(cost);
            }
        }
        let middle = |of: fn(&Cost) -> f64| median(costs.iter().map(of));
        Ok(Cost {
            clickhouse_ms: middle(|cost| cost.clickhouse_ms),
            receiving_ms: middle(|cost| cost.receiving_ms),
            reader_ms: middle(|cost| cost.reader_ms),
        })
    }

    fn clickhouse_ms(&self, stack: &Stack, query: &str, payload: &[u8]) -> Result<f64, BenchError> {
        let times = self.times(payload);
        let before = stack.snapshot();
        for _ in 0..times {
            stack.clickhouse.post(query, payload)?;
        }
        Ok(stack.snapshot().clickhouse_cpu_since(&before) * 1000.0 / f64::from(times))
    }

    fn times(&self, payload: &[u8]) -> u32 {
        (self.megabytes * 1_000_000).div_ceil(payload.len().max(1) as u32)
    }

    fn reader_ms(&self, format: &Format, plan: &ReadPlan, payload: &[u8]) -> Result<f64, BenchError> {
        let times = self.times(payload) * 4;
        let before = own_cpu_seconds();
        for _ in 0..times {
            let parsed = (format.read)(black_box(payload), plan)
                .map_err(|not_parsed| BenchError::Unsound(format!("{format:?} was not read: {not_parsed}")))?;
            if parsed.block.rows() as u64 != self.rows {
                return Err(BenchError::Unsound(format!("{format:?}: {} rows were read", parsed.block.rows())));
            }
            black_box(parsed);
        }
        Ok((own_cpu_seconds() - before) * 1000.0 / f64::from(times))
    }
}

fn plan(rows: &Rows, format: &Format) -> Result<ReadPlan, BenchError> {
    let columns = rows.columns.iter().map(|(name, kind, _)| {
        let data_type = DataType::parse(kind).map_err(|error| BenchError::Setup(error.to_string()))?;
        Ok(ColumnSpec { name: (*name).to_owned(), data_type, default_kind: DefaultKind::None })
    });
    Ok(ReadPlan::new(columns.collect::<Result<_, BenchError>>()?, ReadSettings::of(format)))
}
