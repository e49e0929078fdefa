use clap::{Args, Subcommand, ValueEnum};
use serde_json::{json, Map, Value};
use windrow_clickhouse::push_param;

use crate::cli::SettingsFlags;

/// Inserts that were acknowledged and could not be stored, and messages that a pipeline could not store.
#[derive(Args)]
pub(crate) struct DeadLettersArguments {
    #[command(subcommand)]
    pub(super) command: DeadLettersCommand,
}

#[derive(Subcommand)]
pub(super) enum DeadLettersCommand {
    /// Print the dead letters, the latest first. Without a running gateway its files are read.
    List(ListArguments),
    /// Print all that is known of one dead letter, and its first rows.
    Show(ShowArguments),
    /// Hand dead letters back to the running gateway, to be stored. Those that fail again become dead letters
    /// again.
    Retry(ChangeArguments),
    /// Throw dead letters away.
    Discard(ChangeArguments),
}

impl DeadLettersArguments {
    pub(crate) fn settings(&self) -> &SettingsFlags {
        match &self.command {
            DeadLettersCommand::List(arguments) => &arguments.settings,
            DeadLettersCommand::Show(arguments) => &arguments.settings,
            DeadLettersCommand::Retry(arguments) | DeadLettersCommand::Discard(arguments) => &arguments.settings,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum OutputFormat {
    /// A table for people.
    Table,
    Json,
}

/// The conditions that a dead letter has to fulfil, all of them.
#[derive(Args)]
pub(super) struct Conditions {
    /// A table, or database.table.
    #[arg(long, value_name = "TABLE")]
    table: Option<String>,
    /// All tables of a database.
    #[arg(long, value_name = "DATABASE")]
    database: Option<String>,
    /// The user who inserted.
    #[arg(long, value_name = "USER")]
    user: Option<String>,
    /// Messages of a Kafka pipeline.
    #[arg(long, value_name = "NAME")]
    pipeline: Option<String>,
    /// Messages of a topic.
    #[arg(long, value_name = "TOPIC")]
    topic: Option<String>,
    /// Messages of a partition.
    #[arg(long, value_name = "NUMBER")]
    partition: Option<i32>,
    /// ClickHouse's code of the error.
    #[arg(long, value_name = "CODE")]
    code: Option<i32>,
    /// Failed since then: 2h (two hours ago), "2026-01-31 12:00:00" (UTC), or seconds since 1970.
    #[arg(long, value_name = "MOMENT")]
    since: Option<String>,
    /// Failed before then.
    #[arg(long, value_name = "MOMENT")]
    until: Option<String>,
}

impl Conditions {
    /// Returns the conditions by the names that the API knows. The database comes first: it decides what a
    /// dot in a table's name means.
    pub(super) fn named(&self) -> Vec<(&'static str, String)> {
        let given = [
            ("database", self.database.clone()),
            ("table", self.table.clone()),
            ("user", self.user.clone()),
            ("pipeline", self.pipeline.clone()),
            ("topic", self.topic.clone()),
            ("partition", self.partition.map(|partition| partition.to_string())),
            ("code", self.code.map(|code| code.to_string())),
            ("since", self.since.clone()),
            ("until", self.until.clone()),
        ];
        given.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

#[derive(Args)]
pub(super) struct ListArguments {
    #[command(flatten)]
    pub(super) conditions: Conditions,
    /// The largest number of dead letters to print.
    #[arg(long, default_value_t = 100)]
    pub(super) limit: usize,
    /// The number of dead letters to leave out before the first one.
    #[arg(long, default_value_t = 0)]
    pub(super) offset: usize,
    #[arg(long, value_enum, default_value = "table")]
    pub(super) format: OutputFormat,
    #[command(flatten)]
    settings: SettingsFlags,
}

impl ListArguments {
    /// Returns the path and the parameters of the API's request.
    pub(super) fn target(&self) -> String {
        let mut target = String::new();
        for (name, value) in self.conditions.named() {
            push_param(&mut target, name, &value);
        }
        push_param(&mut target, "limit", &self.limit.to_string());
        push_param(&mut target, "offset", &self.offset.to_string());
        target
    }
}

#[derive(Args)]
pub(super) struct ShowArguments {
    pub(super) id: u64,
    /// The number of its rows to print; needs the running gateway, whose ClickHouse reads them.
    #[arg(long, default_value_t = 10, value_name = "NUMBER")]
    pub(super) rows: usize,
    /// Write its rows to standard output as they are kept, and nothing else.
    #[arg(long)]
    pub(super) payload: bool,
    #[arg(long, value_enum, default_value = "table")]
    pub(super) format: OutputFormat,
    #[command(flatten)]
    settings: SettingsFlags,
}

#[derive(Args)]
pub(super) struct ChangeArguments {
    /// The ids of the dead letters.
    #[arg(value_name = "ID")]
    ids: Vec<u64>,
    #[command(flatten)]
    conditions: Conditions,
    /// Take all dead letters.
    #[arg(long)]
    all: bool,
    #[arg(long, value_enum, default_value = "table")]
    pub(super) format: OutputFormat,
    #[command(flatten)]
    settings: SettingsFlags,
}

impl ChangeArguments {
    /// Returns the selection as the API wants it.
    pub(super) fn selection(&self) -> Result<Value, String> {
        let mut fields: Map<String, Value> =
            self.conditions.named().into_iter().map(|(name, value)| (name.to_owned(), Value::from(value))).collect();
        if !self.ids.is_empty() {
            fields.insert("ids".to_owned(), json!(self.ids));
        }
        match (fields.is_empty(), self.all) {
            (true, false) => Err("which ones? Give ids, conditions such as --table db.t, or --all".to_owned()),
            (false, true) => Err("--all goes with no ids and no conditions".to_owned()),
            (true, true) => Ok(json!({ "all": true })),
            (false, false) => Ok(Value::from(fields)),
        }
    }
}
