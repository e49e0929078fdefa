use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use windrow_clickhouse::Credentials;
use windrow_engine::trace::Tracer;
use windrow_engine::{dead_letters::DeadLetters, DeduplicationIndex, OpenedJournal};
use windrow_http::Limits;
use windrow_settings::Settings;

use crate::cluster::Cluster;
use crate::live::Live;

/// Who the user `default` is, on a backend that was started for the gateway alone.
#[derive(Clone)]
pub struct DefaultUser {
    /// What clients give as its password on the data port.
    pub password: String,
    /// Whom it is at the backend.
    pub credentials: Credentials,
}

#[derive(Clone)]
pub struct GatewayOptions {
    pub settings: Arc<Live<Arc<Settings>>>,
    pub limits: Arc<Limits>,
    /// Set for the embedded ClickHouse only; elsewhere `default` is the backend's own.
    pub default_user: Option<DefaultUser>,
    /// Without it nothing is traced.
    pub tracer: Option<Arc<Tracer>>,
    /// `None`: this gateway is alone.
    pub cluster: Option<Arc<Cluster>>,
}

/// What the gateway keeps on disk.
pub struct GatewayStores {
    pub journal: OpenedJournal,
    pub dead_letters: DeadLetters,
    pub deduplication: DeduplicationIndex,
}

#[derive(Clone)]
pub struct AdminOptions {
    /// Asked for as `Authorization: Bearer` when set.
    pub token: Option<String>,
}

impl GatewayOptions {
    pub fn new(settings: Arc<Settings>, default_user: Option<DefaultUser>) -> GatewayOptions {
        let http = &settings.http;
        let limits = Limits {
            max_head_bytes: http.max_header_bytes,
            head_timeout: Duration::from_millis(http.headers_read_timeout_ms),
            body_idle_timeout: Duration::from_millis(http.body_idle_timeout_ms),
            keep_alive_timeout: Duration::from_millis(http.keep_alive_timeout_ms),
            ..Limits::default()
        };
        let settings = Arc::new(Live::new(settings));
        GatewayOptions { settings, limits: Arc::new(limits), default_user, tracer: None, cluster: None }
    }
}

/// Where results are written that are sent when they are whole, and what DuckDB spills. Absolute, as DuckDB tells it.
pub fn temporary_folder(settings: &Settings) -> PathBuf {
    let folder = settings.data_dir.join("tmp");
    std::path::absolute(&folder).unwrap_or(folder)
}
