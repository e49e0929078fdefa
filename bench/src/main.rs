//! Windrow's benchmarks. `bench/run` builds what they need and starts this; docs/benchmarks.md is what it writes.

mod error;
mod load;
mod parts;
mod process;
mod report;
mod sql;
mod stack;
mod wire;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use error::BenchError;
use parts::{ArticleOptions, BulkOptions, IdleOptions, InsertsOptions, Part, SelectOptions};
use stack::{binary, Stack, StackOptions};

/// Measures Windrow against the ClickHouse behind it.
#[derive(Parser)]
#[command(name = "bench/run")]
struct Options {
    #[command(subcommand)]
    part: Option<Choice>,
    #[command(flatten)]
    stack: StackOptions,
    /// Write the results into benchmarks.md and benchmarks/ of this folder, not only to the terminal.
    #[arg(long, global = true)]
    write: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Choice {
    /// All of them, one after the other: about ten minutes. The default.
    All,
    /// One-row inserts from many connections, at each ack level.
    Inserts(InsertsOptions),
    /// Inserts of 100,000 rows.
    Bulk(BulkOptions),
    /// A large answer, forwarded.
    Select(SelectOptions),
    /// Memory of idle connections.
    Idle(IdleOptions),
    /// The experiments of the article on asynchronous inserts, time-compressed.
    Article(ArticleOptions),
}

fn main() -> ExitCode {
    let options = Options::parse();
    match run(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: Options) -> Result<(), BenchError> {
    // Inherited by the servers: thousands of connections need as many files at both ends.
    process::raise_open_files();
    for part in chosen(options.part)? {
        run_part(part.as_ref(), &options.stack, options.write.as_deref())?;
    }
    Ok(())
}

/// Each part gets a stack of its own: none inherits what another left in memory.
fn run_part(part: &dyn Part, options: &StackOptions, write: Option<&std::path::Path>) -> Result<(), BenchError> {
    let stack = Stack::open(options)?;
    let windrow = stack.gateway.as_ref().and_then(|_| binary(options, "windrow").ok());
    let machine = report::describe(&stack.clickhouse, windrow.as_deref())?;
    let section = part.measure(&stack, options)?;
    stack.close()?;
    println!("{}\n{machine}\n\n{}", section.command, section.body);
    match write {
        Some(docs) => report::write_section(docs, &section, &machine),
        None => Ok(()),
    }
}

fn chosen(choice: Option<Choice>) -> Result<Vec<Box<dyn Part>>, BenchError> {
    Ok(match choice.unwrap_or(Choice::All) {
        Choice::Inserts(part) => vec![Box::new(part)],
        Choice::Bulk(part) => vec![Box::new(part)],
        Choice::Select(part) => vec![Box::new(part)],
        Choice::Idle(part) => vec![Box::new(part)],
        Choice::Article(part) => vec![Box::new(part)],
        Choice::All => {
            let mut all: Vec<Box<dyn Part>> = Vec::new();
            for name in ["inserts", "bulk", "select", "idle", "article"] {
                all.extend(with_defaults(name)?);
            }
            all
        }
    })
}

/// A part as its command line without options would give it, so that defaults stand in one place.
fn with_defaults(name: &str) -> Result<Vec<Box<dyn Part>>, BenchError> {
    let options = Options::try_parse_from(["bench/run", name]).map_err(|error| BenchError::Setup(error.to_string()))?;
    chosen(options.part)
}
