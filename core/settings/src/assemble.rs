//! The typed settings out of the winners of all sources.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::backend::{parse_shards, Backend, ClickHouseUrl, ReplicaChoice};
use crate::cluster;
use crate::entries::Entry;
use crate::explain;
use crate::kafka;
use crate::kind::Value;
use crate::layers::Layers;
use crate::otlp;
use crate::secret::Secret;
use crate::table_rules::{AckRule, AsyncInsertRule, Pattern, TableEntry, TableRules};
use crate::typed::{
    AdbcSettings, AdminSettings, AppendSettings, BackendPoolSettings, BackendTlsSettings, DeadLetterSettings,
    DuckDbSettings, EmbeddedSettings, EmbeddedUser, EngineSetting, FlightSettings, FlushPolicy, GatherSettings,
    HttpSettings, JournalSettings, LogFormat, LogSettings, NativeSettings, Settings, SqlUser, TlsFiles,
    TracingSettings,
};

/// The reason why the readers below can't meet another variant: a test loads every setting of the table.
const KIND: &str = "the setting's kind in the table fixes the variant";

pub(crate) fn settings(layers: &Layers) -> Settings {
    Settings {
        backend: layers.backend(),
        backend_choice: ReplicaChoice::named(layers.text("backend.choice")),
        backend_dns_server: layers.optional_address("backend.dns_server"),
        backend_hedge_reads_ms: layers.unless_zero("backend.hedge_reads_ms"),
        backend_cluster: layers.text("backend.cluster").to_owned(),
        backend_shards: layers.shards().unwrap_or_default(),
        data_dir: layers.text("data_dir").into(),
        log: log(layers),
        http: http(layers),
        admin: AdminSettings {
            listen: layers.address("admin.listen"),
            max_tables_in_metrics: layers.count("admin.max_tables_in_metrics"),
            token: layers.secret("admin.token"),
        },
        backend_tls: BackendTlsSettings {
            ca_file: layers.path("backend_tls.ca_file"),
            server_name: layers.optional_text("backend_tls.server_name").map(str::to_owned),
        },
        backend_pool: BackendPoolSettings {
            max_connections: layers.count("backend_pool.max_connections"),
            connect_timeout_ms: layers.integer("backend_pool.connect_timeout_ms"),
            idle_timeout_ms: layers.integer("backend_pool.idle_timeout_ms"),
        },
        embedded: EmbeddedSettings {
            engine: layers.path("embedded.engine"),
            default_password: layers.secret("embedded.default_password"),
            system_logs: layers.boolean("embedded.system_logs"),
            users: layers.entries.embedded_users.iter().map(embedded_user).collect(),
        },
        duckdb: duckdb(layers),
        adbc: adbc(layers),
        gather: gather(layers),
        journal: JournalSettings {
            segment_bytes: layers.integer("journal.segment_bytes"),
            max_bytes: layers.integer("journal.max_bytes"),
            max_table_share: layers.ratio("journal.max_table_share"),
        },
        dead_letters: DeadLetterSettings {
            max_bytes: layers.integer("dead_letters.max_bytes"),
            max_age_ms: layers.unless_zero("dead_letters.max_age_ms"),
        },
        append: append(layers),
        native: NativeSettings {
            listen: layers.optional_address("native.listen"),
            tls_listen: layers.optional_address("native.tls_listen"),
            tls: tls_files(layers, "native.tls_certificate", "native.tls_key", Some("native.tls_client_ca")),
        },
        backend_native_address: layers.optional_text("backend_native.address").map(str::to_owned),
        cluster: cluster::assemble(layers),
        flight: FlightSettings {
            listen: layers.optional_address("flight.listen"),
            idle_timeout_ms: layers.integer("flight.idle_timeout_ms"),
        },
        otlp: otlp::assemble(layers),
        tracing: layers.optional_text("tracing.otlp_endpoint").map(|endpoint| TracingSettings {
            otlp_endpoint: endpoint.to_owned(),
            sample_ratio: layers.ratio("tracing.sample_ratio"),
            headers: Secret::new(layers.optional_text("tracing.headers").unwrap_or_default()),
        }),
        kafka: layers.entries.kafka.iter().map(|entry| kafka::assemble::pipeline(entry, &layers.backend())).collect(),
        manage_deduplication_window: layers
            .optional_boolean("manage_deduplication_window")
            .unwrap_or(layers.backend() == Backend::Embedded),
        tables: layers.entries.tables.iter().map(table_entry).collect(),
        rows: explain::rows(layers),
    }
}

