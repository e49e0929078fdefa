//! A large answer, straight and forwarded by the gateway: how much of the speed is left, and whether the gateway holds
//! more of it than it has to.

use std::time::Instant;

use super::goals::Goals;
use super::{megabytes, Part};
use crate::error::BenchError;
use crate::process::{peak_resident_bytes, reset_peak, usage};
use crate::report::{figure, median, paired_ratio, Section, Table};
use crate::sql::Sql;
use crate::stack::{Stack, StackOptions};

#[derive(Debug, Clone, clap::Args)]
pub struct SelectOptions {
    /// About how large the answer is.
    #[arg(long, default_value_t = 1000)]
    pub megabytes: u64,
    /// Of each way, alternately.
    #[arg(long, default_value_t = 5)]
    pub rounds: u32,
}

/// Two kinds of answer: text that ClickHouse has to format, and bytes that it hardly touches, which is the hardest for
/// whoever stands in between.
#[derive(Debug, Clone, Copy)]
struct Answer {
    name: &'static str,
    columns: &'static str,
    format: &'static str,
    row_bytes: u64,
}

const ANSWERS: [Answer; 2] = [
    Answer {
        name: "text: TabSeparated, six columns",
        columns: "number, number * 17, number % 1000, toString(cityHash64(number)), toDateTime(number), 'https://example.com/'",
        format: "TabSeparated",
        row_bytes: 85,
    },
    Answer { name: "bytes: RowBinary, strings of 1 kB", columns: "repeat('windrow ', 125)", format: "RowBinary", row_bytes: 1002 },
];

#[derive(Debug, Clone, Copy)]
struct Round {
    seconds: f64,
    bytes: u64,
}

impl Part for SelectOptions {
    fn measure(&self, stack: &Stack, _: &StackOptions) -> Result<Section, BenchError> {
        let mut table = Table::new(["answer", "MB", "direct MB/s", "forwarded MB/s", "ratio", "gateway grew by MB"]);
        let mut goals = Goals::new();
        for answer in ANSWERS {
            self.measure_answer(stack, answer, &mut table, &mut goals)?;
        }
        Ok(Section {
            name: "select",
            title: "A large answer, forwarded",
            command: format!("bench/run select --megabytes {} --rounds {}", self.megabytes, self.rounds),
            body: format!("{}\n{}", table.to_markdown(), goals.to_markdown()),
            charts: Vec::new(),
        })
    }
}

impl SelectOptions {
    fn measure_answer(
        &self,
        stack: &Stack,
        answer: Answer,
        table: &mut Table,
        goals: &mut Goals,
    ) -> Result<(), BenchError> {
        let gateway = stack.require_gateway()?;
        let rows = self.megabytes * 1_000_000 / answer.row_bytes;
        let sql = format!("SELECT {} FROM numbers({rows}) FORMAT {}", answer.columns, answer.format);
        let (mut direct, mut forwarded, mut grown) = (Vec::new(), Vec::new(), 0);
        for _ in 0..self.rounds {
            direct.push(read_all(&stack.clickhouse, &sql)?);
            let before = begin_watching(stack);
            forwarded.push(read_all(gateway, &sql)?);
            grown = grown.max(growth_since(stack, before));
        }
        let bytes = direct[0].bytes;
        if let Some(other) = direct.iter().chain(&forwarded).find(|round| round.bytes != bytes) {
            return Err(BenchError::Unsound(format!("one answer had {bytes} bytes, another {}", other.bytes)));
        }
        let speeds =
            |rounds: &[Round]| rounds.iter().map(|round| megabytes(round.bytes) / round.seconds).collect::<Vec<_>>();
        let speed = |rounds: &[Round]| median(speeds(rounds));
        let ratio = paired_ratio(&speeds(&forwarded), &speeds(&direct));
        table.row([
            answer.name.to_owned(),
            figure(megabytes(bytes)),
            figure(speed(&direct)),
            figure(speed(&forwarded)),
            figure(ratio),
            figure(megabytes(grown)),
        ]);
        let kind = answer.name.split(':').next().unwrap_or_default();
        goals.at_least(&format!("{kind}: forwarded speed to direct"), 0.9, ratio);
        goals.at_most(&format!("{kind}: growth of the gateway, MB"), 64.0, megabytes(grown));
        Ok(())
    }
}

fn read_all(server: &Sql, sql: &str) -> Result<Round, BenchError> {
    let began = Instant::now();
    let mut bytes = 0;
    server.stream("", sql.as_bytes(), |data| bytes += data.len() as u64)?;
    Ok(Round { seconds: began.elapsed().as_secs_f64(), bytes })
}

/// The gateway's memory now; its peak is counted from here on.
fn begin_watching(stack: &Stack) -> u64 {
    let Some(pid) = stack.gateway_pid() else { return 0 };
    reset_peak(pid);
    usage(pid).resident_bytes
}

fn growth_since(stack: &Stack, before: u64) -> u64 {
    stack.gateway_pid().map_or(0, |pid| peak_resident_bytes(pid).saturating_sub(before))
}
