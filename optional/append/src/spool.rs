//! Batches that wait in files: `<directory>/spool/<append>/<number>`.
//!
//! The files belong to this process alone. Files of an earlier process are of no use, since its transaction
//! is gone, and are removed at the start. Nothing is synced: a file that a crash damages is never read.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use arrow_ipc::writer::StreamWriter;
use bytes::Bytes;

use crate::id::AppendId;
use crate::request::Payload;

/// The folder where batches of all appends wait.
#[derive(Clone, Debug)]
pub(crate) struct Spool {
    directory: PathBuf,
}

/// A batch in a file, which is removed with this value.
#[derive(Debug)]
pub(crate) struct Spooled {
    path: PathBuf,
    is_native: bool,
    pub(crate) bytes: u64,
}

impl Spool {
    /// Opens the folder. Removes files that an earlier process has left.
    pub(crate) fn open(directory: &Path) -> io::Result<Spool> {
        let directory = directory.join("spool");
        match fs::remove_dir_all(&directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => private().recursive(true).create(&directory)?,
        }
        Ok(Spool { directory })
    }

    fn folder(&self, id: AppendId) -> PathBuf {
        self.directory.join(id.to_string())
    }

    /// Writes a batch to a file. Blocks. After an error nothing is left of it.
    pub(crate) fn write(&self, id: AppendId, number: u64, payload: &Payload) -> io::Result<Spooled> {
        let folder = self.folder(id);
        match private().create(&folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        // Two requests may bring the same number at once; each has a file, and one is thrown away.
        let path = folder.join(format!("{number}-{:x}", AppendId::random().as_u128() as u64));
        let is_native = matches!(payload, Payload::Native(_));
        let mut spooled = Spooled { path, is_native, bytes: 0 };
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&spooled.path)?;
        match payload {
            Payload::ArrowStream(bytes) | Payload::Native(bytes) => file.write_all(bytes)?,
            Payload::Batch(batch) => {
                let mut writer = StreamWriter::try_new(&mut file, &batch.schema()).map_err(io::Error::other)?;
                writer.write(batch).and_then(|()| writer.finish()).map_err(io::Error::other)?;
            }
        }
        spooled.bytes = file.metadata()?.len();
        Ok(spooled)
    }

    /// Removes the folder of an append whose files are gone. Blocks.
    pub(crate) fn remove(&self, id: AppendId) {
        // There is none, if nothing was spooled.
        let _ = fs::remove_dir_all(self.folder(id));
    }
}

impl Spooled {
    /// Reads the batch back. Blocks.
    pub(crate) fn read(&self) -> io::Result<Payload> {
        let mut bytes = Vec::with_capacity(self.bytes as usize);
        File::open(&self.path)?.take(self.bytes).read_to_end(&mut bytes)?;
        if bytes.len() as u64 != self.bytes {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file has become shorter"));
        }
        let bytes = Bytes::from(bytes);
        Ok(if self.is_native { Payload::Native(bytes) } else { Payload::ArrowStream(bytes) })
    }
}

impl Drop for Spooled {
    fn drop(&mut self) {
        // The folder goes with the append, and all of it at the next start.
        let _ = fs::remove_file(&self.path);
    }
}

fn private() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    builder
}
