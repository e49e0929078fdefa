//! `[[kafka]]`: one pipeline from topics into a table, as the rest of the program sees it.

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
    /// Unique among all pipelines.
    pub name: String,
    /// Whether flags of the command line made this pipeline, or changed it.
    pub of_flags: bool,
    /// `host:port` of some brokers.
    pub brokers: Vec<String>,
    pub topics: KafkaTopics,
    pub group: String,
    pub database: String,
    pub table: String,
    /// As ClickHouse writes it.
    pub format: &'static str,
    /// Where a partition is begun that the group has no offset of.
    pub start: KafkaStart,
    /// From a message's timestamp to stored.
    pub max_latency_ms: u64,
    pub on_error: KafkaOnError,
    /// Where the table can.
    pub exactly_once: bool,
    /// Columns by the fields that they take; an empty field leaves the column out.
    pub columns: Vec<KafkaColumn>,
    /// Of Protobuf.
    pub schema_file: Option<PathBuf>,
    pub message: Option<String>,
    /// Set exactly where the format is `AvroConfluent`.
    pub schema_registry: Option<SchemaRegistry>,
    /// ClickHouse's settings of reading.
    pub format_settings: Vec<EngineSetting>,
    /// Members of the group.
    pub consumers: usize,
    pub flush_interval_ms: Option<u64>,
    pub max_batch_rows: Option<u64>,
    pub max_batch_bytes: Option<u64>,
    /// Of what is fetched or read, and not stored.
    pub max_memory_bytes: u64,
    pub fetch_min_bytes: Option<u64>,
    pub fetch_max_bytes: Option<u64>,
    pub fetch_max_wait_ms: Option<u64>,
    /// After how long a dead member's partitions are given to others.
    pub session_timeout_ms: u64,
    /// How often it is asked for new partitions and topics.
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

/// What becomes of a message that the table can't take.
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
    /// Instead of the system's authorities.
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

/// Where a token is found.
#[derive(Debug, Clone)]
pub enum KafkaToken {
    Given(Secret),
    /// Read again for every connection.
    File(PathBuf),
    /// A program and its arguments; it prints the token.
    Command(Vec<String>),
}
