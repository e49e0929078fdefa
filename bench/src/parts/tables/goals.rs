//! What the project promises of many tables.

use super::report::{Measured, Runs};
use super::Results;
use crate::parts::goals::Goals;
use crate::parts::inserts::Mode;
use crate::parts::megabytes;
use crate::report::count;

const MANY: u32 = 10_000;

pub fn goals(results: &Results) -> Goals {
    let mut goals = Goals::new();
    let measured = &results.runs;
    to_one_table(&mut goals, measured, 10, Mode::Stored, 0.5);
    to_one_table(&mut goals, measured, 100, Mode::Disk, 0.8);
    stored_to_direct(&mut goals, measured, 100, 10.0);
    thousand(&mut goals, measured);
    many(&mut goals, measured);
    for idle in results.idle.iter().filter(|idle| idle.tables == MANY) {
        goals.at_most("10,000 tables at rest, gateway's memory, MB", 150.0, idle.megabytes());
    }
    goals
}

fn to_one_table(goals: &mut Goals, measured: &[Measured], tables: u32, mode: Mode, goal: f64) {
    let one = Runs::of(measured, 1, mode);
    if let Some(ratio) = Runs::of(measured, tables, mode).ratio_to(&one, |run| run.per_second) {
        goals.at_least(&format!("{} tables, {mode}, inserts/s to one table's", count(f64::from(tables))), goal, ratio);
    }
}

fn stored_to_direct(goals: &mut Goals, measured: &[Measured], tables: u32, goal: f64) {
    let direct = Runs::of(measured, tables, Mode::Direct);
    if let Some(ratio) = Runs::of(measured, tables, Mode::Stored).ratio_to(&direct, |run| run.per_second) {
        goals.at_least(&format!("{} tables, stored, inserts/s to direct", count(f64::from(tables))), goal, ratio);
    }
}

fn thousand(goals: &mut Goals, measured: &[Measured]) {
    to_one_table(goals, measured, 1000, Mode::Disk, 0.5);
    let disk = Runs::of(measured, 1000, Mode::Disk);
    if let Some(p99_ms) = disk.median(|run| run.p99_ms) {
        goals.at_most("1,000 tables, disk, p99 ms", 100.0, p99_ms);
    }
    stored_to_direct(goals, measured, 1000, 3.0);
    if let Some(ratio) = disk.ratio_to(&Runs::of(measured, 1000, Mode::Direct), |run| run.clickhouse_us) {
        goals.at_most("1,000 tables, disk, ClickHouse's CPU per insert to direct's", 0.1, ratio);
    }
}

fn many(goals: &mut Goals, measured: &[Measured]) {
    to_one_table(goals, measured, MANY, Mode::Disk, 0.3);
    for mode in [Mode::Stored, Mode::Disk] {
        let runs = Runs::of(measured, MANY, mode);
        let mut at_most = |what: &str, goal: f64, most: Option<f64>| {
            if let Some(most) = most {
                goals.at_most(&format!("{} tables, {mode}, {what}", count(f64::from(MANY))), goal, most);
            }
        };
        at_most("failed inserts", 0.0, runs.most(|run| run.failed as f64));
        at_most("gateway's memory, MB", 300.0, runs.most(|run| megabytes(run.window.gateway_bytes)));
        at_most("questions/s", 20.0, runs.median(Measured::questions));
    }
}
