//! What is measured: a gateway with its embedded ClickHouse, started here or running already, and the empty handlers.

mod child;
mod data_dir;
mod gateway;
mod limit;

pub use child::Child;
pub use data_dir::DataDir;
pub use gateway::Gateway;
pub use limit::{Limit, LimitServer};

use std::path::{Path, PathBuf};

use crate::error::BenchError;
use crate::process::{descendants, usage, Usage};
use crate::sql::Sql;
use crate::wire::Endpoint;
use gateway::Behind;

/// Options that every benchmark takes.
#[derive(Debug, Clone, clap::Args)]
pub struct StackOptions {
    /// The gateway's binary; the one beside this binary if not given.
    #[arg(long, global = true)]
    pub windrow: Option<PathBuf>,
    /// Measure a ClickHouse that runs already, http://user:password@host:port; starts no gateway.
    #[arg(long, global = true)]
    pub clickhouse: Option<String>,
    /// Its process, for CPU time and memory.
    #[arg(long, global = true)]
    pub clickhouse_pid: Option<u32>,
    /// A gateway in front of it that runs already, http://user:password@host:port.
    #[arg(long, global = true, requires = "clickhouse")]
    pub gateway: Option<String>,
    /// Its process, for CPU time and memory.
    #[arg(long, global = true)]
    pub gateway_pid: Option<u32>,
    /// Variables for the gateway that is started, NAME=value: any of its settings.
    #[arg(long, global = true)]
    pub env: Vec<String>,
}

/// Both ways to the same ClickHouse.
pub struct Stack {
    pub clickhouse: Sql,
    /// `None` when only a bare ClickHouse is measured.
    pub gateway: Option<Sql>,
    clickhouse_pid: Option<u32>,
    gateway_pid: Option<u32>,
    own: Option<Gateway>,
}

/// The processes' cost up to now; the difference of two is the cost of what lay between.
#[derive(Debug, Clone, Copy, Default)]
pub struct Snapshot {
    pub gateway: Usage,
    pub clickhouse: Usage,
}

impl Snapshot {
    pub fn gateway_cpu_since(&self, before: &Snapshot) -> f64 {
        (self.gateway.cpu_seconds - before.gateway.cpu_seconds).max(0.0)
    }

    pub fn clickhouse_cpu_since(&self, before: &Snapshot) -> f64 {
        (self.clickhouse.cpu_seconds - before.clickhouse.cpu_seconds).max(0.0)
    }
}

impl Stack {
    pub fn open(options: &StackOptions, environment: &[String]) -> Result<Stack, BenchError> {
        let stack = match &options.clickhouse {
            Some(url) => Stack::attach(options, url)?,
            None => Stack::start(options, environment)?,
        };
        stack.clickhouse.execute("CREATE DATABASE IF NOT EXISTS bench")?;
        Ok(stack)
    }

    fn attach(options: &StackOptions, clickhouse: &str) -> Result<Stack, BenchError> {
        let gateway = options.gateway.as_deref().map(Endpoint::parse).transpose()?;
        Ok(Stack {
            clickhouse: Sql::new(Endpoint::parse(clickhouse)?),
            gateway: gateway.map(Sql::new),
            clickhouse_pid: options.clickhouse_pid,
            gateway_pid: options.gateway_pid,
            own: None,
        })
    }

    fn start(options: &StackOptions, environment: &[String]) -> Result<Stack, BenchError> {
        let environment = environment.iter().chain(&options.env);
        Ok(Stack::around(Gateway::start(Behind::EmbeddedClickHouse, &binary(options, "windrow")?, environment)?))
    }

    /// A gateway with a DuckDB behind it, where the same address stands for both.
    pub fn on_duckdb(options: &StackOptions) -> Result<Stack, BenchError> {
        let gateway = Gateway::start(Behind::DuckDb, &binary(options, "windrow")?, options.env.iter())?;
        let stack = Stack::around(gateway);
        stack.clickhouse.execute("CREATE SCHEMA IF NOT EXISTS bench")?;
        Ok(stack)
    }

    /// One more gateway in front of the same ClickHouse, with settings of its own in a file of `data_dir`.
    pub fn another_gateway(
        &self,
        options: &StackOptions,
        data_dir: DataDir,
        config: &Path,
    ) -> Result<Gateway, BenchError> {
        let behind = Behind::ClickHouse(self.clickhouse.endpoint().clone());
        Gateway::start_on(data_dir, behind, &binary(options, "windrow")?, Some(config), options.env.iter())
    }

    fn around(gateway: Gateway) -> Stack {
        Stack {
            clickhouse: Sql::new(gateway.clickhouse.clone()),
            gateway: Some(Sql::new(Endpoint::without_user(gateway.http_address.clone()))),
            clickhouse_pid: None,
            gateway_pid: Some(gateway.pid()),
            own: Some(gateway),
        }
    }

    /// The gateway, for a benchmark that makes no sense without one.
    pub fn require_gateway(&self) -> Result<&Sql, BenchError> {
        self.gateway
            .as_ref()
            .ok_or_else(|| BenchError::Setup("this benchmark needs a gateway: add --gateway URL".into()))
    }

    /// Kills the gateway that was started here, and its ClickHouse, and starts both on the same data.
    pub fn kill_and_start(mut self, options: &StackOptions, environment: &[String]) -> Result<Stack, BenchError> {
        let own =
            self.own.take().ok_or_else(|| BenchError::Setup("only a gateway of one's own can be killed".into()))?;
        let environment = environment.iter().chain(&options.env);
        Ok(Stack::around(own.killed_and_started(&binary(options, "windrow")?, environment)?))
    }

    /// The sum of a metric's samples.
    pub fn metric(&self, name: &str) -> Result<f64, BenchError> {
        let own =
            self.own.as_ref().ok_or_else(|| BenchError::Setup("only one's own gateway is asked for metrics".into()))?;
        let text = own.metrics()?;
        let samples =
            text.lines().filter(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' '])));
        Ok(samples.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum())
    }

    pub fn gateway_pid(&self) -> Option<u32> {
        self.gateway_pid
    }

    pub fn snapshot(&self) -> Snapshot {
        let clickhouse_pids = match (self.clickhouse_pid, self.gateway_pid) {
            (Some(pid), _) => vec![pid],
            (None, Some(gateway)) => descendants(gateway),
            (None, None) => Vec::new(),
        };
        let clickhouse = clickhouse_pids.into_iter().map(usage).fold(Usage::default(), Usage::plus);
        Snapshot { gateway: self.gateway_pid.map(usage).unwrap_or_default(), clickhouse }
    }

    /// Asks the gateway to end as its users would, and says so if it did not.
    pub fn close(self) -> Result<(), BenchError> {
        self.own.map_or(Ok(()), Gateway::stop)
    }
}

/// A binary of this workspace: the one that was named, or the one built beside this one.
pub fn binary(options: &StackOptions, name: &str) -> Result<PathBuf, BenchError> {
    if let Some(path) = options.windrow.as_ref().filter(|_| name == "windrow") {
        return Ok(path.clone());
    }
    let own = std::env::current_exe().map_err(BenchError::io("looking for the built binaries"))?;
    let path = own.with_file_name(name);
    if path.exists() {
        return Ok(path);
    }
    Err(BenchError::Setup(format!(
        "{} is missing: run `make build`, then benchmarks through bench/run",
        path.display()
    )))
}
