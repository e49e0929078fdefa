//! Writes one line per second, for pipes and files.

use crate::engine::Engine;
use crate::snapshot::{shown, shown_clock, shown_ms, SideView, Snapshot};

pub(crate) fn line(snapshot: &Snapshot) -> String {
    let mut line = shown_clock(snapshot.elapsed);
    for side in &snapshot.sides {
        line.push_str(&format!(" | {}: {}", side.name, of_side(side)));
    }
    line.push_str(&format!(
        " | gateway CPU {} | {} of {} cities above {:.0} ms",
        percent(snapshot.gateway_cpu_percent),
        snapshot.count_above_kpi(),
        snapshot.count_measured(),
        snapshot.kpi_ms,
    ));
    if snapshot.ending {
        line.push_str(&format!(" | ends: {} inserts have no answer yet", snapshot.unanswered()));
    }
    if let Some(problem) = snapshot.problem() {
        line.push_str(&format!(" | {}", problem.replace(['\n', '\r'], " ")));
    }
    line
}

fn of_side(side: &SideView) -> String {
    let SideView { results, store, .. } = side;
    let count = |value: Option<u64>| shown(value, |count| count.to_string());
    let rate = shown(side.parts_per_second, |rate| format!("{rate:.1}"));
    let pieces = match side.engine {
        Engine::ClickHouse => {
            let (active, all) = (count(store.active_parts), count(store.all_parts));
            let cpu = percent(side.database_cpu_percent);
            format!("parts {active} active, {all} all, {rate}/s, ClickHouse's CPU {cpu}")
        }
        // DuckDB works in the gateway's process, SQLite too, and of a PostgreSQL that may be anywhere no CPU is known.
        Engine::DuckDb | Engine::PostgreSql | Engine::Sqlite => format!("batches {}, {rate}/s", count(store.all_parts)),
    };
    format!(
        "{} inserts/s, rows {} inserted, {} acknowledged, {} in {}, {} failed, ack p50 {}, p99 {}, {pieces}",
        shown(side.inserts_per_second, |rate| format!("{rate:.1}")),
        results.sent,
        results.acknowledged,
        count(store.found),
        side.engine.name(),
        results.failures,
        shown_ms(results.ack_p50_ms),
        shown_ms(results.ack_p99_ms),
    )
}

fn percent(value: Option<f64>) -> String {
    shown(value, |percent| format!("{percent:.0} %"))
}
