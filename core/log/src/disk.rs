//! The calls that a log makes to a disk. [`Folder`](crate::Folder) is the real disk; simulations bring their
//! own, with faults.
//!
//! Written bytes are only sure to be there after a crash once `sync` has succeeded. A file's existence or
//! removal is only sure once `sync_directory` has succeeded.

use std::io;

/// A folder of files. All calls block.
pub trait Disk: Send + Sync + 'static {
    type File: DiskFile;

    /// Returns the names of the files, in any order.
    ///
    /// # Errors
    /// Fails where the folder can't be read.
    fn list(&self) -> io::Result<Vec<String>>;
    /// Creates a file that only its owner may read, and takes `bytes` of room for it at once. The file reads
    /// as zeros.
    ///
    /// # Errors
    /// Fails where a file of that name exists, or the room can't be had in full. In the second case no file is left.
    fn create(&self, name: &str, bytes: u64) -> io::Result<Self::File>;
    /// Opens a file for reading and writing.
    ///
    /// # Errors
    /// Fails where the file is not there, or can't be opened.
    fn open(&self, name: &str) -> io::Result<Self::File>;
    /// Removes a file.
    ///
    /// # Errors
    /// Fails where the file is not there, or can't be removed.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Puts a file in another's place, in one step.
    ///
    /// # Errors
    /// Fails where the file is not there, or can't be renamed.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Makes the names of created, renamed and removed files durable.
    ///
    /// # Errors
    /// Fails where the directory can't be synced.
    fn sync_directory(&self) -> io::Result<()>;

    /// Returns a number that cannot be guessed: a payload that a client sends must not look like a record.
    ///
    /// # Errors
    /// Fails where the system gives no random number.
    fn salt(&self) -> io::Result<u64> {
        getrandom::u64().map_err(|error| io::Error::other(error.to_string()))
    }
}

/// A file of a [`Disk`].
pub trait DiskFile: Send + Sync + 'static {
    /// Returns the file's length in bytes.
    ///
    /// # Errors
    /// Fails where the length can't be read.
    fn len(&self) -> io::Result<u64>;
    /// Writes all of the bytes, behind the file's end if need be.
    ///
    /// # Errors
    /// Fails where the disk fails or is full. Some of the bytes may be written then.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;
    /// Reads bytes and returns their number; 0 at the file's end.
    ///
    /// # Errors
    /// Fails where the disk fails.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize>;
    /// Makes the written bytes durable.
    ///
    /// # Errors
    /// Fails where the disk fails. It is not known then which bytes are durable.
    fn sync(&self) -> io::Result<()>;

    /// Says whether the file has no bytes.
    ///
    /// # Errors
    /// Fails where the length can't be read.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
}
