//! What ClickHouse was asked, and what came into its tables, between the moments at which a run's window opens and
//! closes.

use std::time::{Duration, Instant};

use super::run::Times;
use crate::error::BenchError;
use crate::sql::Sql;
use crate::stack::Stack;

/// How often the reading reads itself, to find out what it counts as.
const READINGS_OF_ITSELF: u32 = 3;

/// Per second, but for the memory, which is that at the end.
#[derive(Debug, Clone, Copy, Default)]
pub struct Window {
    pub parts: f64,
    pub selects: f64,
    /// INSERTs that brought no rows: with these, a gateway asks whether a user may insert.
    pub empty_inserts: f64,
    pub gateway_bytes: u64,
}

/// Totals since the server was started, or the tables were made.
#[derive(Debug, Clone, Copy)]
struct Reading {
    at: Instant,
    parts: u64,
    selects: u64,
    inserts: u64,
}

/// Parts of all tables at once, as `parts_created` counts them in one, and the questions.
const READ: &str = "\
    SELECT (SELECT toUInt64(sum(last)) FROM (SELECT max(max_block_number) AS last FROM system.parts \
                                             WHERE database = 'bench' GROUP BY table)), \
           toUInt64(sumIf(value, event = 'SelectQuery')), toUInt64(sumIf(value, event = 'InsertQuery')) \
    FROM system.events FORMAT TSV";

fn read(clickhouse: &Sql) -> Result<Reading, BenchError> {
    let answer = clickhouse.query(READ)?;
    // A busy server lets the query wait before it runs, not after.
    let at = Instant::now();
    let numbers: Vec<u64> = answer.split_whitespace().filter_map(|field| field.parse().ok()).collect();
    let [parts, selects, inserts] = numbers[..] else {
        return Err(BenchError::Setup(format!("expected three numbers, ClickHouse answered {answer:?}")));
    };
    Ok(Reading { at, parts, selects, inserts })
}

/// How many SELECTs one reading counts as. Others may ask meanwhile, so the least of a few is it.
fn selects_of_a_reading(clickhouse: &Sql) -> Result<u64, BenchError> {
    let (mut least, mut before) = (u64::MAX, read(clickhouse)?);
    for _ in 0..READINGS_OF_ITSELF {
        let after = read(clickhouse)?;
        least = least.min(after.selects - before.selects);
        before = after;
    }
    Ok(least)
}

/// Returns what `work` returned, which begins the warm-up at once, and what was read meanwhile.
pub fn watch<T>(stack: &Stack, times: Times, work: impl FnOnce() -> T) -> Result<(T, Window), BenchError> {
    let clickhouse = &stack.clickhouse;
    let own_selects = selects_of_a_reading(clickhouse)?;
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let start = Instant::now();
            sleep_until(start + times.warmup);
            let before = read(clickhouse)?;
            sleep_until(start + times.warmup + times.window);
            let gateway_bytes = stack.snapshot().gateway.resident_bytes;
            Ok(between(before, read(clickhouse)?, own_selects, gateway_bytes))
        });
        let result = work();
        let window = watcher.join().map_err(|_| BenchError::Setup("the watcher panicked".into()))?;
        window.map(|window| (result, window))
    })
}

fn sleep_until(moment: Instant) {
    std::thread::sleep(moment.saturating_duration_since(Instant::now()));
}

fn between(before: Reading, after: Reading, own_selects: u64, gateway_bytes: u64) -> Window {
    let seconds = (after.at - before.at).max(Duration::from_millis(1)).as_secs_f64();
    let per_second = |count: u64| count as f64 / seconds;
    let parts = after.parts.saturating_sub(before.parts);
    Window {
        parts: per_second(parts),
        selects: per_second((after.selects - before.selects).saturating_sub(own_selects)),
        empty_inserts: per_second((after.inserts - before.inserts).saturating_sub(parts)),
        gateway_bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inserts_that_made_parts_and_the_reading_itself_are_no_questions() {
        let at = Instant::now();
        let before = Reading { at, parts: 10, selects: 100, inserts: 50 };
        let after = Reading { at: at + Duration::from_secs(2), parts: 30, selects: 113, inserts: 76 };
        let window = between(before, after, 3, 5);
        assert_eq!((window.parts, window.selects, window.empty_inserts, window.gateway_bytes), (10.0, 5.0, 3.0, 5));
        let fewer = Reading { inserts: 60, ..after };
        assert_eq!(between(before, fewer, 3, 5).empty_inserts, 0.0);
    }
}
