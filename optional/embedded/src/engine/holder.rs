//! The end of the engine when its holder is gone.
//!
//! The holder keeps the writing end of a pipe and never writes. The kernel closes that end when the holder
//! ends, also by kill -9, and the reading end here sees the end of file. `PR_SET_PDEATHSIG` on the engine
//! would not be enough: it follows the thread that spawned the child, and the holder's threads start and end.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::thread;
use std::time::Duration;

/// Time that the engine gets to end after the first signal.
const GRACE: Duration = Duration::from_secs(5);

/// The reading end of the holder's pipe, moved away from standard input, which the engine might read.
pub(crate) struct HolderPipe {
    pipe: File,
}

impl HolderPipe {
    pub(crate) fn take_stdin() -> io::Result<HolderPipe> {
        // SAFETY: duplicates a descriptor; the result is checked and then owned by one `OwnedFd`.
        let pipe = unsafe {
            let copy = libc::fcntl(libc::STDIN_FILENO, libc::F_DUPFD_CLOEXEC, 3);
            if copy < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(copy)
        };
        let nothing = OpenOptions::new().read(true).open("/dev/null")?;
        // SAFETY: both descriptors are open, and nobody else in this process uses standard input.
        if unsafe { libc::dup2(nothing.as_raw_fd(), libc::STDIN_FILENO) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(HolderPipe { pipe: File::from(pipe) })
    }

    /// Returns when the holder is gone. Bytes that the holder might write have no meaning.
    fn wait_for_end(&mut self) {
        let mut ignored = [0u8; 64];
        loop {
            match self.pipe.read(&mut ignored) {
                Ok(0) => return,
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return,
                _ => {}
            }
        }
    }

    /// Watches the holder from a thread of the engine's own process.
    pub(crate) fn end_this_process_with_holder(mut self) -> io::Result<()> {
        let watch = move || {
            self.wait_for_end();
            let engine = std::process::id() as libc::pid_t;
            signal(engine, libc::SIGTERM);
            thread::sleep(GRACE);
            signal(engine, libc::SIGKILL);
        };
        thread::Builder::new().name("holder-watch".to_owned()).spawn(watch).map(|_| ())
    }

    /// Watches the holder from a small process of its own, for an engine that replaces this process. Returns
    /// in the engine's process.
    pub(crate) fn end_this_process_with_holder_from_outside(mut self) -> io::Result<()> {
        let engine = std::process::id() as libc::pid_t;
        // SAFETY: the caller has started no thread yet. The allocator may have, and is ready for a fork. So the copy may
        // do what any process may do.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                release_outputs();
                end_with_parent(engine);
                self.wait_for_end();
                end_parent(engine);
                std::process::exit(0)
            }
            _ => Ok(()),
        }
    }
}

fn signal(pid: libc::pid_t, number: libc::c_int) {
    // SAFETY: no memory is involved.
    unsafe { libc::kill(pid, number) };
}

/// Closes this process's copies of the engine's outputs. The holder reads the engine's output to its end,
/// which must not wait for the watching process.
fn release_outputs() {
    if let Ok(nothing) = OpenOptions::new().write(true).open("/dev/null") {
        for output in [libc::STDOUT_FILENO, libc::STDERR_FILENO] {
            // SAFETY: both descriptors are open.
            unsafe { libc::dup2(nothing.as_raw_fd(), output) };
        }
    }
}

/// Makes the watching process end with the engine, because it has nothing left to do then.
fn end_with_parent(engine: libc::pid_t) {
    #[cfg(target_os = "linux")]
    // SAFETY: takes numbers only. It was forked by the parent's first thread, which lives as long as the parent.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
    }
    if !is_parent(engine) {
        std::process::exit(0);
    }
}

/// Says whether the engine is still this process's parent. A pid may be given to another process later, but
/// not while its owner is still the parent.
fn is_parent(engine: libc::pid_t) -> bool {
    // SAFETY: cannot fail.
    unsafe { libc::getppid() == engine }
}

fn end_parent(engine: libc::pid_t) {
    if is_parent(engine) {
        signal(engine, libc::SIGTERM);
        thread::sleep(GRACE);
    }
    if is_parent(engine) {
        signal(engine, libc::SIGKILL);
    }
}
