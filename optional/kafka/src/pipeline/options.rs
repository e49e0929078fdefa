//! What a pipeline is told: settings that were checked for their form, not yet against the cluster and the table.

use std::path::PathBuf;
use std::time::Duration;

use crate::ClientOptions;

#[derive(Debug, Clone)]
pub struct PipelineOptions {
    /// Unique among the pipelines of a gateway; the label of its metrics.
    pub name: String,
    pub client: ClientOptions,
    pub topics: Topics,
    pub group: String,
    pub database: String,
    pub table: String,
    pub format: FormatOptions,
    /// A column and the field that it is taken from; an empty field leaves the column out. What isn't named maps by its
    /// own name.
    pub columns: Vec<(String, String)>,
    pub start: StartAt,
    /// From a message's timestamp until it is stored and can be found.
    pub max_latency: Duration,
    pub on_error: OnError,
    /// Where the table can recognise a batch that comes again.
    pub exactly_once: bool,
    /// How long the group waits for a member that is silent, before its partitions go to others.
    pub session_timeout: Duration,
    /// How often new partitions, and new topics of a pattern, are looked for.
    pub metadata_refresh: Duration,
    pub overrides: Overrides,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Topics {
    Named(Vec<String>),
    /// A regular expression that has to match a topic's whole name.
    Pattern(String),
}

/// How messages are read.
#[derive(Debug, Clone, Default)]
pub struct FormatOptions {
    /// ClickHouse's name of it.
    pub name: String,
    /// Of Protobuf: the file, and the message's full name in it.
    pub schema_file: Option<PathBuf>,
    pub message: Option<String>,
    pub registry: Option<RegistryOptions>,
    /// ClickHouse's settings of reading.
    pub settings: Vec<(String, String)>,
}

/// A schema registry as Confluent's.
#[derive(Clone, Default)]
pub struct RegistryOptions {
    pub url: String,
    pub user: Option<String>,
    pub password: Option<String>,
}

impl std::fmt::Debug for RegistryOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RegistryOptions").field("url", &self.url).field("user", &self.user).finish_non_exhaustive()
    }
}

/// Where a partition is begun for which the group has no offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartAt {
    Earliest,
    Latest,
    /// The first message with this timestamp or a later one, in milliseconds since 1970.
    Time(i64),
}

/// What becomes of a message that can't be read, or that the table refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnError {
    DeadLetter,
    Skip,
    Stop,
}

/// What a pipeline otherwise chooses by itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides {
    pub consumers: Option<usize>,
    pub flush_interval: Option<Duration>,
    pub max_batch_rows: Option<u64>,
    pub max_batch_bytes: Option<u64>,
    /// Of what was fetched and parsed and is not stored.
    pub max_memory_bytes: Option<u64>,
    pub fetch_min_bytes: Option<u32>,
    pub fetch_max_bytes: Option<u32>,
    pub fetch_max_wait: Option<Duration>,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Of a pipeline of which nothing else was said; no broker is there.
    pub(crate) fn options() -> PipelineOptions {
        PipelineOptions {
            name: "events".to_owned(),
            client: ClientOptions::new(vec!["127.0.0.1:1".to_owned()]),
            topics: Topics::Named(vec!["events".to_owned()]),
            group: "windrow".to_owned(),
            database: "default".to_owned(),
            table: "events".to_owned(),
            format: FormatOptions { name: "JSONEachRow".to_owned(), ..FormatOptions::default() },
            columns: Vec::new(),
            start: StartAt::Earliest,
            max_latency: Duration::from_secs(5),
            on_error: OnError::DeadLetter,
            exactly_once: true,
            session_timeout: Duration::from_secs(10),
            metadata_refresh: Duration::from_secs(10),
            overrides: Overrides::default(),
        }
    }

    #[test]
    fn a_registrys_password_is_in_no_debug_output() {
        let registry = RegistryOptions {
            url: "http://127.0.0.1:8081".to_owned(),
            user: Some("ann".to_owned()),
            password: Some("a secret".to_owned()),
        };
        assert!(!format!("{registry:?}").contains("secret"));
    }
}
