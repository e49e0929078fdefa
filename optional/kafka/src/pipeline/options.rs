//! Options of a pipeline. Their form was checked, but not yet whether the cluster and the table fit them.

use std::path::PathBuf;
use std::time::Duration;

use crate::ClientOptions;

#[derive(Debug, Clone)]
pub struct PipelineOptions {
    /// Name of the pipeline, unique in a gateway. It is the label of the pipeline's metrics.
    pub name: String,
    pub client: ClientOptions,
    pub topics: Topics,
    pub group: String,
    pub database: String,
    pub table: String,
    pub format: FormatOptions,
    /// Columns with the field that each takes. An empty field leaves the column out. A column that isn't
    /// named takes the field of its own name.
    pub columns: Vec<(String, String)>,
    pub start: StartAt,
    /// Longest time from a message's timestamp until the message is stored and can be found.
    pub max_latency: Duration,
    pub on_error: OnError,
    /// True if rows are to be stored exactly once, where the table can recognise a batch that comes again.
    pub exactly_once: bool,
    /// Time that the group waits for a silent member before it gives the member's partitions to others.
    pub session_timeout: Duration,
    /// Time between two searches for new partitions, and for new topics of a pattern.
    pub metadata_refresh: Duration,
    pub overrides: Overrides,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Topics {
    Named(Vec<String>),
    /// A regular expression that has to match a topic's whole name.
    Pattern(String),
}

/// The format of messages, with everything that reading them needs.
#[derive(Debug, Clone, Default)]
pub struct FormatOptions {
    /// ClickHouse's name of the format.
    pub name: String,
    /// The file with a Protobuf schema. `message` is the message's full name in it.
    pub schema_file: Option<PathBuf>,
    pub message: Option<String>,
    pub registry: Option<RegistryOptions>,
    /// ClickHouse's settings for reading.
    pub settings: Vec<(String, String)>,
}

/// A schema registry with Confluent's interface.
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

/// The place where a partition begins for which the group has no offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartAt {
    Earliest,
    Latest,
    /// The first message with this timestamp or a later one, in milliseconds since 1970.
    Time(i64),
}

/// The treatment of a message that can't be read, or that the table refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnError {
    DeadLetter,
    Skip,
    Stop,
}

/// Values that a pipeline otherwise chooses by itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides {
    pub consumers: Option<usize>,
    pub flush_interval: Option<Duration>,
    pub max_batch_rows: Option<u64>,
    pub max_batch_bytes: Option<u64>,
    /// Memory for messages that were fetched or parsed and are not stored, in bytes.
    pub max_memory_bytes: Option<u64>,
    pub fetch_min_bytes: Option<u32>,
    pub fetch_max_bytes: Option<u32>,
    pub fetch_max_wait: Option<Duration>,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns the options of a pipeline with defaults only. Its broker does not exist.
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
