//! The engine's standard error, passed on as events with the target `clickhouse`.
//!
//! The engine logs one JSON object per line, so a message of many lines is one event. Lines that are not JSON
//! (a crash, an exception before logging began) are gathered until the engine writes something else, and are
//! one event too. Stack traces are cut off: the released library has no symbols, so they are addresses only.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::time::timeout;

use crate::engine::config::ENDLESS_QUERY;

/// The longest line, in bytes. A longer line is cut, so that the engine can't fill the gateway's memory.
const MAX_LINE_BYTES: usize = 64 * 1024;
const MAX_PLAIN_BYTES: usize = 64 * 1024;
/// Time that plain lines wait for more of the same message.
const PLAIN_PAUSE: Duration = Duration::from_millis(50);
const TAIL_LINES: usize = 20;
const STACK_TRACE: &str = ", Stack trace (when copying this message";

/// The last lines of one engine, for the error that says why it ended.
#[derive(Clone, Default)]
pub(super) struct LogTail {
    lines: Arc<Mutex<VecDeque<String>>>,
}

impl LogTail {
    fn push(&self, line: String) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == TAIL_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    pub(super) fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

#[derive(Deserialize)]
struct Line {
    level: String,
    #[serde(default)]
    logger_name: String,
    #[serde(default)]
    query_id: String,
    message: String,
}

/// Passes on the engine's output until the engine closes its end.
pub(super) async fn pass_on(output: impl AsyncRead + Unpin, tail: LogTail) {
    let mut reader = BufReader::new(output);
    let mut plain = String::new();
    loop {
        // A line that the pause interrupts is read on afterwards.
        let mut reading = std::pin::pin!(read_line(&mut reader));
        let line = match timeout(PLAIN_PAUSE, &mut reading).await {
            Ok(line) => line,
            Err(_) => {
                emit_plain(&mut plain, &tail);
                reading.await
            }
        };
        let Some(line) = line else {
            emit_plain(&mut plain, &tail);
            return;
        };
        take_line(&String::from_utf8_lossy(&line), &mut plain, &tail);
    }
}

fn take_line(line: &str, plain: &mut String, tail: &LogTail) {
    match serde_json::from_str::<Line>(line) {
        Ok(line) => {
            emit_plain(plain, tail);
            emit(&line, tail);
        }
        Err(_) if plain.len() + line.len() < MAX_PLAIN_BYTES => {
            if !plain.is_empty() {
                plain.push('\n');
            }
            plain.push_str(line);
        }
        Err(_) => {
            emit_plain(plain, tail);
            plain.push_str(line);
        }
    }
}

/// Reads one line; `None` at the end of the output. The rest of a line that is too long is read and dropped.
async fn read_line(reader: &mut (impl AsyncBufReadExt + Unpin)) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    loop {
        let available = match reader.fill_buf().await {
            Ok(available) if !available.is_empty() => available,
            // A line without its end is still a line.
            _ => return Some(line).filter(|line| !line.is_empty()),
        };
        let end = available.iter().position(|&byte| byte == b'\n');
        let part = &available[..end.unwrap_or(available.len())];
        let room = MAX_LINE_BYTES.saturating_sub(line.len());
        line.extend_from_slice(&part[..part.len().min(room)]);
        let used = part.len() + usize::from(end.is_some());
        reader.consume(used);
        if end.is_some() {
            return Some(line);
        }
    }
}

fn emit(line: &Line, tail: &LogTail) {
    let message = line.message.split(STACK_TRACE).next().unwrap_or_default();
    let (logger, query_id) = (line.logger_name.as_str(), line.query_id.as_str());
    tail.push(format!("{}: {}: {message}", line.level, line.logger_name));
    match line.level.as_str() {
        // The engine's own statement is cancelled at every stop: that is how it is stopped.
        "Error" if message.contains(ENDLESS_QUERY) => {
            tracing::debug!(target: "clickhouse", logger, query_id, "{message}")
        }
        "Fatal" | "Critical" | "Error" => tracing::error!(target: "clickhouse", logger, query_id, "{message}"),
        "Warning" => tracing::warn!(target: "clickhouse", logger, query_id, "{message}"),
        "Notice" | "Information" => tracing::info!(target: "clickhouse", logger, query_id, "{message}"),
        "Debug" => tracing::debug!(target: "clickhouse", logger, query_id, "{message}"),
        _ => tracing::trace!(target: "clickhouse", logger, query_id, "{message}"),
    }
}

fn emit_plain(plain: &mut String, tail: &LogTail) {
    let message = plain.trim();
    if message.contains("(QUERY_WAS_CANCELLED)") {
        // The end of the query that keeps the engine alive: this is how it is stopped.
        tracing::debug!(target: "clickhouse", "{message}");
    } else if !message.is_empty() {
        tracing::error!(target: "clickhouse", "{message}");
    }
    message.lines().for_each(|line| tail.push(line.to_owned()));
    plain.clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn tail_of(bytes: &[u8]) -> Vec<String> {
        let tail = LogTail::default();
        pass_on(bytes, tail.clone()).await;
        tail.lines()
    }

    fn json(level: &str, message: &str) -> String {
        let line = serde_json::json!({"level": level, "logger_name": "Merger", "query_id": "", "message": message});
        format!("{line}\n")
    }

    #[tokio::test]
    async fn a_message_of_many_lines_is_one_event() {
        let text =
            json("Warning", "first\nsecond") + &json("Error", "Code: 60, Stack trace (when copying this message, a");
        assert_eq!(tail_of(text.as_bytes()).await, ["Warning: Merger: first\nsecond", "Error: Merger: Code: 60"]);
    }

    #[tokio::test]
    async fn plain_text_is_kept_in_its_place() {
        let text = format!("Code: 1\nline two\n{}last words", json("Warning", "w"));
        assert_eq!(tail_of(text.as_bytes()).await, ["Code: 1", "line two", "Warning: Merger: w", "last words"]);
    }

    #[tokio::test]
    async fn lines_are_cut_and_the_tail_is_short() {
        let long = vec![b'x'; 3 * MAX_LINE_BYTES];
        assert_eq!(tail_of(&long).await, ["x".repeat(MAX_LINE_BYTES)]);
        let many: String = (0..100).map(|number| json("Warning", &number.to_string())).collect();
        let tail = tail_of(many.as_bytes()).await;
        assert_eq!((tail.len(), tail[0].as_str()), (TAIL_LINES, "Warning: Merger: 80"));
    }

    #[tokio::test]
    async fn any_bytes_are_read_to_their_end() {
        let seed = 7;
        let mut random = fastrand::Rng::with_seed(seed);
        let text = json("Warning", "w") + "plain\n" + &json("Nonsense", "n");
        for round in 0..500 {
            let mut bytes = text.clone().into_bytes();
            bytes.truncate(random.usize(..=bytes.len()));
            for _ in 0..random.usize(..4) {
                if !bytes.is_empty() {
                    let index = random.usize(..bytes.len());
                    bytes[index] = random.u8(..);
                }
            }
            let lines = tail_of(&bytes).await;
            assert!(lines.len() <= TAIL_LINES, "seed {seed}, round {round}");
        }
    }
}
