//! The parts of the benchmarks that have to be fast, or that have to run inside one process. Each command
//! reads its plan, a line of JSON, and prints lines of JSON. `python -m bench` starts them; the results are
//! in docs/benchmarks.md.

mod batch;
mod cpu;
mod load;
mod native;
mod parsing;
mod picker;
mod produce;

use std::error::Error;
use std::io::Write;
use std::process::ExitCode;

use serde::de::DeserializeOwned;
use serde::Serialize;

// The gateway's own: its readers are measured in this process.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

pub type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> ExitCode {
    let done = match std::env::args().nth(1).unwrap_or_default().as_str() {
        "load" => read_line().and_then(|plan| print(&load::run(plan)?)),
        "native" => read_line().and_then(|plan| print(&native::large(&plan)?)),
        "produce" => read_line().and_then(produce::run),
        "parse" => read_line().and_then(|plan| print(&parsing::run(&plan)?)),
        other => Err(format!("{other:?} is none of load, native, produce, parse: use bench/run").into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("windrow-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Reads the next line of the plan. The end of the input is an error.
fn read_line<T: DeserializeOwned>() -> Outcome<T> {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    Ok(serde_json::from_str(&line)?)
}

fn print(answer: &impl Serialize) -> Outcome<()> {
    let mut out = std::io::stdout().lock();
    serde_json::to_writer(&mut out, answer)?;
    out.write_all(b"\n")?;
    Ok(out.flush()?)
}