fn log(layers: &Layers) -> LogSettings {
    let format = if layers.text("log.format") == "json" { LogFormat::Json } else { LogFormat::Text };
    LogSettings { format, level: layers.text("log.level").to_owned() }
}

fn http(layers: &Layers) -> HttpSettings {
    HttpSettings {
        listen: layers.address("http.listen"),
        tls: tls_files(layers, "http.tls_certificate", "http.tls_key", None),
        max_connections: layers.count("http.max_connections"),
        max_header_bytes: layers.count("http.max_header_bytes"),
        max_body_bytes_gathered: layers.count("http.max_body_bytes_gathered"),
        max_decompressed_bytes: layers.count("http.max_decompressed_bytes"),
        headers_read_timeout_ms: layers.integer("http.headers_read_timeout_ms"),
        body_idle_timeout_ms: layers.integer("http.body_idle_timeout_ms"),
        keep_alive_timeout_ms: layers.integer("http.keep_alive_timeout_ms"),
    }
}

fn tls_files(layers: &Layers, certificate: &str, key: &str, client_ca: Option<&str>) -> Option<TlsFiles> {
    let (certificate, key) = layers.path(certificate).zip(layers.path(key))?;
    Some(TlsFiles { certificate, key, client_ca: client_ca.and_then(|path| layers.path(path)) })
}

fn duckdb(layers: &Layers) -> DuckDbSettings {
    DuckDbSettings {
        library: layers.path("duckdb.library"),
        default_password: layers.secret("duckdb.default_password"),
        users: layers.entries.duckdb_users.iter().map(sql_user).collect(),
        memory_limit_bytes: layers.optional_integer("duckdb.memory_limit_bytes"),
        threads: layers.optional_integer("duckdb.threads").map(as_count),
        max_temporary_bytes: layers.integer("duckdb.max_temporary_bytes"),
        max_result_connections: layers.count("duckdb.max_result_connections"),
        max_result_files_bytes: layers.integer("duckdb.max_result_files_bytes"),
    }
}

fn adbc(layers: &Layers) -> AdbcSettings {
    AdbcSettings {
        driver: layers.optional_text("adbc.driver").map(Into::into),
        options: layers.secret("adbc.options").map_or(Vec::new(), |options| pairs(options.expose())),
        max_connections: layers.count("adbc.max_connections"),
        default_password: layers.secret("adbc.default_password"),
        users: layers.entries.adbc_users.iter().map(sql_user).collect(),
    }
}

/// Splits `name=value` pairs with commas between them.
fn pairs(text: &str) -> Vec<(String, Secret)> {
    let pair =
        |text: &str| text.split_once('=').map(|(name, value)| (name.trim().to_owned(), Secret::new(value.trim())));
    text.split(',').filter_map(pair).collect()
}

fn sql_user(entry: &Entry) -> SqlUser {
    SqlUser {
        name: entry.text("name").unwrap_or_default().to_owned(),
        password: Secret::new(entry.text("password").unwrap_or_default()),
        readonly: matches!(entry.value("readonly"), Value::Bool(true)),
    }
}

fn append(layers: &Layers) -> AppendSettings {
    AppendSettings {
        window_bytes: layers.integer("append.window_bytes"),
        max_memory_bytes: layers.integer("append.max_memory_bytes"),
        max_spool_bytes: layers.integer("append.max_spool_bytes"),
        room_wait_ms: layers.integer("append.room_wait_ms"),
        idle_timeout_ms: layers.integer("append.idle_timeout_ms"),
        max_batch_bytes: layers.count("append.max_batch_bytes"),
        max_open: layers.count("append.max_open"),
        max_open_per_user: layers.count("append.max_open_per_user"),
    }
}

