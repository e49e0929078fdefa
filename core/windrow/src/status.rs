//! `windrow status`: the dashboard's first screen as text, from the admin port of a running gateway.

use std::fmt::Write;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use serde_json::Value;
use windrow_settings::Settings;

use crate::admin_api::{Api, ApiError};
use crate::cli::SettingsFlags;
use crate::gateway::runtime;
use crate::write_more;

const TABLES: usize = 10;
/// Time between two requests with --watch.
const STEP: Duration = Duration::from_secs(1);
/// The greatest age of a value that is shown as the current one.
const FRESH_MS: u64 = 10_000;
/// The escape codes that move to the upper left corner, and clear everything below.
const CLEAR: &str = "\x1b[H\x1b[J";

/// Show what a running gateway does: rows that arrive, what is safe, what is stored, and what waits.
///
/// The command asks the admin port that the settings name.
#[derive(Args)]
pub(crate) struct StatusArguments {
    #[command(flatten)]
    pub(crate) settings: SettingsFlags,
    /// Go on, each second, until Ctrl-C.
    #[arg(long, conflicts_with = "json")]
    watch: bool,
    /// Print what the API answers: docs/dashboard.md describes it.
    #[arg(long)]
    json: bool,
}

/// The form in which the status is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    Once,
    Json,
    /// A text that is shown again and again.
    Watch,
}

impl StatusArguments {
    pub(crate) fn view(&self) -> View {
        match (self.watch, self.json) {
            (true, _) => View::Watch,
            (_, true) => View::Json,
            _ => View::Once,
        }
    }
}

pub(crate) fn run(settings: &Settings, view: View) -> Result<ExitCode, String> {
    let api = Api::new(settings, "/api/v1");
    runtime()?.block_on(async {
        loop {
            let clear = if std::io::stdout().is_terminal() { CLEAR } else { "" };
            let text = match Seen::ask(&api).await {
                Ok(seen) if view == View::Json => format!("{}\n", seen.json()),
                Ok(seen) if view == View::Watch => format!("{clear}{}", seen.text(&api)),
                Ok(seen) => seen.text(&api),
                Err(ApiError::NoGateway(why)) if view == View::Watch => format!("{clear}{why}\n"),
                Err(ApiError::NoGateway(why) | ApiError::Failed(why)) => return Err(why),
            };
            if !write_more(text.as_bytes())? || view != View::Watch {
                return Ok(ExitCode::SUCCESS);
            }
            tokio::time::sleep(STEP).await;
        }
    })
}

struct Seen {
    status: Value,
    /// The series of the last seconds.
    history: Value,
    tables: Value,
}

impl Seen {
    async fn ask(api: &Api) -> Result<Seen, ApiError> {
        let status = api.get_json("/status").await?;
        let since_ms = status["now_ms"].as_u64().unwrap_or_default().saturating_sub(FRESH_MS);
        let history = api.get_json(&format!("/history?since_ms={since_ms}")).await?;
        let tables = api.get_json(&format!("/tables?limit={TABLES}")).await?;
        Ok(Seen { status, history, tables })
    }

    fn json(&self) -> Value {
        serde_json::json!({ "status": self.status, "history": self.history, "tables": self.tables })
    }

    /// Returns the last known value of a series.
    fn now(&self, series: &str) -> Option<f64> {
        self.history["series"][series].as_array()?.iter().rev().find_map(Value::as_f64)
    }

