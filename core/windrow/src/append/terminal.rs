//! The width of the terminal.

/// The width of most terminals, for those that don't tell theirs.
const USUAL_COLUMNS: usize = 80;

/// Returns the width of the terminal. The width is asked anew for each line: windows change their size.
pub(super) fn columns() -> usize {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the call writes one winsize, for which there is room, and keeps nothing of it.
    let answered = unsafe { libc::ioctl(libc::STDERR_FILENO, libc::TIOCGWINSZ, &mut size) } == 0;
    match usize::from(size.ws_col) {
        columns if answered && columns > 0 => columns,
        _ => USUAL_COLUMNS,
    }
}
