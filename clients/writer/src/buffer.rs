//! What a place for rows has to do. Three of them come with the project (memory, disk, Redis); programs may bring their
//! own.
//!
//! A buffer keeps rows in the order in which they were appended, cuts them into batches, and forgets a batch when it is
//! told that the batch is done. It sends nothing and decides nothing: [`Gathering`](crate::Gathering) does.
//!
//! What every buffer promises:
//! 1. An append takes all of its rows or none. When it returns [`Kept::Now`] they are kept, as far as the buffer's
//!    promise goes.
//! 2. A batch's id and members are recorded before `load` gives its rows, and never change. After a crash a buffer that
//!    survives brings them back under the same id.
//! 3. Nothing is forgotten before `done`.
//! 4. Positions count this writer's rows from 0, in the order of appending. A batch has a contiguous range of them.
//!
//! No call calls the writer back: it may be under way under the writer's own lock.
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
    /// Called once, before anything else.
    fn attach(&self, _news: Arc<dyn BufferEvents>) {}

    /// Whether rows survive the end of the process.
    fn survives(&self) -> bool;

    /// Whether `seal`, `load`, `split`, `done` and `left_overs` may wait for a network: then they are no calls for an
    /// event loop.
    fn may_block(&self) -> bool {
        false
    }

    fn append(&self, rows: Rows<'_>) -> Result<Appended, AppendError>;

    /// How many rows this writer has appended.
    fn next_position(&self) -> u64;

    /// What waits to be sealed.
    fn open(&self) -> Open;

    /// Makes a batch of the oldest rows that wait, as many as a batch may have.
    fn seal(&self) -> Result<Option<Sealed>, BufferError>;

    /// A batch's rows, the same ones each time.
    fn load(&self, id: BatchId) -> Result<Body, BufferError>;

    /// Cuts a batch before each of these rows into new ones, which take its place. `cuts` ascend, and lie inside of the
    /// batch.
    fn split(&self, id: BatchId, cuts: &[usize]) -> Result<Vec<Sealed>, BufferError>;

    /// The batch came to its end: its rows are stored, or were handed over with their error.
    fn done(&self, id: BatchId) -> Result<(), BufferError>;

    /// Batches of processes that have died. Called at the start and then from time to time; gives each of them once.
    fn left_overs(&self) -> Result<LeftOvers, BufferError> {
        Ok(LeftOvers::default())
    }

    /// Nothing will be appended any more. What is not done stays where it is, if the buffer survives.
    fn close(&self) {}
}

/// What an append has come to.
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
    /// [`BufferEvents::kept`] will tell, or [`BufferEvents::refused`].
    Later,
}

/// Whether an append is a reason to look at what waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ready {
    No,
    /// Nothing waited before.
    FirstRow,
    /// A batch has become full.
    Full,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Open {
    /// Rows, of whichever process, that wait to be sealed.
    pub rows: u64,
    /// How many of them are in batches that are full.
    pub full_batches: u64,
}

/// A batch whose id and members are fixed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    pub id: BatchId,
    pub rows: u64,
    /// Which of this writer's rows it has; empty for a batch of another's rows alone.
    pub positions: Range<u64>,
    /// What it counts for in the writer's `max_bytes`: what was appended to it by this writer.
    pub held_bytes: u64,
    /// Where its rows go, if that is not where this writer's go.
    pub destination: Option<Arc<Destination>>,
}

/// What was found of processes that have died.
#[derive(Debug, Default)]
pub struct LeftOvers {
    pub batches: Vec<Sealed>,
    /// Bytes that could not be read as what was written. What they held is lost, or in them.
    pub damaged_bytes: u64,
    /// A sentence for each thing that is wrong, with file and offset.
    pub complaints: Vec<String>,
}

/// How a buffer tells what became of earlier appends, from a thread of its own.
pub trait BufferEvents: Send + Sync {
    /// All rows before this position are kept.
    fn kept(&self, before: u64);
    /// These rows, of which it said [`Kept::Later`], are not kept: they were not taken.
    fn refused(&self, positions: Range<u64>, held_bytes: u64, error: BufferError);
    /// These rows were stored by another process.
    fn stored_elsewhere(&self, positions: Range<u64>, held_bytes: u64);
    /// There is something to be looked at.
    fn wake(&self);
}

/// Why nothing was taken.
#[derive(Debug)]
pub enum AppendError {
    /// There is no room now; there will be when something was stored.
    Full,
    /// So much is never taken at once.
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

/// A buffer could not do its work now. Nothing was lost by that.
#[derive(Debug, Clone)]
pub enum BufferError {
    Io(Arc<io::Error>),
    /// What it keeps can't be read as what it has written.
    Damaged(String),
    /// [`Buffer::load`] will have the rows when the batch's record has come to where it is kept; [`BufferEvents::wake`]
    /// tells.
    NotYet,
    /// No such batch: it was done, or another process has taken it over.
    UnknownBatch(BatchId),
    /// In the words of a buffer that isn't ours.
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
