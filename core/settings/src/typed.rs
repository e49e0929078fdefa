//! The settings as the rest of the program sees them: checked, typed, with units in their names.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::assemble;
use crate::backend::{Backend, ClickHouseUrl, ReplicaChoice};
use crate::cluster::ClusterSettings;
use crate::consistency;
use crate::errors::SettingsErrors;
use crate::explain::{self, Difference, Row};
use crate::kafka::KafkaSettings;
use crate::layers::{Layers, Sources};
use crate::origin::Origin;
use crate::otlp::OtlpSettings;
use crate::secret::Secret;
use crate::table_rules::{TableEntry, TableRules};

/// All settings in force.
#[derive(Debug, Clone)]
pub struct Settings {
    pub backend: Backend,
    pub backend_choice: ReplicaChoice,
    /// The name server that is asked for an SRV record; `None` stands for the system's.
    pub backend_dns_server: Option<SocketAddr>,
    /// Time after which a second replica is asked for a read; `None` stands for never.
    pub backend_hedge_reads_ms: Option<u64>,
    /// The name of the cluster whose Distributed tables are cut by shards; empty if none are.
    pub backend_cluster: String,
    /// The replicas of each shard of that cluster, where ClickHouse's own addresses are not to be used.
    pub backend_shards: Vec<Vec<ClickHouseUrl>>,
    pub data_dir: PathBuf,
    pub log: LogSettings,
    pub http: HttpSettings,
    pub admin: AdminSettings,
    pub backend_tls: BackendTlsSettings,
    pub backend_pool: BackendPoolSettings,
    pub embedded: EmbeddedSettings,
    pub duckdb: DuckDbSettings,
    pub adbc: AdbcSettings,
    pub gather: GatherSettings,
    pub journal: JournalSettings,
    pub dead_letters: DeadLetterSettings,
    pub append: AppendSettings,
    pub native: NativeSettings,
    /// The address of the backend's native port, as `host:port`, if it is set.
    pub backend_native_address: Option<String>,
    /// The gateways beside this one; `None` where this gateway is alone.
    pub cluster: Option<ClusterSettings>,
    pub flight: FlightSettings,
    pub otlp: OtlpSettings,
    /// The settings of tracing; `None` where nothing is traced.
    pub tracing: Option<TracingSettings>,
    /// The pipelines, each with a name of its own.
    pub kafka: Vec<KafkaSettings>,
    /// Says whether Windrow gives tables without a deduplication window one for its own batches.
    pub manage_deduplication_window: bool,
    pub(crate) tables: Vec<TableEntry>,
    pub(crate) rows: Vec<Row>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    Text,
    Json,
}

#[derive(Debug, Clone)]
pub struct LogSettings {
    pub format: LogFormat,
    /// A level, or directives per target such as `info,windrow_http=debug`.
    pub level: String,
}

/// The data port.
#[derive(Debug, Clone)]
pub struct HttpSettings {
    pub listen: SocketAddr,
    /// The certificate, set when the port speaks HTTPS.
    pub tls: Option<TlsFiles>,
    pub max_connections: usize,
    pub max_header_bytes: usize,
    /// Size up to which bodies are read into memory to be gathered; longer ones are streamed to the backend.
    pub max_body_bytes_gathered: usize,
    pub max_decompressed_bytes: usize,
    pub headers_read_timeout_ms: u64,
    pub body_idle_timeout_ms: u64,
    pub keep_alive_timeout_ms: u64,
}

/// The ports of ClickHouse's native protocol.
#[derive(Debug, Clone)]
pub struct NativeSettings {
    pub listen: Option<SocketAddr>,
    pub tls_listen: Option<SocketAddr>,
    /// The files of the port that speaks TLS.
    pub tls: Option<TlsFiles>,
}

/// The PEM files of a port that speaks TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
    /// The authorities that sign the certificates which clients have to show.
    pub client_ca: Option<PathBuf>,
}

#[derive(Debug, Clone)]
pub struct AdminSettings {
    pub max_tables_in_metrics: usize,
    pub listen: SocketAddr,
    /// The token, always set when `listen` isn't loopback.
    pub token: Option<Secret>,
}

/// Trust towards an https backend.
#[derive(Debug, Clone)]
pub struct BackendTlsSettings {
    /// The authorities that are trusted instead of the system's certificates.
    pub ca_file: Option<PathBuf>,
    /// The name that the certificate must have instead of the URL's host.
    pub server_name: Option<String>,
}

#[derive(Debug, Clone)]
pub struct BackendPoolSettings {
    pub max_connections: usize,
    pub connect_timeout_ms: u64,
    pub idle_timeout_ms: u64,
}

