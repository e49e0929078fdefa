//! Turns a checked `[[kafka]]` entry into [`KafkaSettings`]. `consistency.rs` makes sure that the needed keys
//! are there.

use std::path::PathBuf;

use crate::backend::Backend;
use crate::entries::Entry;
use crate::kafka::catalogue::FORMATS;
use windrow_sql::TableName;

use crate::kafka::names::{group_of, name_of};
use crate::kafka::{
    KafkaClientCertificate, KafkaColumn, KafkaOnError, KafkaSasl, KafkaSettings, KafkaStart, KafkaTls, KafkaToken,
    KafkaTopics, SchemaRegistry, SchemaRegistryLogin,
};
use crate::kind::Value;
use crate::secret::Secret;
use crate::typed::EngineSetting;

pub(crate) fn pipeline(entry: &Entry, backend: &Backend) -> KafkaSettings {
    let name = TableName::parse(entry.given("table").unwrap_or_default());
    let (database, table) = name.map_or((None, String::new()), |name| (name.database, name.table));
    let pairs = |key| entry.map(key).iter().cloned();
    KafkaSettings {
        name: name_of(entry).unwrap_or_default(),
        of_flags: entry.of_flags,
        brokers: entry.list("brokers").to_vec(),
        topics: match entry.given("topic_pattern") {
            Some(pattern) => KafkaTopics::Pattern(pattern.to_owned()),
            None => KafkaTopics::Named(entry.list("topics").to_vec()),
        },
        group: group_of(entry).unwrap_or_default(),
        database: database.unwrap_or_else(|| default_database(backend).to_owned()),
        table,
        format: format_of(entry),
        start: entry.given("start").and_then(KafkaStart::parse).unwrap_or(KafkaStart::Earliest),
        max_latency_ms: entry.integer("max_latency").unwrap_or_default(),
        on_error: match entry.given("on_error") {
            Some("skip") => KafkaOnError::Skip,
            Some("stop") => KafkaOnError::Stop,
            _ => KafkaOnError::DeadLetter,
        },
        exactly_once: entry.flag("exactly_once").unwrap_or(true),
        columns: pairs("columns").map(|(column, field)| KafkaColumn { column, field }).collect(),
        schema_file: path(entry, "schema_file"),
        message: entry.given("message").map(str::to_owned),
        schema_registry: entry.given("schema_registry").map(|url| schema_registry(entry, url)),
        format_settings: pairs("format_settings").map(|(name, value)| EngineSetting { name, value }).collect(),
        consumers: entry.integer("consumers").and_then(|count| usize::try_from(count).ok()).unwrap_or(1),
        flush_interval_ms: entry.integer("flush_interval"),
        max_batch_rows: entry.integer("max_batch_rows"),
        max_batch_bytes: entry.integer("max_batch_bytes"),
        max_memory_bytes: entry.integer("max_memory").unwrap_or_default(),
        fetch_min_bytes: entry.integer("fetch_min_bytes"),
        fetch_max_bytes: entry.integer("fetch_max_bytes"),
        fetch_max_wait_ms: entry.integer("fetch_max_wait"),
        session_timeout_ms: entry.integer("session_timeout").unwrap_or_default(),
        metadata_refresh_ms: entry.integer("metadata_refresh").unwrap_or_default(),
        tls: tls(entry),
        sasl: sasl(entry),
    }
}

fn default_database(backend: &Backend) -> &'static str {
    match backend {
        Backend::DuckDb(_) => "main",
        Backend::Embedded | Backend::ClickHouse(_) | Backend::Adbc(_) => "default",
    }
}

pub(crate) fn format_of(entry: &Entry) -> &'static str {
    let given = entry.given("format").unwrap_or_default();
    FORMATS.iter().find(|known| **known == given).unwrap_or(&FORMATS[0])
}

fn schema_registry(entry: &Entry, url: &str) -> SchemaRegistry {
    let login = |user: &str| SchemaRegistryLogin {
        user: user.to_owned(),
        password: secret(entry, "schema_registry_password").unwrap_or_default(),
    };
    SchemaRegistry { url: url.trim_end_matches('/').to_owned(), login: entry.given("schema_registry_user").map(login) }
}

pub(crate) fn has_tls(entry: &Entry) -> bool {
    let named = ["tls.ca_file", "tls.certificate_file", "tls.key_file"].iter().any(|key| entry.given(key).is_some());
    entry.flag("tls.enabled").unwrap_or(named)
}

fn tls(entry: &Entry) -> Option<KafkaTls> {
    let files = path(entry, "tls.certificate_file").zip(path(entry, "tls.key_file"));
    has_tls(entry).then(|| KafkaTls {
        ca_file: path(entry, "tls.ca_file"),
        client: files.map(|(certificate_file, key_file)| KafkaClientCertificate { certificate_file, key_file }),
    })
}

fn sasl(entry: &Entry) -> Option<KafkaSasl> {
    let user = || entry.given("sasl.user").unwrap_or_default().to_owned();
    let password = || secret(entry, "sasl.password").unwrap_or_default();
    Some(match entry.given("sasl.mechanism")? {
        "PLAIN" => KafkaSasl::Plain { user: user(), password: password() },
        "SCRAM-SHA-256" => KafkaSasl::ScramSha256 { user: user(), password: password() },
        "SCRAM-SHA-512" => KafkaSasl::ScramSha512 { user: user(), password: password() },
        _ => KafkaSasl::OauthBearer { token: token(entry), extensions: entry.map("sasl.extensions").to_vec() },
    })
}

fn token(entry: &Entry) -> KafkaToken {
    match (path(entry, "sasl.token_file"), entry.list("sasl.token_command")) {
        (Some(file), _) => KafkaToken::File(file),
        (None, []) => KafkaToken::Given(secret(entry, "sasl.token").unwrap_or_default()),
        (None, command) => KafkaToken::Command(command.to_vec()),
    }
}

fn path(entry: &Entry, key: &str) -> Option<PathBuf> {
    entry.given(key).map(PathBuf::from)
}

fn secret(entry: &Entry, key: &str) -> Option<Secret> {
    entry.given(key).map(Secret::new)
}

impl Entry {
    /// Returns the text of the key, if there is one and it isn't empty.
    pub(crate) fn given(&self, key: &str) -> Option<&str> {
        self.text(key).filter(|text| !text.is_empty())
    }

    pub(crate) fn flag(&self, key: &str) -> Option<bool> {
        match self.value(key) {
            Value::Bool(flag) => Some(*flag),
            _ => None,
        }
    }

    pub(crate) fn list(&self, key: &str) -> &[String] {
        match self.value(key) {
            Value::List(texts) => texts,
            _ => &[],
        }
    }

    pub(crate) fn map(&self, key: &str) -> &[(String, String)] {
        match self.value(key) {
            Value::Map(pairs) => pairs,
            _ => &[],
        }
    }
}
