//! A gateway of our own on free ports and a fresh data directory, with its embedded ClickHouse.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{ChildStderr, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde::Deserialize;

use super::{Child, DataDir};
use crate::error::BenchError;
use crate::process::{descendants, usage};
use crate::wire::Endpoint;

const READY_WITHIN: Duration = Duration::from_secs(60);
const GONE_POLL: Duration = Duration::from_millis(5);
const STOPS_WITHIN: Duration = Duration::from_secs(30);

/// What a gateway stores into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Behind {
    EmbeddedClickHouse,
    /// A new file in the data directory.
    DuckDb,
    /// A ClickHouse that runs already.
    ClickHouse(Endpoint),
}

pub struct Gateway {
    child: Child,
    behind: Behind,
    data_dir: DataDir,
    pub http_address: String,
    admin_address: String,
    /// The way around the gateway, to the ClickHouse that it started. To a DuckDB there is none: the gateway itself.
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
    pub fn start<'a>(
        behind: Behind,
        binary: &Path,
        environment: impl Iterator<Item = &'a String>,
    ) -> Result<Gateway, BenchError> {
        Gateway::start_on(DataDir::create()?, behind, binary, None, environment)
    }

    /// `data_dir` is removed with it.
    pub fn start_on<'a>(
        data_dir: DataDir,
        behind: Behind,
        binary: &Path,
        config: Option<&Path>,
        environment: impl Iterator<Item = &'a String>,
    ) -> Result<Gateway, BenchError> {
        // Not as an argument, which others on the machine can see: it may hold a password.
        let backend = match &behind {
            Behind::EmbeddedClickHouse => "embedded".to_owned(),
            Behind::DuckDb => format!("duckdb://{}", data_dir.path.join("bench.duckdb").display()),
            Behind::ClickHouse(endpoint) => endpoint.to_url(),
        };
        let mut child = Child::spawn(
            Command::new(binary)
                .args(["serve", "--log-format", "json"])
                .args(["--http", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--flight", "", "--data-dir"])
                .arg(data_dir.path.join("data"))
                .args(config.iter().flat_map(|path| [OsStr::new("--config"), path.as_os_str()]))
                .env("WINDROW_BACKEND", backend)
                .envs(environment.map(|pair| pair.split_once('=').unwrap_or((pair, ""))))
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::piped()),
        )
        .map_err(BenchError::io(format!("starting {}", binary.display())))?;
        let log = data_dir.path.join("gateway.log");
        let ready = match child.inner().stderr.take() {
            Some(stderr) => wait_until_ready(stderr, &log)?,
            None => return Err(BenchError::Setup("the gateway has no stderr to read its ready line from".into())),
        };
        let clickhouse = match &behind {
            Behind::EmbeddedClickHouse => read_endpoint(&data_dir.path.join("data/embedded/endpoint.json"))?,
            Behind::DuckDb => Endpoint::without_user(ready.http.clone()),
            Behind::ClickHouse(endpoint) => endpoint.clone(),
        };
        Ok(Gateway { child, behind, data_dir, http_address: ready.http, admin_address: ready.admin, clickhouse })
    }

    /// As a machine that loses its power would: what it started is gone too. Then another on the same data.
    pub fn killed_and_started<'a>(
        mut self,
        binary: &Path,
        environment: impl Iterator<Item = &'a String>,
    ) -> Result<Gateway, BenchError> {
        let started_by_it = descendants(self.pid());
        let killing = || BenchError::io("killing the gateway");
        self.child.inner().kill().map_err(killing())?;
        self.child.inner().wait().map_err(killing())?;
        for pid in started_by_it {
            // SAFETY: kill takes no pointers; the process was this gateway's, which nobody has waited for.
            unsafe { libc::kill(pid as libc::pid_t, libc::SIGKILL) };
            while usage(pid).resident_bytes > 0 {
                std::thread::sleep(GONE_POLL);
            }
        }
        Gateway::start_on(self.data_dir, self.behind, binary, None, environment)
    }

    /// The text of its metrics.
    pub fn metrics(&self) -> Result<String, BenchError> {
        let reading = || BenchError::io("reading the gateway's metrics");
        let mut stream = TcpStream::connect(&self.admin_address).map_err(reading())?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n").map_err(reading())?;
        let mut text = String::new();
        stream.read_to_string(&mut text).map_err(reading())?;
        Ok(text)
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

/// The addresses of a gateway that is ready.
#[derive(Debug, PartialEq)]
struct Ready {
    http: String,
    admin: String,
}

fn wait_until_ready(stderr: ChildStderr, log: &Path) -> Result<Ready, BenchError> {
    let mut file = fs::File::create(log).map_err(BenchError::io("writing the gateway's log"))?;
    let (ready, is_ready) = mpsc::channel();
    // Goes on after the ready line, or the gateway would block once the pipe is full.
    std::thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            if let Some(addresses) = ready_addresses(&line) {
                // Nobody listens any more after the first one.
                let _ = ready.send(addresses);
            }
            let _ = writeln!(file, "{line}");
        }
    });
    is_ready.recv_timeout(READY_WITHIN).map_err(|_| {
        BenchError::Setup(format!("the gateway did not say that it is ready; its last lines:\n{}", last_lines(log)))
    })
}

/// The addresses, if this is the line that a ready gateway logs.
fn ready_addresses(line: &str) -> Option<Ready> {
    let line: serde_json::Value = serde_json::from_str(line).ok()?;
    let fields = line.get("fields").unwrap_or(&line);
    if fields.get("message")?.as_str()? != "windrow is ready" {
        return None;
    }
    let address = |of: &str| Some(fields.get(of)?.as_str()?.to_owned());
    Some(Ready { http: address("http")?, admin: address("admin")? })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_addresses_in_the_ready_line_only() {
        let flat = r#"{"level":"INFO","message":"windrow is ready","http":"127.0.0.1:5","admin":"127.0.0.1:6"}"#;
        let nested =
            r#"{"level":"INFO","fields":{"message":"windrow is ready","http":"127.0.0.1:5","admin":"127.0.0.1:6"}}"#;
        let expected = Ready { http: "127.0.0.1:5".to_owned(), admin: "127.0.0.1:6".to_owned() };
        assert_eq!(ready_addresses(flat).as_ref(), Some(&expected));
        assert_eq!(ready_addresses(nested).as_ref(), Some(&expected));
        for other in [r#"{"message":"starting","http":"127.0.0.1:5"}"#, "plain text", "{", ""] {
            assert_eq!(ready_addresses(other), None, "{other}");
        }
    }
}
