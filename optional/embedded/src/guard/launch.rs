//! One run of the engine: spawned, asked until it answers, and ended.

use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use tokio::process::{Child, ChildStdin, Command};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::ask::ask;
use super::log::{pass_on, LogTail};
use crate::deduplication_log::{mend_deduplication_logs, Mended};
use crate::engine::config::{ENDLESS_QUERY, IS_ENDLESS_QUERY, STARTUP_STATEMENTS};
use crate::engine::HIDDEN_COMMAND;
use crate::files::EngineFiles;
use crate::{EmbeddedError, Endpoint, StopOutcome};

/// The longest time for one query while the engine starts.
const ASK_LIMIT: Duration = Duration::from_secs(5);
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);
/// The longest time for the last lines to arrive after the engine's end. Its own children could hold its
/// output open.
const OUTPUT_LIMIT: Duration = Duration::from_secs(1);

/// The data that is needed to start the engine again.
pub(super) struct Launch {
    pub(super) executable: PathBuf,
    pub(super) engine: PathBuf,
    pub(super) files: EngineFiles,
    pub(super) endpoint: Endpoint,
}

/// An engine that answers.
pub(super) struct Running {
    child: Child,
    /// The pipe to the engine. The engine ends when it is closed, so also when this value is dropped.
    holder: Option<ChildStdin>,
    /// The task that passes on the engine's output and ends with it; taken by the first caller who waits for
    /// its end.
    log: Option<JoinHandle<()>>,
    tail: LogTail,
    pub(super) pid: u32,
}

