//! What a log needs of a disk. [`Folder`](crate::Folder) is the real one; simulations bring their own, with faults.
//!
//! What is written is only sure to be there after a crash once `sync` has succeeded; that a file is there at all, or is
//! gone, only once `sync_directory` has.

use std::io;

/// A folder of files. All calls block.
pub trait Disk: Send + Sync + 'static {
    type File: DiskFile;

    /// Names of the files, in any order.
    fn list(&self) -> io::Result<Vec<String>>;
    /// A new file that only its owner may read, with so much room taken at once. It reads as zeros. If it can't be had
    /// whole, it is not there.
    fn create(&self, name: &str, bytes: u64) -> io::Result<Self::File>;
    fn open(&self, name: &str) -> io::Result<Self::File>;
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Puts a file in another's place, in one step.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    fn sync_directory(&self) -> io::Result<()>;

    /// A number that nobody can guess: what somebody sends to be written must not look like a record.
    fn salt(&self) -> io::Result<u64> {
        getrandom::u64().map_err(|error| io::Error::other(error.to_string()))
    }
}

/// A file of a [`Disk`].
pub trait DiskFile: Send + Sync + 'static {
    fn len(&self) -> io::Result<u64>;
    /// Writes all of it, behind the file's end if need be.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;
    /// How many bytes were read; 0 at the file's end.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize>;
    fn sync(&self) -> io::Result<()>;

    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
}
