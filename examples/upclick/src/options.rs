//! What a caller can choose.

use std::sync::Arc;
use std::time::Duration;

use windrow_clickhouse::ClientOptions;

use crate::engine::Engine;
use crate::errors::DemoError;
use crate::target::{without_credentials, Target};

/// Tells a process's id when asked: an engine that is restarted gets a new one.
pub type PidSource = Arc<dyn Fn() -> Option<u32> + Send + Sync>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// A picture redrawn in place on a terminal, plain lines elsewhere.
    Auto,
    /// Plain lines everywhere.
    Plain,
}

/// How rows are inserted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inserts {
    /// Straight into the database, each a part of its own (`async_insert=0`).
    Synchronous,
    /// Asynchronously; acknowledged when they are stored (`wait_for_async_insert=1`).
    Waiting,
    /// Asynchronously; acknowledged before (`wait_for_async_insert=0`).
    NotWaiting,
}

/// Where all probes insert their rows, and how.
#[derive(Clone)]
pub struct Destination {
    /// `http[s]://host:port` of the gateway, or of any ClickHouse.
    pub url: String,
    pub user: String,
    pub password: String,
    pub database: String,
    pub engine: Engine,
    pub inserts: Inserts,
    /// `async_insert_busy_timeout_ms`.
    pub flush_after: Duration,
    /// How it is connected to: TLS, patience.
    pub client: ClientOptions,
    /// The database's process.
    pub database_pid: PidSource,
}

impl Destination {
    /// A ClickHouse, or the gateway before one, with ClickHouse's names as they come.
    pub fn new(url: impl Into<String>, inserts: Inserts) -> Self {
        Self {
            url: url.into(),
            user: "default".to_owned(),
            password: String::new(),
            database: "default".to_owned(),
            engine: Engine::default(),
            inserts,
            flush_after: Duration::from_secs(1),
            client: ClientOptions::default(),
            database_pid: Arc::new(|| None),
        }
    }

    /// As it is shown: without user and password.
    pub(crate) fn address(&self) -> String {
        without_credentials(&self.url)
    }
}

/// The live page in a browser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Browser {
    /// Opened when there is a terminal and a screen.
    Open,
    Leave,
}

/// What to run, and against what.
#[derive(Clone)]
pub struct DemoOptions {
    /// Each row goes to all of them. The first one is what the map shows.
    pub destinations: Vec<Destination>,
    pub probes: usize,
    /// How often each probe measures.
    pub every: Duration,
    /// Until Ctrl-C when not set.
    pub run_for: Option<Duration>,
    /// The sites to measure; empty for the demo's own.
    pub urls: Vec<String>,
    /// What a city's average latency should stay below.
    pub kpi_ms: f64,
    pub gateway_pid: PidSource,
    pub output: Output,
    pub browser: Browser,
    /// The address of the gateway's own dashboard.
    pub dashboard: Option<String>,
}

impl DemoOptions {
    /// 200 probes, a row each every second: what the article's charts show.
    pub fn new(destinations: Vec<Destination>) -> Self {
        Self {
            destinations,
            probes: 200,
            every: Duration::from_secs(1),
            run_for: None,
            urls: Vec::new(),
            kpi_ms: 100.0,
            gateway_pid: Arc::new(|| None),
            output: Output::Auto,
            browser: Browser::Leave,
            dashboard: None,
        }
    }

    /// What can be said without asking anybody.
    pub fn check(&self) -> Result<(), DemoError> {
        const MAX_PROBES: usize = 20_000;
        let problem = if self.probes == 0 || self.probes > MAX_PROBES {
            format!("the number of probes must be from 1 to {MAX_PROBES}")
        } else if self.every < Duration::from_millis(100) {
            "a probe can't measure more often than every 100 ms".to_owned()
        } else if self.destinations.iter().any(|destination| destination.flush_after.is_zero()) {
            "the flush time must be at least 1 ms".to_owned()
        } else if !(self.kpi_ms.is_finite() && self.kpi_ms > 0.0) {
            "the KPI must be a number of milliseconds above 0".to_owned()
        } else {
            return self.urls.iter().try_for_each(|url| Target::parse(url, false).map(drop));
        };
        Err(DemoError::Options(problem))
    }
}