impl Launch {
    /// Starts the engine and waits for its answer. Tries again while a previous engine still holds the directory.
    pub(super) async fn start(&self, limit: Duration) -> Result<Running, EmbeddedError> {
        let deadline = Instant::now() + limit;
        let mut pause = FIRST_PAUSE;
        loop {
            // One that is still held when there is no time left is told of by the engine itself.
            if self.mend_data().await? || Instant::now() >= deadline {
                let mut running = self.spawn()?;
                match self.wait_until_it_answers(&mut running, deadline, limit).await {
                    Ok(()) => return Ok(running),
                    Err(error) if error.is_directory_held() && Instant::now() < deadline => {}
                    Err(error) => {
                        running.kill().await;
                        return Err(error);
                    }
                }
            }
            tracing::info!(path = %self.files.data().display(), "waiting for the previous ClickHouse to end");
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Repairs the data of a killed engine. Returns false where a previous engine still holds the directory.
    async fn mend_data(&self) -> Result<bool, EmbeddedError> {
        let data = self.files.data();
        let mended = tokio::task::spawn_blocking(move || mend_deduplication_logs(&data)).await;
        let mended = mended.unwrap_or_else(|error| Err(std::io::Error::other(error)));
        let at_data = |source| EmbeddedError::File { path: self.files.data(), source };
        Ok(mended.map_err(at_data)? != Mended::InUse)
    }

    fn spawn(&self) -> Result<Running, EmbeddedError> {
        let spawn_error = |source| EmbeddedError::Spawn { source };
        let mut child = self.command().spawn().map_err(spawn_error)?;
        let (Some(holder), Some(output), Some(pid)) = (child.stdin.take(), child.stderr.take(), child.id()) else {
            return Err(spawn_error(std::io::ErrorKind::BrokenPipe.into()));
        };
        let tail = LogTail::default();
        let log = Some(tokio::spawn(pass_on(output, tail.clone())));
        Ok(Running { child, holder: Some(holder), log, tail, pid })
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.executable);
        // What `ps` shows.
        command.arg0("windrow");
        command.arg(HIDDEN_COMMAND).arg(&self.engine).arg("--");
        command.arg("--path").arg(self.files.data());
        command.arg("--config-file").arg(self.files.config());
        command.args(["--listen_host", &self.endpoint.host]);
        command.args(["--http_port", &self.endpoint.http_port.to_string()]);
        command.args(["--tcp_port", &self.endpoint.native_port.to_string()]);
        command.args(["--query", &format!("{STARTUP_STATEMENTS}{ENDLESS_QUERY}")]);
        // Format schemas are looked up in the working directory.
        command.current_dir(self.files.folder());
        // A terminal's Ctrl-C goes to the whole process group, and the engine has to outlive the gateway's last flush.
        command.process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        command
    }

    async fn wait_until_it_answers(
        &self,
        running: &mut Running,
        deadline: Instant,
        limit: Duration,
    ) -> Result<(), EmbeddedError> {
        // It listens before its last start-up statement runs, and that one can still fail.
        let question = format!("SELECT version() FROM system.processes WHERE {IS_ENDLESS_QUERY}");
        let mut pause = FIRST_PAUSE;
        loop {
            let error = tokio::select! {
                status = running.child.wait() => return Err(running.ended(status).await),
                answer = ask(&self.endpoint, &question, ASK_LIMIT) => match answer {
                    Ok(version) if !version.is_empty() => {
                        tracing::info!(version, pid = running.pid, url = self.endpoint.url, "embedded ClickHouse is up");
                        return Ok(());
                    }
                    Ok(_) => "it is starting".to_owned(),
                    Err(error) => error.to_string(),
                },
            };
            if Instant::now() >= deadline {
                let last_lines = running.tail.lines();
                return Err(EmbeddedError::Silent { waited: limit, last_error: error, last_lines });
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Ends an engine in order: its endless query is killed and it shuts its tables down. After half of the
    /// grace its pipe is closed, which signals it; after all of the grace it is killed.
    pub(super) async fn stop(&self, mut running: Running, grace: Duration) -> StopOutcome {
        let limit = grace / 2;
        let half = tokio::time::Instant::now() + limit;
        let statement = format!("KILL QUERY WHERE {IS_ENDLESS_QUERY} ASYNC");
        if let Err(error) = ask(&self.endpoint, &statement, limit).await {
            tracing::debug!(%error, "the embedded ClickHouse could not be asked to end");
        } else if tokio::time::timeout_at(half, running.child.wait()).await.is_ok() {
            running.read_rest_of_log().await;
            return StopOutcome::Clean;
        }
        running.holder = None;
        let outcome = match timeout(limit, running.child.wait()).await {
            Ok(_) => StopOutcome::Terminated,
            Err(_) => {
                let _ = running.child.kill().await;
                StopOutcome::Killed
            }
        };
        running.read_rest_of_log().await;
        outcome
    }
}

impl Running {
    /// Waits for an end of the engine that was not requested, and returns its exit status as text.
    pub(super) async fn wait_for_death(&mut self) -> String {
        let status = self.child.wait().await;
        self.read_rest_of_log().await;
        describe(status)
    }

    pub(super) async fn kill(mut self) {
        let _ = self.child.kill().await;
        self.read_rest_of_log().await;
    }

    async fn ended(&mut self, status: std::io::Result<ExitStatus>) -> EmbeddedError {
        self.read_rest_of_log().await;
        EmbeddedError::Ended { status: describe(status), last_lines: self.tail.lines() }
    }

    async fn read_rest_of_log(&mut self) {
        if let Some(log) = self.log.take() {
            let _ = timeout(OUTPUT_LIMIT, log).await;
        }
    }
}

fn describe(status: std::io::Result<ExitStatus>) -> String {
    status.map_or_else(|error| error.to_string(), |status| status.to_string())
}

/// Returns the file of the running program, also when a newer file has replaced it on disk since.
pub(super) fn own_executable(given: Option<&Path>) -> Result<PathBuf, EmbeddedError> {
    match given {
        Some(path) => Ok(path.to_owned()),
        None if cfg!(target_os = "linux") => Ok(PathBuf::from("/proc/self/exe")),
        None => std::env::current_exe().map_err(|source| EmbeddedError::Spawn { source }),
    }
}
