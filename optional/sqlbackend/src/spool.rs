//! Results that have to be whole before they are sent: in memory up to a bound, in a file beyond it.
//!
//! A file is made in `<data-dir>/tmp` and has lost its name before anything is written to it: nobody else finds it
//! there, and nothing of it is left when the process ends, however it ends. What all of them take together is bounded;
//! a result beyond it is an error.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use tokio::io::AsyncWriteExt;

/// Bytes that are held in memory before a file is begun.
const IN_MEMORY_BYTES: usize = 4 << 20;

/// Makes the folder for temporary files, empty and readable by its owner only.
///
/// # Errors
/// Fails where the folder of an earlier run can't be removed, or the folder can't be made.
pub fn prepare_temporary_folder(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// All results that lie in files.
pub(crate) struct TemporaryFiles {
    folder: PathBuf,
    max_bytes: u64,
    used_bytes: AtomicU64,
}

/// The bytes that one file takes of the bound.
struct FileQuota {
    files: Arc<TemporaryFiles>,
    bytes: u64,
}

impl TemporaryFiles {
    pub(crate) fn new(folder: PathBuf, max_bytes: u64) -> Arc<TemporaryFiles> {
        Arc::new(TemporaryFiles { folder, max_bytes, used_bytes: AtomicU64::new(0) })
    }

    /// Makes a file and removes its name. Blocks, so that nothing stops it between the two.
    fn nameless_file(&self) -> io::Result<File> {
        let path = self.folder.join(format!("{:032x}", fastrand::u128(..)));
        let file = File::options().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
        std::fs::remove_file(&path)?;
        Ok(file)
    }
}

impl FileQuota {
    fn grow_to(&mut self, bytes: u64) -> io::Result<()> {
        let TemporaryFiles { max_bytes, used_bytes, .. } = &*self.files;
        let fits = |used: u64| (used - self.bytes).checked_add(bytes).filter(|after| *after <= *max_bytes);
        used_bytes.fetch_update(Ordering::AcqRel, Ordering::Acquire, fits).map_err(|_| {
            io::Error::new(
                io::ErrorKind::StorageFull,
                format!("results in files would take more than {max_bytes} bytes (duckdb.max_result_files_bytes)"),
            )
        })?;
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for FileQuota {
    fn drop(&mut self) {
        self.files.used_bytes.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

/// A result that is being written.
pub(super) struct Spool {
    files: Arc<TemporaryFiles>,
    memory: Vec<u8>,
    file: Option<(tokio::fs::File, FileQuota)>,
    length: u64,
}

impl Spool {
    pub(super) fn new(files: &Arc<TemporaryFiles>) -> Spool {
        Spool { files: files.clone(), memory: Vec::new(), file: None, length: 0 }
    }

    /// Takes all bytes out of `bytes`, and appends them to the result.
    pub(super) async fn push(&mut self, bytes: &mut Vec<u8>) -> io::Result<()> {
        self.length += bytes.len() as u64;
        self.memory.append(bytes);
        match self.memory.len() <= IN_MEMORY_BYTES {
            true => Ok(()),
            false => self.spill().await,
        }
    }

    async fn spill(&mut self) -> io::Result<()> {
        if self.file.is_none() {
            let files = self.files.clone();
            let made = tokio::task::spawn_blocking(move || files.nameless_file()).await;
            let file = tokio::fs::File::from_std(made.map_err(io::Error::other)??);
            self.file = Some((file, FileQuota { files: self.files.clone(), bytes: 0 }));
        }
        if let Some((file, quota)) = &mut self.file {
            quota.grow_to(self.length)?;
            file.write_all(&self.memory).await?;
            self.memory = Vec::new();
        }
        Ok(())
    }

    /// Ends the result. One that is `kept` is put into a file, whatever its length.
    pub(super) async fn end(mut self, rows: u64, kept: bool) -> io::Result<SpooledResult> {
        if kept || self.file.is_some() {
            self.spill().await?;
        }
        let body = match self.file {
            None => Body::Memory(self.memory),
            Some((mut file, quota)) => {
                file.flush().await?;
                Body::File { file: Arc::new(file.into_std().await), _quota: quota }
            }
        };
        Ok(SpooledResult { body, length: self.length, rows })
    }
}

/// A complete result, which any number of readers can read, each at a place of its own.
pub(super) struct SpooledResult {
    body: Body,
    pub(super) length: u64,
    pub(super) rows: u64,
}

enum Body {
    Memory(Vec<u8>),
    File { file: Arc<File>, _quota: FileQuota },
}

impl SpooledResult {
    /// Reads the bytes of a range, which has to lie within the length.
    pub(super) async fn read(&self, range: Range<u64>) -> io::Result<Vec<u8>> {
        match &self.body {
            Body::Memory(bytes) => Ok(bytes[range.start as usize..range.end as usize].to_vec()),
            Body::File { file, .. } => {
                let file = file.clone();
                let read = move || {
                    let mut piece = vec![0; (range.end - range.start) as usize];
                    file.read_exact_at(&mut piece, range.start).map(|()| piece)
                };
                tokio::task::spawn_blocking(read).await.map_err(io::Error::other)?
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> PathBuf {
        let folder = std::env::temp_dir().join(format!("windrow-spool-{:016x}", fastrand::u64(..)));
        prepare_temporary_folder(&folder).unwrap();
        folder
    }

    fn names(folder: &Path) -> usize {
        std::fs::read_dir(folder).unwrap().count()
    }

    #[test]
    fn what_a_crash_left_is_gone_at_the_start() {
        use std::os::unix::fs::PermissionsExt;
        let folder = folder();
        std::fs::write(folder.join("left"), b"x").unwrap();
        prepare_temporary_folder(&folder).unwrap();
        assert_eq!(names(&folder), 0);
        assert_eq!(std::fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
        std::fs::remove_dir(&folder).unwrap();
    }

    #[tokio::test]
    async fn what_goes_in_comes_out_and_never_has_a_name() {
        let folder = folder();
        let files = TemporaryFiles::new(folder.clone(), 1 << 30);
        for (pieces, kept) in [(0, false), (0, true), (1, false), (1, true), (7, false), (30, true)] {
            let mut spool = Spool::new(&files);
            let mut wanted = Vec::new();
            for piece in 0..pieces {
                let mut bytes = vec![piece as u8; 700_000];
                wanted.extend_from_slice(&bytes);
                spool.push(&mut bytes).await.unwrap();
                assert_eq!(names(&folder), 0);
            }
            let whole = spool.end(5, kept).await.unwrap();
            assert_eq!((whole.length, whole.rows, names(&folder)), (wanted.len() as u64, 5, 0));
            assert_eq!(matches!(whole.body, Body::File { .. }), kept || pieces > 6);
            for range in [0..whole.length, whole.length / 3..whole.length / 2, whole.length..whole.length] {
                let of_wanted = &wanted[range.start as usize..range.end as usize];
                assert!(whole.read(range).await.unwrap() == of_wanted);
            }
        }
        assert_eq!(files.used_bytes.load(Ordering::Acquire), 0);
        std::fs::remove_dir(&folder).unwrap();
    }

    #[tokio::test]
    async fn files_take_no_more_than_their_bound() {
        let folder = folder();
        let files = TemporaryFiles::new(folder.clone(), 10 << 20);
        let (mut one, mut other) = (Spool::new(&files), Spool::new(&files));
        one.push(&mut vec![1; 6 << 20]).await.unwrap();
        let error = other.push(&mut vec![2; 6 << 20]).await.unwrap_err();
        assert!(error.to_string().contains("duckdb.max_result_files_bytes"), "{error}");
        drop(one);
        let mut third = Spool::new(&files);
        third.push(&mut vec![3; 6 << 20]).await.unwrap();
        third.push(&mut vec![3; 3 << 20]).await.unwrap();
        let third = third.end(0, true).await.unwrap();
        assert_eq!(files.used_bytes.load(Ordering::Acquire), 9 << 20);
        drop((other, third));
        assert_eq!(files.used_bytes.load(Ordering::Acquire), 0);
        std::fs::remove_dir(&folder).unwrap();
    }
}
