//! The guard: it keeps one engine running until it is told to stop.
//!
//! One task owns the child. When the child dies, or lives on but refuses everything (`pulse.rs`), the task
//! starts it again after a back-off that doubles from 100 ms to 10 s and starts over after a minute of
//! health. Ports, user and password stay the same. All other tasks see an [`EngineState`] in a watch channel.

mod ask;
mod launch;
mod log;
mod ports;
mod pulse;

use std::time::{Duration, Instant};

use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::engine::{config, locate};
use crate::files::EngineFiles;
use crate::options::GATEWAY_USER;
use crate::{EmbeddedError, EmbeddedOptions, Endpoint};
use launch::{own_executable, Launch, Running};
use ports::Ports;
use pulse::Pace;

const FIRST_BACK_OFF: Duration = Duration::from_millis(100);
const LONGEST_BACK_OFF: Duration = Duration::from_secs(10);
const HEALTHY_AFTER: Duration = Duration::from_secs(60);
const PASSWORD_BYTES: usize = 24;

/// The state of the engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineState {
    /// The engine was started again after a death, and does not answer yet.
    Starting,
    /// The engine answers.
    Up { pid: u32, since: Instant },
    /// The engine died, and will be started again.
    Down { since: Instant, reason: String },
    /// The gateway stopped the engine for good.
    Stopped,
}

/// The way in which the engine ended when it was told to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopOutcome {
    /// The engine shut down by itself, with everything that tables keep in memory written.
    Clean,
    /// The engine ended after a signal.
    Terminated,
    /// The engine had to be killed.
    Killed,
    /// The engine was not running.
    WasDown,
}

/// A running, guarded engine. The engine ends when this value is dropped; [`Embedded::stop`] ends it in order.
pub struct Embedded {
    endpoint: Endpoint,
    state: watch::Receiver<EngineState>,
    stop: oneshot::Sender<Duration>,
    guard: JoinHandle<StopOutcome>,
}

impl Embedded {
    /// Starts the engine, and returns when it answers a query. The caller holds the `DataDirLock` of the
    /// directory.
    ///
    /// # Errors
    /// Fails where the options are wrong, no engine is found, files or ports can't be had, or the engine ends
    /// or stays silent instead of answering.
    pub async fn start(options: EmbeddedOptions) -> Result<Embedded, EmbeddedError> {
        options.check()?;
        let engine = locate(options.engine.as_deref())?;
        let executable = own_executable(options.executable.as_deref())?;
        let files = EngineFiles::create(&options.data_dir)?;
        let ports = Ports::reserve().map_err(|source| EmbeddedError::Ports { source })?;
        let endpoint = endpoint(&ports)?;
        files.write_config(&options, &endpoint.password)?;
        let launch = Launch { executable, engine, files, endpoint: endpoint.clone() };
        let running = launch.start(options.start_timeout).await?;
        launch.files.write_endpoint(&endpoint)?;

        let (state, watched) = watch::channel(up(&running));
        let (stop, stopped) = oneshot::channel();
        let guard = Guard { launch, _ports: ports, state, start_timeout: options.start_timeout };
        Ok(Embedded { endpoint, state: watched, stop, guard: tokio::spawn(guard.run(running, stopped)) })
    }

    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Returns a channel of the caller's own with the engine's state.
    pub fn state(&self) -> watch::Receiver<EngineState> {
        self.state.clone()
    }

    /// Returns the pid of the engine's process, while it is up.
    pub fn pid(&self) -> Option<u32> {
        match *self.state.borrow() {
            EngineState::Up { pid, .. } => Some(pid),
            _ => None,
        }
    }

    /// Ends the engine within `grace`, by force at the end of that time.
    pub async fn stop(self, grace: Duration) -> StopOutcome {
        // The guard ends only when it is told to, or when the runtime drops it.
        let _ = self.stop.send(grace);
        self.guard.await.unwrap_or(StopOutcome::WasDown)
    }
}

fn endpoint(ports: &Ports) -> Result<Endpoint, EmbeddedError> {
    let mut password = [0; PASSWORD_BYTES];
    getrandom::fill(&mut password).map_err(|_| EmbeddedError::Random)?;
    let host = "127.0.0.1".to_owned();
    Ok(Endpoint {
        url: format!("http://{host}:{}", ports.http),
        host,
        http_port: ports.http,
        native_port: ports.native,
        user: GATEWAY_USER.to_owned(),
        password: config::hex(&password),
    })
}

fn up(running: &Running) -> EngineState {
    EngineState::Up { pid: running.pid, since: Instant::now() }
}

struct Guard {
    launch: Launch,
    _ports: Ports,
    state: watch::Sender<EngineState>,
    start_timeout: Duration,
}

impl Guard {
    async fn run(self, first: Running, mut stop: oneshot::Receiver<Duration>) -> StopOutcome {
        let mut running = first;
        let mut back_off = FIRST_BACK_OFF;
        let outcome = loop {
            let up_since = Instant::now();
            let reason = tokio::select! {
                grace = &mut stop => break self.end(running, grace.ok()).await,
                reason = running.wait_for_death() => reason,
                reason = pulse::lost(&self.launch.endpoint, Pace::default()) => {
                    running.kill().await;
                    reason
                }
            };
            if up_since.elapsed() >= HEALTHY_AFTER {
                back_off = FIRST_BACK_OFF;
            }
            running = tokio::select! {
                _ = &mut stop => break StopOutcome::WasDown,
                started = self.start_again(reason, &mut back_off) => started,
            };
        };
        self.state.send_replace(EngineState::Stopped);
        outcome
    }

    async fn start_again(&self, mut reason: String, back_off: &mut Duration) -> Running {
        loop {
            tracing::error!(reason, back_off_ms = back_off.as_millis() as u64, "embedded ClickHouse is down");
            self.state.send_replace(EngineState::Down { since: Instant::now(), reason });
            sleep(*back_off).await;
            *back_off = (*back_off * 2).min(LONGEST_BACK_OFF);
            self.state.send_replace(EngineState::Starting);
            match self.launch.start(self.start_timeout).await {
                Ok(running) => {
                    self.state.send_replace(up(&running));
                    return running;
                }
                Err(error) => reason = error.to_string(),
            }
        }
    }

    /// Ends the engine. Without a grace the handle was dropped: then there is only time to close the pipe.
    async fn end(&self, running: Running, grace: Option<Duration>) -> StopOutcome {
        match grace {
            Some(grace) => self.launch.stop(running, grace).await,
            None => StopOutcome::Terminated,
        }
    }
}