#[derive(Debug, Clone)]
pub struct EmbeddedSettings {
    /// A `clickhouse` binary or a `libchdb` library.
    pub engine: Option<PathBuf>,
    /// The password of the user `default`. Always set when the data port isn't on loopback.
    pub default_password: Option<Secret>,
    pub system_logs: bool,
    pub users: Vec<EmbeddedUser>,
}

#[derive(Debug, Clone)]
pub struct EmbeddedUser {
    pub name: String,
    pub password: Secret,
    /// GRANT statements without `TO`; `None` grants everything.
    pub grants: Option<Vec<String>>,
    pub settings: Vec<EngineSetting>,
}

/// A ClickHouse setting of an embedded user, or of a pipeline's reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineSetting {
    pub name: String,
    pub value: String,
}

#[derive(Debug, Clone)]
pub struct DuckDbSettings {
    /// The DuckDB library; Windrow searches for it when not set.
    pub library: Option<PathBuf>,
    /// The password of the user `default`. Always set when DuckDB is the backend and one of its ports isn't
    /// on loopback.
    pub default_password: Option<Secret>,
    pub users: Vec<SqlUser>,
    pub memory_limit_bytes: Option<u64>,
    pub threads: Option<usize>,
    pub max_temporary_bytes: u64,
    pub max_result_connections: usize,
    pub max_result_files_bytes: u64,
}

/// A database behind an ADBC driver.
#[derive(Debug, Clone)]
pub struct AdbcSettings {
    /// The driver's library or manifest, or its name. Windrow searches for it when not set.
    pub driver: Option<PathBuf>,
    /// Options of the driver's own, by their names.
    pub options: Vec<(String, Secret)>,
    pub max_connections: usize,
    /// The password of the user `default`. Always set when such a database is the backend and the data port
    /// isn't on loopback.
    pub default_password: Option<Secret>,
    pub users: Vec<SqlUser>,
}

/// A user whom the gateway itself knows, where the backend knows none of its clients.
#[derive(Debug, Clone)]
pub struct SqlUser {
    pub name: String,
    pub password: Secret,
    pub readonly: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlushPolicy {
    Balanced,
    Adaptive,
    Fixed,
}

/// The settings of gathering. The fields with ClickHouse's names hold for requests that don't give that
/// setting themselves.
#[derive(Debug, Clone)]
pub struct GatherSettings {
    pub async_insert: bool,
    pub flush_policy: FlushPolicy,
    pub max_buffer_bytes: u64,
    /// The part of `max_buffer_bytes` that one table may take: above 0, at most 1.
    pub max_table_share: f64,
    pub longest_hold_ms: u64,
    pub overload_wait_ms: u64,
    pub too_many_parts_wait_ms: u64,
    pub admission_ttl_ms: u64,
    /// Time for which the last admission holds while the backend can't be asked, for inserts of ack levels
    /// `disk` and `memory`.
    pub admission_away_ttl_ms: u64,
    /// Time for which it holds for the same inserts after a start, while the backend can't be asked.
    pub admission_kept_ttl_ms: u64,
    pub schema_ttl_ms: u64,
    pub shutdown_timeout_ms: u64,
    /// Time for which passing errors are tried again for inserts that nobody waits for; `None` stands for no
    /// limit.
    pub retry_for_ms: Option<u64>,
    pub insert_log_entries: usize,
    pub async_insert_busy_timeout_min_ms: u64,
    pub async_insert_busy_timeout_max_ms: u64,
    pub async_insert_busy_timeout_increase_rate: f64,
    pub async_insert_busy_timeout_decrease_rate: f64,
    pub async_insert_max_data_size_bytes: u64,
    pub async_insert_max_query_number: u64,
    pub wait_for_async_insert: bool,
    pub wait_for_async_insert_timeout_ms: u64,
}

/// The settings of the journal, which keeps inserts that were acknowledged before they are stored.
#[derive(Debug, Clone)]
pub struct JournalSettings {
    pub segment_bytes: u64,
    pub max_bytes: u64,
    /// The part of `max_bytes` that one table may take: above 0, at most 1.
    pub max_table_share: f64,
}

#[derive(Debug, Clone)]
pub struct DeadLetterSettings {
    pub max_bytes: u64,
    /// Age at which dead letters are discarded; `None` keeps them for ever.
    pub max_age_ms: Option<u64>,
}

/// Ordered appends.
#[derive(Debug, Clone)]
pub struct AppendSettings {
    /// Bytes of batches in memory for each append.
    pub window_bytes: u64,
    pub max_memory_bytes: u64,
    pub max_spool_bytes: u64,
    pub room_wait_ms: u64,
    pub idle_timeout_ms: u64,
    pub max_batch_bytes: usize,
    pub max_open: usize,
    pub max_open_per_user: usize,
}

/// Arrow Flight SQL.
#[derive(Debug, Clone)]
pub struct FlightSettings {
    /// The port of Flight SQL; `None` where it stays closed.
    pub listen: Option<SocketAddr>,
    pub idle_timeout_ms: u64,
}

/// OpenTelemetry.
#[derive(Debug, Clone)]
pub struct TracingSettings {
    pub otlp_endpoint: String,
    pub sample_ratio: f64,
    /// Pairs `name=value`, with commas between.
    pub headers: Secret,
}

impl Settings {
    /// Reads and checks all sources.
    ///
    /// # Errors
    /// Reports everything that is wrong at once: values, keys, and conflicts between settings.
    pub fn load<E: Iterator<Item = (String, String)>>(sources: Sources<E>) -> Result<Self, SettingsErrors> {
        let mut errors = Vec::new();
        let layers = Layers::merge(sources, &mut errors);
        // With refused values replaced by defaults, conflicts between settings would be ones that nobody wrote.
        if !errors.is_empty() {
            return Err(SettingsErrors(errors));
        }
        consistency::check(&layers, &mut errors);
        if !errors.is_empty() {
            return Err(SettingsErrors(errors));
        }
        Ok(assemble::settings(&layers))
    }