fn gather(layers: &Layers) -> GatherSettings {
    GatherSettings {
        async_insert: layers.boolean("gather.async_insert"),
        flush_policy: flush_policy(layers.text("gather.flush_policy")),
        max_buffer_bytes: layers.integer("gather.max_buffer_bytes"),
        max_table_share: layers.ratio("gather.max_table_share"),
        longest_hold_ms: layers.integer("gather.longest_hold_ms"),
        overload_wait_ms: layers.integer("gather.overload_wait_ms"),
        too_many_parts_wait_ms: layers.integer("gather.too_many_parts_wait_ms"),
        admission_ttl_ms: layers.integer("gather.admission_ttl_ms"),
        admission_away_ttl_ms: layers.integer("gather.admission_away_ttl_ms"),
        admission_kept_ttl_ms: layers.integer("gather.admission_kept_ttl_ms"),
        schema_ttl_ms: layers.integer("gather.schema_ttl_ms"),
        shutdown_timeout_ms: layers.integer("gather.shutdown_timeout_ms"),
        retry_for_ms: layers.unless_zero("gather.retry_for_ms"),
        insert_log_entries: layers.count("gather.insert_log_entries"),
        async_insert_busy_timeout_min_ms: layers.integer("gather.async_insert_busy_timeout_min_ms"),
        async_insert_busy_timeout_max_ms: layers.integer("gather.async_insert_busy_timeout_max_ms"),
        async_insert_busy_timeout_increase_rate: layers.ratio("gather.async_insert_busy_timeout_increase_rate"),
        async_insert_busy_timeout_decrease_rate: layers.ratio("gather.async_insert_busy_timeout_decrease_rate"),
        async_insert_max_data_size_bytes: layers.integer("gather.async_insert_max_data_size"),
        async_insert_max_query_number: layers.integer("gather.async_insert_max_query_number"),
        wait_for_async_insert: layers.boolean("gather.wait_for_async_insert"),
        wait_for_async_insert_timeout_ms: layers.integer("gather.wait_for_async_insert_timeout_ms"),
    }
}

fn table_entry(entry: &Entry) -> TableEntry {
    let pattern = |key| Pattern::new(entry.text(key).unwrap_or("*"));
    TableEntry {
        database: pattern("database"),
        table: pattern("table"),
        user: pattern("user"),
        async_insert: entry.text("async_insert").map(|rule| match rule {
            "always" => AsyncInsertRule::Always,
            "never" => AsyncInsertRule::Never,
            _ => AsyncInsertRule::Client,
        }),
        ack: entry.text("ack").map(AckRule::named),
        options: TableRules {
            flush_policy: entry.text("flush_policy").map(flush_policy),
            busy_timeout_min_ms: entry.integer("busy_timeout_min_ms"),
            busy_timeout_max_ms: entry.integer("busy_timeout_max_ms"),
            max_data_size_bytes: entry.integer("max_data_size"),
            max_query_number: entry.integer("max_query_number"),
            ..TableRules::default()
        },
    }
}

fn embedded_user(entry: &Entry) -> EmbeddedUser {
    let pairs = match entry.value("settings") {
        Value::Map(pairs) => pairs.as_slice(),
        _ => &[],
    };
    EmbeddedUser {
        name: entry.text("name").unwrap_or_default().to_owned(),
        password: Secret::new(entry.text("password").unwrap_or_default()),
        grants: match entry.value("grants") {
            Value::List(grants) => Some(grants.clone()),
            _ => None,
        },
        settings: pairs
            .iter()
            .map(|(name, value)| EngineSetting { name: name.clone(), value: value.clone() })
            .collect(),
    }
}

