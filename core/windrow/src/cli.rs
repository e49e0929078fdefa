use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;
use windrow_settings::Flag;

#[cfg(feature = "append")]
use crate::append::AppendArguments;
use crate::dead_letters::DeadLettersArguments;
use crate::drain::DrainArguments;
use crate::journal::JournalArguments;
#[cfg(feature = "kafka")]
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
    Config(ConfigArguments),
    #[cfg(feature = "demo")]
    /// UpClick: hundreds of probes insert one row each, through a gateway and straight into ClickHouse.
    Demo(DemoArguments),
    #[cfg(feature = "append")]
    Append(Box<AppendArguments>),
    DeadLetters(DeadLettersArguments),
    Journal(JournalArguments),
    #[cfg(feature = "kafka")]
    Kafka(KafkaArguments),
    Status(StatusArguments),
    /// Show the same each second, until Ctrl-C: `windrow status --watch`.
    Top(TopArguments),
    Drain(DrainArguments),
    MendClickhouse(MendClickHouseArguments),
    /// Print the script that makes a shell complete this program's commands and flags.
    Completions {
        shell: Shell,
    },
}

/// Examples of each command, which stand at the end of its help.
const EXAMPLES: [(&[&str], &str); 23] = [
    (&[], "windrow demo\nwindrow serve --config /etc/windrow.toml\nwindrow status --watch"),
    (
        &["serve"],
        "windrow serve\nwindrow serve --config /etc/windrow.toml\n\
         windrow serve --backend https://windrow:password@clickhouse.example:8443 --http 0.0.0.0:8123\n\
         windrow serve --otlp-grpc 127.0.0.1:4317 --otlp-http 127.0.0.1:4318",
    ),
    (&["config"], "windrow config --config /etc/windrow.toml\nwindrow config init /etc/windrow.toml"),
    (&["config", "init"], "windrow config init /etc/windrow.toml\nwindrow config init -"),
    (
        &["demo"],
        "windrow demo\nwindrow demo --for 20s --plain --no-browser\nwindrow demo --scene synchronous\n\
         windrow demo --backend duckdb::memory: --url https://clickhouse.com --every 10s",
    ),
    (
        &["append"],
        "windrow append --to http://127.0.0.1:8123 --table events day-*.parquet\n\
         zcat old.csv.gz | windrow append --to http://127.0.0.1:8123 --table db.events --format csv -",
    ),
    (&["dead-letters"], "windrow dead-letters list --since 2h\nwindrow dead-letters retry --table events"),
    (&["dead-letters", "list"], "windrow dead-letters list --table db.events --since 2h --format json"),
    (&["dead-letters", "show"], "windrow dead-letters show 7"),
    (&["dead-letters", "retry"], "windrow dead-letters retry 7\nwindrow dead-letters retry --table db.events"),
    (&["dead-letters", "discard"], "windrow dead-letters discard 7\nwindrow dead-letters discard --code 27 --until 7d"),
    (&["journal"], "windrow journal inspect\nwindrow journal repair dead-letters --data-dir /var/lib/windrow"),
    (&["journal", "inspect"], "windrow journal inspect\nwindrow journal inspect deduplication --config /etc/windrow.toml"),
    (&["journal", "repair"], "windrow journal repair\nwindrow journal repair dead-letters --data-dir /var/lib/windrow"),
    (
        &["journal", "adopt"],
        "windrow journal adopt /var/lib/windrow-2 --config /etc/windrow.toml\n\
         windrow journal adopt ./windrow-2 --backend http://windrow:password@clickhouse:8123",
    ),
    (&["kafka"], "windrow kafka check clicks --config /etc/windrow.toml\nwindrow kafka run clicks"),
    (&["kafka", "check"], "windrow kafka check --brokers broker:9092 --topics clicks --table clicks --format JSONEachRow"),
    (&["kafka", "run"], "windrow kafka run clicks --config /etc/windrow.toml"),
    (&["drain"], "windrow drain\nwindrow drain clickhouse-2:8123\nwindrow drain clickhouse-2:8123 --undo"),
    (&["mend-clickhouse"], "windrow mend-clickhouse /var/lib/clickhouse"),
    (
        &["status"],
        "windrow status\nwindrow status --watch --config /etc/windrow.toml\nwindrow status --admin 10.0.0.7:8080 --json",
    ),
    (&["top"], "windrow top\nwindrow top --config /etc/windrow.toml"),
    (
        &["completions"],
        "windrow completions bash > /etc/bash_completion.d/windrow\n\
         windrow completions zsh > ~/.zfunc/_windrow\nwindrow completions fish > ~/.config/fish/completions/windrow.fish",
    ),
];

