//! Windrow's benchmarks. `bench/run` builds what they need and starts this; docs/benchmarks.md is what it writes.

mod broker;
mod error;
mod load;
mod parts;
mod process;
mod relay;
mod report;
mod sql;
mod stack;
mod wire;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use error::BenchError;
use parts::{
    AppendsOptions, ArticleOptions, BulkOptions, ClientsOptions, CulpritOptions, DuckDbOptions, DurabilityOptions,
    FormatsOptions, IdleOptions, InsertsOptions, JournalOptions, KafkaOptions, ParsingOptions, Part, ReplayOptions,
    ResultsOptions, SelectOptions, TablesOptions, WriterOptions,
};
use stack::{binary, Stack, StackOptions};

// The gateway's own: its readers are measured in this process.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measures Windrow against the ClickHouse behind it.
#[derive(Parser)]
#[command(name = "bench/run")]
struct Options {
    #[command(subcommand)]
    part: Choice,
    #[command(flatten)]
    stack: StackOptions,
    /// Write the results into benchmarks.md and benchmarks/ of this folder, not only to the terminal.
    #[arg(long, global = true)]
    write: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Choice {
    /// All of them, one after the other: about half an hour.
    All {
        /// Everything once and briefly, to see whether it works: about five minutes. The figures are worth little.
        #[arg(long)]
        quick: bool,
    },
    /// One-row inserts from many connections, at each ack level.
    Inserts(InsertsOptions),
    /// Inserts of 100,000 rows.
    Bulk(BulkOptions),
    /// Payloads into blocks, against ClickHouse's own readers.
    Parsing(ParsingOptions),
    /// One-row inserts in binary formats.
    Formats(FormatsOptions),
    /// A batch with one insert that ClickHouse refuses.
    Culprit(CulpritOptions),
    /// One-row inserts at ack level disk, beside memory and beside one sync per insert.
    Durability(DurabilityOptions),
    /// What a killed gateway left in its journal.
    Replay(ReplayOptions),
    /// The journal alone, in the benchmark's own process.
    Journal(JournalOptions),
    /// One-row inserts into DuckDB.
    Duckdb(DuckDbOptions),
    /// Ordered appends into DuckDB over a network, beside quack and Flight SQL.
    Appends(AppendsOptions),
    /// A large answer, forwarded.
    Select(SelectOptions),
    /// Memory of idle connections.
    Idle(IdleOptions),
    /// The experiments of the article on asynchronous inserts, time-compressed.
    Article(ArticleOptions),
    /// Python clients in the eight scenarios of the article on the async client.
    Clients(ClientsOptions),
    /// Python clients with a million rows.
    Results(ResultsOptions),
    /// The writer, in Python and in Rust.
    Writer(WriterOptions),
    /// Topics of a real broker into tables, beside ClickHouse's Kafka engine.
    Kafka(KafkaOptions),
    /// One-row inserts spread over many tables: about five minutes.
    Tables(TablesOptions),
    /// A longer way to a server: passes connections on and adds a round trip.
    Relay(relay::RelayOptions),
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
    if let Choice::Relay(relay) = &options.part {
        return relay::run(relay);
    }
    let mut failed = 0;
    for part in chosen(options.part)? {
        // One that fails doesn't keep the others from being measured.
        if let Err(error) = run_part(part.as_ref(), &options.stack, options.write.as_deref()) {
            eprintln!("bench: {error}");
            failed += 1;
        }
    }
    match failed {
        0 => Ok(()),
        _ => Err(BenchError::Unsound(format!("{failed} of the benchmarks failed"))),
    }
}

/// Each part gets a stack of its own: none inherits what another left in memory.
fn run_part(part: &dyn Part, options: &StackOptions, write: Option<&std::path::Path>) -> Result<(), BenchError> {
    if write.is_some() {
        report::await_quiet()?;
    }
    let stack = Stack::open(options, &part.environment())?;
    let windrow = stack.gateway.as_ref().and_then(|_| binary(options, "windrow").ok());
    let machine = report::describe(&stack.clickhouse, windrow.as_deref())?;
    let mut section = part.measure(&stack, options)?;
    section.command.extend(options.env.iter().map(|pair| format!(" --env {pair}")));
    stack.close()?;
    println!("{}\n{machine}\n\n{}", section.command, section.body);
    match write {
        Some(docs) => report::write_section(docs, &section, &machine),
        None => Ok(()),
    }
}

fn chosen(choice: Choice) -> Result<Vec<Box<dyn Part>>, BenchError> {
    Ok(match choice {
        Choice::Inserts(part) => vec![Box::new(part)],
        Choice::Bulk(part) => vec![Box::new(part)],
        Choice::Parsing(part) => vec![Box::new(part)],
        Choice::Formats(part) => vec![Box::new(part)],
        Choice::Culprit(part) => vec![Box::new(part)],
        Choice::Durability(part) => vec![Box::new(part)],
        Choice::Replay(part) => vec![Box::new(part)],
        Choice::Journal(part) => vec![Box::new(part)],
        Choice::Duckdb(part) => vec![Box::new(part)],
        Choice::Appends(part) => vec![Box::new(part)],
        Choice::Select(part) => vec![Box::new(part)],
        Choice::Idle(part) => vec![Box::new(part)],
        Choice::Article(part) => vec![Box::new(part)],
        Choice::Clients(part) => vec![Box::new(part)],
        Choice::Results(part) => vec![Box::new(part)],
        Choice::Writer(part) => vec![Box::new(part)],
        Choice::Kafka(part) => vec![Box::new(part)],
        Choice::Tables(part) => vec![Box::new(part)],
        // It measures nothing, and is run before.
        Choice::Relay(_) => Vec::new(),
        Choice::All { quick } => {
            let mut all: Vec<Box<dyn Part>> = Vec::new();
            for (name, shorter) in PARTS {
                all.extend(from_command_line(name, if quick { shorter } else { &[] })?);
            }
            all
        }
    })
}

/// Each part with the options that make it short.
const PARTS: [(&str, &[&str]); 18] = [
    ("inserts", &["--seconds=1", "--rounds=1"]),
    ("tables", &["--seconds=1", "--warmup-seconds=1", "--tables=1,10,100"]),
    ("bulk", &["--rounds=3"]),
    ("parsing", &["--rounds=1", "--megabytes=20"]),
    ("formats", &["--seconds=1", "--rounds=1"]),
    ("culprit", &["--rounds=3"]),
    ("durability", &["--seconds=1", "--rounds=1"]),
    ("replay", &["--megabytes=100"]),
    ("journal", &["--seconds=0.5", "--megabytes=100"]),
    ("duckdb", &["--seconds=1", "--rounds=1"]),
    ("appends", &["--rounds=1", "--file-rounds=1", "--rows=2000000"]),
    ("select", &["--rounds=1", "--megabytes=200"]),
    ("idle", &["--connections=1000"]),
    ("article", &["--seconds=8"]),
    ("clients", &["--rounds=1"]),
    ("results", &["--rounds=1"]),
    ("writer", &["--rounds=1", "--rows=200000"]),
    ("kafka", &["--rounds=1", "--rows=2000000", "--seconds=5", "--formats=json-each-row", "--engines=merge-tree"]),
];

/// A part as its own command line would make it, so that defaults stand in one place.
fn from_command_line(name: &str, options: &[&str]) -> Result<Vec<Box<dyn Part>>, BenchError> {
    let command_line = ["bench/run", name].into_iter().chain(options.iter().copied());
    let options = Options::try_parse_from(command_line).map_err(|error| BenchError::Setup(error.to_string()))?;
    chosen(options.part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound_and_all_of_it_can_be_shortened() {
        use clap::CommandFactory;
        Options::command().debug_assert();
        for quick in [false, true] {
            assert_eq!(chosen(Choice::All { quick }).unwrap().len(), PARTS.len());
        }
        for (name, _) in PARTS {
            assert!(report::REGIONS.contains(&name), "the page has no place for {name}");
        }
    }
}
