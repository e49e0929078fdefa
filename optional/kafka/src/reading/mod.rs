//! Reading without being a member of a group: a range of offsets, what a group has committed, a topic's newest records.

mod committed;
mod range;
mod sample;

pub use committed::CommittedOffset;
pub use range::{RangeError, RangePart, RangeReader, ReadOptions};
pub use sample::{Sample, SampledPartition, SampledRecord};