/// The flags that each command heeds, of those that set settings. The other flags are accepted and not
/// listed: scripts may give the same flags to all commands.
const HEEDED: [(&[&str], &[&str]); 11] = [
    (&["top"], &["config", "admin"]),
    (&["status"], &["config", "admin"]),
    (&["drain"], &["config", "admin"]),
    (&["dead-letters", "list"], &["config", "admin", "data_dir"]),
    (&["dead-letters", "show"], &["config", "admin", "data_dir"]),
    (&["dead-letters", "retry"], &["config", "admin", "data_dir"]),
    (&["dead-letters", "discard"], &["config", "admin", "data_dir"]),
    (&["journal", "inspect"], &["config", "data_dir"]),
    (&["journal", "repair"], &["config", "data_dir"]),
    (&["journal", "adopt"], &["config", "backend", "log_format", "log_level"]),
    (&["kafka", "check"], &["config", "backend", "data_dir", "log_format", "log_level"]),
];

impl Cli {
    /// Reads the command line of this process; ends the process where the line has mistakes, or asks for
    /// help.
    pub(crate) fn of_process() -> Cli {
        let matches = Self::finished().get_matches();
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }

    /// Returns the command with examples, and without flags that a command doesn't heed.
    pub(crate) fn finished() -> clap::Command {
        let mut cli = Self::command();
        for (path, examples) in EXAMPLES {
            let lines: String = examples.lines().map(|line| format!("\n  {line}")).collect();
            cli = at(cli, path, &|command| command.after_help(format!("Examples:{lines}")));
        }
        for (path, heeded) in HEEDED {
            cli = at(cli, path, &|command| {
                let flags = <SettingsFlags as Args>::augment_args(clap::Command::new(""));
                let unheeded = flags.get_arguments().map(|flag| flag.get_id().as_str().to_owned());
                unheeded
                    .filter(|flag| !heeded.contains(&flag.as_str()))
                    .fold(command, |command, flag| command.mut_arg(flag, |flag| flag.hide(true)))
            });
        }
        cli
    }
}

/// Changes one command, named by its path.
fn at(command: clap::Command, path: &[&str], change: &dyn Fn(clap::Command) -> clap::Command) -> clap::Command {
    match path {
        [] => change(command),
        // A part that the program is built without.
        [next, ..] if command.find_subcommand(next).is_none() => command,
        [next, rest @ ..] => command.mut_subcommand(*next, |command| at(command, rest, change)),
    }
}

#[derive(Args)]
pub(crate) struct TopArguments {
    #[command(flatten)]
    pub(crate) settings: SettingsFlags,
}

/// Print the settings in force, each with its source; or begin a settings file.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ConfigArguments {
    #[command(flatten)]
    pub(crate) settings: SettingsFlags,
    #[command(subcommand)]
    pub(crate) command: Option<ConfigCommand>,
}

#[derive(Subcommand)]
pub(crate) enum ConfigCommand {
    /// Write a settings file to begin with: the usual settings with their defaults, the others as comments.
    Init {
        /// The file, which must not exist yet; - is standard output.
        #[arg(default_value = "windrow.toml", value_name = "FILE")]
        path: PathBuf,
    },
}