/// Converts a size. Sizes beyond the address space become `usize::MAX`, which is as good as no limit.
fn as_count(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn flush_policy(name: &str) -> FlushPolicy {
    match name {
        "adaptive" => FlushPolicy::Adaptive,
        "fixed" => FlushPolicy::Fixed,
        _ => FlushPolicy::Balanced,
    }
}

impl Entry {
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        match self.value(key) {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn integer(&self, key: &str) -> Option<u64> {
        match self.value(key) {
            Value::Integer(number) => Some(*number),
            _ => None,
        }
    }
}

impl Layers {
    pub(crate) fn backend(&self) -> Backend {
        match &self.resolved("backend").value {
            Value::Backend(backend) => backend.clone(),
            other => unreachable!("{KIND}: {other:?}"),
        }
    }

    pub(crate) fn is_set(&self, path: &str) -> bool {
        !matches!(&self.resolved(path).value, Value::Unset)
    }

    pub(crate) fn shards(&self) -> Result<Vec<Vec<ClickHouseUrl>>, String> {
        match &self.resolved("backend.shards").value {
            Value::List(shards) => parse_shards(shards, &self.backend()),
            _ => Ok(Vec::new()),
        }
    }

    pub(crate) fn address(&self, path: &str) -> SocketAddr {
        self.optional_address(path).unwrap_or_else(|| unreachable!("{KIND}: {path} has a default"))
    }

    pub(crate) fn optional_address(&self, path: &str) -> Option<SocketAddr> {
        match &self.resolved(path).value {
            Value::Address(address) => Some(*address),
            Value::Unset => None,
            other => unreachable!("{KIND}: {path} {other:?}"),
        }
    }

    pub(crate) fn optional_text(&self, path: &str) -> Option<&str> {
        match &self.resolved(path).value {
            Value::Text(text) if !text.is_empty() => Some(text),
            Value::Text(_) | Value::Unset => None,
            other => unreachable!("{KIND}: {path} {other:?}"),
        }
    }

    pub(crate) fn text(&self, path: &str) -> &str {
        self.optional_text(path).unwrap_or_default()
    }

    pub(crate) fn texts(&self, path: &str) -> Vec<String> {
        match &self.resolved(path).value {
            Value::List(texts) => texts.clone(),
            _ => Vec::new(),
        }
    }

    pub(crate) fn path(&self, path: &str) -> Option<PathBuf> {
        self.optional_text(path).map(PathBuf::from)
    }

    pub(crate) fn secret(&self, path: &str) -> Option<Secret> {
        self.optional_text(path).map(Secret::new)
    }

    pub(crate) fn integer(&self, path: &str) -> u64 {
        self.optional_integer(path).unwrap_or_else(|| unreachable!("{KIND}: {path} has a default"))
    }

    fn optional_integer(&self, path: &str) -> Option<u64> {
        match &self.resolved(path).value {
            Value::Integer(number) => Some(*number),
            Value::Unset => None,
            other => unreachable!("{KIND}: {path} {other:?}"),
        }
    }

    pub(crate) fn count(&self, path: &str) -> usize {
        as_count(self.integer(path))
    }

    fn ratio(&self, path: &str) -> f64 {
        match &self.resolved(path).value {
            Value::Ratio(number) => *number,
            other => unreachable!("{KIND}: {path} {other:?}"),
        }
    }

    /// Returns the number of a setting for which 0 stands for no limit: `None` for 0.
    fn unless_zero(&self, path: &str) -> Option<u64> {
        Some(self.integer(path)).filter(|number| *number > 0)
    }

    pub(crate) fn boolean(&self, path: &str) -> bool {
        self.optional_boolean(path).unwrap_or_else(|| unreachable!("{KIND}: {path} has a default"))
    }

    fn optional_boolean(&self, path: &str) -> Option<bool> {
        match &self.resolved(path).value {
            Value::Bool(flag) => Some(*flag),
            Value::Unset => None,
            other => unreachable!("{KIND}: {path} {other:?}"),
        }
    }
}
