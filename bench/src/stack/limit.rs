//! The empty handlers: what the load generator reaches when a server does nothing but HTTP.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use super::{binary, Child, StackOptions};
use crate::error::BenchError;
use crate::wire::Endpoint;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// On the gateway's own HTTP layer.
    Windrow,
    Axum,
    /// On the gateway's own HTTP layer, and each request is synced to disk by itself.
    SyncEach,
}

pub struct LimitServer {
    child: Child,
    pub endpoint: Endpoint,
}

impl LimitServer {
    pub fn start(options: &StackOptions, limit: Limit) -> Result<Self, BenchError> {
        let name = match limit {
            Limit::Windrow => "examples/empty",
            Limit::Axum => "examples/empty_axum",
            Limit::SyncEach => "examples/sync_each",
        };
        let starting = || BenchError::io(format!("starting {name}"));
        let mut command = Command::new(binary(options, name)?);
        command.envs(options.env.iter().map(|pair| pair.split_once('=').unwrap_or((pair, ""))));
        let mut child =
            Child::spawn(command.arg("127.0.0.1:0").stdin(Stdio::null()).stdout(Stdio::piped())).map_err(starting())?;
        let mut line = String::new();
        if let Some(stdout) = child.inner().stdout.take() {
            BufReader::new(stdout).read_line(&mut line).map_err(starting())?;
        }
        let address = line.split_whitespace().last().unwrap_or_default();
        let endpoint = Endpoint::parse(&format!("http://{address}"))
            .map_err(|_| BenchError::Setup(format!("{name} did not print its address, but {line:?}")))?;
        Ok(LimitServer { child, endpoint })
    }

    pub fn pid(&self) -> u32 {
        self.child.pid()
    }
}
