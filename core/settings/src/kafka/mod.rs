//! `[[kafka]]`: a pipeline from topics into a table, as the rest of the program sees it.

pub(crate) mod assemble;
pub(crate) mod catalogue;
pub(crate) mod consistency;
pub(crate) mod names;
pub(crate) mod overrides;
pub(crate) mod start;

use std::path::PathBuf;

use crate::secret::Secret;
use crate::typed::EngineSetting;

pub use start::KafkaStart;

/// One `[[kafka]]` section.
#[derive(Debug, Clone)]
pub struct KafkaSettings {
    /// A name that is unique among all pipelines.
    pub name: String,
    /// Says whether flags of the command line made this pipeline, or changed it.
    pub of_flags: bool,
    /// Addresses `host:port` of some brokers.
    pub brokers: Vec<String>,
    pub topics: KafkaTopics,
    pub group: String,
    pub database: String,
    pub table: String,
    /// The format's name as ClickHouse writes it.
    pub format: &'static str,
    /// The position from which a partition is read when the group has no offset of the partition.
    pub start: KafkaStart,
    /// Longest time from a message's timestamp until its row is stored.
    pub max_latency_ms: u64,
    pub on_error: KafkaOnError,
    /// Says whether a batch is recorded before it is stored, so that it is stored once, where the table can
    /// deduplicate.
    pub exactly_once: bool,
    /// Columns with the fields that fill them; an empty field leaves the column out.
    pub columns: Vec<KafkaColumn>,
    /// The schema of Protobuf messages.
    pub schema_file: Option<PathBuf>,
    pub message: Option<String>,
    /// The schema registry, set exactly where the format is `AvroConfluent`.
    pub schema_registry: Option<SchemaRegistry>,
    /// Settings of ClickHouse that apply when messages are read.
    pub format_settings: Vec<EngineSetting>,
    /// The number of members of the group.
    pub consumers: usize,
    pub flush_interval_ms: Option<u64>,
    pub max_batch_rows: Option<u64>,
    pub max_batch_bytes: Option<u64>,
    /// Bytes of messages that are fetched or read, and not stored yet.
    pub max_memory_bytes: u64,
    pub fetch_min_bytes: Option<u64>,
    pub fetch_max_bytes: Option<u64>,
    pub fetch_max_wait_ms: Option<u64>,
    /// Time after which the group gives a dead member's partitions to others.
    pub session_timeout_ms: u64,
    /// Time between two requests for new partitions and topics.
    pub metadata_refresh_ms: u64,
    pub tls: Option<KafkaTls>,
    pub sasl: Option<KafkaSasl>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KafkaTopics {
    Named(Vec<String>),
    /// A regular expression that has to match a whole name.
    Pattern(String),
}

/// The treatment of a message that the table can't take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KafkaOnError {
    DeadLetter,
    Skip,
    Stop,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KafkaColumn {
    pub column: String,
    pub field: String,
}

#[derive(Debug, Clone)]
pub struct SchemaRegistry {
    pub url: String,
    pub login: Option<SchemaRegistryLogin>,
}

#[derive(Debug, Clone)]
pub struct SchemaRegistryLogin {
    pub user: String,
    pub password: Secret,
}

/// Files in PEM form.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KafkaTls {
    /// The authorities that are trusted, instead of the system's.
    pub ca_file: Option<PathBuf>,
    pub client: Option<KafkaClientCertificate>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KafkaClientCertificate {
    pub certificate_file: PathBuf,
    pub key_file: PathBuf,
}

#[derive(Debug, Clone)]
pub enum KafkaSasl {
    Plain { user: String, password: Secret },
    ScramSha256 { user: String, password: Secret },
    ScramSha512 { user: String, password: Secret },
    OauthBearer { token: KafkaToken, extensions: Vec<(String, String)> },
}

/// The source of an OAuth token.
#[derive(Debug, Clone)]
pub enum KafkaToken {
    Given(Secret),
    /// A file that is read again for every connection.
    File(PathBuf),
    /// A program and its arguments; the program prints the token.
    Command(Vec<String>),
}
