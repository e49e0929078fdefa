//! Events that a consumer sends about its partitions, and orders that it is given.

use std::fmt;
use std::sync::Arc;

use crate::error::Error;
use crate::wire::TopicId;

/// One ownership of a partition. A partition gets another epoch when it comes back after it was given up or
/// lost, or its topic was made anew. So nothing of the old ownership can pass for the new one.
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
    /// Partitions that are ours from now on. Nothing of them is fetched before
    /// [`Consumer::start`](crate::consumer::Consumer::start).
    Assigned(Vec<Assigned>),
    /// Partitions that are still ours, to finish what is under way and to commit it. They have to be given up
    /// before the rebalance timeout.
    Revoking(Vec<Claim>),
    /// Partitions that may already be somebody else's. Nothing can be committed for them any more.
    Lost(Vec<Claim>),
    /// The offset to go on with is not there. Nothing more of the partition is fetched until it is started
    /// again. `start` is for [`Consumer::is_started_as`].
    ///
    /// [`Consumer::is_started_as`]: crate::consumer::Consumer::is_started_as
    OutOfRange { claim: Claim, start: u64, offset: i64, earliest: i64, latest: i64 },
    /// The present leader, of this epoch, lacks the records from `diverged` up to `offset`, where reading
    /// would go on, or it has others in their place. Nothing more of the partition is fetched until it is
    /// started again. `start` is for [`Consumer::is_started_as`].
    ///
    /// [`Consumer::is_started_as`]: crate::consumer::Consumer::is_started_as
    Truncated { claim: Claim, start: u64, offset: i64, diverged: i64, leader_epoch: i32 },
    /// An error text. The failed step is tried again.
    Trouble(String),
    /// The last event, with an error that does not pass by itself.
    Ended(Error),
}

#[derive(Debug, Clone)]
pub struct Assigned {
    pub claim: Claim,
    /// Id of the topic, all zeros where the broker has none.
    pub topic_id: TopicId,
    /// The group's committed offset, or `None` if it has committed nothing of this partition.
    pub committed: Option<Committed>,
}

/// The position of a group in a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// Offset of the next record to be read.
    pub offset: i64,
    /// Epoch of the leader that wrote the record before the offset, or -1 if it is unknown.
    pub leader_epoch: i32,
    pub metadata: String,
}

/// The place in a partition to begin at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    At(i64),
    Earliest,
    Latest,
    /// The first record that is at least so late, in milliseconds since 1970, or the end if there is none.
    Time(i64),
}

#[derive(Debug, Clone)]
pub enum StartError {
    /// The partition is not ours any more.
    Lost,
    /// The broker could not be asked. The same call may succeed later.
    Passing(Error),
    Refused(Error),
}

#[derive(Debug, Clone)]
pub struct Commit {
    pub claim: Claim,
    /// Offset of the next record to be read.
    pub offset: i64,
    /// Text beside the offset, of at most 4096 bytes.
    pub metadata: String,
}

/// The cause why a commit failed. With `Fenced` no offset was committed. With `Refused` those of other
/// partitions may have been.
#[derive(Debug, Clone)]
pub enum CommitError {
    /// One of the partitions, or more of them, is no longer ours. An event tells what has become of it.
    Fenced,
    /// The group is being rebalanced, or its coordinator can't be reached. It is not known whether the
    /// offsets were committed; the same commit can be tried again.
    Passing(Error),
    /// The commit will never succeed: the metadata is too long, or we have no right to it.
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

/// Bounds of a partition's log, as of the last answer of its broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watermarks {
    /// The first offset that is still kept.
    pub low: i64,
    /// The offset behind the last record that all replicas have.
    pub high: i64,
    /// Offset of the first open transaction, or `high` if there is none.
    pub last_stable: i64,
}