/// Withdraw records of blocks that a killed ClickHouse did not store, before it is started again.
///
/// ClickHouse writes into a table's deduplication log that it has stored a block, and stores it then. Killed
/// between the two, it takes a repeat of that insert for stored, and its rows are lost. Windrow does this for
/// its embedded ClickHouse by itself; for another one, let its service do it before each start, as the user
/// that ClickHouse runs as.
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
    /// embedded, http[s]://user:password@host:8123, duckdb:///path/file.db, or adbc: and a database's address.
    #[arg(long, value_name = "BACKEND")]
    backend: Option<String>,
    /// The folder in which the gateway keeps its files.
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
    /// The port of the same protocol inside TLS, as in 0.0.0.0:9440; see native.tls_certificate.
    #[arg(long, value_name = "ADDRESS")]
    native_tls: Option<String>,
    /// The port of Arrow Flight SQL; "" for none.
    #[arg(long, value_name = "ADDRESS")]
    flight: Option<String>,
    /// The port of OpenTelemetry's OTLP over gRPC, as in 127.0.0.1:4317; none unless named.
    #[arg(long, value_name = "ADDRESS")]
    otlp_grpc: Option<String>,
    /// The port of OTLP over HTTP, as in 127.0.0.1:4318.
    #[arg(long, value_name = "ADDRESS")]
    otlp_http: Option<String>,
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
            ("otlp.grpc_listen", "--otlp-grpc", &self.otlp_grpc),
            ("otlp.http_listen", "--otlp-http", &self.otlp_http),
            ("log.format", "--log-format", &self.log_format),
            ("log.level", "--log-level", &self.log_level),
        ];
        let flag = |(path, name, value): (&str, &str, &Option<String>)| {
            Some(Flag { path: path.to_owned(), name: name.to_owned(), value: value.clone()? })
        };
        given.into_iter().filter_map(flag).collect()
    }

    /// Says whether the user chose this setting, or named a file, which may set it.
    pub(crate) fn names(&self, setting: &str) -> bool {
        self.config.is_some() || self.flags().iter().any(|flag| flag.path == setting)
    }
}

#[derive(Args)]
pub(crate) struct DemoArguments {
    #[command(flatten)]
    pub(crate) settings: SettingsFlags,
    /// The number of probes or agents: 200, or as many as the scene has.
    #[arg(long)]
    pub(crate) probes: Option<usize>,
    /// Time between two measurements, or sendings, of each of them: 10s, 500ms, 1m.
    #[arg(long, default_value = "1s", value_parser = duration)]
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
    /// Insert each row straight into ClickHouse too, and show both. This is the default unless the terminal
    /// is narrower than 100 columns, or the rows go into DuckDB.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "true|false")]
    pub(crate) compare: Option<bool>,
    /// One of the experiments of "Asynchronous Data Inserts in ClickHouse", alone; or OpenTelemetry.
    #[arg(long, conflicts_with_all = ["compare", "no_wait"])]
    pub(crate) scene: Option<Scene>,
    /// Don't open the page with the map; its address is printed.
    #[arg(long)]
    pub(crate) no_browser: bool,
    /// One line a second instead of a picture.
    #[arg(long)]
    pub(crate) plain: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Scene {
    /// 200 probes, straight into ClickHouse: every row is a part.
    Synchronous,
    /// 500 probes through Windrow, which flushes once a second and acknowledges what is stored.
    Waiting,
    /// 500 probes through Windrow, which flushes every 5 seconds and acknowledges before.
    NotWaiting,
    /// 300 agents that send OpenTelemetry's logs, traces and metrics to Windrow, over gRPC and HTTP.
    Otel,
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
        Cli::finished().debug_assert();
    }

    #[test]
    fn every_command_shows_examples_and_only_flags_that_it_heeds() {
        fn check(command: &mut clap::Command, path: &str) {
            let help = command.render_long_help().to_string();
            assert!(help.contains("Examples:"), "{path}:\n{help}");
            for command in command.get_subcommands_mut().filter(|command| command.get_name() != "help") {
                check(command, &format!("{path} {}", command.get_name()));
            }
        }
        check(&mut Cli::finished(), "windrow");
        let help = |path: &[&str]| {
            let mut cli = Cli::finished();
            let command = path.iter().fold(&mut cli, |command, name| command.find_subcommand_mut(name).expect(name));
            command.render_help().to_string()
        };
        assert!(help(&["serve"]).contains("--native"));
        let status = help(&["status"]);
        assert!(status.contains("--admin") && !status.contains("--native") && !status.contains("--flight"), "{status}");
        // Not listed, and taken all the same.
        assert!(Cli::finished().try_get_matches_from(["windrow", "status", "--http", "127.0.0.1:1"]).is_ok());
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
