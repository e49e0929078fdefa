//! A folder of the real disk, for its owner alone.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::disk::{Disk, DiskFile};

pub struct Folder {
    path: PathBuf,
    /// The open folder, which is only there to be synced.
    directory: File,
}

/// A file of a [`Folder`].
pub struct FolderFile(File);

impl Folder {
    /// Opens the folder, and creates it if it is not there.
    ///
    /// # Errors
    /// Fails where the folder's parent is not there, or the folder can't be created, opened or synced.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Folder> {
        let path = path.into();
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => sync_parent(&path)?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        let directory = File::open(&path)?;
        Ok(Folder { path, directory })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives a file a second name in the folder `damaged`, from which nothing is ever removed.
    pub(crate) fn keep_aside(&self, name: &str) -> io::Result<()> {
        let aside = Folder::open(self.path.join("damaged"))?;
        let place = (0..).map(|count| {
            aside.path.join(match count {
                0 => name.to_owned(),
                _ => format!("{name}.{count}"),
            })
        });
        for place in place {
            match fs::hard_link(self.path.join(name), place) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                outcome => outcome?,
            }
            break;
        }
        aside.sync_directory()
    }
}

fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(parent)?.sync_all()
}

impl Disk for Folder {
    type File = FolderFile;

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                // A name that is not UTF-8 is none of ours.
                names.extend(entry.file_name().into_string().ok());
            }
        }
        Ok(names)
    }

    fn create(&self, name: &str, bytes: u64) -> io::Result<FolderFile> {
        let path = self.path.join(name);
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
        if let Err(error) = allocate(&file, bytes) {
            // What matters is the first error; the file holds nothing, and is met again as such.
            let _ = fs::remove_file(&path);
            return Err(error);
        }
        Ok(FolderFile(file))
    }

    fn open(&self, name: &str) -> io::Result<FolderFile> {
        OpenOptions::new().read(true).write(true).open(self.path.join(name)).map(FolderFile)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.directory.sync_all()
    }
}

/// Takes the room now, so that a full disk shows here and not when a group is written.
fn allocate(file: &File, bytes: u64) -> io::Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    let length = i64::try_from(bytes).map_err(|_| io::ErrorKind::FileTooLarge)?;
    loop {
        // SAFETY: the descriptor is open for as long as `file` is borrowed.
        if unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, length) } == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EINTR) => continue,
            // A file system that can't take room beforehand: then a full disk shows later, as a failed write.
            Some(libc::EOPNOTSUPP) => return file.set_len(bytes),
            _ => return Err(error),
        }
    }
}

impl DiskFile for FolderFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.read_at(into, offset) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                outcome => return outcome,
            }
        }
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}
