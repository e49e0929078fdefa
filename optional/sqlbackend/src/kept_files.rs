//! Results in Parquet that are read in pieces.
//!
//! A program that reads Parquet over HTTP asks for the file's length, then for its end, then for the columns it wants,
//! each by a request of its own. All of them have to be of one file, and running the query for each would be dear. So a
//! file that was asked for by HEAD or by a range is kept while somebody goes on reading it, for its user and the same
//! statement.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::spool::SpooledResult;

/// Time that a file is kept after its last use. A reader lets less time pass between two pieces.
const KEPT_FOR: Duration = Duration::from_secs(30);
/// The largest number of kept files, of all users together.
const MAX_FILES: usize = 32;

/// The query that a file has the result of, with its user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileKey {
    pub(super) user: String,
    pub(super) schema: String,
    pub(super) sql: String,
    pub(super) max_rows: Option<u64>,
}

#[derive(Clone, Default)]
pub(crate) struct KeptFiles {
    files: Arc<Mutex<Vec<KeptFile>>>,
}

struct KeptFile {
    key: FileKey,
    file: Arc<SpooledResult>,
    used: Instant,
}

impl KeptFiles {
    fn lock(&self) -> MutexGuard<'_, Vec<KeptFile>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn get(&self, key: &FileKey) -> Option<Arc<SpooledResult>> {
        let mut files = self.lock();
        let kept = files.iter_mut().find(|kept| kept.key == *key)?;
        kept.used = Instant::now();
        Some(kept.file.clone())
    }

    /// Keeps a file. If there are too many, the file whose last use is longest ago is dropped.
    pub(super) fn put(&self, key: FileKey, file: Arc<SpooledResult>) {
        let mut files = self.lock();
        files.retain(|kept| kept.key != key);
        if files.len() >= MAX_FILES {
            let oldest = files.iter().enumerate().min_by_key(|(_, kept)| kept.used).map(|(at, _)| at);
            oldest.map(|at| files.swap_remove(at));
        }
        files.push(KeptFile { key: key.clone(), file, used: Instant::now() });
        drop(files);
        let kept = self.clone();
        tokio::spawn(async move {
            while let Some(left) = kept.expire(&key) {
                tokio::time::sleep(left).await;
            }
        });
    }

    /// Drops a file that nobody has read for a while, or says how long it stays at least.
    fn expire(&self, key: &FileKey) -> Option<Duration> {
        let mut files = self.lock();
        let at = files.iter().position(|kept| kept.key == *key)?;
        let left = KEPT_FOR.saturating_sub(files[at].used.elapsed());
        if left.is_zero() {
            files.swap_remove(at);
            return None;
        }
        Some(left)
    }
}

#[cfg(test)]
mod tests {
    use super::super::spool::{Spool, TemporaryFiles};
    use super::*;

    fn key(sql: &str) -> FileKey {
        FileKey { user: "u".to_owned(), schema: "main".to_owned(), sql: sql.to_owned(), max_rows: None }
    }

    #[tokio::test]
    async fn so_many_files_are_kept_and_no_more() {
        let files = TemporaryFiles::new(std::env::temp_dir(), 0);
        let empty = async || Arc::new(Spool::new(&files).end(0, false).await.unwrap());
        let kept = KeptFiles::default();
        for number in 0..MAX_FILES + 3 {
            kept.put(key(&number.to_string()), empty().await);
        }
        assert_eq!(kept.lock().len(), MAX_FILES);
        assert!(kept.get(&key("0")).is_none());
        assert!(kept.get(&key(&(MAX_FILES + 2).to_string())).is_some());
        let other = FileKey { user: "v".to_owned(), ..key("5") };
        assert!(kept.get(&other).is_none(), "another user's");
    }
}
