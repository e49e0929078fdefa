//! The table of what else may be many.

use super::axes::{Axes, Outcome};
use super::report::{or_none, Measured};
use crate::parts::megabytes;
use crate::report::{figure, Table};

const METHOD: &str = "\
What else may be many where there is one table. A user or a value of the setting (`max_partitions_per_insert_block`, from 101 on) is chosen anew for every insert, all equally \
often; inserts that differ in either can't share a batch. Each case ran for 4 s after a warm-up, on a gateway of its own with 1,000 users, in this order.
";

pub fn text(axes: &Axes) -> String {
    format!("{METHOD}\n{}\n", table(axes).to_markdown())
}

fn table(axes: &Axes) -> Table {
    let mut table = Table::new([
        "many",
        "way",
        "inserts/s",
        "× one table",
        "p50 ms",
        "p99 ms",
        "ClickHouse's CPU, us per insert",
        "gateway's CPU, us per insert",
        "parts/s",
        "gateway's memory, MB",
        "failed",
    ]);
    for case in &axes.cases {
        match &case.outcome {
            Outcome::Measured(runs) => runs.iter().for_each(|one| table.row(cells(axes, &case.what, one))),
            Outcome::Skipped(why) => table.row([case.what.clone(), format!("left out: {why}")]),
        }
    }
    table
}

fn cells(axes: &Axes, what: &str, one: &Measured) -> [String; 11] {
    let plain = axes.plain(one.mode).map(|plain| plain.per_second).filter(|rate| *rate > 0.0);
    [
        what.to_owned(),
        one.mode.to_string(),
        figure(one.per_second),
        or_none(plain.map(|plain| one.per_second / plain)),
        figure(one.p50_ms),
        figure(one.p99_ms),
        figure(one.clickhouse_us),
        figure(one.gateway_us),
        figure(one.window.parts),
        figure(megabytes(one.window.gateway_bytes)),
        one.failed.to_string(),
    ]
}
