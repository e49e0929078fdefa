//! Windrow's settings: a TOML file, overridden by `WINDROW_*` variables, overridden by flags.
//!
//! Every setting is one row of the table in `catalogue.rs`. Parsing, the names of variables, `windrow config`
//! and `docs/settings.md` all come from that row, so they can't disagree. Loading goes in four steps:
//! `file.rs` turns TOML into keys with positions, `layers.rs` puts the sources over each other and remembers
//! which one won, `consistency.rs` checks what must hold between several settings, and `assemble.rs` makes
//! the typed [`Settings`] out of the winners.

mod assemble;
mod backend;
mod catalogue;
mod cluster;
mod consistency;
mod entries;
mod errors;
mod explain;
mod file;
mod kafka;
mod kind;
mod layers;
mod memory;
mod nearest;
mod origin;
mod otlp;
mod reference;
mod secret;
mod table_rules;
mod typed;
mod units;
mod variables;

pub use backend::{AdbcUrl, Backend, ClickHouseUrl, DuckDbPlace, ReplicaChoice};
pub use cluster::{ClusterSecret, ClusterSettings};
pub use errors::{SettingsError, SettingsErrors};
pub use explain::Difference;
pub use kafka::{
    KafkaClientCertificate, KafkaColumn, KafkaOnError, KafkaSasl, KafkaSettings, KafkaStart, KafkaTls, KafkaToken,
    KafkaTopics, SchemaRegistry, SchemaRegistryLogin,
};
pub use layers::{Flag, Sources};
pub use origin::Origin;
pub use otlp::{OtlpMapping, OtlpSettings, OtlpTables, OtlpTenants, OtlpToken};
pub use reference::reference_markdown;
pub use secret::Secret;
pub use table_rules::{AckRule, AsyncInsertRule, TableRules};
pub use typed::{
    AdbcSettings, AdminSettings, AppendSettings, BackendPoolSettings, BackendTlsSettings, DeadLetterSettings,
    DuckDbSettings, EmbeddedSettings, EmbeddedUser, EngineSetting, FlightSettings, FlushPolicy, GatherSettings,
    HttpSettings, JournalSettings, LogFormat, LogSettings, NativeSettings, Settings, SqlUser, TlsFiles,
    TracingSettings,
};
