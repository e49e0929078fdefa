//! What is seen of an append while it runs: a bar on a terminal, a line now and then elsewhere. All of it goes to
//! standard error.

use std::io::{IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use windrow_appender::Progress;

const BAR_CELLS: u64 = 24;
const BETWEEN_FRAMES: Duration = Duration::from_millis(100);
const BETWEEN_LINES: Duration = Duration::from_secs(10);

pub(super) struct Display {
    how: How,
    begin: Instant,
    last: Mutex<Instant>,
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
        let now = Instant::now();
        Display { how, begin: now, last: Mutex::new(now) }
    }

    pub(super) fn say(&self, line: &str) {
        if self.how != How::Quiet {
            eprintln!("{line}");
        }
    }

    pub(super) fn show(&self, progress: &Progress) {
        let between = match self.how {
            How::Quiet => return,
            How::Lines => BETWEEN_LINES,
            How::Bar => BETWEEN_FRAMES,
        };
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.elapsed() < between {
            return;
        }
        *last = Instant::now();
        let line = line(progress, self.begin.elapsed());
        match self.how {
            How::Bar => {
                // A terminal that is gone is no reason to stop.
                let _ = write!(std::io::stderr(), "\r{}{line}\x1b[K", bar(share(progress)));
            }
            _ => eprintln!("{line}"),
        }
    }

    /// Takes the bar away.
    pub(super) fn clear(&self) {
        if self.how == How::Bar {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

/// From 0 to 1, where it can be told: by batches when they are counted, else by what the source said of its size.
fn share(progress: &Progress) -> Option<f64> {
    let share = match (progress.all_batches, progress.whole_bytes) {
        (Some(0), _) => return Some(1.0),
        (Some(all), _) => progress.batches as f64 / all as f64,
        // Files are packed, so that this is a guess; only the end is the end.
        (None, Some(whole)) if whole > 0 => (progress.bytes_acknowledged as f64 / whole as f64).min(0.99),
        _ => return None,
    };
    Some(share.clamp(0.0, 1.0))
}

fn bar(share: Option<f64>) -> String {
    let Some(share) = share else { return String::new() };
    let full = (share * BAR_CELLS as f64) as u64;
    let cells: String = (0..BAR_CELLS).map(|cell| if cell < full { '#' } else { '.' }).collect();
    format!("[{cells}] {:3.0} %  ", share * 100.0)
}

fn line(progress: &Progress, elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64().max(1e-3);
    let megabytes = progress.bytes_acknowledged as f64 / 1e6;
    format!("{} rows, {megabytes:.1} MB, {:.1} MB/s, {seconds:.0} s", progress.rows, megabytes / seconds)
}

/// Texts from files and servers, without what would steer the terminal.
pub(super) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_known_by_batches_or_guessed_by_bytes() {
        let by_bytes = Progress { bytes_acknowledged: 50, whole_bytes: Some(100), ..Progress::default() };
        assert_eq!(share(&by_bytes), Some(0.5));
        assert_eq!(share(&Progress { bytes_acknowledged: 500, ..by_bytes }), Some(0.99));
        assert_eq!(share(&Progress { batches: 3, all_batches: Some(3), ..by_bytes }), Some(1.0));
        assert_eq!(share(&Progress { all_batches: Some(0), ..by_bytes }), Some(1.0));
        assert_eq!(share(&Progress::default()), None);
        assert_eq!(bar(Some(0.5)), "[############............]  50 %  ");
    }

    #[test]
    fn a_servers_text_does_not_steer_the_terminal() {
        assert_eq!(printable("a\x1b[2Jb\nc"), "a\u{fffd}[2Jb\nc");
    }
}