    /// Returns the table that `windrow config` prints: every setting with its value and its source; secrets
    /// as `(set)`.
    pub fn explain(&self) -> String {
        explain::table(&self.rows)
    }

    /// Returns the same settings one by one: name, value, source.
    pub fn shown(&self) -> impl Iterator<Item = (&str, &str, String)> {
        self.rows.iter().map(|row| (row.path.as_str(), row.shown.as_str(), row.origin.to_string()))
    }

    /// Returns these settings, with those of `new` that can change while they are in force, and the settings
    /// in which `new` differs from these.
    pub fn reloaded(&self, new: &Settings) -> (Settings, Difference) {
        let speaks_tls_as_before = self.http.tls.is_some() == new.http.tls.is_some();
        let is_exchanged = |path: &str| {
            explain::is_exchanged_at_reload(path) && (speaks_tls_as_before || !path.starts_with("http.tls_"))
        };
        let difference = explain::difference(&self.rows, &new.rows, is_exchanged);
        let mut settings = self.clone();
        settings.backend_hedge_reads_ms = new.backend_hedge_reads_ms;
        settings.log.level.clone_from(&new.log.level);
        if speaks_tls_as_before {
            settings.http.tls.clone_from(&new.http.tls);
        }
        settings.http.max_body_bytes_gathered = new.http.max_body_bytes_gathered;
        settings.http.max_decompressed_bytes = new.http.max_decompressed_bytes;
        let kept = &self.gather;
        settings.gather = GatherSettings {
            max_buffer_bytes: kept.max_buffer_bytes,
            max_table_share: kept.max_table_share,
            longest_hold_ms: kept.longest_hold_ms,
            overload_wait_ms: kept.overload_wait_ms,
            too_many_parts_wait_ms: kept.too_many_parts_wait_ms,
            admission_ttl_ms: kept.admission_ttl_ms,
            schema_ttl_ms: kept.schema_ttl_ms,
            shutdown_timeout_ms: kept.shutdown_timeout_ms,
            retry_for_ms: kept.retry_for_ms,
            insert_log_entries: kept.insert_log_entries,
            ..new.gather.clone()
        };
        settings.tables.clone_from(&new.tables);
        settings.otlp.tokens.clone_from(&new.otlp.tokens);
        settings.otlp.mappings.clone_from(&new.otlp.mappings);
        settings.rows = explain::mixed(&self.rows, &new.rows, is_exchanged);
        (settings, difference)
    }

    /// Returns the source of the value of `path`, such as `http.listen`.
    pub fn origin(&self, path: &str) -> Option<&Origin> {
        self.rows.iter().find(|row| row.path == path).map(|row| &row.origin)
    }

