//! What a caller can choose.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::engine::Engine;
use crate::errors::DemoError;

/// Tells a process's id when asked: an engine that is restarted gets a new one.
pub type PidSource = Arc<dyn Fn() -> Option<u32> + Send + Sync>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// A picture redrawn in place on a terminal, plain lines elsewhere.
    Auto,
    /// Plain lines everywhere.
    Plain,
}

/// What to run, and against what.
#[derive(Clone)]
pub struct DemoOptions {
    /// `http[s]://host:port` of the gateway, or of any ClickHouse.
    pub gateway_url: String,
    pub user: String,
    pub password: String,
    pub database: String,
    pub probes: usize,
    /// How often each probe measures.
    pub every: Duration,
    /// Until Ctrl-C when not set.
    pub run_for: Option<Duration>,
    /// The sites to measure; empty for the demo's own.
    pub urls: Vec<String>,
    /// Whether inserts wait until they are stored (`wait_for_async_insert`).
    pub wait: bool,
    /// `async_insert_busy_timeout_ms`.
    pub flush_after: Duration,
    /// What a city's average latency should stay below.
    pub kpi_ms: f64,
    pub gateway_pid: PidSource,
    pub clickhouse_pid: PidSource,
    pub output: Output,
    pub engine: Engine,
}

impl DemoOptions {
    /// The article's settings: 200 probes, one measurement each every 10 s, waiting, a flush after 1 s.
    pub fn new(gateway_url: impl Into<String>) -> Self {
        Self {
            gateway_url: gateway_url.into(),
            user: "default".to_owned(),
            password: String::new(),
            database: "default".to_owned(),
            probes: 200,
            every: Duration::from_secs(10),
            run_for: None,
            urls: Vec::new(),
            wait: true,
            flush_after: Duration::from_secs(1),
            kpi_ms: 100.0,
            gateway_pid: Arc::new(|| None),
            clickhouse_pid: Arc::new(|| None),
            output: Output::Auto,
            engine: Engine::default(),
        }
    }

    pub(crate) fn check(&self) -> Result<(), DemoError> {
        const MAX_PROBES: usize = 20_000;
        let problem = if self.probes == 0 || self.probes > MAX_PROBES {
            format!("the number of probes must be from 1 to {MAX_PROBES}")
        } else if self.every < Duration::from_millis(100) {
            "a probe can't measure more often than every 100 ms".to_owned()
        } else if self.flush_after.is_zero() {
            "the flush time must be at least 1 ms".to_owned()
        } else if !(self.kpi_ms.is_finite() && self.kpi_ms > 0.0) {
            "the KPI must be a number of milliseconds above 0".to_owned()
        } else {
            return Ok(());
        };
        Err(DemoError::Options(problem))
    }
}

impl fmt::Debug for DemoOptions {
    /// Without the password and the closures.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DemoOptions")
            .field("gateway_url", &self.gateway_url)
            .field("user", &self.user)
            .field("probes", &self.probes)
            .field("every", &self.every)
            .field("run_for", &self.run_for)
            .field("urls", &self.urls)
            .field("wait", &self.wait)
            .field("flush_after", &self.flush_after)
            .finish_non_exhaustive()
    }
}
