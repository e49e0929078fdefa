//! `windrow append`: files into a table, through a gateway that may be far away.
//!
//! Exit codes: 0 the append is stored; 1 it is not stored, and can't be; 2 wrong arguments; 3 it broke off
//! and can be continued; 130 it was interrupted, and dropped.

mod arguments;
mod display;
mod frame;
mod terminal;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use windrow_appender::{abort, append, AppendFailure, AppendId, AppendOptions, Appended, Input, Why};
use windrow_clickhouse::{Client, ClientOptions, Endpoint};

pub(crate) use arguments::AppendArguments;
use display::{printable, Display};
use frame::{grouped, size};

use crate::gateway::runtime;

const BROKE_OFF: u8 = 3;
const INTERRUPTED: u8 = 130;

pub(crate) fn run(arguments: &AppendArguments) -> Result<ExitCode, String> {
    let client = Arc::new(client(arguments)?);
    let runtime = runtime()?;
    let code = runtime.block_on(append_files(&client, arguments));
    // A thread may be waiting for standard input; it ends with the process.
    runtime.shutdown_background();
    Ok(ExitCode::from(code))
}

fn client(arguments: &AppendArguments) -> Result<Client, String> {
    let mut endpoint = Endpoint::parse(&arguments.to).map_err(|error| format!("--to: {error}"))?;
    if let (Ok(password), true) = (std::env::var("WINDROW_PASSWORD"), endpoint.credentials.password.is_empty()) {
        endpoint.credentials.password = password;
    }
    let options = ClientOptions { ca_file: arguments.ca_file.clone(), ..ClientOptions::default() };
    Client::new(endpoint, options).map_err(|error| error.to_string())
}

async fn append_files(client: &Arc<Client>, arguments: &AppendArguments) -> u8 {
    let id = arguments.id.unwrap_or_else(AppendId::random);
    let display = Arc::new(Display::open(arguments.quiet || arguments.json));
    display.say(&format!("append {id} to {}", printable(&arguments.table)));
    let (shown, waiting) = (display.clone(), display.clone());
    let defaults = AppendOptions::default();
    let patience = arguments.retry_for.map(Duration::from_secs);
    let options = AppendOptions {
        id: Some(id),
        resume: arguments.id.is_some(),
        source: None,
        columns: arguments.columns.clone(),
        ordered: !arguments.unordered,
        delimiter: arguments.delimiter,
        connections: arguments.connections.clamp(1, 200),
        window_bytes: arguments.window_bytes,
        batch_bytes: arguments.batch_bytes,
        compression: arguments.compression,
        retry_for: patience.unwrap_or(defaults.retry_for),
        connect_for: patience.unwrap_or(defaults.connect_for),
        on_progress: Some(Arc::new(move |progress| shown.show(progress))),
        on_waiting: Some(Arc::new(move |server| waiting.show_waiting(server))),
        faults: arguments.faults,
    };
    let input = Input::Files { paths: arguments.files.clone(), format: arguments.format };
    tokio::select! {
        outcome = append(client, &arguments.table, input, options) => match outcome {
            Ok(appended) => tell_success(&display, arguments, &appended),
            Err(failure) => tell_failure(&display, arguments, &failure),
        },
        () = interrupted() => drop_it(client, id, &display).await,
    }
}

async fn interrupted() {
    if tokio::signal::ctrl_c().await.is_err() {
        // Then the signal ends the process as it always did.
        std::future::pending::<()>().await;
    }
}

async fn drop_it(client: &Arc<Client>, id: AppendId, display: &Display) -> u8 {
    display.clear();
    match abort(client, id).await {
        Ok(true) => eprintln!("windrow: interrupted; nothing of append {id} is stored"),
        Ok(false) => eprintln!("windrow: interrupted, but append {id} is stored already"),
        Err(failure) => eprintln!("windrow: interrupted; the gateway could not be told: {failure}"),
    }
    INTERRUPTED
}

fn tell_success(display: &Display, arguments: &AppendArguments, appended: &Appended) -> u8 {
    display.clear();
    if arguments.json {
        let Appended { id, rows, bytes, batches, seconds, atomic, was_committed } = appended;
        let id = id.to_string();
        println!(
            "{}",
            serde_json::json!({
                "id": id, "state": "committed", "rows": rows, "bytes": bytes, "batches": batches, "seconds": seconds,
                "atomic": atomic, "was_committed": was_committed,
            })
        );
        return 0;
    }
    if appended.was_committed {
        display.say(&format!(
            "it is stored already: {} rows in {} batches",
            grouped(appended.rows),
            grouped(appended.batches)
        ));
        return 0;
    }
    let rate = appended.rows as f64 / appended.seconds.max(1e-9);
    display.say(&format!(
        "{} rows, {} in {} batches, {:.3} s ({} rows/s){}",
        grouped(appended.rows),
        size(appended.bytes),
        grouped(appended.batches),
        appended.seconds,
        grouped(rate as u64),
        visible_by(&appended.atomic)
    ));
    0
}

fn visible_by(atomic: &str) -> &'static str {
    match atomic {
        "partition" => "; each partition became visible by itself",
        "block" => "; each block of rows became visible by itself",
        _ => "",
    }
}

fn tell_failure(display: &Display, arguments: &AppendArguments, failure: &AppendFailure) -> u8 {
    display.clear();
    let place = if matches!(failure.why, Why::NotWindrow { .. }) { "--to: " } else { "" };
    eprintln!("windrow: {place}{}", printable(&failure.to_string()));
    if arguments.json {
        let state = if failure.is_resumable() { "broken off" } else { "failed" };
        let (code, batch, row) = match &failure.why {
            Why::Refused { exception, batch, row } => (Some(exception.code.number()), *batch, *row),
            _ => (None, None, None),
        };
        let text = failure.to_string();
        println!(
            "{}",
            serde_json::json!({
                "id": failure.id.to_string(), "state": state,
                "error": { "code": code, "text": text, "batch": batch, "row": row },
            })
        );
    }
    if !failure.is_resumable() {
        return 1;
    }
    match &failure.why {
        Why::Unreachable { reached: false, .. } if arguments.id.is_none() => {
            eprintln!("windrow: is the gateway running there? --retry-for SECONDS tries for longer");
        }
        _ => eprintln!(
            "windrow: go on with the same command and --id {}, before the gateway drops the append",
            failure.id
        ),
    }
    BROKE_OFF
}
