//! A server process that never outlives its benchmark.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{self, Command, ExitStatus};
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(10);

pub struct Child {
    inner: process::Child,
}

impl Child {
    pub fn spawn(command: &mut Command) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        // SAFETY: between fork and exec only prctl is called, which is async-signal-safe and takes no pointers.
        unsafe {
            command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            });
        }
        Ok(Child { inner: command.spawn()? })
    }

    pub fn pid(&self) -> u32 {
        self.inner.id()
    }

    pub fn inner(&mut self) -> &mut process::Child {
        &mut self.inner
    }

    /// SIGTERM; `None` when it had to be killed because it did not end in time.
    pub fn terminate(&mut self, patience: Duration) -> io::Result<Option<ExitStatus>> {
        // SAFETY: the process was started here and not yet waited for, so the id can't belong to another one.
        unsafe { libc::kill(self.pid() as libc::pid_t, libc::SIGTERM) };
        let until = Instant::now() + patience;
        while Instant::now() < until {
            if let Some(status) = self.inner.try_wait()? {
                return Ok(Some(status));
            }
            std::thread::sleep(POLL);
        }
        self.inner.kill()?;
        self.inner.wait()?;
        Ok(None)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.inner.kill();
        let _ = self.inner.wait();
    }
}
