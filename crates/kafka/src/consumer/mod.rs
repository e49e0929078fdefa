//! A member of a consumer group that reads the partitions it is given.

mod budget;
mod event;
mod handle;
mod options;
mod pattern;
mod records;
mod shared;

pub use event::{Assigned, Claim, Commit, CommitError, Committed, Event, Start, StartError, Watermarks};
pub use handle::{Consumer, Joined};
pub use options::{ConsumerOptions, FetchSizes, Topics};
pub use pattern::TopicPattern;
pub use records::{Fetched, Records};
