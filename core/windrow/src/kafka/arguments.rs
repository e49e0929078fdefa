use std::path::PathBuf;

use clap::{Args, Subcommand};
use windrow_settings::Flag;

use crate::cli::SettingsFlags;

/// Pipelines from Kafka into tables: try one, or run one.
#[derive(Args)]
pub(crate) struct KafkaArguments {
    #[command(subcommand)]
    pub(super) command: KafkaCommand,
}

#[derive(Subcommand)]
pub(super) enum KafkaCommand {
    /// Connect, read a sample, and print which column takes what and what would be refused. Stores nothing, commits
    /// nothing. Exit code 0: it fits, 1: it doesn't, 2: something could not be asked, or the settings are wrong.
    Check(Box<CheckArguments>),
    /// Run one pipeline, with the ports of a gateway, until it is stopped.
    Run(Box<RunArguments>),
}

#[derive(Args)]
pub(super) struct CheckArguments {
    #[command(flatten)]
    pub(super) pipeline: PipelineFlags,
    /// Print one line of JSON for each pipeline.
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) settings: SettingsFlags,
}

#[derive(Args)]
pub(super) struct RunArguments {
    #[command(flatten)]
    pub(super) pipeline: PipelineFlags,
    #[command(flatten)]
    pub(super) settings: SettingsFlags,
}

/// A pipeline by its name in the settings, or by flags alone; flags beside a name change what the settings say.
#[derive(Args)]
pub(super) struct PipelineFlags {
    /// The name of a [[kafka]] entry.
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// host:port of some brokers, with commas between.
    #[arg(long, value_name = "ADDRESSES")]
    brokers: Option<String>,
    /// The topics, with commas between.
    #[arg(long, value_name = "NAMES")]
    topics: Option<String>,
    /// A regular expression for whole names of topics.
    #[arg(long, value_name = "REGEX")]
    topic_pattern: Option<String>,
    /// The consumer group.
    #[arg(long, value_name = "GROUP")]
    group: Option<String>,
    /// table, or database.table.
    #[arg(long, value_name = "TABLE")]
    table: Option<String>,
    /// ClickHouse's name of the messages' format.
    #[arg(long, value_name = "FORMAT")]
    format: Option<String>,
    /// Columns and the fields that they take where their names differ: ts=event.time,k=_key.
    #[arg(long, value_name = "COLUMN=FIELD,...")]
    columns: Option<String>,
    /// The .proto file.
    #[arg(long, value_name = "FILE")]
    schema_file: Option<PathBuf>,
    /// The message type in the schema.
    #[arg(long, value_name = "NAME")]
    message: Option<String>,
    /// The schema registry of AvroConfluent.
    #[arg(long, value_name = "URL")]
    schema_registry: Option<String>,
    /// earliest, latest, or a moment such as 2026-01-31T12:00:00Z: for partitions without an offset.
    #[arg(long, value_name = "START")]
    start: Option<String>,
    /// The longest time from a message to its stored row: 800ms, 5s, 1m.
    #[arg(long, value_name = "TIME")]
    max_latency: Option<String>,
    /// dead_letter, skip or stop.
    #[arg(long, value_name = "WHAT")]
    on_error: Option<String>,
    /// Any other key of [[kafka]], such as sasl.user=ann; may be given several times. Passwords come by variables:
    /// WINDROW_KAFKA_<NAME>_SASL_PASSWORD.
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    set: Vec<(String, String)>,
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or_else(|| format!("'{text}' has no =; write KEY=VALUE"))?;
    Ok((key.trim().to_owned(), value.to_owned()))
}

impl PipelineFlags {
    /// Returns the flags as settings; none where nothing is given.
    pub(super) fn flags(&self) -> Vec<Flag> {
        let schema_file = self.schema_file.as_ref().map(|path| path.display().to_string());
        let given = [
            ("name", "NAME", &self.name),
            ("brokers", "--brokers", &self.brokers),
            ("topics", "--topics", &self.topics),
            ("topic_pattern", "--topic-pattern", &self.topic_pattern),
            ("group", "--group", &self.group),
            ("table", "--table", &self.table),
            ("format", "--format", &self.format),
            ("columns", "--columns", &self.columns),
            ("schema_file", "--schema-file", &schema_file),
            ("message", "--message", &self.message),
            ("schema_registry", "--schema-registry", &self.schema_registry),
            ("start", "--start", &self.start),
            ("max_latency", "--max-latency", &self.max_latency),
            ("on_error", "--on-error", &self.on_error),
        ];
        let flag = |key: &str, name: &str, value: &str| Flag {
            path: format!("kafka.{key}"),
            name: name.to_owned(),
            value: value.to_owned(),
        };
        let named = given.into_iter().filter_map(|(key, name, value)| Some(flag(key, name, value.as_ref()?)));
        named.chain(self.set.iter().map(|(key, value)| flag(key, "--set", value))).collect()
    }
}
