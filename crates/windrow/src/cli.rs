use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use windrow_settings::Flag;

use crate::append::AppendArguments;
use crate::dead_letters::DeadLettersArguments;
use crate::journal::JournalArguments;
use crate::kafka::KafkaArguments;
use crate::status::StatusArguments;

/// Gathers many small inserts into few large ones for ClickHouse.
#[derive(Parser)]
#[command(name = "windrow", version, about)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Run the gateway.
    Serve(SettingsFlags),
    /// Print the settings in force, each with where it came from.
    Config(SettingsFlags),
    /// UpClick: hundreds of probes insert one row each through a gateway on an embedded ClickHouse.
    Demo(DemoArguments),
    Append(Box<AppendArguments>),
    DeadLetters(DeadLettersArguments),
    Journal(JournalArguments),
    Kafka(KafkaArguments),
    Status(StatusArguments),
    MendClickhouse(MendClickHouseArguments),
}

/// Before a ClickHouse that was killed is started again: withdraw records of blocks that it did not store.
///
/// ClickHouse writes into a table's deduplication log that it has stored a block, and stores it then. Killed between
/// the two, it takes a repeat of that insert for stored, and its rows are lost. Windrow does this for its embedded
/// ClickHouse by itself; for another one, let its service do it before each start, as the user that ClickHouse runs as.
#[derive(Args)]
pub(crate) struct MendClickHouseArguments {
    /// ClickHouse's setting `path`, as in /var/lib/clickhouse.
    pub(crate) path: PathBuf,
}

/// Settings as flags; they override variables, which override the file.
#[derive(Args)]
pub(crate) struct SettingsFlags {
    /// The settings file.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// embedded, http[s]://user:password@host:8123, or duckdb:///path/file.db.
    #[arg(long, value_name = "BACKEND")]
    backend: Option<String>,
    /// Where the gateway keeps its files.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<String>,
    /// The data port: ClickHouse's HTTP interface.
    #[arg(long, value_name = "ADDRESS")]
    http: Option<String>,
    /// The admin port: health and metrics.
    #[arg(long, value_name = "ADDRESS")]
    admin: Option<String>,
    /// The port of ClickHouse's native protocol, as in 127.0.0.1:9000; none unless named.
    #[arg(long, value_name = "ADDRESS")]
    native: Option<String>,
    /// The same inside TLS, as in 0.0.0.0:9440; see native.tls_certificate.
    #[arg(long, value_name = "ADDRESS")]
    native_tls: Option<String>,
    /// The port of Arrow Flight SQL; "" for none.
    #[arg(long, value_name = "ADDRESS")]
    flight: Option<String>,
    /// text or json.
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<String>,
    /// error, warn, info, debug, trace, or directives per target.
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<String>,
}

impl SettingsFlags {
    pub(crate) fn flags(&self) -> Vec<Flag> {
        let given = [
            ("backend", "--backend", &self.backend),
            ("data_dir", "--data-dir", &self.data_dir),
            ("http.listen", "--http", &self.http),
            ("admin.listen", "--admin", &self.admin),
            ("native.listen", "--native", &self.native),
            ("native.tls_listen", "--native-tls", &self.native_tls),
            ("flight.listen", "--flight", &self.flight),
            ("log.format", "--log-format", &self.log_format),
            ("log.level", "--log-level", &self.log_level),
        ];
        let flag = |(path, name, value): (&str, &str, &Option<String>)| {
            Some(Flag { path: path.to_owned(), name: name.to_owned(), value: value.clone()? })
        };
        given.into_iter().filter_map(flag).collect()
    }

    /// Whether the user chose where files go.
    pub(crate) fn names_data_dir(&self) -> bool {
        self.data_dir.is_some() || self.config.is_some()
    }

    /// Whether the user chose the ports.
    pub(crate) fn names_ports(&self) -> bool {
        self.http.is_some()
            || self.admin.is_some()
            || self.flight.is_some()
            || self.native.is_some()
            || self.config.is_some()
    }
}

#[derive(Args)]
pub(crate) struct DemoArguments {
    #[command(flatten)]
    pub(crate) settings: SettingsFlags,
    /// How many probes there are.
    #[arg(long, default_value_t = 200)]
    pub(crate) probes: usize,
    /// How often each of them measures: 10s, 500ms, 1m.
    #[arg(long, default_value = "10s", value_parser = duration)]
    pub(crate) every: Duration,
    /// End after this long: 20 (seconds), 20s, 5m. Without it: until Ctrl-C.
    #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
    pub(crate) run_for: Option<Duration>,
    /// A site to measure; may be given several times. Without it the demo measures two of its own, offline.
    #[arg(long = "url", value_name = "URL")]
    pub(crate) urls: Vec<String>,
    /// The average latency that a city should stay below, in milliseconds.
    #[arg(long, default_value_t = 100.0, value_name = "MS")]
    pub(crate) kpi: f64,
    /// Insert without waiting (wait_for_async_insert=0).
    #[arg(long)]
    pub(crate) no_wait: bool,
    /// One line a second instead of a picture.
    #[arg(long)]
    pub(crate) plain: bool,
}

fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let seconds_per_unit = match &text[digits.len()..] {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        unit => return Err(format!("'{unit}' is no unit of time; use ms, s, m or h")),
    };
    let number: f64 = digits.parse().map_err(|_| format!("'{text}' is no duration; write 10s, 500ms or 5m"))?;
    Duration::try_from_secs_f64(number * seconds_per_unit).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn durations_have_units() {
        for (text, millis) in [("10s", 10_000), ("20", 20_000), ("500ms", 500), ("1.5m", 90_000), ("1h", 3_600_000)] {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for bad in ["", "s", "10d", "-1s", "1e400"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }
}
