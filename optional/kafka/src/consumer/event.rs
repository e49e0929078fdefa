//! What a consumer tells of its partitions, and what it is told.

use std::fmt;
use std::sync::Arc;

use crate::error::Error;
use crate::wire::TopicId;

/// One ownership of a partition. A partition that comes back after it was given up, or lost, or whose topic was made anew, has another
/// epoch, so that nothing of the old ownership can pass for the new one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Claim {
    pub topic: Arc<str>,
    pub partition: i32,
    pub epoch: u64,
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.topic, self.partition)
    }
}

#[derive(Debug, Clone)]
pub enum Event {
    /// Nothing of them is fetched before [`Consumer::start`](crate::consumer::Consumer::start).
    Assigned(Vec<Assigned>),
    /// They are still ours, to finish what is under way and to commit it; they have to be given up before the rebalance timeout.
    Revoking(Vec<Claim>),
    /// They may already be somebody else's. Nothing can be committed for them any more.
    Lost(Vec<Claim>),
    /// The offset to go on with is not there; nothing more of the partition is fetched until it is started again. `start` is for
    /// [`Consumer::is_started_as`].
    ///
    /// [`Consumer::is_started_as`]: crate::consumer::Consumer::is_started_as
    OutOfRange { claim: Claim, start: u64, offset: i64, earliest: i64, latest: i64 },
    /// The present leader, of this epoch, lacks the records from `diverged` up to `offset`, which is where reading would go on; or it has others
    /// in their place. Nothing more of the partition is fetched until it is started again. `start` is for [`Consumer::is_started_as`].
    ///
    /// [`Consumer::is_started_as`]: crate::consumer::Consumer::is_started_as
    Truncated { claim: Claim, start: u64, offset: i64, diverged: i64, leader_epoch: i32 },
    /// Something went wrong and is tried again.
    Trouble(String),
    /// Nothing comes after it: what is wrong does not pass by itself.
    Ended(Error),
}

#[derive(Debug, Clone)]
pub struct Assigned {
    pub claim: Claim,
    /// Of zeros where the broker has none.
    pub topic_id: TopicId,
    /// Nothing if the group has committed nothing of this partition.
    pub committed: Option<Committed>,
}

/// How far a group has come in a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// Of the next record to be read.
    pub offset: i64,
    /// -1 if unknown.
    pub leader_epoch: i32,
    pub metadata: String,
}

/// Where to begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    At(i64),
    Earliest,
    Latest,
    /// With the first record that is at least so late, in milliseconds since 1970; at the end if there is none.
    Time(i64),
}

#[derive(Debug, Clone)]
pub enum StartError {
    /// The partition is not ours any more.
    Lost,
    /// The broker could not be asked; the same may succeed later.
    Passing(Error),
    Refused(Error),
}

#[derive(Debug, Clone)]
pub struct Commit {
    pub claim: Claim,
    /// Of the next record to be read.
    pub offset: i64,
    /// At most 4096 bytes, unless the broker was told otherwise.
    pub metadata: String,
}

/// Why offsets were not committed. With all but `Passing`, none of them was.
#[derive(Debug, Clone)]
pub enum CommitError {
    /// One of the partitions at least is no longer ours. What it was is told by an event.
    Fenced,
    /// The group is being rebalanced, or its coordinator can't be reached: whether they were committed is not known. The same can be
    /// tried again.
    Passing(Error),
    /// It will never be taken: the metadata is too long, or we may not.
    Refused(Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost => f.write_str("the partition belongs to another member of the group"),
            Self::Passing(error) | Self::Refused(error) => fmt::Display::fmt(error, f),
        }
    }
}

impl std::error::Error for StartError {}

impl fmt::Display for CommitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fenced => f.write_str("a partition belongs to another member of the group"),
            Self::Passing(error) | Self::Refused(error) => fmt::Display::fmt(error, f),
        }
    }
}

impl std::error::Error for CommitError {}

/// Of a partition, as of the last answer of its broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watermarks {
    /// The first offset that is still kept.
    pub low: i64,
    /// Behind the last record that all replicas have.
    pub high: i64,
    /// Of the first open transaction; `high` if there is none.
    pub last_stable: i64,
}