    fn text(&self, api: &Api) -> String {
        let (status, backend, journal) = (&self.status, &self.status["backend"], &self.status["journal"]);
        let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
        let count = |series| number(self.now(series));
        let size = |series| bytes(self.now(series));
        let time = |series| seconds(self.now(series));
        let kind = if backend["kind"] == "duckdb" { "DuckDB" } else { "ClickHouse" };
        let lines = [
            format!("Windrow {} at {}: {}", text(&status["version"]), api.address(), text(&status["sentence"])),
            match backend["up"].as_bool() {
                Some(true) => format!("{kind} {}: up", text(&backend["version"])),
                _ => format!("{kind}: away: {}", text(&backend["reason"])),
            },
            format!(
                "arriving  {} rows/s in {} inserts/s, {}/s; {} connections",
                count("rows_per_second"),
                count("inserts_per_second"),
                size("payload_bytes_per_second"),
                number(status["connections"].as_f64())
            ),
            format!(
                "safe      journal {} of {}, a sync {}; backlog {} inserts; the oldest {}",
                bytes(journal["bytes"].as_f64()),
                bytes(journal["max_bytes"].as_f64()),
                time("journal_sync_seconds"),
                count("backlog_inserts"),
                time("oldest_insert_seconds")
            ),
            format!(
                "stored    {} flushes/s of {} rows, p99 {}; {} active parts; an insert p50 {}, p99 {}",
                count("flushes_per_second"),
                count("rows_per_flush"),
                time("flush_p99_seconds"),
                count("parts_active"),
                time("insert_p50_seconds"),
                time("insert_p99_seconds")
            ),
            format!(
                "waits     {} dead letters; {} errors/s, {} forwarded/s, {} failed inserts/s",
                number(status["dead_letters"].as_f64()),
                count("errors_per_second"),
                count("forwarded_per_second"),
                count("failed_inserts_per_second")
            ),
        ];
        // What comes from elsewhere keeps to its line.
        let one_line = |line: &String| line.replace(char::is_control, " ");
        lines.iter().map(one_line).collect::<Vec<_>>().join("\n") + "\n" + &self.table()
    }

    fn table(&self) -> String {
        let shown = self.tables["tables"].as_array().map(Vec::as_slice).unwrap_or_default();
        let total = self.tables["total"].as_u64().unwrap_or_default();
        if shown.is_empty() {
            return "no table has been inserted into since the start\n".to_owned();
        }
        let mut out =
            format!("\n{:>10} {:>10} {:>10} {:>8} {:>7}  table\n", "rows/s", "inserts/s", "rows", "oldest", "failed");
        for table in shown {
            let name = |field: &str| table[field].as_str().unwrap_or_default().replace(char::is_control, " ");
            // Writing to a String never fails.
            let _ = writeln!(
                out,
                "{:>10} {:>10} {:>10} {:>8} {:>7}  {}.{}",
                number(table["rows_per_second"].as_f64()),
                number(table["inserts_per_second"].as_f64()),
                number(table["rows"].as_f64()),
                seconds(table["oldest_insert_seconds"].as_f64()),
                number(table["failed_inserts"].as_f64()),
                name("database"),
                name("table")
            );
        }
        if total > shown.len() as u64 {
            let _ = writeln!(out, "and {} more", total - shown.len() as u64);
        }
        out
    }
}

/// Writes a number, with a unit for each factor of a thousand.
fn number(value: Option<f64>) -> String {
    scaled(value, 1000.0, &["", " K", " M", " G", " T"])
}

fn bytes(value: Option<f64>) -> String {
    scaled(value, 1024.0, &[" B", " KiB", " MiB", " GiB", " TiB"])
}

fn seconds(value: Option<f64>) -> String {
    match value {
        Some(seconds) if seconds > 0.0 && seconds < 1.0 => scaled(Some(seconds * 1e6), 1000.0, &[" us", " ms", " s"]),
        _ => scaled(value, 1e9, &[" s"]),
    }
}

/// Writes a value with three digits, as far as they say something.
fn scaled(value: Option<f64>, step: f64, units: &[&str]) -> String {
    let Some(mut value) = value else { return "-".to_owned() };
    let mut unit = 0;
    while value >= step && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    let is_whole = value == value.trunc() && unit == 0 || value >= 100.0;
    let decimals = if is_whole { 0 } else { usize::from(value < 10.0) + 1 };
    format!("{value:.decimals$}{}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        for (value, expected) in [(0.0, "0"), (7.0, "7"), (0.25, "0.25"), (12.345, "12.3"), (1_234_567.0, "1.23 M")] {
            assert_eq!(number(Some(value)), expected);
        }
        assert_eq!(
            (bytes(Some(1536.0)), bytes(Some(7.0)), number(None)),
            ("1.50 KiB".into(), "7 B".into(), "-".into())
        );
        let times = [0.0, 0.000_25, 0.0125, 3.0, 75.5].map(|time| seconds(Some(time)));
        assert_eq!(times, ["0 s", "250 us", "12.5 ms", "3 s", "75.5 s"]);
    }
}
