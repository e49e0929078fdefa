//! A gateway of our own on free ports and a fresh data directory, with its embedded ClickHouse.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use serde::Deserialize;

use super::Child;
use crate::error::BenchError;
use crate::wire::Endpoint;

const READY_WITHIN: Duration = Duration::from_secs(60);
const STOPS_WITHIN: Duration = Duration::from_secs(30);

pub struct Gateway {
    child: Child,
    data_dir: DataDir,
    pub http_address: String,
    /// The way around the gateway, to the ClickHouse that it started.
    pub clickhouse: Endpoint,
}

/// What `embedded/endpoint.json` says.
#[derive(Deserialize)]
struct EndpointFile {
    url: String,
    user: String,
    password: String,
}

impl Gateway {
    pub fn start<'a>(binary: &Path, environment: impl Iterator<Item = &'a String>) -> Result<Gateway, BenchError> {
        let data_dir = DataDir::create()?;
        let mut child = Child::spawn(
            Command::new(binary)
                .args(["serve", "--backend", "embedded", "--log-format", "json"])
                .args(["--http", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--data-dir"])
                .arg(data_dir.path.join("data"))
                .envs(environment.map(|pair| pair.split_once('=').unwrap_or((pair, ""))))
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::piped()),
        )
        .map_err(BenchError::io(format!("starting {}", binary.display())))?;
        let log = data_dir.path.join("gateway.log");
        let http_address = match child.inner().stderr.take() {
            Some(stderr) => wait_until_ready(stderr, &log)?,
            None => return Err(BenchError::Setup("the gateway has no stderr to read its ready line from".into())),
        };
        let clickhouse = read_endpoint(&data_dir.path.join("data/embedded/endpoint.json"))?;
        Ok(Gateway { child, data_dir, http_address, clickhouse })
    }

    pub fn pid(&self) -> u32 {
        self.child.pid()
    }

    pub fn stop(mut self) -> Result<(), BenchError> {
        let ended = self.child.terminate(STOPS_WITHIN).map_err(BenchError::io("stopping the gateway"))?;
        let log = last_lines(&self.data_dir.path.join("gateway.log"));
        match ended {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(BenchError::Setup(format!("the gateway ended with {status}; its last lines:\n{log}"))),
            None => Err(BenchError::Setup(format!("the gateway ignored SIGTERM for {STOPS_WITHIN:?}:\n{log}"))),
        }
    }
}

fn wait_until_ready(stderr: ChildStderr, log: &Path) -> Result<String, BenchError> {
    let mut file = fs::File::create(log).map_err(BenchError::io("writing the gateway's log"))?;
    let (ready, is_ready) = mpsc::channel();
    // Goes on after the ready line, or the gateway would block once the pipe is full.
    std::thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            if let Some(address) = ready_address(&line) {
                // Nobody listens any more after the first one.
                let _ = ready.send(address);
            }
            let _ = writeln!(file, "{line}");
        }
    });
    is_ready.recv_timeout(READY_WITHIN).map_err(|_| {
        BenchError::Setup(format!("the gateway did not say that it is ready; its last lines:\n{}", last_lines(log)))
    })
}

/// The data port's address, if this is the line that a ready gateway logs.
fn ready_address(line: &str) -> Option<String> {
    let line: serde_json::Value = serde_json::from_str(line).ok()?;
    let fields = line.get("fields").unwrap_or(&line);
    if fields.get("message")?.as_str()? != "windrow is ready" {
        return None;
    }
    Some(fields.get("http")?.as_str()?.to_owned())
}

fn read_endpoint(path: &Path) -> Result<Endpoint, BenchError> {
    let text = fs::read_to_string(path).map_err(BenchError::io(format!("reading {}", path.display())))?;
    let file: EndpointFile = serde_json::from_str(&text)
        .map_err(|error| BenchError::Setup(format!("{} is not as expected: {error}", path.display())))?;
    Ok(Endpoint { user: file.user, password: file.password, ..Endpoint::parse(&file.url)? })
}

fn last_lines(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(8)..].join("\n")
}

/// Removed with everything in it at the end.
struct DataDir {
    path: PathBuf,
}

impl DataDir {
    fn create() -> Result<Self, BenchError> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("windrow-bench-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).map_err(BenchError::io(format!("creating {}", path.display())))?;
        Ok(DataDir { path })
    }
}

impl Drop for DataDir {
    fn drop(&mut self) {
        // What can't be removed lies in the system's directory for temporary files, which is cleared anyway.
        let _ = fs::remove_dir_all(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_address_in_the_ready_line_only() {
        let flat = r#"{"level":"INFO","message":"windrow is ready","http":"127.0.0.1:5"}"#;
        let nested = r#"{"level":"INFO","fields":{"message":"windrow is ready","http":"127.0.0.1:5"}}"#;
        assert_eq!(ready_address(flat).as_deref(), Some("127.0.0.1:5"));
        assert_eq!(ready_address(nested).as_deref(), Some("127.0.0.1:5"));
        for other in [r#"{"message":"starting","http":"127.0.0.1:5"}"#, "plain text", "{", ""] {
            assert_eq!(ready_address(other), None, "{other}");
        }
    }
}
