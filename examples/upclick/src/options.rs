//! The options that a caller can choose.

use std::sync::Arc;
use std::time::Duration;

use windrow_clickhouse::ClientOptions;

use crate::engine::Engine;
use crate::errors::DemoError;
use crate::target::{without_credentials, Target};

/// A function that tells a process's id: an engine that is restarted gets a new one.
pub type PidSource = Arc<dyn Fn() -> Option<u32> + Send + Sync>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// A picture redrawn in place on a terminal, plain lines elsewhere.
    Auto,
    /// Plain lines everywhere.
    Plain,
}

/// The way of inserting rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inserts {
    /// Straight into the database; each row is a part of its own (`async_insert=0`).
    Synchronous,
    /// Asynchronously; rows are acknowledged when they are stored (`wait_for_async_insert=1`).
    Waiting,
    /// Asynchronously; rows are acknowledged before they are stored (`wait_for_async_insert=0`).
    NotWaiting,
}

/// The address that all probes insert their rows into, and the way.
#[derive(Clone)]
pub struct Destination {
    /// The address of the gateway, or of any ClickHouse: `http[s]://host:port`.
    pub url: String,
    pub user: String,
    pub password: String,
    pub database: String,
    pub engine: Engine,
    pub inserts: Inserts,
    /// Time after which a buffer is flushed: the setting `async_insert_busy_timeout_ms`.
    pub flush_after: Duration,
    /// Options of connections: TLS and time limits.
    pub client: ClientOptions,
    /// The id of the database's process.
    pub database_pid: PidSource,
}

impl Destination {
    /// Makes a destination that is a ClickHouse, or the gateway before one. Its names are ClickHouse's defaults.
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

    /// Returns the address as it is shown: without user and password.
    pub(crate) fn address(&self) -> String {
        without_credentials(&self.url)
    }
}

/// The use of a browser for the live page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Browser {
    /// The page is opened when there is a terminal and a screen.
    Open,
    Leave,
}

/// The options of a run.
#[derive(Clone)]
pub struct DemoOptions {
    /// The destinations. Each row goes to all of them; the map shows the first one.
    pub destinations: Vec<Destination>,
    pub probes: usize,
    /// Time between two measurements of a probe.
    pub every: Duration,
    /// Time of the run. `None`: it lasts until Ctrl-C.
    pub run_for: Option<Duration>,
    /// The sites to measure. Empty: the demo's own.
    pub urls: Vec<String>,
    /// The average latency that a city should stay below, in milliseconds.
    pub kpi_ms: f64,
    pub gateway_pid: PidSource,
    pub output: Output,
    pub browser: Browser,
    /// The address of the gateway's own dashboard.
    pub dashboard: Option<String>,
}

impl DemoOptions {
    /// Makes the options for 200 probes with a row each every second, as in the article's charts.
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

    /// Checks the options, as far as that needs no connection.
    ///
    /// # Errors
    /// Fails where a number is out of its range, or a URL can't be read.
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
