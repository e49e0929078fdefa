//! The fingerprint that tells one set of files from another: an append that is gone on with must have the
//! rows that it began with.
//!
//! Names and times don't count, so that files may be moved or copied. Of a file's content its size, its begin
//! and its end do: a Parquet file ends with an index that says where everything lies, and a text that was
//! changed has rarely the same length.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::files::common_format;
use super::{FileFormat, SourceError};

/// The bytes of each end of a file that are looked at.
const END_BYTES: u64 = 64 << 10;
const DIGEST_BYTES: usize = 8;

/// Returns a line that is the same for the same files and the same cuts, and that shows what differs:
/// `parquet files=2 bytes=123456 digest=1f0c2d3e4f5a6b7c batch_bytes=4194304`. An input that is no file says
/// nothing of itself.
///
/// # Errors
/// Fails where the files have no common format, or one of them can't be read.
pub fn fingerprint(paths: &[PathBuf], format: Option<FileFormat>, batch_bytes: u64) -> Result<String, SourceError> {
    let format = common_format(paths, format)?;
    let mut all = Content { bytes: 0, digest: Sha256::new() };
    for path in paths {
        all.add(path).map_err(|error| SourceError::in_file(path, error))?;
    }
    let digest: String = all.digest.finalize().iter().take(DIGEST_BYTES).map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("{format} files={} bytes={} digest={digest} batch_bytes={batch_bytes}", paths.len(), all.bytes))
}

struct Content {
    bytes: u64,
    digest: Sha256,
}

impl Content {
    fn add(&mut self, path: &Path) -> std::io::Result<()> {
        // What is read from a pipe is gone.
        if path.as_os_str() == "-" || !std::fs::metadata(path)?.is_file() {
            self.digest.update(b"pipe");
            return Ok(());
        }
        let mut file = File::open(path)?;
        let bytes = file.metadata()?.len();
        self.bytes = self.bytes.saturating_add(bytes);
        self.digest.update(bytes.to_le_bytes());
        let mut ends = Vec::new();
        (&mut file).take(END_BYTES).read_to_end(&mut ends)?;
        file.seek(SeekFrom::Start(bytes.saturating_sub(END_BYTES)))?;
        file.take(END_BYTES).read_to_end(&mut ends)?;
        self.digest.update(&ends);
        Ok(())
    }
}
