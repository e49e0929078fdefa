//! The terminal: its size, and drawing in the same place again and again.

use std::io::{self, IsTerminal, Write};

use crate::options::Output;
use crate::screen::Canvas;
use crate::style::Line;

const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";

fn draws_on_terminal(output: Output) -> bool {
    output == Output::Auto && io::stdout().is_terminal() && !std::env::var("TERM").is_ok_and(|term| term == "dumb")
}

/// Returns the terminal's width, or `None` when standard output is no terminal.
pub fn terminal_columns() -> Option<usize> {
    io::stdout().is_terminal().then(|| size().columns)
}

/// The second screen of a terminal. When it is dropped, the first one comes back as it was, even if the run failed.
pub(crate) struct Terminal {
    colours: bool,
    unicode: bool,
}

impl Terminal {
    /// Opens the screen. Returns `None` when standard output is no terminal that can be drawn on, or drawing
    /// is not wanted.
    pub fn open(output: Output) -> Option<Self> {
        if !draws_on_terminal(output) {
            return None;
        }
        write_out(ENTER).ok()?;
        Some(Self { colours: wants_colours(), unicode: is_utf8() })
    }

    pub fn canvas(&self) -> Canvas {
        let size = size();
        Canvas { width: size.columns, height: size.rows, unicode: self.unicode }
    }

    /// Draws a frame. Each line is overwritten and the rest of it cleared, so that nothing flickers.
    pub fn show(&self, lines: &[Line]) -> io::Result<()> {
        let width = size().columns;
        let mut frame = String::from("\x1b[H");
        for (index, line) in lines.iter().enumerate() {
            frame.push_str(if index == 0 { "" } else { "\r\n" });
            frame.push_str(&line.paint(width, self.colours));
            frame.push_str("\x1b[K");
        }
        frame.push_str("\x1b[J");
        write_out(&frame)
    }

    /// Closes the screen and leaves the picture on the first one, above the text that is printed next.
    pub fn close_with(self, lines: &[Line]) -> io::Result<()> {
        let width = size().columns;
        let colours = self.colours;
        drop(self);
        let text: String = lines.iter().map(|line| line.paint(width, colours) + "\n").collect();
        write_out(&text)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // There is no one to tell when the terminal is gone.
        let _ = write_out(LEAVE);
    }
}

fn write_out(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Says whether colours are wanted; see no-color.org.
fn wants_colours() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

fn is_utf8() -> bool {
    let locale =
        ["LC_ALL", "LC_CTYPE", "LANG"].iter().filter_map(|name| std::env::var(name).ok()).find(|v| !v.is_empty());
    locale.is_some_and(|locale| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Size {
    columns: usize,
    rows: usize,
}

/// Returns the size of the terminal. `COLUMNS` and `LINES` are a user's wish and win over the terminal's own size.
fn size() -> Size {
    let wish =
        |name| std::env::var(name).ok().and_then(|text| text.parse::<usize>().ok()).filter(|n| (1..=1000).contains(n));
    let actual = asked_size().unwrap_or(Size { columns: 80, rows: 24 });
    Size { columns: wish("COLUMNS").unwrap_or(actual.columns), rows: wish("LINES").unwrap_or(actual.rows) }
}

fn asked_size() -> Option<Size> {
    // SAFETY: all zeros is a valid winsize, and the call only writes into the one it is given.
    let asked = unsafe {
        let mut size: libc::winsize = std::mem::zeroed();
        (libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, &mut size) == 0).then_some(size)
    }?;
    (asked.ws_col > 0 && asked.ws_row > 0)
        .then(|| Size { columns: usize::from(asked.ws_col).min(1000), rows: usize::from(asked.ws_row).min(1000) })
}
