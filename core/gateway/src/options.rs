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
use crate::protocol::ProtocolServer;

/// The user `default` on a backend that was started for the gateway alone.
#[derive(Clone)]
pub struct DefaultUser {
    /// The password that clients give for `default` on the data port.
    pub password: String,
    /// The account that stands for `default` at the backend.
    pub credentials: Credentials,
}

#[derive(Clone)]
pub struct GatewayOptions {
    pub settings: Arc<Live<Arc<Settings>>>,
    pub limits: Arc<Limits>,
    /// The user `default` of the embedded ClickHouse. With any other backend, `default` is the backend's own user.
    pub default_user: Option<DefaultUser>,
    /// The tracer of requests; `None` if nothing is traced.
    pub tracer: Option<Arc<Tracer>>,
    /// The cluster of gateways; `None` if this gateway is alone.
    pub cluster: Option<Arc<Cluster>>,
    /// The server of OTLP; `None` where the program is built without one.
    pub otlp: Option<Arc<dyn ProtocolServer>>,
}

/// Stores that the gateway has on disk.
pub struct GatewayStores {
    pub journal: OpenedJournal,
    pub dead_letters: DeadLetters,
    pub deduplication: DeduplicationIndex,
}

#[derive(Clone)]
pub struct AdminOptions {
    /// The token that requests must have as `Authorization: Bearer`, if it is set.
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
        GatewayOptions { settings, limits: Arc::new(limits), default_user, tracer: None, cluster: None, otlp: None }
    }
}

/// Returns the folder for results that are sent only when they are whole, and for what DuckDB spills. The
/// path is absolute, as DuckDB shows it.
pub fn temporary_folder(settings: &Settings) -> PathBuf {
    let folder = settings.data_dir.join("tmp");
    std::path::absolute(&folder).unwrap_or(folder)
}
