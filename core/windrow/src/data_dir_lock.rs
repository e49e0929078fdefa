//! The lock that allows one gateway per data directory.
//!
//! The lock is the kernel's (`flock`), so it ends with its holder, however the holder ends. The pid in the
//! file is only for people.

use std::fmt;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{flock, FlockOperation};

/// The lock of a data directory, held for as long as the value lives.
#[derive(Debug)]
pub(crate) struct DataDirLock {
    _file: File,
}

#[derive(Debug)]
pub(crate) enum LockError {
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
    pub(crate) fn acquire(data_dir: &Path) -> Result<DataDirLock, LockError> {
        let at = |path: &Path| {
            let path = path.to_owned();
            move |source| LockError::File { path, source }
        };
        // For its owner only. A folder that exists is left unchanged.
        DirBuilder::new().recursive(true).mode(0o700).create(data_dir).map_err(at(data_dir))?;
        let path = data_dir.join("lock");
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(at(&path))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(io::Error::from) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Err(LockError::Held { directory: data_dir.to_owned(), pid: pid_in(&mut file) });
            }
            Err(error) => return Err(at(&path)(error)),
        }
        match write_pid(&mut file) {
            // A full disk is no reason not to start: what is kept on it has to be stored, which makes room.
            Err(error) if error.kind() != io::ErrorKind::StorageFull => return Err(at(&path)(error)),
            _ => {}
        }
        Ok(DataDirLock { _file: file })
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// The data directory of a test, removed at its end.
    struct DataDir(PathBuf);

    impl DataDir {
        fn new(test: &str) -> DataDir {
            let path = std::env::temp_dir().join(format!("windrow-lock-{}-{test}", std::process::id()));
            let _ = std::fs::remove_dir_all(&path);
            DataDir(path)
        }

        fn mode(&self, name: &str) -> u32 {
            std::fs::metadata(self.0.join(name)).expect("it is there").permissions().mode() & 0o777
        }
    }

    impl Drop for DataDir {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_second_gateway_is_refused_with_a_sentence() {
        let data = DataDir::new("second");
        let first = DataDirLock::acquire(&data.0).expect("the first");
        assert_eq!((data.mode(""), data.mode("lock")), (0o700, 0o600));
        let error = DataDirLock::acquire(&data.0).expect_err("the second");
        assert!(matches!(&error, LockError::Held { pid: Some(pid), .. } if *pid == std::process::id()), "{error:?}");
        let sentence = error.to_string();
        assert!(sentence.contains(&data.0.display().to_string()), "{sentence}");
        assert!(sentence.contains(&std::process::id().to_string()), "{sentence}");
        drop(first);
        DataDirLock::acquire(&data.0).expect("free again");
    }

    #[test]
    fn a_lock_file_that_holds_anything_else_is_no_obstacle() {
        let data = DataDir::new("anything");
        std::fs::create_dir_all(&data.0).expect("a folder");
        std::fs::write(data.0.join("lock"), b"\xff\xfenot a pid, and rather long for one at that").expect("a file");
        let _first = DataDirLock::acquire(&data.0).expect("nobody holds it");
        std::fs::write(data.0.join("lock"), "nonsense").expect("a file");
        let error = DataDirLock::acquire(&data.0).expect_err("held");
        assert!(matches!(error, LockError::Held { pid: None, .. }), "{error:?}");
    }
}
