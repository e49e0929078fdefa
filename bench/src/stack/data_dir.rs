//! A folder for what a server keeps, and for its log.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::BenchError;

/// Removed with everything in it at the end.
pub struct DataDir {
    pub path: PathBuf,
}

impl DataDir {
    pub fn create() -> Result<Self, BenchError> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("windrow-bench-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).map_err(BenchError::io(format!("creating {}", path.display())))?;
        Ok(DataDir { path })
    }

    /// A file in it. Returns its path.
    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf, BenchError> {
        let path = self.path.join(name);
        fs::write(&path, text).map_err(BenchError::io(format!("writing {name}")))?;
        Ok(path)
    }
}

impl Drop for DataDir {
    fn drop(&mut self) {
        // What can't be removed lies in the system's directory for temporary files, which is cleared anyway.
        let _ = fs::remove_dir_all(&self.path);
    }
}
