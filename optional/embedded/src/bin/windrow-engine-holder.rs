//! A program that holds an embedded ClickHouse as the gateway does: for the tests that kill the holder.
//!
//! `windrow-engine-holder <data directory>` prints the engine's endpoint and pid as one line of JSON, then waits.
//! Unlike the gateway it takes no lock of the directory.

use std::io::Write;

use windrow_embedded::{run_engine_if_asked, Embedded, EmbeddedOptions};

fn main() {
    run_engine_if_asked();
    let failure = match std::env::args_os().nth(1) {
        Some(data_dir) => hold(data_dir.into()),
        None => "usage: windrow-engine-holder <data directory>".to_owned(),
    };
    eprintln!("{failure}");
    std::process::exit(1);
}

/// Holds the engine for ever. Returns only if the engine could not be started, with the reason.
#[tokio::main(flavor = "current_thread")]
async fn hold(data_dir: std::path::PathBuf) -> String {
    let embedded = match Embedded::start(EmbeddedOptions::new(data_dir)).await {
        Ok(embedded) => embedded,
        Err(error) => return error.to_string(),
    };
    let line = serde_json::json!({ "endpoint": embedded.endpoint(), "pid": embedded.pid() });
    if let Err(error) = writeln!(std::io::stdout(), "{line}") {
        return error.to_string();
    }
    std::future::pending().await
}
