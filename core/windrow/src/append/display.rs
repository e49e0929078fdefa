//! The display of an append while it runs: a bar on a terminal, a line now and then elsewhere. All of it goes
//! to standard error.

use std::io::{IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use windrow_appender::Progress;

use super::frame::{cut_to, frame, line};
use super::terminal::columns;

const BETWEEN_FRAMES: Duration = Duration::from_millis(100);
const BETWEEN_LINES: Duration = Duration::from_secs(10);

pub(super) struct Display {
    how: How,
    begin: Instant,
    last: Mutex<Last>,
}

/// The state of the last display: times, and the text that was shown.
struct Last {
    progress_at: Instant,
    waiting_at: Option<Instant>,
    waiting_for: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    Quiet,
    Lines,
    Bar,
}

impl Display {
    pub(super) fn open(quiet: bool) -> Display {
        let how = match (quiet, std::io::stderr().is_terminal()) {
            (true, _) => How::Quiet,
            (false, true) => How::Bar,
            (false, false) => How::Lines,
        };
        let begin = Instant::now();
        let last = Last { progress_at: begin, waiting_at: None, waiting_for: String::new() };
        Display { how, begin, last: Mutex::new(last) }
    }

    pub(super) fn say(&self, line: &str) {
        if self.how != How::Quiet {
            eprintln!("{line}");
        }
    }

    pub(super) fn show(&self, progress: &Progress) {
        let mut last = self.last();
        if last.progress_at.elapsed() < self.between() {
            return;
        }
        last.progress_at = Instant::now();
        let elapsed = self.begin.elapsed();
        match self.how {
            How::Quiet => {}
            How::Lines => eprintln!("{}", line(progress, elapsed)),
            How::Bar => draw(&frame(progress, elapsed, columns())),
        }
    }

    /// Shows the server that nothing gets through to, and why. Where lines can't be redrawn, a change is
    /// shown at once.
    pub(super) fn show_waiting(&self, server: &str) {
        let mut last = self.last();
        let is_old = last.waiting_at.is_none_or(|at| at.elapsed() >= self.between());
        if !is_old && (self.how == How::Bar || last.waiting_for == server) {
            return;
        }
        (last.waiting_at, last.waiting_for) = (Some(Instant::now()), server.to_owned());
        let text = format!("waiting for {}", printable(server).replace('\n', " "));
        match self.how {
            How::Quiet => {}
            How::Lines => eprintln!("{text}"),
            How::Bar => draw(&cut_to(&text, columns())),
        }
    }

    /// Takes the bar away.
    pub(super) fn clear(&self) {
        if self.how == How::Bar {
            draw("");
        }
    }

    fn between(&self) -> Duration {
        if self.how == How::Bar {
            BETWEEN_FRAMES
        } else {
            BETWEEN_LINES
        }
    }

    fn last(&self) -> MutexGuard<'_, Last> {
        // Only times and a text, never half changed.
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Draws the text in place of the current line.
fn draw(text: &str) {
    // A terminal that is gone is no reason to stop.
    let _ = write!(std::io::stderr(), "\r{text}\x1b[K");
}

/// Replaces characters of texts from files and servers that would steer the terminal.
pub(super) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::printable;

    #[test]
    fn a_servers_text_does_not_steer_the_terminal() {
        assert_eq!(printable("a\x1b[2Jb\nc"), "a\u{fffd}[2Jb\nc");
    }
}
