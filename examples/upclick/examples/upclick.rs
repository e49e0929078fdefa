//! Runs UpClick alone, against a gateway or any ClickHouse:
//! `cargo run --release -p windrow-upclick --example upclick -- --url http://127.0.0.1:8123 --for 20`

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use windrow_upclick::{DemoOptions, Destination, Inserts, Output, PidSource, StopRequests};

const USAGE: &str =
    "upclick --url http://host:port [--straight http://host:port] [--user NAME] [--password PASSWORD] [--probes 200] \
    [--every SECONDS] [--for SECONDS] [--site URL]... [--no-wait] [--kpi MS] [--plain] [--gateway-pid PID] [--clickhouse-pid PID]";

#[tokio::main]
async fn main() -> ExitCode {
    let outcome = match parse(std::env::args().skip(1)) {
        Ok(options) => windrow_upclick::run(options, stop_requests()).await.map_err(|error| error.to_string()),
        Err(problem) => Err(format!("{problem}\nusage: {USAGE}")),
    };
    match outcome {
        Ok(_) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}

/// Makes a request to stop for each Ctrl-C.
fn stop_requests() -> StopRequests {
    let (sender, stop) = StopRequests::channel();
    tokio::spawn(async move {
        while tokio::signal::ctrl_c().await.is_ok() {
            sender.send_modify(|asked| *asked += 1);
        }
    });
    stop
}

fn parse(mut args: impl Iterator<Item = String>) -> Result<DemoOptions, String> {
    let mut options = DemoOptions::new(Vec::new());
    let mut gathered = Destination::new("http://127.0.0.1:8123", Inserts::Waiting);
    let mut straight = None;
    while let Some(flag) = args.next() {
        let mut value = || args.next().ok_or(format!("{flag} needs a value"));
        match flag.as_str() {
            "--url" => gathered.url = value()?,
            "--straight" => straight = Some(value()?),
            "--user" => gathered.user = value()?,
            "--password" => gathered.password = value()?,
            "--probes" => options.probes = number(&flag, value()?)?,
            "--every" => options.every = seconds(&flag, value()?)?,
            "--for" => options.run_for = Some(seconds(&flag, value()?)?),
            "--site" => options.urls.push(value()?),
            "--no-wait" => gathered.inserts = Inserts::NotWaiting,
            "--kpi" => options.kpi_ms = number(&flag, value()?)?,
            "--plain" => options.output = Output::Plain,
            "--gateway-pid" => options.gateway_pid = fixed_pid(number(&flag, value()?)?),
            "--clickhouse-pid" => gathered.database_pid = fixed_pid(number(&flag, value()?)?),
            _ => return Err(format!("unknown argument {flag}")),
        }
    }
    let straight = straight.map(|url| Destination { url, inserts: Inserts::Synchronous, ..gathered.clone() });
    options.destinations = [gathered].into_iter().chain(straight).collect();
    Ok(options)
}

fn number<T: std::str::FromStr>(flag: &str, value: String) -> Result<T, String> {
    value.parse().map_err(|_| format!("{flag} needs a number, not {value:?}"))
}

fn seconds(flag: &str, value: String) -> Result<Duration, String> {
    Duration::try_from_secs_f64(number(flag, value)?).map_err(|error| format!("{flag}: {error}"))
}

fn fixed_pid(pid: u32) -> PidSource {
    Arc::new(move || Some(pid))
}
