//! What has to be whole before it is sent: in memory up to a bound, in a file of its own beyond it.
//!
//! Files lie in `<data-dir>/tmp`, under random names. Each is removed from the folder when its answer ends; what a crash leaves
//! there is removed at the next start. What all of them take together is bounded; a result beyond it is an error.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt, SeekFrom};

/// What is held in memory before a file is begun.
const IN_MEMORY_BYTES: usize = 4 << 20;

/// Makes the folder for temporary files, empty and readable by its owner only.
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

/// A file's name in the folder; the file goes with it.
pub(super) struct TemporaryFile {
    path: PathBuf,
    files: Arc<TemporaryFiles>,
    bytes: AtomicU64,
}

impl TemporaryFiles {
    pub(crate) fn new(folder: PathBuf, max_bytes: u64) -> Arc<TemporaryFiles> {
        Arc::new(TemporaryFiles { folder, max_bytes, used_bytes: AtomicU64::new(0) })
    }

    pub(super) fn file(self: &Arc<TemporaryFiles>, extension: &str) -> TemporaryFile {
        let path = self.folder.join(format!("{:032x}.{extension}", fastrand::u128(..)));
        TemporaryFile { path, files: self.clone(), bytes: AtomicU64::new(0) }
    }
}

impl TemporaryFile {
    /// It is so large, or is about to be. One that grows is told of by one task at a time.
    pub(super) fn takes(&self, bytes: u64) -> io::Result<()> {
        let TemporaryFiles { max_bytes, used_bytes, .. } = &*self.files;
        let before = self.bytes.load(Ordering::Acquire);
        let fits = |used: u64| (used - before).checked_add(bytes).filter(|after| *after <= *max_bytes);
        used_bytes.fetch_update(Ordering::AcqRel, Ordering::Acquire, fits).map_err(|_| {
            io::Error::new(
                io::ErrorKind::StorageFull,
                format!("results in files would take more than {max_bytes} bytes (duckdb.max_result_files_bytes)"),
            )
        })?;
        self.bytes.store(bytes, Ordering::Release);
        Ok(())
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) async fn open(&self) -> io::Result<File> {
        File::open(&self.path).await
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        // It may never have been made.
        let _ = std::fs::remove_file(&self.path);
        self.files.used_bytes.fetch_sub(self.bytes.load(Ordering::Acquire), Ordering::AcqRel);
    }
}

/// A body that is written first and read after.
pub(super) struct Spool {
    files: Arc<TemporaryFiles>,
    memory: Vec<u8>,
    file: Option<Spilled>,
    length: u64,
}

struct Spilled {
    file: File,
    /// Keeps the file until the spool is dropped.
    name: TemporaryFile,
}

impl Spool {
    pub(super) fn new(files: &Arc<TemporaryFiles>) -> Spool {
        Spool { files: files.clone(), memory: Vec::new(), file: None, length: 0 }
    }

    /// Takes the bytes.
    pub(super) async fn push(&mut self, bytes: &mut Vec<u8>) -> io::Result<()> {
        self.length += bytes.len() as u64;
        self.memory.append(bytes);
        if self.memory.len() <= IN_MEMORY_BYTES {
            return Ok(());
        }
        if self.file.is_none() {
            let name = self.files.file("result");
            let mut options = tokio::fs::OpenOptions::new();
            let file = options.read(true).write(true).create_new(true).mode(0o600).open(name.path()).await?;
            self.file = Some(Spilled { file, name });
        }
        if let Some(spilled) = &mut self.file {
            spilled.name.takes(self.length)?;
            spilled.file.write_all(&self.memory).await?;
            self.memory.clear();
        }
        Ok(())
    }

    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Everything has been pushed: from now on it is read.
    pub(super) async fn rewind(&mut self) -> io::Result<()> {
        if let Some(spilled) = &mut self.file {
            spilled.file.flush().await?;
            spilled.file.seek(SeekFrom::Start(0)).await?;
        }
        Ok(())
    }

    /// The next bytes, up to about `limit`; none at the end.
    pub(super) async fn read(&mut self, limit: usize) -> io::Result<Vec<u8>> {
        if let Some(spilled) = &mut self.file {
            let mut piece = vec![0; limit];
            let read = spilled.file.read(&mut piece).await?;
            if read > 0 {
                piece.truncate(read);
                return Ok(piece);
            }
        }
        Ok(std::mem::take(&mut self.memory))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_crash_left_is_gone_at_the_start() {
        use std::os::unix::fs::PermissionsExt;
        let folder = std::env::temp_dir().join(format!("windrow-spool-{:016x}", fastrand::u64(..)));
        prepare_temporary_folder(&folder).unwrap();
        std::fs::write(folder.join("left.parquet"), b"x").unwrap();
        prepare_temporary_folder(&folder).unwrap();
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
        assert_eq!(std::fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
        std::fs::remove_dir(&folder).unwrap();
    }

    #[tokio::test]
    async fn what_goes_in_comes_out_and_leaves_no_file() {
        let folder = std::env::temp_dir().join(format!("windrow-spool-{:016x}", fastrand::u64(..)));
        prepare_temporary_folder(&folder).unwrap();
        let files = TemporaryFiles::new(folder.clone(), 1 << 30);
        for pieces in [0, 1, 7, 30] {
            let mut spool = Spool::new(&files);
            let mut wanted = Vec::new();
            for piece in 0..pieces {
                let mut bytes = vec![piece as u8; 700_000];
                wanted.extend_from_slice(&bytes);
                spool.push(&mut bytes).await.unwrap();
            }
            assert_eq!(spool.length(), wanted.len() as u64);
            spool.rewind().await.unwrap();
            let mut read = Vec::new();
            loop {
                let piece = spool.read(100_000).await.unwrap();
                if piece.is_empty() {
                    break;
                }
                read.extend_from_slice(&piece);
            }
            assert!(read == wanted);
            assert_eq!(std::fs::read_dir(&folder).unwrap().count(), usize::from(pieces > 6));
            drop(spool);
            assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
        }
        assert_eq!(files.used_bytes.load(Ordering::Acquire), 0);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[tokio::test]
    async fn files_take_no_more_than_their_bound() {
        let folder = std::env::temp_dir().join(format!("windrow-spool-{:016x}", fastrand::u64(..)));
        prepare_temporary_folder(&folder).unwrap();
        let files = TemporaryFiles::new(folder.clone(), 10 << 20);
        let (mut one, mut other) = (Spool::new(&files), Spool::new(&files));
        one.push(&mut vec![1; 6 << 20]).await.unwrap();
        let error = other.push(&mut vec![2; 6 << 20]).await.unwrap_err();
        assert!(error.to_string().contains("duckdb.max_result_files_bytes"), "{error}");
        drop(one);
        let mut third = Spool::new(&files);
        third.push(&mut vec![3; 6 << 20]).await.unwrap();
        third.push(&mut vec![3; 3 << 20]).await.unwrap();
        let of_disk: u64 =
            std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().metadata().unwrap().len()).sum();
        assert!(of_disk <= 10 << 20, "{of_disk}");
        drop((other, third));
        assert_eq!(files.used_bytes.load(Ordering::Acquire), 0);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
