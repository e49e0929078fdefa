//! The lock that allows one gateway per data directory.
//!
//! The lock is the kernel's (`flock`), so it ends with its holder, however the holder ends. The pid in the
//! file is only for people.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::files::private_folder;

/// The lock of a data directory, held for as long as the value lives.
#[derive(Debug)]
pub struct DataDirLock {
    _file: File,
}

#[derive(Debug)]
pub enum LockError {
    Held { directory: PathBuf, pid: Option<u32> },
    File { path: PathBuf, source: io::Error },
}

impl fmt::Display for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LockError::Held { directory, pid } => {
                write!(f, "the data directory {} is in use by another Windrow", directory.display())?;
                if let Some(pid) = pid {
                    write!(f, " (process {pid})")?;
                }
                write!(f, ": stop that one, or give this one a directory of its own with --data-dir")
            }
            LockError::File { path, source } => {
                let advice = "name a folder that Windrow may write in `data_dir` (--data-dir)";
                match source.kind() {
                    io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => {
                        write!(
                            f,
                            "the data directory can't be {}, since a file is in its place; {advice}",
                            path.display()
                        )
                    }
                    _ => write!(f, "the data directory can't be used: {}: {source}; {advice}", path.display()),
                }
            }
        }
    }
}

impl std::error::Error for LockError {}

impl DataDirLock {
    /// Takes the lock. Creates the directory if it is not there.
    ///
    /// # Errors
    /// Fails where another gateway holds the lock, or the directory or its lock file can't be created or
    /// written (a full disk is no failure).
    pub fn acquire(data_dir: &Path) -> Result<DataDirLock, LockError> {
        let at = |path: &Path| {
            let path = path.to_owned();
            move |source| LockError::File { path, source }
        };
        private_folder(data_dir).map_err(at(data_dir))?;
        let path = data_dir.join("lock");
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(at(&path))?;
        if !try_lock(&file).map_err(at(&path))? {
            return Err(LockError::Held { directory: data_dir.to_owned(), pid: pid_in(&mut file) });
        }
        match write_pid(&mut file) {
            // A full disk is no reason not to start: what is kept on it has to be stored, which makes room.
            Err(error) if error.kind() != io::ErrorKind::StorageFull => return Err(at(&path)(error)),
            _ => {}
        }
        Ok(DataDirLock { _file: file })
    }
}

/// Takes the kernel's lock on a file (`flock`), which ends with the value. ClickHouse takes the same lock.
/// Returns false where another process has it.
pub(crate) fn try_lock(file: &File) -> io::Result<bool> {
    // SAFETY: flock takes a descriptor that `file` keeps open, and no pointer.
    if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0 {
        return Ok(true);
    }
    match io::Error::last_os_error() {
        error if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
        error => Err(error),
    }
}

fn write_pid(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}

fn pid_in(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(32).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}
