//! The signals by which the process is asked to stop, or to read its settings anew.

use std::fs::File;

use tokio::signal::unix::{signal, Signal, SignalKind};

pub(crate) enum Asked {
    Stop,
    Reload,
}

/// The signals of a gateway. SIGTERM and SIGINT end it, SIGHUP makes it read its settings anew. A terminal
/// that is closed sends SIGHUP as well: that one ends it.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
    /// Says whether the process was started from a terminal, and is to end with it.
    ends_with_terminal: bool,
}

impl Signals {
    pub(crate) fn listen() -> Result<Signals, String> {
        // Asked before it is listened for: `nohup` has it ignored.
        let ends_with_terminal = has_terminal() && !is_ignored(libc::SIGHUP);
        let listen = |kind| signal(kind).map_err(|error| error.to_string());
        Ok(Signals {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
            hangup: listen(SignalKind::hangup())?,
            ends_with_terminal,
        })
    }

    pub(crate) async fn next(&mut self) -> Asked {
        tokio::select! {
            _ = self.terminate.recv() => Asked::Stop,
            _ = self.interrupt.recv() => Asked::Stop,
            _ = self.hangup.recv() => match self.ends_with_terminal && !has_terminal() {
                true => Asked::Stop,
                false => Asked::Reload,
            },
        }
    }
}

/// Says whether the process has a terminal that controls it; one that was closed can't be opened.
fn has_terminal() -> bool {
    File::open("/dev/tty").is_ok()
}

fn is_ignored(number: libc::c_int) -> bool {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: without a new action, the call only writes the present one to where it is told to; zeros are a valid one.
    unsafe {
        libc::sigaction(number, std::ptr::null(), action.as_mut_ptr()) == 0
            && action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}
