//! The interface of a buffer, where rows wait. Three buffers come with the project (memory, disk, Redis);
//! programs may bring their own.
//!
//! A buffer keeps rows in the order in which they were appended, cuts them into batches, and forgets a batch when it is
//! told that the batch is done. It sends nothing and decides nothing: [`Gathering`](crate::Gathering) does.
//!
//! Every buffer promises:
//! 1. An append takes all of its rows or none. When it returns [`Kept::Now`] they are kept, as far as the buffer's
//!    promise goes.
//! 2. A batch's id and members are recorded before `load` gives its rows, and never change. After a crash a buffer that
//!    survives brings them back under the same id.
//! 3. Nothing is forgotten before `done`.
//! 4. Positions count this writer's rows from 0, in the order of appending. A batch has a contiguous range of them.
//!
//! No call of a buffer calls the writer back: the writer may hold its own lock meanwhile.
//!
//! All calls may come from any thread. `append` may be called while another call is under way, and must not wait for it
//! if that waits for a disk or a network. No lock is held by a buffer while it calls [`BufferEvents`].

use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use crate::destination::Destination;
use crate::id::BatchId;
use crate::rows::{Body, Rows};

pub trait Buffer: Send + Sync {
    /// Gives the buffer the receiver of its events; called once, before anything else.
    fn attach(&self, _news: Arc<dyn BufferEvents>) {}

    /// Says whether rows survive the end of the process.
    fn survives(&self) -> bool;

    /// Says whether `seal`, `load`, `split`, `done` and `left_overs` may wait for a network: then an event
    /// loop must not call them.
    fn may_block(&self) -> bool {
        false
    }

    /// Appends all of the rows, or none.
    ///
    /// # Errors
    /// Fails where there is no room, the rows are too large to be taken at once, or the buffer is closed or
    /// broken.
    fn append(&self, rows: Rows<'_>) -> Result<Appended, AppendError>;

    /// Returns the number of rows that this writer has appended.
    fn next_position(&self) -> u64;

    /// Returns the counts of rows that wait to be sealed.
    fn open(&self) -> Open;

    /// Makes a batch of the oldest rows that wait, as many as a batch may have.
    ///
    /// # Errors
    /// Fails where the buffer could not record the batch; the rows wait on then.
    fn seal(&self) -> Result<Option<Sealed>, BufferError>;

    /// Returns a batch's rows, the same ones each time.
    ///
    /// # Errors
    /// Fails where the batch is unknown, its record is not kept yet ([`BufferError::NotYet`]), or its rows
    /// can't be read.
    fn load(&self, id: BatchId) -> Result<Body, BufferError>;

    /// Cuts a batch before each of these rows into new ones, which take its place. `cuts` ascend, and lie
    /// inside of the batch.
    ///
    /// # Errors
    /// Fails where the batch is unknown, its rows can't be read, or the cut could not be recorded.
    fn split(&self, id: BatchId, cuts: &[usize]) -> Result<Vec<Sealed>, BufferError>;

    /// Ends a batch: its rows are stored, or were handed over with their error.
    ///
    /// # Errors
    /// Fails where the batch is unknown, or its end could not be recorded.
    fn done(&self, id: BatchId) -> Result<(), BufferError>;

    /// Returns batches of processes that have died. Called at the start and then from time to time; gives
    /// each batch once.
    ///
    /// # Errors
    /// Fails where the buffer could not look for them now.
    fn left_overs(&self) -> Result<LeftOvers, BufferError> {
        Ok(LeftOvers::default())
    }

    /// Ends all appends. Rows that are not done stay where they are, if the buffer survives.
    fn close(&self) {}
}

/// The outcome of an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// The position of the first of the rows.
    pub first: u64,
    pub kept: Kept,
    pub ready: Ready,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    Now,
    /// The rows are not kept yet: [`BufferEvents::kept`] or [`BufferEvents::refused`] will tell.
    Later,
}

/// The answer to whether an append is a reason to look at the rows that wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ready {
    No,
    /// The first row waits; no row waited before.
    FirstRow,
    /// A batch has become full.
    Full,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Open {
    /// Rows, of whichever process, that wait to be sealed.
    pub rows: u64,
    /// The number of batches that are full.
    pub full_batches: u64,
}

/// A batch whose id and members are fixed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    pub id: BatchId,
    pub rows: u64,
    /// Positions of this writer's rows in the batch; empty if all its rows are from other writers.
    pub positions: Range<u64>,
    /// Bytes that the batch counts for in the writer's `max_bytes`: those of rows that this writer appended.
    pub held_bytes: u64,
    /// The destination of the rows, if it is not this writer's own.
    pub destination: Option<Arc<Destination>>,
}

/// Batches and damage that were found of processes that have died.
#[derive(Debug, Default)]
pub struct LeftOvers {
    pub batches: Vec<Sealed>,
    /// Bytes that could not be read as what was written. Their rows are lost, or are in these bytes only.
    pub damaged_bytes: u64,
    /// A sentence for each thing that is wrong, with file and offset.
    pub complaints: Vec<String>,
}

/// The receiver of news about earlier appends, which a buffer tells from a thread of its own.
pub trait BufferEvents: Send + Sync {
    /// Reports that all rows before this position are kept.
    fn kept(&self, before: u64);
    /// Reports that these rows, for which the append returned [`Kept::Later`], were not taken.
    fn refused(&self, positions: Range<u64>, held_bytes: u64, error: BufferError);
    /// Reports that these rows were stored by another process.
    fn stored_elsewhere(&self, positions: Range<u64>, held_bytes: u64);
    /// Asks the writer to look at the buffer again.
    fn wake(&self);
}

/// The reason why no row was taken.
#[derive(Debug)]
pub enum AppendError {
    /// The buffer has no room now; it will have room when rows were stored.
    Full,
    /// The rows are more than is ever taken at once.
    TooLarge {
        bytes: u64,
        max_bytes: u64,
    },
    Closed,
    Failed(BufferError),
}

impl fmt::Display for AppendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AppendError::Full => f.write_str("the writer's buffer is full"),
            AppendError::TooLarge { bytes, max_bytes } => {
                write!(f, "{bytes} bytes of rows can't be taken at once: the writer's limit is {max_bytes}")
            }
            AppendError::Closed => f.write_str("the writer is closed"),
            AppendError::Failed(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for AppendError {}

/// The reason why a buffer could not do its work now. No row was lost by that.
#[derive(Debug, Clone)]
pub enum BufferError {
    Io(Arc<io::Error>),
    /// The bytes that the buffer keeps can't be read as those that it wrote.
    Damaged(String),
    /// The batch's record is not kept yet; [`Buffer::load`] returns the rows later, and
    /// [`BufferEvents::wake`] tells when.
    NotYet,
    /// The buffer has no such batch: it was done, or another process has taken it over.
    UnknownBatch(BatchId),
    /// An error of a program's own buffer, as text.
    Other(String),
}

impl fmt::Display for BufferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BufferError::Io(error) => write!(f, "the writer's buffer failed: {error}"),
            BufferError::Damaged(text) => write!(f, "the writer's buffer is damaged: {text}"),
            BufferError::NotYet => f.write_str("the writer's buffer has not recorded the batch yet"),
            BufferError::UnknownBatch(id) => write!(f, "the writer's buffer has no batch {id}"),
            BufferError::Other(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for BufferError {}

impl From<io::Error> for BufferError {
    fn from(error: io::Error) -> BufferError {
        BufferError::Io(Arc::new(error))
    }
}