    /// Returns the rules of the `[[tables]]` entries for inserts of `user` into `database.table`.
    ///
    /// Free when there are no entries; otherwise a walk over them that allocates nothing. Callers that insert
    /// in a loop keep the answer as long as they keep these settings.
    pub fn table_rules(&self, database: &str, table: &str, user: &str) -> TableRules {
        TableRules::of(&self.tables, database, table, user)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::{Setting, SETTINGS};
    use crate::kind::Kind;
    use crate::layers::Flag;
    use crate::SettingsErrors;

    /// Settings without which others have no effect: those whose paths begin like this.
    const COMPANIONS: [(&str, &[(&str, &str)]); 9] = [
        ("http.tls_", &[("http.tls_certificate", "/a.pem"), ("http.tls_key", "/a.key")]),
        (
            "otlp.tls_",
            &[("http.tls_certificate", "/a.pem"), ("http.tls_key", "/a.key"), ("otlp.http_listen", "[::1]:1")],
        ),
        ("native.tls_", &[("native.tls_certificate", "/a.pem"), ("native.tls_key", "/a.key")]),
        (
            "cluster.",
            &[
                ("backend", "http://a"),
                ("cluster.gateways", "https://a,https://b"),
                ("cluster.self", "https://a"),
                ("cluster.secret", SECRET),
            ],
        ),
        ("backend", &[("backend", "https://a:8443"), ("backend.cluster", "c")]),
        ("backend.dns_server", &[("backend", "srv+http://a")]),
        ("otlp.tenant_", &[("otlp.database", "{tenant}"), ("otlp.default_tenant", "t")]),
        ("otlp.default_tenant", &[("otlp.database", "{tenant}"), ("otlp.tenant_header", "h")]),
        ("tracing.", &[("tracing.otlp_endpoint", "http://a:4317")]),
    ];
    const SECRET: &str = "gateways-share-this-one";
    /// Settings that can't be changed alone: the gateway is one of the gateways, a secret is not shown, a file is read.
    const NOT_ALONE: [&str; 4] = ["cluster.gateways", "cluster.self", "cluster.secret", "cluster.secret_file"];

    fn load(changed: &[(&str, String)]) -> Result<Settings, SettingsErrors> {
        let flag = |(path, value): &(&str, String)| Flag {
            path: (*path).to_owned(),
            name: format!("--{path}"),
            value: value.clone(),
        };
        let sources = Sources {
            config_path: None,
            env: std::iter::empty(),
            flags: changed.iter().map(flag).collect(),
            default_backend: None,
        };
        Settings::load(sources)
    }

    /// Returns everything but the rows, as text.
    fn typed(settings: &Settings) -> String {
        format!("{:?}", Settings { rows: Vec::new(), ..settings.clone() })
    }

    /// Returns values that settings of a kind may have.
    fn values(kind: Kind) -> Vec<String> {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        match kind {
            Kind::Bool => texts(&["true", "false"]),
            Kind::Count { min, max } | Kind::Bytes { min, max } | Kind::Milliseconds { min, max } => {
                [min, min + 1, min.midpoint(max), max - 1, max].map(|number| number.to_string()).to_vec()
            }
            Kind::Duration { min_ms, max_ms } => {
                [min_ms, min_ms + 1, max_ms - 1, max_ms].map(|number| format!("{number}ms")).to_vec()
            }
            Kind::Share | Kind::Ratio { .. } => texts(&["0.25", "0.5", "0.75", "1"]),
            Kind::Choice(choices) => texts(choices),
            Kind::LogLevel => texts(&["debug"]),
            Kind::Address | Kind::AddressOrOff => texts(&["127.0.0.1:19"]),
            Kind::Backend | Kind::Gateway | Kind::Gateways => texts(&["http://another:8123"]),
            Kind::Text | Kind::Secret | Kind::Path | Kind::TextList | Kind::TextMap | Kind::KafkaStart => texts(&[
                "another",
                "https://another:1",
                "/another",
                "another=1",
                "https://b",
                "gateways-share-that-one",
            ]),
        }
    }

    /// Returns the settings before and after one of them has got another value that can be seen.
    fn changed(setting: &Setting) -> Option<(Settings, Settings)> {
        let companions =
            COMPANIONS.iter().filter(|(start, _)| setting.path.starts_with(start)).flat_map(|(_, all)| *all);
        let common: Vec<_> = companions.map(|(path, value)| (*path, (*value).to_owned())).collect();
        let before = load(&common).unwrap_or_else(|errors| panic!("{}: {errors}", setting.path));
        let with = |value: String| {
            let mut flags = common.clone();
            flags.retain(|(path, _)| *path != setting.path);
            flags.push((setting.path, value));
            load(&flags).ok().filter(|after| typed(after) != typed(&before))
        };
        let after = values(setting.kind).into_iter().find_map(with)?;
        Some((before, after))
    }

    #[test]
    fn a_reload_exchanges_what_it_says_and_nothing_else() {
        let mut not_alone = Vec::new();
        for setting in SETTINGS {
            let Some((before, after)) = changed(setting) else {
                not_alone.push(setting.path);
                continue;
            };
            let (mixed, difference) = before.reloaded(&after);
            let is_exchanged = explain::is_exchanged_at_reload(setting.path);
            let expected = if is_exchanged { &after } else { &before };
            assert_eq!(typed(&mixed), typed(expected), "{}", setting.path);
            let told = if is_exchanged { &difference.at_reload } else { &difference.at_start };
            assert_eq!(told, &[setting.path]);
        }
        assert_eq!(not_alone, NOT_ALONE);
    }
}
