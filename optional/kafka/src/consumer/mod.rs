//! A member of a consumer group that reads the partitions it is given.
//!
//! ```text
//!                  commands                 questions and answers
//!   Consumer  ------------------> conductor <--------------------> coordinator, any broker
//!      |        events <------------  |  ^
//!      | commits                      |  | reports
//!      v                              v  |
//!   Shared: partitions, positions, budget <----> fetchers, two for each broker --> records
//! ```
//!
//! The *conductor* is one task that never waits for anybody. It drives the group's state machine, asks for
//! metadata, announces partitions with their committed offsets, and starts and ends fetchers. The consumer's
//! user may be slow: heartbeats go on. The memory that this costs is bounded by `max_prefetch_bytes` for
//! records, while events are few.
//!
//! A partition is ours from `Assigned` to `Lost`, or to the moment when it is given up after `Revoking`. Offsets are
//! committed for it in that time only. The broker, too, refuses them when the group has gone on without us.

mod budget;
mod check;
mod conductor;
mod event;
mod fetcher;
mod handle;
mod leader_epochs;
mod options;
mod pattern;
mod records;
mod shared;
mod topics;
mod troubles;

pub use event::{Assigned, Claim, Commit, CommitError, Committed, Event, Start, StartError, Watermarks};
pub use handle::{Consumer, Joined};
pub use options::{ConsumerOptions, FetchSizes, Topics};
pub use pattern::TopicPattern;
pub use records::{Fetched, Records};
