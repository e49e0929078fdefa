//! Shows a run while it lasts, on a terminal or as lines.

use std::io::Write;
use std::time::Duration;

use crate::options::Output;
use crate::plain;
use crate::screen;
use crate::snapshot::Snapshot;
use crate::terminal::Terminal;

const REDRAW_EVERY: Duration = Duration::from_millis(300);
const PRINT_EVERY: Duration = Duration::from_secs(1);

/// The place where the run is shown: a terminal, or plain lines.
pub(crate) struct Display {
    terminal: Option<Terminal>,
}

impl Display {
    pub fn open(output: Output) -> Self {
        Self { terminal: Terminal::open(output) }
    }

    pub fn redraw_every(&self) -> Duration {
        if self.terminal.is_some() {
            REDRAW_EVERY
        } else {
            PRINT_EVERY
        }
    }

    pub fn show(&self, snapshot: &Snapshot) {
        // A terminal that went away, or a closed pipe, is no reason to stop a run that others may watch by its rows.
        let _ = match &self.terminal {
            Some(terminal) => terminal.show(&screen::draw(snapshot, terminal.canvas())),
            None => writeln!(std::io::stdout(), "{}", plain::line(snapshot)),
        };
    }

    pub fn close(self, snapshot: &Snapshot) {
        if let Some(terminal) = self.terminal {
            let mut lines = screen::draw(snapshot, terminal.canvas());
            // The hint or error at the bottom; the summary tells the latter again.
            lines.pop();
            let _ = terminal.close_with(&lines);
        }
    }
}
