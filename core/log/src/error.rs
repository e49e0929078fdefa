//! The errors of a log. Damage and a failing disk are never confused with each other.

use std::fmt;
use std::io;
use std::sync::Arc;

/// The log has no room for a record of this kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogFull {
    /// The bound that would be exceeded.
    pub max_bytes: u64,
    pub bound: Bound,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The bytes that the log may take on the disk.
    Disk,
    /// The bytes that may wait in memory to be written. It is reached where records come faster than the disk
    /// writes.
    Queue,
}

impl fmt::Display for LogFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let max_bytes = self.max_bytes;
        match self.bound {
            Bound::Disk => write!(f, "its {max_bytes} bytes on the disk are full"),
            Bound::Queue => write!(f, "the disk is slow, and {max_bytes} bytes are waiting to be written"),
        }
    }
}

impl std::error::Error for LogFull {}

/// The reason why an appended record is not on the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommitError {
    /// The disk is full. Nothing of the record was written.
    DiskFull(Arc<str>),
    /// Writing or syncing failed. The record counts as not written, and a log that goes on leaves it out. If
    /// the process ends before the log has recorded that on the disk (`certain` is false then), the next
    /// start may find the record.
    Io { error: Arc<str>, certain: bool },
    /// The log was closed before.
    Closed,
}

impl CommitError {
    pub(crate) fn io(error: &io::Error, certain: bool) -> CommitError {
        CommitError::Io { error: error.to_string().into(), certain }
    }
}

impl fmt::Display for CommitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CommitError::DiskFull(error) => write!(f, "the disk is full: {error}"),
            CommitError::Io { error, .. } => write!(f, "the disk failed: {error}"),
            CommitError::Closed => write!(f, "the log is closed"),
        }
    }
}

impl std::error::Error for CommitError {}

/// The reason why a record can't be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// The record was released, or is not on the disk yet.
    Gone,
    Corrupt(String),
    Io(String),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Gone => write!(f, "the record is not in the log"),
            ReadError::Corrupt(text) | ReadError::Io(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for ReadError {}

/// The reason why a log can't be opened. A damaged log was not changed.
#[derive(Debug)]
pub enum OpenError {
    /// The bytes on the disk are not the ones that were written.
    Corrupt(Corruption),
    /// The disk failed; the log may be undamaged.
    Io { file: String, error: io::Error },
    /// The file was written by another version of Windrow.
    Version { file: String, why: String },
}

/// The place of a damage, its cause, and the loss.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Corruption {
    /// The file's name.
    pub segment: String,
    pub offset: u64,
    pub why: String,
    /// The records that are lost, as far as it can be told.
    pub lost: String,
}

impl fmt::Display for Corruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Corruption { segment, offset, why, lost } = self;
        write!(f, "segment {segment} is damaged at byte {offset}: {why}; {lost}")
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Corrupt(corruption) => {
                write!(
                    f,
                    "{corruption}. `windrow journal inspect` shows more; `windrow journal repair` keeps all that can be \
                     read and moves the damaged file aside"
                )
            }
            OpenError::Io { file, error } => write!(
                f,
                "{file}: {error}. That is the disk's answer, not damage of the log: start again when the disk answers"
            ),
            OpenError::Version { file, why } => {
                write!(f, "segment {file}: {why}. Start the Windrow that wrote it, and let it store what is left")
            }
        }
    }
}

impl std::error::Error for OpenError {}
