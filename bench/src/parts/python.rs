//! The Python package beside clickhouse-connect. What is measured is written in Python, in `bench/python`, since that
//! is what its users write; this runs it against the embedded ClickHouse and puts what it prints into the page.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::Part;
use crate::error::BenchError;
use crate::report::Section;
use crate::stack::{binary, Stack, StackOptions};

/// With the package, clickhouse-connect and what both need for frames: `make bench` sets it up.
const PYTHON: &str = ".venv/bin/python";

#[derive(Debug, Clone, clap::Args)]
pub struct ClientsOptions {
    #[arg(long, default_value_t = 5)]
    pub rounds: u32,
}

#[derive(Debug, Clone, clap::Args)]
pub struct ResultsOptions {
    #[arg(long, default_value_t = 3)]
    pub rounds: u32,
}

#[derive(Debug, Clone, clap::Args)]
pub struct WriterOptions {
    #[arg(long, default_value_t = 5)]
    pub rounds: u32,
    /// Of each case.
    #[arg(long, default_value_t = 1_000_000)]
    pub rows: u64,
}

#[derive(Debug, Clone, clap::Args)]
pub struct AppendsOptions {
    #[arg(long, default_value_t = 5)]
    pub rounds: u32,
    /// Of the Parquet file.
    #[arg(long, default_value_t = 3)]
    pub file_rounds: u32,
    #[arg(long, default_value_t = 20_000_000)]
    pub rows: u64,
}

impl Part for ClientsOptions {
    fn measure(&self, stack: &Stack, options: &StackOptions) -> Result<Section, BenchError> {
        let arguments = [format!("--rounds={}", self.rounds)];
        Ok(Section {
            name: "clients",
            title: "Python clients: the article's scenarios",
            command: format!("bench/run clients --rounds {}", self.rounds),
            body: run("clients", &arguments, stack, options)?,
            charts: Vec::new(),
        })
    }
}

impl Part for ResultsOptions {
    fn measure(&self, stack: &Stack, options: &StackOptions) -> Result<Section, BenchError> {
        let arguments = [format!("--rounds={}", self.rounds)];
        Ok(Section {
            name: "results",
            title: "Python clients: large results",
            command: format!("bench/run results --rounds {}", self.rounds),
            body: run("results", &arguments, stack, options)?,
            charts: Vec::new(),
        })
    }
}

impl Part for WriterOptions {
    fn measure(&self, stack: &Stack, options: &StackOptions) -> Result<Section, BenchError> {
        let arguments = [format!("--rounds={}", self.rounds), format!("--rows={}", self.rows)];
        Ok(Section {
            name: "writer",
            title: "The writer",
            command: format!("bench/run writer --rounds {} --rows {}", self.rounds, self.rows),
            body: run("writer", &arguments, stack, options)?,
            charts: Vec::new(),
        })
    }
}

impl Part for AppendsOptions {
    fn measure(&self, stack: &Stack, options: &StackOptions) -> Result<Section, BenchError> {
        let arguments = [
            format!("--rounds={}", self.rounds),
            format!("--file-rounds={}", self.file_rounds),
            format!("--rows={}", self.rows),
        ];
        Ok(Section {
            name: "appends",
            title: "Ordered appends into DuckDB",
            command: format!(
                "bench/run appends --rounds {} --file-rounds {} --rows {}",
                self.rounds, self.file_rounds, self.rows
            ),
            body: run("appends", &arguments, stack, options)?,
            charts: Vec::new(),
        })
    }
}

/// What the program prints. Its messages go to the terminal.
fn run(program: &str, arguments: &[String], stack: &Stack, options: &StackOptions) -> Result<String, BenchError> {
    let endpoint = stack.clickhouse.endpoint();
    let script: PathBuf = ["bench", "python", &format!("{program}.py")].iter().collect();
    if !Path::new(PYTHON).exists() {
        return Err(BenchError::Setup(format!("{PYTHON} is missing: run `make setup-test`, or `make bench`")));
    }
    let output = Command::new(PYTHON)
        .arg(script)
        .args(arguments)
        .env("BENCH_CLICKHOUSE", &endpoint.address)
        .env("BENCH_USER", &endpoint.user)
        .env("BENCH_PASSWORD", &endpoint.password)
        .env("BENCH_WINDROW", binary(options, "windrow")?)
        .env("BENCH_BINARY", binary(options, "windrow-bench")?)
        .env("BENCH_EMPTY", binary(options, "examples/empty_axum")?)
        .env("BENCH_WRITER_ROWS", binary(options, "examples/writer_rows")?)
        .stderr(Stdio::inherit())
        .output()
        .map_err(BenchError::io(format!("starting {PYTHON}")))?;
    if !output.status.success() {
        return Err(BenchError::Unsound(format!("bench/python/{program}.py ended with {}", output.status)));
    }
    String::from_utf8(output.stdout).map_err(|_| BenchError::Unsound(format!("{program} printed something odd")))
}
