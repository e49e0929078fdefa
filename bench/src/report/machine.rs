//! On what a figure was measured: hardware, kernel, versions, and how busy the machine was before.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::error::BenchError;
use crate::sql::Sql;

/// One paragraph for the page.
pub fn describe(clickhouse: &Sql, windrow: Option<&Path>) -> Result<String, BenchError> {
    let versions = clickhouse.query("SELECT version(), today() FORMAT TSV")?;
    let (version, day) = versions.trim().split_once('\t').unwrap_or((versions.trim(), ""));
    let windrow = windrow
        .and_then(|binary| output_of(Command::new(binary).arg("--version")))
        .unwrap_or_else(|| "no gateway".into());
    Ok(format!(
        "Measured on {day}: {}, {} CPUs, {} GiB, Linux {}; {windrow}{}, ClickHouse {version}; load average before: {}.",
        processor(),
        std::thread::available_parallelism().map_or(0, usize::from),
        memory_gib(),
        first_line("/proc/sys/kernel/osrelease"),
        output_of(Command::new("git").args(["rev-parse", "--short", "HEAD"]))
            .map(|commit| format!(" at {commit}"))
            .unwrap_or_default(),
        load_average(),
    ))
}

/// Figures from a busy machine are not published. The part before leaves some load, which goes away by itself.
const MAX_LOAD: f64 = 2.0;
const PATIENCE: Duration = Duration::from_secs(300);

/// Returns when the machine is quiet enough for figures that are published; an error if it stays busy.
pub fn await_quiet() -> Result<(), BenchError> {
    let begin = Instant::now();
    loop {
        let load = load_average();
        if load <= MAX_LOAD {
            return Ok(());
        }
        if begin.elapsed() > PATIENCE {
            let why = format!("nothing is published from a machine with a load of {load}: at most {MAX_LOAD}");
            return Err(BenchError::Unsound(why));
        }
        std::thread::sleep(Duration::from_secs(5));
    }
}

/// Processes that ran or waited for a CPU, over the last minute.
fn load_average() -> f64 {
    first_line("/proc/loadavg").split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0.0)
}

/// The first line that a program prints; `None` when there is no such program or it has nothing to say.
fn output_of(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.lines().next()?.trim().to_owned()).filter(|line| output.status.success() && !line.is_empty())
}

fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find(|line| line.starts_with("model name")).and_then(|line| line.split_once(':'));
    model.map_or("unknown processor", |(_, name)| name.trim()).to_owned()
}

fn memory_gib() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = text.lines().next().and_then(|line| line.split_ascii_whitespace().nth(1)?.parse::<u64>().ok());
    kib.unwrap_or(0).div_ceil(1 << 20)
}

fn first_line(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().lines().next().unwrap_or_default().to_owned()
}
