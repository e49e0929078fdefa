//! Sub-folders: one for each writer, which holds a lock on it for as long as it lives.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{flock, FlockOperation};

const LOCK: &str = "lock";
/// The folder for segments in which something could not be read. Nothing in it is ever removed.
const DAMAGED: &str = "damaged";

/// A sub-folder whose lock this writer has.
pub(super) struct Folder {
    pub(super) path: PathBuf,
    lock: File,
}

/// Makes a new sub-folder. Its name begins with the time, so that older sub-folders are adopted first.
pub(super) fn create_own(root: &Path) -> io::Result<Folder> {
    make(root)?;
    loop {
        let now_ns = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64);
        let random = getrandom::u32().map_err(|error| io::Error::other(error.to_string()))?;
        let path = root.join(format!("{now_ns:016x}-{random:08x}"));
        make(&path)?;
        // Another writer may just have taken it for one that a dead writer has left empty, and removed it.
        match lock(&path)? {
            Some(folder) => return Ok(folder),
            None => continue,
        }
    }
}

/// Syncs the root's own name and the names in it, so that they survive a loss of power.
pub(super) fn sync_name(root: &Path) -> io::Result<()> {
    File::open(root)?.sync_all()?;
    let parent = root.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match File::open(parent) {
        // A folder that may not be read was not made by us.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        opened => opened?.sync_all(),
    }
}

/// Takes over a sub-folder, if its writer is dead. Returns `None` if the writer lives, or the folder is gone.
pub(super) fn lock(path: &Path) -> io::Result<Option<Folder>> {
    let mut options = OpenOptions::new();
    let file = match options.read(true).write(true).create(true).truncate(false).mode(0o600).open(path.join(LOCK)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    match flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(io::Error::from) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
        locked => locked?,
    }
    // Whoever had the lock before may have removed the folder.
    match file.metadata()?.nlink() {
        0 => Ok(None),
        _ => Ok(Some(Folder { path: path.to_path_buf(), lock: file })),
    }
}

/// Returns all sub-folders that look like a writer's, the oldest first.
pub(super) fn list(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        let is_ours = entry.file_name().to_str().is_some_and(is_writers_name);
        if is_ours && entry.file_type()?.is_dir() {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

fn is_writers_name(name: &str) -> bool {
    let is_hex = |text: &str, length| text.len() == length && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    name.split_once('-').is_some_and(|(time, random)| is_hex(time, 16) && is_hex(random, 8))
}

impl Folder {
    /// Returns the numbers of the segments that are there, in order.
    pub(super) fn segments(&self) -> io::Result<Vec<u64>> {
        let mut numbers = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            numbers.extend(entry?.file_name().to_str().and_then(super::segment::number_of));
        }
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Removes the sub-folder, when nothing is in it any more but the lock, and unfinished copies of segments.
    pub(super) fn remove(&self) {
        // What can't be removed is found empty by the next writer, which tries again.
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten().map(|entry| entry.path());
        let copies = entries.filter(|path| path.extension().is_some_and(|extension| extension == "rewrite"));
        copies.for_each(|path| drop(fs::remove_file(path)));
        let _ = fs::remove_file(self.path.join(LOCK));
        let _ = fs::remove_dir(&self.path);
        self.unlock();
    }

    /// Gives back the lock: from now on another writer may adopt the folder.
    pub(super) fn unlock(&self) {
        // The descriptor is open for as long as the folder is there, so this does not fail.
        let _ = flock(&self.lock, FlockOperation::Unlock);
    }

    /// Moves a file to the folder in which nothing is removed.
    pub(super) fn keep_aside(&self, file: &Path) -> io::Result<()> {
        let root = self.path.parent().unwrap_or(Path::new("."));
        let aside = root.join(DAMAGED);
        make(&aside)?;
        let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        fs::rename(file, aside.join(format!("{}-{}", name(&self.path), name(file))))
    }
}

fn make(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_writers_are_known() {
        assert!(is_writers_name("18f9019ac0ffee00-0badcafe"));
        for other in [
            "damaged",
            "18f9019ac0ffee00",
            "18f9019ac0ffee00-0badcafe.old",
            "18f9019ac0ffee0-0badcafe",
            "x8f9019ac0ffee00-0badcafe",
        ] {
            assert!(!is_writers_name(other), "{other}");
        }
    }
}
