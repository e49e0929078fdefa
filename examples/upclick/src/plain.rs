//! One line per second, for pipes and files.

use crate::engine::Engine;
use crate::snapshot::{shown, shown_clock, shown_ms, Snapshot};

pub(crate) fn line(snapshot: &Snapshot) -> String {
    let Snapshot { results, store, .. } = snapshot;
    let percent = |value: Option<f64>| shown(value, |percent| format!("{percent:.0} %"));
    let count = |value: Option<u64>| shown(value, |count| count.to_string());
    let rate = shown(snapshot.parts_per_second, |rate| format!("{rate:.1}"));
    let pieces = match snapshot.engine {
        Engine::ClickHouse => {
            format!("parts {} active, {} all, {rate}/s", count(store.active_parts), count(store.all_parts))
        }
        Engine::DuckDb => format!("batches {}, {rate}/s", count(store.all_parts)),
    };
    // DuckDB works in the gateway's process.
    let clickhouse_cpu = match snapshot.engine {
        Engine::ClickHouse => format!("ClickHouse {}, ", percent(snapshot.clickhouse_cpu_percent)),
        Engine::DuckDb => String::new(),
    };
    let mut line = format!(
        "{} | {} inserts/s | rows {} inserted, {} acknowledged, {} in {}, {} failed | ack p50 {}, p99 {} | \
         {} | CPU {}gateway {} | {} of {} cities above {:.0} ms",
        shown_clock(snapshot.elapsed),
        shown(snapshot.inserts_per_second, |rate| format!("{rate:.1}")),
        results.sent,
        results.acknowledged,
        count(store.found),
        snapshot.engine.name(),
        results.failures,
        shown_ms(results.ack_p50_ms),
        shown_ms(results.ack_p99_ms),
        pieces,
        clickhouse_cpu,
        percent(snapshot.gateway_cpu_percent),
        snapshot.count_above_kpi(),
        snapshot.count_measured(),
        snapshot.kpi_ms,
    );
    if let Some(problem) = results.last_error.as_ref().or(store.problem.as_ref()) {
        line.push_str(&format!(" | {}", problem.replace(['\n', '\r'], " ")));
    }
    line
}
