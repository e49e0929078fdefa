//! What has to be whole before it is sent: in memory up to a bound, in a file of its own beyond it.
//!
//! Files lie in `<data-dir>/tmp`, under random names. Each is removed from the folder when its answer ends; what a crash leaves
//! there is removed at the next start.

use std::io;
use std::path::{Path, PathBuf};

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

/// A file's name in the folder; the file goes with it.
pub(super) struct TemporaryFile {
    path: PathBuf,
}

impl TemporaryFile {
    pub(super) fn new(folder: &Path, extension: &str) -> TemporaryFile {
        TemporaryFile { path: folder.join(format!("{:032x}.{extension}", fastrand::u128(..))) }
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
    }
}

/// A body that is written first and read after.
pub(super) struct Spool {
    folder: PathBuf,
    memory: Vec<u8>,
    file: Option<Spilled>,
    length: u64,
}

struct Spilled {
    file: File,
    /// Keeps the file until the spool is dropped.
    _name: TemporaryFile,
}

impl Spool {
    pub(super) fn new(folder: &Path) -> Spool {
        Spool { folder: folder.to_owned(), memory: Vec::new(), file: None, length: 0 }
    }

    /// Takes the bytes.
    pub(super) async fn push(&mut self, bytes: &mut Vec<u8>) -> io::Result<()> {
        self.length += bytes.len() as u64;
        self.memory.append(bytes);
        if self.memory.len() <= IN_MEMORY_BYTES {
            return Ok(());
        }
        if self.file.is_none() {
            let name = TemporaryFile::new(&self.folder, "result");
            let mut options = tokio::fs::OpenOptions::new();
            let file = options.read(true).write(true).create_new(true).mode(0o600).open(name.path()).await?;
            self.file = Some(Spilled { file, _name: name });
        }
        if let Some(spilled) = &mut self.file {
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
        for pieces in [0, 1, 7, 30] {
            let mut spool = Spool::new(&folder);
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
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
